//! Retry and Version Negotiation as a client acts on them (RFC 9000, sections 6 and 17.2.5; RFC 9368).

use swiftwater_units::Instant;
use swiftwater_wire::PartialHeader;

use crate::error::ConnectionError;
use crate::establishment::{FirstFlight, ServerAnswer};
use crate::lifecycle::Termination;
use crate::space::SpaceId;

use super::Connection;

impl Connection {
    /// A packet without packet protection: a Retry or a Version Negotiation packet.
    pub(super) fn on_unprotected_packet(
        &mut self,
        now: Instant,
        header: &PartialHeader,
        packet: &[u8],
    ) {
        let mut first_flight = FirstFlight {
            now,
            identity: &mut self.identity,
            handshake: &mut self.handshake,
            paths: &mut self.paths,
            lifecycle: &mut self.lifecycle,
            monitor: &mut self.monitor,
        };
        match first_flight.on_answer(header, packet) {
            Ok(ServerAnswer::Dropped) => {}
            Ok(ServerAnswer::Retry) => self.repeat_early_data(now),
            Ok(ServerAnswer::OtherVersion) => self.early_data_exchange(now).withdraw(),
            Ok(ServerAnswer::NoCommonVersion) => {
                let reason = ConnectionError::VersionMismatch;
                self.terminate(now, Termination::Silent { reason });
            }
            Err(error) => self.fail(now, error),
        }
    }

    /// A Retry: the server has dropped the early data that were sent so far. Packet numbers go on
    /// (RFC 9000, section 17.2.5.3).
    fn repeat_early_data(&mut self, now: Instant) {
        if self.handshake.may_send_early_data() {
            let id = SpaceId::Data(self.paths.initial().id);
            let (mut fates, buffers) = self.fates(now);
            fates.replay_all_as_lost(id, &mut buffers.loss);
        }
    }
}
