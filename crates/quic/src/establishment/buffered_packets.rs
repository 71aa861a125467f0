//! Packets that arrived before the keys that open them (RFC 9001, section 5.7).

use swiftwater_units::Instant;

use crate::transmit::DatagramMeta;

/// Packets kept at most.
const MAX_PACKETS: usize = 10;

/// Bytes of these packets at most.
const MAX_BYTES: usize = 16 << 10;

/// A packet, and how it arrived.
#[derive(Debug)]
pub(crate) struct BufferedPacket {
    pub(crate) meta: DatagramMeta,
    /// When it arrived; `None` if that was before the connection was made.
    pub(crate) received_at: Option<Instant>,
    pub(crate) packet: Vec<u8>,
}

/// Packets in order of arrival.
#[derive(Debug)]
pub(crate) struct BufferedPackets {
    packets: Vec<BufferedPacket>,
    /// New keys arrived: the packets are to be tried again.
    retry: bool,
}

impl BufferedPackets {
    /// With packets that arrived before the connection was made.
    pub(crate) fn new(packets: Vec<(DatagramMeta, Vec<u8>)>) -> Self {
        let packets = packets.into_iter().map(|(meta, packet)| BufferedPacket {
            meta,
            received_at: None,
            packet,
        });
        Self {
            packets: packets.collect(),
            retry: false,
        }
    }

    /// Keeps a copy of a packet; false if there is no room.
    pub(crate) fn keep(&mut self, now: Instant, meta: &DatagramMeta, packet: &[u8]) -> bool {
        let held: usize = self.packets.iter().map(|held| held.packet.len()).sum();
        let has_room = self.packets.len() < MAX_PACKETS && held + packet.len() <= MAX_BYTES;
        if has_room {
            self.packets.push(BufferedPacket {
                meta: *meta,
                received_at: Some(now),
                packet: packet.to_vec(),
            });
        }
        has_room
    }

    /// New keys arrived.
    pub(crate) fn on_new_keys(&mut self) {
        self.retry = true;
    }

    /// The packets to try again, if new keys arrived since the last call.
    pub(crate) fn take_retry(&mut self) -> Option<Vec<BufferedPacket>> {
        std::mem::take(&mut self.retry).then(|| std::mem::take(&mut self.packets))
    }
}
