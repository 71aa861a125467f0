//! What only the establishment of a connection needs: early data, packets whose keys are not there yet,
//! and the means that speed the handshake up.

mod buffered_packets;
mod early_data;
mod handshake_speedup;

pub(crate) use buffered_packets::BufferedPackets;
pub(crate) use early_data::{EarlyData, Offer, is_allowed};
pub(crate) use handshake_speedup::{HandshakeSpeedup, PROBES};

use crate::config::TransportConfig;
use crate::crypto::EncryptionLevel;
use crate::handshake::Handshake;
use crate::path::PathSet;
use crate::space::SpaceId;
use crate::transmit::DatagramMeta;

/// State of connection establishment.
#[derive(Debug)]
pub(crate) struct Establishment {
    pub(crate) early_data: EarlyData,
    pub(crate) buffered: BufferedPackets,
    pub(crate) speedup: HandshakeSpeedup,
}

impl Establishment {
    /// `early_packets` arrived before the first Initial packet did.
    pub(crate) fn new(
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

/// Forgets the keys and the packet number space of an encryption level of the handshake (RFC 9001, section
/// 4.9).
pub(crate) fn discard_level(
    level: EncryptionLevel,
    handshake: &mut Handshake,
    paths: &mut PathSet,
) {
    let initial = paths.initial().id;
    if paths.discard(SpaceId::of(level, initial)) {
        handshake.discard(level);
    }
}
