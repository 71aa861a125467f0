//! Connection establishment (RFC 9000, section 7; RFC 9001, section 4): early data, packets whose keys are not
//! there yet, the means that speed the handshake up, Retry and Version Negotiation, the peer's transport
//! parameters.

mod buffered_packets;
mod early_data;
mod early_data_exchange;
mod first_flight;
mod handshake_speedup;
mod peer_parameters;

pub(crate) use buffered_packets::BufferedPackets;
pub(crate) use early_data::{EarlyData, is_allowed};
pub(crate) use early_data_exchange::{Conclusion, EarlyDataExchange};
pub(crate) use first_flight::{FirstFlight, ServerAnswer};
pub(crate) use handshake_speedup::{HandshakeSpeedup, PROBES};
pub(crate) use peer_parameters::PeerParameters;

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

/// Discards the keys and the packet number space of an encryption level of the handshake (RFC 9001, section
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
