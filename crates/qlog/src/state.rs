//! Keys, timers, streams, and path properties (QUIC events draft, sections 4 to 7).

use serde::Serialize;
use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::observe::{LossTimer, Owner, ResetCause, TimerChange};
use swiftwater_quic::{DatagramFate, EarlyDataOutcome, EcnState};
use swiftwater_units::StreamId;

use crate::frames::stream_type;
use crate::packets::space_name;
use crate::text::millis;

/// `quic:timer_updated`.
#[derive(Serialize)]
pub(crate) struct TimerUpdated {
    timer_type: &'static str,
    packet_number_space: &'static str,
    event_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta: Option<f64>,
    /// Consecutive expirations of the probe timeout, including this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pto_count: Option<u32>,
}

impl TimerUpdated {
    /// `None` for values that the draft doesn't have.
    pub(crate) fn new(
        timer: LossTimer,
        level: EncryptionLevel,
        change: TimerChange,
    ) -> Option<Self> {
        let (event_type, delta) = match change {
            TimerChange::Set(delta) => ("set", Some(millis(delta))),
            TimerChange::Expired => ("expired", None),
            TimerChange::Cancelled => ("cancelled", None),
            _ => return None,
        };
        Some(Self {
            timer_type: match timer {
                LossTimer::TimeThreshold => "ack",
                LossTimer::Probe => "pto",
                _ => return None,
            },
            packet_number_space: space_name(level),
            event_type,
            delta,
            pto_count: None,
        })
    }

    pub(crate) fn probe(level: EncryptionLevel, pto_count: u32) -> Self {
        Self {
            timer_type: "pto",
            packet_number_space: space_name(level),
            event_type: "expired",
            delta: None,
            pto_count: Some(pto_count),
        }
    }
}

/// `quic:key_updated` and `quic:key_discarded`. No key is ever written.
#[expect(clippy::struct_field_names, reason = "the draft's names")]
#[derive(Serialize)]
pub(crate) struct Key {
    key_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_phase: Option<u64>,
    trigger: &'static str,
}

impl Key {
    /// One for each key of an encryption level.
    pub(crate) fn of_level(level: EncryptionLevel) -> impl Iterator<Item = Self> {
        let (types, key_phase): (&'static [&'static str], _) = match level {
            EncryptionLevel::Initial => (&["client_initial_secret", "server_initial_secret"], None),
            EncryptionLevel::Handshake => (
                &["client_handshake_secret", "server_handshake_secret"],
                None,
            ),
            EncryptionLevel::ZeroRtt => (&["client_0rtt_secret"], None),
            EncryptionLevel::OneRtt => (&ONE_RTT, Some(0)),
        };
        types.iter().map(move |key_type| Self {
            key_type,
            key_phase,
            trigger: "tls",
        })
    }

    /// One for each key of a new phase.
    pub(crate) fn of_phase(key_phase: u64, initiator: Owner) -> impl Iterator<Item = Self> {
        ONE_RTT.into_iter().map(move |key_type| Self {
            key_type,
            key_phase: Some(key_phase),
            trigger: match initiator {
                Owner::Local => "local_update",
                Owner::Remote => "remote_update",
            },
        })
    }
}

const ONE_RTT: [&str; 2] = ["client_1rtt_secret", "server_1rtt_secret"];

/// `quic:stream_state_updated`.
#[derive(Serialize)]
pub(crate) struct StreamState {
    stream_id: u64,
    stream_type: &'static str,
    new: &'static str,
    stream_side: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<&'static str>,
}

impl StreamState {
    pub(crate) fn new(id: StreamId, new: &'static str, stream_side: &'static str) -> Self {
        Self {
            stream_id: id.get(),
            stream_type: stream_type(id.dir()),
            new,
            stream_side,
            trigger: None,
        }
    }

    /// For a stream that was reset.
    pub(crate) fn reset(id: StreamId, cause: ResetCause) -> Self {
        let (new, side) = match cause {
            ResetCause::Peer => ("reset_received", "receiving"),
            _ => ("reset_sent", "sending"),
        };
        Self {
            trigger: Some(match cause {
                ResetCause::Peer | ResetCause::StopSending => "remote",
                _ => "local",
            }),
            ..Self::new(id, new, side)
        }
    }
}

/// `swiftwater:datagram_fate`.
#[derive(Serialize)]
pub(crate) struct DatagramFateKnown {
    /// The application's key.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<u64>,
    fate: &'static str,
}

impl DatagramFateKnown {
    /// `None` for a fate without a name in this schema.
    pub(crate) fn new(key: Option<u64>, fate: DatagramFate) -> Option<Self> {
        let fate = match fate {
            DatagramFate::Acknowledged => "acknowledged",
            DatagramFate::Lost { .. } => "lost",
            DatagramFate::Expired => "expired",
            DatagramFate::TooLarge => "too_large",
            _ => return None,
        };
        Some(Self { key, fate })
    }
}

/// `swiftwater:early_data_decided`.
#[derive(Serialize)]
pub(crate) struct EarlyData {
    accepted: bool,
}

impl From<EarlyDataOutcome> for EarlyData {
    fn from(outcome: EarlyDataOutcome) -> Self {
        Self {
            accepted: outcome == EarlyDataOutcome::Accepted,
        }
    }
}

/// `quic:connection_data_blocked_updated`.
#[derive(Serialize)]
pub(crate) struct DataBlocked {
    old: &'static str,
    new: &'static str,
}

impl DataBlocked {
    pub(crate) fn new(blocked: bool) -> Self {
        let [old, new] = if blocked {
            ["unblocked", "blocked"]
        } else {
            ["blocked", "unblocked"]
        };
        Self { old, new }
    }
}

/// `quic:mtu_updated`; sizes of UDP payload.
#[derive(Serialize)]
pub(crate) struct MtuUpdated {
    pub(crate) old: u16,
    pub(crate) new: u16,
    pub(crate) done: bool,
    /// Large packets were lost (black hole detection).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(crate) black_hole: bool,
}

/// `quic:ecn_state_updated`.
#[derive(Serialize)]
pub(crate) struct EcnUpdated {
    new: &'static str,
}

impl From<EcnState> for EcnUpdated {
    fn from(state: EcnState) -> Self {
        Self {
            new: match state {
                EcnState::Testing => "testing",
                EcnState::Capable => "capable",
                EcnState::Failed => "failed",
                _ => "unknown",
            },
        }
    }
}

/// `quic:congestion_state_updated`; the states are those of the algorithm.
#[derive(Serialize)]
pub(crate) struct CongestionState {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) old: Option<&'static str>,
    pub(crate) new: &'static str,
}

/// `quic:recovery_parameters_set`.
#[derive(Serialize)]
pub(crate) struct RecoveryParameters {
    pub(crate) reordering_threshold: u64,
    /// Milliseconds (`kGranularity`, RFC 9002, section 6.1.2).
    pub(crate) timer_granularity: u16,
    pub(crate) initial_rtt: f64,
    pub(crate) max_datagram_size: u16,
    pub(crate) initial_congestion_window: u64,
    /// Name of the algorithm.
    pub(crate) congestion_controller: &'static str,
}
