//! Packets sent, received, buffered, dropped or lost (QUIC events draft, sections 5 and 7).

use serde::Serialize;
use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::observe::LossTrigger;
use swiftwater_quic::wire::{ConnectionId, PacketType};
use swiftwater_units::PacketNumber;

use crate::frames::{Frames, Raw};
use crate::text::{Hex, Version};

#[derive(Serialize)]
pub(crate) struct PacketHeader<'a> {
    packet_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    packet_number: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    scid: Option<Hex<'a>>,
}

impl<'a> PacketHeader<'a> {
    pub(crate) fn new(level: EncryptionLevel, number: PacketNumber) -> Self {
        Self {
            packet_number: Some(number.get()),
            ..Self::of_type(level_name(level))
        }
    }

    /// True before 1-RTT.
    pub(crate) fn is_early(&self) -> bool {
        self.packet_type != "1RTT"
    }

    /// For a packet without a known number.
    pub(crate) fn of_type(packet_type: &'static str) -> Self {
        Self {
            packet_type,
            packet_number: None,
            scid: None,
        }
    }

    /// For a Retry.
    pub(crate) fn retry(src_cid: &'a ConnectionId) -> Self {
        Self {
            scid: Some(Hex::new(src_cid.as_bytes())),
            ..Self::of_type("retry")
        }
    }
}

/// The draft's packet type for an encryption level.
pub(crate) fn level_name(level: EncryptionLevel) -> &'static str {
    match level {
        EncryptionLevel::Initial => "initial",
        EncryptionLevel::Handshake => "handshake",
        EncryptionLevel::OneRtt => "1RTT",
        EncryptionLevel::ZeroRtt => "0RTT",
    }
}

/// The draft's value for the packet number space of an encryption level.
pub(crate) fn space_name(level: EncryptionLevel) -> &'static str {
    match level {
        EncryptionLevel::Initial => "initial",
        EncryptionLevel::Handshake => "handshake",
        _ => "application_data",
    }
}

fn type_name(packet_type: PacketType) -> &'static str {
    match packet_type {
        PacketType::Initial => "initial",
        PacketType::Handshake => "handshake",
        PacketType::ZeroRtt => "0RTT",
        PacketType::OneRtt => "1RTT",
        PacketType::Retry => "retry",
        PacketType::VersionNegotiation => "version_negotiation",
    }
}

/// `quic:packet_sent` and `quic:packet_received`.
#[expect(clippy::struct_field_names, reason = "the draft's names")]
#[derive(Serialize)]
pub(crate) struct Packet<'a> {
    pub(crate) header: PacketHeader<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) frames: Option<Frames<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) supported_versions: Vec<Version>,
    pub(crate) raw: Raw,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_mtu_probe_packet: bool,
    /// Number of omitted frames, if any.
    #[serde(skip_serializing_if = "is_zero")]
    frames_omitted: usize,
}

impl<'a> Packet<'a> {
    pub(crate) fn new(header: PacketHeader<'a>, size: usize, frames: Frames<'a>) -> Self {
        Self {
            frames_omitted: frames.omitted(),
            frames: Some(frames),
            ..Self::bare(header, size)
        }
    }

    /// Without frames.
    pub(crate) fn bare(header: PacketHeader<'a>, size: usize) -> Self {
        Self {
            header,
            frames: None,
            supported_versions: Vec::new(),
            raw: Raw::new(size),
            is_mtu_probe_packet: false,
            frames_omitted: 0,
        }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "required by serde")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// `quic:packet_lost` with the size as an extension, and `quic:packet_buffered`.
#[derive(Serialize)]
pub(crate) struct Missed<'a> {
    header: PacketHeader<'a>,
    raw: Raw,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_mtu_probe_packet: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<&'static str>,
}

impl Missed<'_> {
    pub(crate) fn lost(
        level: EncryptionLevel,
        number: PacketNumber,
        size: usize,
        trigger: LossTrigger,
    ) -> Self {
        Self {
            header: PacketHeader::new(level, number),
            raw: Raw::new(size),
            is_mtu_probe_packet: trigger == LossTrigger::MtuProbe,
            trigger: match trigger {
                LossTrigger::PacketThreshold => Some("reordering_threshold"),
                LossTrigger::TimeThreshold => Some("time_threshold"),
                _ => None,
            },
        }
    }

    pub(crate) fn buffered(level: EncryptionLevel, size: usize) -> Self {
        Self {
            header: PacketHeader::of_type(level_name(level)),
            raw: Raw::new(size),
            is_mtu_probe_packet: false,
            trigger: Some("keys_unavailable"),
        }
    }
}

/// `quic:packet_dropped`.
#[derive(Serialize)]
pub(crate) struct PacketDropped {
    #[serde(skip_serializing_if = "Option::is_none")]
    header: Option<PacketHeader<'static>>,
    raw: Raw,
    details: Details,
    trigger: &'static str,
}

#[derive(Serialize)]
struct Details {
    reason: &'static str,
}

impl PacketDropped {
    /// The draft's category of a reason; other reasons are `general`.
    pub(crate) fn new(reason: &'static str, size: usize, packet_type: Option<PacketType>) -> Self {
        let trigger = match reason {
            "duplicate" => "duplicate",
            "failed authentication" => "decryption_failure",
            "no keys" => "key_unavailable",
            "another version" | "0-RTT is not offered" => "unsupported",
            "malformed header"
            | "too short"
            | "the QUIC bit is 0"
            | "another source connection ID"
            | "Initial in a small datagram"
            | "Initial of a server with a token"
            | "coalesced packets with different connection IDs"
            | "early data of a server"
            | "unexpected Version Negotiation"
            | "unexpected or inauthentic Retry" => "invalid",
            "from an unexpected address" => "rejected",
            _ => "general",
        };
        Self {
            header: packet_type.map(|packet| PacketHeader::of_type(type_name(packet))),
            raw: Raw::new(size),
            details: Details { reason },
            trigger,
        }
    }
}
