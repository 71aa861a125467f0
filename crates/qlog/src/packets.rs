//! Packets that were sent, received, dropped or lost; timers and keys (QUIC events draft, sections 5
//! to 7).

use serde::Serialize;
use swiftwater_quic::crypto::Epoch;
use swiftwater_units::PacketNumber;

use crate::frames::{Frames, Raw};

#[derive(Serialize)]
pub(crate) struct PacketHeader {
    packet_type: &'static str,
    packet_number: u64,
}

impl PacketHeader {
    pub(crate) fn new(epoch: Epoch, number: PacketNumber) -> Self {
        Self {
            packet_type: match epoch {
                Epoch::Initial => "initial",
                Epoch::Handshake => "handshake",
                Epoch::OneRtt => "1RTT",
            },
            packet_number: number.get(),
        }
    }
}

/// `quic:packet_sent`.
#[derive(Serialize)]
pub(crate) struct PacketSent<'a> {
    pub(crate) header: PacketHeader,
    pub(crate) frames: Frames<'a>,
    pub(crate) raw: Raw,
    /// Frames that are left out, if any.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) frames_omitted: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "what serde asks for")]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// `quic:packet_received` and, with the size as an extension, `quic:packet_lost`.
#[derive(Serialize)]
pub(crate) struct Packet {
    pub(crate) header: PacketHeader,
    pub(crate) raw: Raw,
}

/// `quic:packet_dropped`.
#[derive(Serialize)]
pub(crate) struct PacketDropped {
    details: Details,
    trigger: &'static str,
}

#[derive(Serialize)]
struct Details {
    reason: &'static str,
}

impl PacketDropped {
    /// The draft's category of a reason; reasons that it doesn't know are `general`.
    pub(crate) fn new(reason: &'static str) -> Self {
        let trigger = match reason {
            "duplicate" => "duplicate",
            "failed authentication" => "decryption_failure",
            "no keys" => "key_unavailable",
            "another version" | "0-RTT is not offered" => "unsupported",
            "malformed header"
            | "too short"
            | "Initial in a small datagram"
            | "Initial of a server with a token"
            | "coalesced packets with different connection IDs"
            | "unexpected Version Negotiation"
            | "unexpected or inauthentic Retry" => "invalid",
            "from an unexpected address" => "rejected",
            _ => "general",
        };
        Self {
            details: Details { reason },
            trigger,
        }
    }
}

/// `quic:timer_updated` for a probe timeout that expired.
#[derive(Serialize)]
pub(crate) struct ProbeTimeout {
    timer_type: &'static str,
    event_type: &'static str,
    /// Expirations in a row, this one included.
    pto_count: u32,
}

impl ProbeTimeout {
    pub(crate) fn new(pto_count: u32) -> Self {
        Self {
            timer_type: "pto",
            event_type: "expired",
            pto_count,
        }
    }
}

/// `quic:key_updated`.
#[derive(Serialize)]
pub(crate) struct KeyUpdated {
    pub(crate) key_type: &'static str,
    pub(crate) key_phase: u64,
}
