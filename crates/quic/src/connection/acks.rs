//! ACK frames and the loss timer: loss detection in their space, then the facts to the owners (RFC 9002,
//! sections 5 to 7).

use swiftwater_units::{ByteCount, Instant, PathId};
use swiftwater_wire::ErrorCode;
use swiftwater_wire::frame::Ack;

use crate::control::{ControlKey, ControlValue};
use crate::error::TransportError;
use crate::observe::LossTrigger;
use crate::path::{AckContext, NeverSent};
use crate::policy::Occasion;
use crate::space::SpaceId;

use super::Connection;

/// Lost packets are kept for this many PTOs, in case their loss turns out spurious.
const REMEMBER_LOST_PTOS: u32 = 3;

fn never_sent() -> TransportError {
    let reason = "acknowledged a packet that was never sent";
    TransportError::new(ErrorCode::PROTOCOL_VIOLATION, reason)
}

impl Connection {
    /// An ACK frame arrived, for the packets of space `id`.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        id: SpaceId,
        ack: &Ack<'_>,
    ) -> Result<(), TransportError> {
        let max_ack_delay = self.peer_max_ack_delay();
        let context = AckContext {
            now,
            ack_delay: (self.handshake).ack_delay(id.level(), ack.delay, max_ack_delay),
            running_since: self.lifecycle.running_since,
            max_ack_delay,
            // A client's Initial ACK doesn't prove that the server validated its address (RFC 9002,
            // section 6.2.1).
            resets_pto: self.identity.side.is_server() || id != SpaceId::Initial,
        };
        let facts = &mut self.workspace.buffers.need().loss;
        let rng = &mut self.identity.random.generator;
        let Some(mut detection) = self.paths.loss_detection(id) else {
            // A path that is over, or nothing was ever sent on it.
            return self.check_acked_path(id);
        };
        let has_newly_acked = detection
            .on_ack(&context, ack, facts, rng)
            .map_err(|NeverSent| never_sent())?;
        let Some(path) = self.paths.path_for(id).map(|path| path.id) else {
            return Ok(());
        };
        if has_newly_acked {
            if id.is_data() {
                self.streams.suspend_path(path, false);
            }
            self.on_acked_and_lost(now, id, path);
        }
        if let Some(path) = self.paths.get_mut(path) {
            let config = self.identity.config.ack_frequency.as_ref();
            if id.is_data()
                && self.handshake.is_confirmed()
                && let Some(request) = self.policies.ack_frequency_request(now, config, path)
            {
                self.control
                    .set(ControlKey::AckFrequency, ControlValue::Frequency(request));
            }
            self.monitor.report_ecn(now, path);
            self.monitor.report_metrics(now, path);
        }
        self.consult_reinjector(now, Occasion::Ack);
        Ok(())
    }

    /// Packets of a space without a path are acknowledged: valid if the path was open once.
    fn check_acked_path(&self, id: SpaceId) -> Result<(), TransportError> {
        let is_unopened = |path| (self.paths.unopened().iter()).any(|unopened| unopened.id == path);
        match id {
            SpaceId::Data(path) if is_unopened(path) => Err(never_sent()),
            _ => Ok(()),
        }
    }

    /// Routes what an ACK frame brought about.
    fn on_acked_and_lost(&mut self, now: Instant, id: SpaceId, path: PathId) {
        let facts = &self.workspace.buffers.need().loss;
        let least = self.identity.config.unsent_window;
        if let Some(path) = self.paths.get(path) {
            if let (true, Some(largest)) = (id.is_data(), facts.acked.largest) {
                let keys = self.handshake.keys_mut();
                keys.on_acked(largest.number, &path.key_phase_numbers);
            }
            let windows = self.paths.total_window();
            self.streams.follow_congestion_window(least.get(), windows);
        }
        self.couple(now, id);
        self.route_facts(now, id, path);
        let horizon = now - self.paths.pto(path, self.peer_max_ack_delay()) * REMEMBER_LOST_PTOS;
        if let Some(space) = self.paths.space_mut(id) {
            space.ledger.discard(horizon);
        }
    }

    /// Coupled congestion control takes note of what was acknowledged and lost in space `id`.
    fn couple(&mut self, now: Instant, id: SpaceId) {
        if let (SpaceId::Data(path), Some(multipath)) = (id, &mut self.multipath)
            && let Some(path) = self.paths.get_mut(path)
        {
            let acked = &self.workspace.buffers.need().loss.acked.acked;
            let acked = acked.iter().map(|packet| u64::from(packet.size)).sum();
            let control = &mut multipath.coupled_control;
            control.on_packets_settled(now, path, ByteCount::new(acked));
        }
    }

    /// Hands the facts of loss detection to their owners.
    fn route_facts(&mut self, now: Instant, id: SpaceId, path: PathId) {
        self.sync_mtu(now, path);
        let (mut fates, buffers) = self.fates(now);
        for record in &buffers.loss.lost_mtu_probes {
            fates.observe_loss(id, record, LossTrigger::MtuProbe);
        }
        fates.replay_facts(id, &mut buffers.loss);
    }

    /// The loss timer of space `id` expired.
    pub(super) fn on_loss_timeout(&mut self, now: Instant, id: SpaceId) {
        let max_ack_delay = self.peer_max_ack_delay();
        let facts = &mut self.workspace.buffers.need().loss;
        let rng = &mut self.identity.random.generator;
        let Some(mut detection) = self.paths.loss_detection(id) else {
            return;
        };
        detection.on_loss_timeout(now, max_ack_delay, facts, rng);
        let Some(path) = self.paths.path_for(id).map(|path| path.id) else {
            return;
        };
        self.couple(now, id);
        self.route_facts(now, id, path);
        if let Some(path) = self.paths.get(path) {
            self.monitor.report_metrics(now, path);
        }
    }

    /// Policies learn which paths became usable for data, and which ceased to be.
    pub(super) fn announce_path_changes(&mut self, now: Instant) {
        while let Some((path, is_usable)) = self.paths.next_usability_change() {
            self.policies.on_path_change(now, path, is_usable);
            let occasion = if is_usable {
                Occasion::PathUp(path)
            } else {
                Occasion::PathDown(path)
            };
            self.consult_reinjector(now, occasion);
        }
    }

    /// Asks the re-injector for copies.
    pub(super) fn consult_reinjector(&mut self, now: Instant, occasion: Occasion) {
        if self.lifecycle.is_open() {
            let (paths, streams, monitor) = (&self.paths, &self.streams, &mut self.monitor);
            self.policies
                .consult_reinjector(now, occasion, paths, streams, monitor);
        }
    }
}
