//! What must always hold.

use swiftwater_quic::wire::ErrorCode;
use swiftwater_quic::{
    Connection, ConnectionError, ConnectionStats, EarlyDataOutcome, Event, StreamEvent,
};
use swiftwater_units::{ByteCount, PacketCount, Side};

use super::plan::{Early, Settings};
use super::run::{EXPIRED, SIDES, World};

impl World {
    pub(super) fn check(&mut self) {
        for side in SIDES {
            self.check_events(side);
            self.check_connection(side);
            self.check_totals(side);
        }
        // Two per datagram and link, one for the pacer, and timers; far from spinning.
        let datagrams: u64 = self.faults.iter().map(|each| each.borrow().offered).sum();
        let seconds = self.pair.now().as_secs_f64() as u64;
        let limit = 1_000 + 100 * seconds + 10 * (datagrams + self.injected);
        assert!(self.steps <= limit, "{} wake-ups: it spins", self.steps);
    }

    fn check_connection(&mut self, side: Side) {
        let now = self.pair.now();
        let Some(connection) = self.pair.view(side) else {
            return;
        };
        if connection.is_drained() {
            return;
        }
        if let Some(timeout) = connection.poll_timeout() {
            assert!(
                timeout > now,
                "{side:?} has a timeout at {timeout:?}, now {now:?}"
            );
        }
        let stats = connection.stats();
        let queued = stats.reinjector.queued;
        assert!(
            queued == 0 || !connection.is_closed(),
            "{side:?} closed with {queued} data to copy"
        );
        assert_eq!(stats.invalid_decisions, 0, "{side:?}");
        let path = &stats.paths[0];
        let heard = stats.packets_received.get();
        let (in_flight, cwnd) = (path.bytes_in_flight.get(), path.cwnd.get());
        let packet = u64::from(path.max_datagram_size);
        let ptos = path.pto_count;
        assert!(cwnd >= 2 * packet, "{side:?}: window {cwnd}");
        let moved = self.moved;
        let watch = self.watch(side);
        if heard != watch.packets_received {
            watch.packets_received = heard;
            watch.last_heard = now;
        }
        if in_flight <= cwnd + packet {
            watch.ptos_within_window = ptos;
        } else if in_flight > watch.in_flight && !moved {
            // Two probes a time, in up to two encryption levels; and the one packet of an episode. The window
            // may have shrunk after the packets left.
            let probes = 4 * (ptos - watch.ptos_within_window);
            assert!(
                in_flight <= watch.in_flight.max(watch.window).max(cwnd) + packet * (1 + probes),
                "{side:?}: {in_flight} bytes in flight, window {cwnd}, {probes} probes"
            );
        }
        watch.in_flight = in_flight;
        watch.window = cwnd;
    }

    fn check_events(&mut self, side: Side) {
        let seen = self.watches[side as usize].events_seen;
        let new = self.pair.events(side)[seen..].to_vec();
        self.watch(side).events_seen += new.len();
        for event in new {
            assert!(
                self.watches[side as usize].reason.is_none() || event == Event::Drained,
                "{side:?}: {event:?} after the end"
            );
            match event {
                Event::Confirmed => self.watch(side).confirmed = true,
                Event::Connected => self.check_version(side),
                Event::EarlyData(EarlyDataOutcome::Accepted) => {
                    let is_fair = matches!(self.plan.early, Early::Accepted | Early::Lowered);
                    assert!(is_fair, "{side:?}: early data were accepted");
                }
                Event::Closed { reason } => self.check_reason(side, reason),
                Event::Migrated { address: path, .. } => {
                    assert!(side.is_client(), "a server moved to {path:?}");
                    let is_wanted = self.sent_away || self.plan.preferred;
                    assert!(
                        is_wanted,
                        "moved to {path:?} although no migration was requested"
                    );
                    self.moved = true;
                }
                Event::MigrationFailed { address: path, .. } => {
                    assert!(side.is_client() && self.sent_away, "{side:?}: {path:?}");
                }
                Event::PeerMoved { remote, .. } => {
                    assert!(
                        side.is_server(),
                        "the server seems to have moved to {remote}"
                    );
                    self.moved = true;
                }
                Event::Stream(event) => self.check_stream_event(side, event),
                _ => {}
            }
        }
    }

    fn check_stream_event(&mut self, side: Side, event: StreamEvent) {
        match event {
            StreamEvent::Opened { dir } => self.watch(side).acceptable[dir as usize] = true,
            StreamEvent::Readable { id } => self.watch(side).readable.push(id),
            StreamEvent::Writable { id } => self.watch(side).writable.push(id),
            StreamEvent::Finished { id } => self.model.was_acknowledged((id, side)),
            StreamEvent::Expired { id, .. } => self.model.did_expire((id, side), EXPIRED),
            StreamEvent::Stopped { id, code } => self.model.was_stopped((id, side), code),
            _ => {}
        }
    }

    /// The handshake is complete: both have what was negotiated.
    fn check_version(&mut self, side: Side) {
        let version = self.pair.stats(side).version;
        let mut ends = self.plan.ends.iter();
        assert!(
            ends.all(|end| end.versions.contains(&version)),
            "{side:?} uses {version:x}"
        );
    }

    /// Packets and stream bytes that a side sent, in all its connections: a server that closed during
    /// the handshake may meet the client again.
    fn sent_by(&mut self, side: Side) -> (PacketCount, ByteCount) {
        let host = self.pair.host(side);
        let handles = self.pair.handles(side).to_vec();
        let network = self.pair.network();
        let mut sent = (PacketCount::ZERO, ByteCount::ZERO);
        for connection in handles.iter().filter_map(|&it| network.view(host, it)) {
            let stats = connection.stats();
            sent.0 += stats.packets_sent;
            sent.1 += stats.stream_bytes_sent;
        }
        sent
    }

    /// What is counted here was done there.
    fn check_totals(&mut self, side: Side) {
        let Some(own) = self.pair.view(side).map(Connection::stats) else {
            return;
        };
        let (packets, stream_bytes) = self.sent_by(!side);
        // A refusal or two came from the endpoint.
        let received = own.packets_received;
        assert!(
            received.get() <= packets.get() + 2,
            "{side:?} received {received}, {packets} were sent"
        );
        assert!(
            own.stream_bytes_received <= stream_bytes,
            "{side:?} received {} of streams, {stream_bytes} were sent",
            own.stream_bytes_received
        );
        let settings = &self.plan.ends[side as usize];
        assert!(
            own.send_buffered.get() <= settings.send_window,
            "{side:?} keeps {}",
            own.send_buffered
        );
        assert!(
            own.receive_buffered.get() <= settings.window * settings.growth,
            "{side:?} keeps {} unread",
            own.receive_buffered
        );
        let largest = settings.packet_size.max(settings.search_up_to.unwrap_or(0));
        for path in &own.paths {
            assert!(path.max_datagram_size <= largest, "{side:?}: {path:?}");
        }
        let watch = &mut self.watches[side as usize];
        assert_grows(&watch.totals, &own);
        watch.totals = own;
    }

    /// A connection between well-behaved ends only ends for a reason.
    fn check_reason(&mut self, side: Side, reason: ConnectionError) {
        let now = self.pair.now();
        let peer_closed = self.watches[!side as usize].closed;
        let watch = &self.watches[side as usize];
        let is_fair = match &reason {
            ConnectionError::LocallyClosed { code } => watch.closed && *code == 7,
            ConnectionError::PeerApplication { code, reason } => {
                peer_closed && *code == 7 && reason == b"enough"
            }
            // An end may abandon a path that fails while the other end's application abandons those that work
            // (draft-ietf-quic-multipath-21, section 3.4).
            ConnectionError::Transport(error) if error.code == ErrorCode::NO_VIABLE_PATH => {
                self.abandoned
            }
            ConnectionError::PeerTransport(error) if error.code == ErrorCode::NO_VIABLE_PATH => {
                self.abandoned
            }
            // What an application says during the handshake.
            ConnectionError::PeerTransport(error) => {
                peer_closed && error.code == ErrorCode::APPLICATION_ERROR
            }
            ConnectionError::TimedOut => {
                let idle = self.plan.ends.iter().filter_map(Settings::idle).min();
                idle.is_some_and(|idle| now - watch.last_heard >= idle)
            }
            ConnectionError::VersionMismatch => {
                let [client, server] = self.plan.ends.each_ref().map(|end| end.versions);
                !client.iter().any(|version| server.contains(version))
            }
            ConnectionError::Reset => self.pair.view(!side).is_none_or(Connection::is_drained),
            _ => false,
        };
        assert!(is_fair, "{side:?} ended at {now:?}: {reason:?}");
        self.outcomes.push(format!("{side:?}: {reason}"));
        self.watch(side).reason = Some(reason);
    }
}

/// Totals never become smaller.
fn assert_grows(before: &ConnectionStats, now: &ConnectionStats) {
    let each = |stats: &ConnectionStats| {
        [
            stats.datagrams_sent,
            stats.datagrams_received,
            stats.bytes_sent.get(),
            stats.bytes_received.get(),
            stats.packets_sent.get(),
            stats.packets_received.get(),
            stats.packets_dropped.get(),
            stats.stream_bytes_sent.get(),
            stats.stream_bytes_retransmitted.get(),
            stats.stream_bytes_received.get(),
            stats.streams_reset,
            stats.streams_reset_by_peer,
            stats.datagrams_dropped,
            stats.path_changes,
            stats.key_updates,
        ]
    };
    let (before, now) = (each(before), each(now));
    let mut pairs = before.iter().zip(&now);
    assert!(
        pairs.all(|(before, now)| before <= now),
        "{before:?} became {now:?}"
    );
}
