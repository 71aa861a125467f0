//! Transport parameters (RFC 9000, section 18; RFC 9221, section 3; RFC 9287, section 3; RFC 9368,
//! section 3; draft-ietf-quic-multipath-21, section 2; -10, section 2).
//!
//! One type for both roles; parameters that only servers may send are checked in both directions.
//! Conditions on several values (connection IDs that must match, limits stored for 0-RTT) are
//! checked by the connection.

mod decode;
mod encode;
mod version_information;

pub use version_information::VersionInformation;

use std::net::{SocketAddrV4, SocketAddrV6};
use std::time::Duration;

use swiftwater_units::Side;
use thiserror::Error;

use crate::connection_id::{ConnectionId, ResetToken};
use crate::error::ErrorCode;

mod id {
    pub(super) const ORIGINAL_DESTINATION_CONNECTION_ID: u64 = 0x00;
    pub(super) const MAX_IDLE_TIMEOUT: u64 = 0x01;
    pub(super) const STATELESS_RESET_TOKEN: u64 = 0x02;
    pub(super) const MAX_UDP_PAYLOAD_SIZE: u64 = 0x03;
    pub(super) const INITIAL_MAX_DATA: u64 = 0x04;
    pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_LOCAL: u64 = 0x05;
    pub(super) const INITIAL_MAX_STREAM_DATA_BIDI_REMOTE: u64 = 0x06;
    pub(super) const INITIAL_MAX_STREAM_DATA_UNI: u64 = 0x07;
    pub(super) const INITIAL_MAX_STREAMS_BIDI: u64 = 0x08;
    pub(super) const INITIAL_MAX_STREAMS_UNI: u64 = 0x09;
    pub(super) const ACK_DELAY_EXPONENT: u64 = 0x0a;
    pub(super) const MAX_ACK_DELAY: u64 = 0x0b;
    pub(super) const DISABLE_ACTIVE_MIGRATION: u64 = 0x0c;
    pub(super) const PREFERRED_ADDRESS: u64 = 0x0d;
    pub(super) const ACTIVE_CONNECTION_ID_LIMIT: u64 = 0x0e;
    pub(super) const INITIAL_SOURCE_CONNECTION_ID: u64 = 0x0f;
    pub(super) const RETRY_SOURCE_CONNECTION_ID: u64 = 0x10;
    pub(super) const VERSION_INFORMATION: u64 = 0x11;
    /// draft-ietf-quic-reliable-stream-reset from version 08 on.
    pub(super) const RESET_STREAM_AT: u64 = 0x1d;
    /// The same before version 08; deployed peers use this one.
    pub(super) const RESET_STREAM_AT_EARLY: u64 = 0x17_f758_6d2c_b571;
    pub(super) const MAX_DATAGRAM_FRAME_SIZE: u64 = 0x20;
    pub(super) const INITIAL_MAX_PATH_ID: u64 = 0x3e;
    /// The same in draft-ietf-quic-multipath-10.
    pub(super) const INITIAL_MAX_PATH_ID_DRAFT10: u64 = 0x0f73_9bbc_1b66_6d09;
    pub(super) const GREASE_QUIC_BIT: u64 = 0x2ab2;
    /// A private extension, see [`Feedback`](crate::frame::Feedback).
    pub(super) const MAX_FEEDBACK_SIZE: u64 = 0x19d1_f5a6;
    pub(super) const MIN_ACK_DELAY: u64 = 0xff04_de1b;

    /// Whether only a server may send it (section 18.2).
    pub(super) const fn is_server_only(id: u64) -> bool {
        matches!(
            id,
            ORIGINAL_DESTINATION_CONNECTION_ID
                | STATELESS_RESET_TOKEN
                | PREFERRED_ADDRESS
                | RETRY_SOURCE_CONNECTION_ID
        )
    }
}

/// The transport parameters of an endpoint. Every limit applies to the *peer's* sending.
/// [`Default`] has the values of absent parameters.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TransportParameters {
    /// Server only: Destination Connection ID of the client's first Initial.
    pub original_destination_connection_id: Option<ConnectionId>,
    /// Idle timeout; zero: none. Milliseconds on the wire, rounded up. Default zero.
    pub max_idle_timeout: Duration,
    /// Server only: the stateless reset token of the connection ID of the handshake.
    pub stateless_reset_token: Option<ResetToken>,
    /// Largest UDP payload that the sender accepts, bytes, at least 1200. Default 65527.
    pub max_udp_payload_size: u64,
    /// Initial limit of bytes on all streams together. Default 0.
    pub initial_max_data: u64,
    /// Bytes on each bidirectional stream that the sender of the parameter opens. Default 0.
    pub initial_max_stream_data_bidi_local: u64,
    /// Bytes on each bidirectional stream that the receiver of the parameter opens. Default 0.
    pub initial_max_stream_data_bidi_remote: u64,
    /// Bytes on each unidirectional stream. Default 0.
    pub initial_max_stream_data_uni: u64,
    /// Bidirectional streams that may be opened, 2^60 at most. Default 0.
    pub initial_max_streams_bidi: u64,
    /// Unidirectional streams that may be opened, 2^60 at most. Default 0.
    pub initial_max_streams_uni: u64,
    /// ACK Delay fields count in units of 2 to this power microseconds, 20 at most. Default 3.
    pub ack_delay_exponent: u8,
    /// Longest intentional delay of an acknowledgement, below 2^14 milliseconds; rounded up to
    /// milliseconds on the wire. Default 25 ms.
    pub max_ack_delay: Duration,
    /// The peer must not migrate to another local address while it uses the sender's address of the
    /// handshake. Default false.
    pub disable_active_migration: bool,
    /// Server only: its preferred address.
    pub preferred_address: Option<PreferredAddress>,
    /// Connection IDs that the sender stores, 2 at least. Default 2.
    pub active_connection_id_limit: u64,
    /// Source Connection ID of the sender's first Initial.
    pub initial_source_connection_id: Option<ConnectionId>,
    /// Server only: Source Connection ID of its Retry.
    pub retry_source_connection_id: Option<ConnectionId>,
    /// The version that the sender chose and those that it offers (RFC 9368); absent: it does not
    /// support version negotiation.
    pub version_information: Option<VersionInformation>,
    /// The sender accepts `RESET_STREAM_AT` frames (draft-ietf-quic-reliable-stream-reset-09,
    /// section 3). Written under the identifiers of both old and new drafts, read under either.
    /// Default false.
    pub reset_stream_at: bool,
    /// Largest DATAGRAM frame that the sender accepts, bytes with type and length; 0: none
    /// (RFC 9221). Default 0.
    pub max_datagram_frame_size: u64,
    /// Largest path identifier that the sender accepts; absent: no multipath.
    pub initial_max_path_id: Option<u32>,
    /// The same for the extension of draft-ietf-quic-multipath-10 (section 2). An end that supports both
    /// versions declares both.
    pub initial_max_path_id_draft10: Option<u32>,
    /// The sender accepts packets whose QUIC bit is 0 (RFC 9287). Default false.
    pub grease_quic_bit: bool,
    /// Shortest delay of an acknowledgement that the peer may request, at most `max_ack_delay`;
    /// microseconds on the wire. Absent: the sender doesn't understand `ACK_FREQUENCY`
    /// (draft-ietf-quic-ack-frequency, section 3).
    pub min_ack_delay: Option<Duration>,
    /// Largest payload of a FEEDBACK frame that the sender accepts, bytes, 64 at most; 0: no such
    /// frames (a private extension, see [`Feedback`](crate::frame::Feedback)). Default 0.
    pub max_feedback_size: u8,
}

impl Default for TransportParameters {
    fn default() -> Self {
        Self {
            original_destination_connection_id: None,
            max_idle_timeout: Duration::ZERO,
            stateless_reset_token: None,
            max_udp_payload_size: 65_527,
            initial_max_data: 0,
            initial_max_stream_data_bidi_local: 0,
            initial_max_stream_data_bidi_remote: 0,
            initial_max_stream_data_uni: 0,
            initial_max_streams_bidi: 0,
            initial_max_streams_uni: 0,
            ack_delay_exponent: 3,
            max_ack_delay: Duration::from_millis(25),
            disable_active_migration: false,
            preferred_address: None,
            active_connection_id_limit: 2,
            initial_source_connection_id: None,
            retry_source_connection_id: None,
            version_information: None,
            reset_stream_at: false,
            max_datagram_frame_size: 0,
            initial_max_path_id: None,
            initial_max_path_id_draft10: None,
            grease_quic_bit: false,
            min_ack_delay: None,
            max_feedback_size: 0,
        }
    }
}

impl TransportParameters {
    /// Appends the parameters that differ from their defaults, in the order of their identifiers,
    /// so that equal values give equal bytes. A client's (`side`) server-only parameters are left
    /// out. `grease` adds a reserved parameter that the peer must ignore; its identifier is
    /// `31 * n + 27` (section 18.1). Values outside their ranges are a bug of the caller; those
    /// that exceed a varint are capped.
    pub fn encode(&self, side: Side, out: &mut Vec<u8>, grease: Option<(u64, &[u8])>) {
        encode::encode(self, side, out, grease);
    }

    /// Reads and checks the parameters that a peer in the role `sender` sent. Unknown ones are
    /// ignored, but not if repeated. Work and memory are bounded by the length of `bytes`.
    pub fn decode(bytes: &[u8], sender: Side) -> Result<Self, TransportParameterError> {
        decode::decode(bytes, sender)
    }
}

/// The preferred address of a server (section 18.2). At least one address is useful, but the RFC
/// doesn't require it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct PreferredAddress {
    /// IPv4 address and port, if any.
    pub ipv4: Option<SocketAddrV4>,
    /// IPv6 address and port, if any.
    pub ipv6: Option<SocketAddrV6>,
    /// Connection ID to use there, with sequence number 1; not empty.
    pub cid: ConnectionId,
    /// The stateless reset token for that ID.
    pub reset_token: ResetToken,
}

/// Why a peer's transport parameters are invalid; [`TransportParameterError::error_code`] is the
/// code to close with.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum TransportParameterError {
    /// The bytes end inside a parameter, or a value does not match its own length.
    #[error("transport parameters are truncated or their lengths are inconsistent")]
    Malformed,
    /// A parameter is repeated.
    #[error("transport parameter {0:#x} is repeated")]
    Duplicate(u64),
    /// A client sent a parameter that only servers may.
    #[error("a client sent transport parameter {0:#x}, which only servers may")]
    ServerOnly(u64),
    /// A value outside its range.
    #[error("transport parameter {id:#x}: {reason}")]
    Invalid {
        /// The parameter.
        id: u64,
        /// The violated rule.
        reason: &'static str,
    },
}

impl TransportParameterError {
    /// Always `TRANSPORT_PARAMETER_ERROR`.
    pub const fn error_code(&self) -> ErrorCode {
        ErrorCode::TRANSPORT_PARAMETER_ERROR
    }
}
