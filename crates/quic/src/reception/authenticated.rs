//! What an authenticated packet proves, whatever its frames are (RFC 9000, sections 7.2 and 8.1), and its
//! record for acknowledgement (section 13.2).

use swiftwater_units::{ByteCount, Side};
use swiftwater_wire::PartialHeader;

use crate::crypto::EncryptionLevel;
use crate::establishment::discard_level;
use crate::observe::{Observation, Payload};
use crate::space::{AckTiming, SpaceId};

use super::{OpenedPacket, Origin, Reception};

impl Reception<'_> {
    /// A packet was opened; `payload` is its plaintext.
    #[inline]
    pub(crate) fn on_opened(
        &mut self,
        origin: &Origin<'_>,
        header: &PartialHeader,
        packet: &OpenedPacket,
        payload: &[u8],
    ) {
        self.monitor.stats.packets_received += 1.into();
        if let Some(path) = self.paths.get_mut(origin.path) {
            path.last_received = Some(self.now);
            path.received_bytes += ByteCount::new(packet.size as u64);
        }
        let observation = Observation::PacketReceived {
            path: origin.path,
            level: packet.level,
            number: packet.number,
            size: packet.size,
            payload: Payload::new(payload),
        };
        self.monitor.observe(self.now, &observation);
        self.on_handshake_packet(packet.level, header);
    }

    /// What the first packets of the handshake prove.
    fn on_handshake_packet(&mut self, level: EncryptionLevel, header: &PartialHeader) {
        let identity = &mut *self.identity;
        match (identity.side, level) {
            (Side::Client, EncryptionLevel::Initial) if identity.peer_handshake_cid.is_none() => {
                identity.peer_handshake_cid = Some(header.src_cid);
                let path = self.paths.initial_mut();
                path.cids.remote.set_handshake_cid(header.src_cid);
            }
            (Side::Server, EncryptionLevel::Handshake) => {
                // The client has the Handshake keys, so it received what was sent to its address.
                self.paths
                    .initial_mut()
                    .network
                    .amplification
                    .set_validated();
                discard_level(EncryptionLevel::Initial, self.handshake, self.paths);
            }
            _ => {}
        }
    }

    /// Records the packet for acknowledgement; true if it has the largest number so far.
    #[inline]
    pub(crate) fn record(
        &mut self,
        packet: &OpenedPacket,
        origin: &Origin<'_>,
        ack_eliciting: bool,
    ) -> bool {
        let received = &self.policies.ack_frequency_received;
        let max_ack_delay = received.max_ack_delay(self.identity.config.max_ack_delay);
        let requested = received.request();
        let id = SpaceId::of(packet.level, origin.path);
        let Some(path) = self.paths.path_for(id) else {
            return false;
        };
        let smoothed_rtt = path.recovery.rtt().smoothed;
        let timing = id.is_data().then_some(AckTiming {
            policy: &mut *self.policies.ack,
            max_ack_delay,
            smoothed_rtt,
            requested,
        });
        let Some(space) = self.paths.space_mut(id) else {
            return false;
        };
        let received = &mut space.received;
        let number = packet.number;
        let newest = received.largest().is_none_or(|largest| number > largest);
        received.on_packet(
            origin.received_at,
            number,
            ack_eliciting,
            origin.ecn,
            timing,
        );
        newest
    }
}
