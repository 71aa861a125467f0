//! What only the establishment of a connection needs: early data, packets whose keys are not there yet,
//! and the means that speed the handshake up.

use crate::config::TransportConfig;
use crate::transmit::DatagramMeta;

use super::buffered_packets::BufferedPackets;
use super::handshake_speedup::HandshakeSpeedup;
use super::zero_rtt::EarlyData;

/// State of connection establishment.
#[derive(Debug)]
pub(super) struct Establishment {
    pub(super) early_data: EarlyData,
    pub(super) buffered: BufferedPackets,
    pub(super) speedup: HandshakeSpeedup,
}

impl Establishment {
    /// `early_packets` arrived before the first Initial packet did.
    pub(super) fn new(
        config: &TransportConfig,
        early_packets: Vec<(DatagramMeta, Vec<u8>)>,
    ) -> Self {
        Self {
            early_data: EarlyData::default(),
            buffered: BufferedPackets::new(early_packets),
            speedup: HandshakeSpeedup::new(config),
        }
    }
}
