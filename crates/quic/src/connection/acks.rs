//! ACK frames and the loss timer: loss detection in their space, then the facts to the owners (RFC 9002,
//! sections 5 to 7).

use swiftwater_units::{Instant, PathId};
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

impl Connection {
    /// An ACK frame arrived, for the packets of space `id`.
    pub(super) fn on_ack(
        &mut self,
        now: Instant,
        id: SpaceId,
        ack: &Ack<'_>,
    ) -> Result<(), TransportError> {
        if ack.path.is_some() {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "multipath was not negotiated",
            ));
        }
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
            return Ok(());
        };
        let has_newly_acked = detection
            .on_ack(&context, ack, facts, rng)
            .map_err(|NeverSent| {
                TransportError::new(
                    ErrorCode::PROTOCOL_VIOLATION,
                    "acknowledged a packet that was never sent",
                )
            })?;
        let Some(path) = self.paths.path_for(id).map(|path| path.id) else {
            return Ok(());
        };
        if has_newly_acked {
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

    /// Routes what an ACK frame brought about.
    fn on_acked_and_lost(&mut self, now: Instant, id: SpaceId, path: PathId) {
        let facts = &self.workspace.buffers.need().loss;
        let least = self.identity.config.unsent_window;
        if let Some(path) = self.paths.get(path) {
            if let (true, Some(largest)) = (id.is_data(), facts.acked.largest) {
                let keys = self.handshake.keys_mut();
                keys.on_acked(largest.number, &path.key_phase_numbers);
            }
            let cwnd = path.recovery.cwnd();
            self.streams
                .follow_congestion_window(least.get(), cwnd.get());
        }
        self.route_facts(now, id, path);
        let horizon = now - self.paths.pto(path, self.peer_max_ack_delay()) * REMEMBER_LOST_PTOS;
        if let Some(space) = self.paths.space_mut(id) {
            space.ledger.discard(horizon);
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
        self.route_facts(now, id, path);
        if let Some(path) = self.paths.get(path) {
            self.monitor.report_metrics(now, path);
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
