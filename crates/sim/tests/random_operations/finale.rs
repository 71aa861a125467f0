//! The end of a case: the network heals, everything arrives, and nothing is left.

use std::time::Duration;

use swiftwater_quic::PathStats;
use swiftwater_sim::HostId;
use swiftwater_units::{ByteCount, Dir, Instant, Side};

use super::run::{DIRS, SIDES, World};
use super::setup::HANDSHAKE_TIMEOUT;

/// Once the network is healed and the handshake is confirmed, something arrives within this time,
/// and some times the time that the network was ill and that round trips took: timers have backed
/// off.
const TIME_LIMIT: Duration = Duration::from_secs(300);
/// The smallest size of datagrams, and no MTU probe has it.
const ONE_DATAGRAM: u64 = 1_200;
/// After the last close, everything is gone within this time, handshakes that a replayed packet
/// began included.
const END_PATIENCE: Duration = Duration::from_secs(300_000_000);

impl World {
    fn is_over(&self) -> bool {
        self.watches
            .iter()
            .any(|watch| watch.reason.is_some() || watch.closed)
    }

    /// The impairments end; everything written must arrive and be acknowledged.
    pub(super) fn heal(&mut self) {
        for faults in &self.faults {
            faults.borrow_mut().healed = true;
        }
        for side in SIDES {
            self.serve_everything(side);
        }
        self.settle();
        let mut deadline = self.pair.now() + HANDSHAKE_TIMEOUT;
        let mut ping_at = Instant::ZERO;
        let mut progress = 0;
        while !self.is_over() && !self.is_settled() {
            let now = self.pair.now();
            let made = self.progress();
            if made > progress {
                progress = made;
                deadline = now + self.time_limit();
            }
            assert!(now < deadline, "nothing moves: {}", self.report());
            if !self.moved {
                ping_at = deadline;
            } else if now >= ping_at {
                // A server can't find a client that moved while neither had anything to send.
                ping_at = now + Duration::from_secs(2);
                self.pair.client().ping();
            }
            self.step_until(ping_at.min(deadline));
            for side in SIDES {
                self.serve_events(side);
            }
            self.settle();
        }
    }

    /// Rises with whatever gets done.
    fn progress(&self) -> u64 {
        let confirmed = self.watches.iter().filter(|watch| watch.confirmed);
        self.model.progress() + confirmed.count() as u64
    }

    /// How long nothing may get done from now on.
    fn time_limit(&self) -> Duration {
        if !self.watches.iter().all(|watch| watch.confirmed) {
            return HANDSHAKE_TIMEOUT;
        }
        let timeouts = SIDES.map(|side| {
            let path = self.pair.stats(side).paths.pop();
            path.map_or(Duration::ZERO, |path| path.smoothed_rtt + path.rtt_var * 4)
        });
        let longest = timeouts.into_iter().max().unwrap_or_default();
        TIME_LIMIT + (self.pair.now() - Instant::ZERO) * 8 + longest * 100
    }

    fn is_settled(&self) -> bool {
        let confirmed = self.watches.iter().all(|watch| watch.confirmed);
        let quiet = SIDES.into_iter().all(|side| {
            // One with a keep-alive may always have PINGs in flight.
            let pings = self.plan.ends[side as usize].keep_alive_ms.is_some();
            let stats = self.pair.stats(side);
            if stats.packets_awaiting_acks.get() > 0 && !pings {
                return false;
            }
            // Padded acknowledgements, as they share a datagram with an Initial packet, count in
            // flight and are acknowledged with what comes after them, if anything does (RFC 9002,
            // section 2).
            let limit = ByteCount::new(ONE_DATAGRAM);
            let in_flight = |path: &PathStats| path.bytes_in_flight > limit;
            !stats.paths.iter().any(in_flight) && stats.reinjector.queued == 0
        });
        confirmed
            && quiet
            && self
                .model
                .halves
                .values()
                .all(super::model::Half::is_settled)
    }

    fn report(&self) -> String {
        let halves = self
            .model
            .halves
            .iter()
            .filter(|(_, half)| !half.is_settled());
        let halves: Vec<_> = halves.collect();
        let sides = SIDES.map(|side| self.pair.stats(side));
        format!("{halves:#?}\n{sides:#?}")
    }

    /// Ends streams if the plan says so, and does once all that events would call for: those that
    /// came before the network healed were not acted on.
    fn serve_everything(&mut self, side: Side) {
        for dir in DIRS {
            self.accept_all(side, dir);
        }
        for id in self.model.known[side as usize].clone() {
            self.write_on(side, id);
            while self.read(side, id, 5_000) {}
        }
        self.read_datagrams(side);
    }

    /// Acts on nothing but events.
    fn serve_events(&mut self, side: Side) {
        for dir in DIRS {
            if std::mem::take(&mut self.watch(side).acceptable[dir as usize]) {
                self.accept_all(side, dir);
            }
        }
        for id in std::mem::take(&mut self.watch(side).readable) {
            while self.read(side, id, 5_000) {}
        }
        for id in std::mem::take(&mut self.watch(side).writable) {
            self.write_on(side, id);
        }
    }

    fn accept_all(&mut self, side: Side, dir: Dir) {
        while let Some(id) = self.pair.connection(side).and_then(|it| it.accept(dir)) {
            self.model.accepted(side, dir, id);
            while self.read(side, id, 5_000) {}
            self.write_on(side, id);
        }
    }

    /// Writes what was refused before, then ends the stream if the plan says so.
    fn write_on(&mut self, side: Side, id: swiftwater_units::StreamId) {
        let Some(half) = self.model.halves.get_mut(&(id, side)) else {
            return;
        };
        if half.finished || half.reset.is_some() || half.stopped.is_some() {
            return;
        }
        let wanted = std::mem::take(&mut half.wanted) as usize;
        if wanted > 0 {
            self.write(side, id, wanted);
        }
        let half = &self.model.halves[&(id, side)];
        if self.plan.finish_all
            && half.wanted == 0
            && let Some(connection) = self.open_connection(side)
        {
            let outcome = connection.send_stream(id).finish();
            self.model.did_finish((id, side), &outcome);
        }
    }

    /// Closes the connections of a server that the client tried again after it was refused: nothing
    /// ends those if the client has gone meanwhile.
    fn close_others(&mut self, hosts: [HostId; 2]) {
        let now = self.pair.now();
        let network = self.pair.network();
        for host in hosts {
            for handle in network.connections(host).collect::<Vec<_>>() {
                if let Some(connection) = network.connection(host, handle) {
                    connection.close(now, 7, b"enough");
                }
            }
        }
    }

    /// Both ends close; nothing may be left.
    pub(super) fn close(&mut self) {
        for side in SIDES {
            if self.open_connection(side).is_some() {
                self.close_side(side);
            }
        }
        self.settle();
        let hosts = SIDES.map(|side| self.pair.host(side));
        self.close_others(hosts);
        let limit = self.pair.now() + END_PATIENCE;
        loop {
            let network = self.pair.network();
            let left: Vec<_> = hosts
                .into_iter()
                .flat_map(|host| network.connections(host).map(move |handle| (host, handle)))
                .collect();
            let Some((host, handle)) = left.first() else {
                break;
            };
            if !self.step_until(limit) {
                let connection = self.pair.network().view(*host, *handle);
                panic!("a connection that never ends: {connection:#?}");
            }
        }
        self.settle();
        for host in hosts {
            let endpoint = self.pair.network().endpoint(host);
            assert!(endpoint.is_idle(), "left behind: {endpoint:?}");
        }
    }
}
