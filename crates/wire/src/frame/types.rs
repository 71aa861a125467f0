//! Frame type codes.

#![allow(missing_docs, reason = "each constant is the RFC's name of the type")]

pub const PADDING: u64 = 0x00;
pub const PING: u64 = 0x01;
pub const ACK: u64 = 0x02;
pub const ACK_ECN: u64 = 0x03;
pub const RESET_STREAM: u64 = 0x04;
pub const STOP_SENDING: u64 = 0x05;
pub const CRYPTO: u64 = 0x06;
pub const NEW_TOKEN: u64 = 0x07;
/// 0x08 to 0x0f: bit 0 FIN, bit 1 LEN, bit 2 OFF.
pub const STREAM: u64 = 0x08;
pub const MAX_DATA: u64 = 0x10;
pub const MAX_STREAM_DATA: u64 = 0x11;
pub const MAX_STREAMS_BIDI: u64 = 0x12;
pub const MAX_STREAMS_UNI: u64 = 0x13;
pub const DATA_BLOCKED: u64 = 0x14;
pub const STREAM_DATA_BLOCKED: u64 = 0x15;
pub const STREAMS_BLOCKED_BIDI: u64 = 0x16;
pub const STREAMS_BLOCKED_UNI: u64 = 0x17;
pub const NEW_CONNECTION_ID: u64 = 0x18;
pub const RETIRE_CONNECTION_ID: u64 = 0x19;
pub const PATH_CHALLENGE: u64 = 0x1a;
pub const PATH_RESPONSE: u64 = 0x1b;
pub const CONNECTION_CLOSE: u64 = 0x1c;
pub const CONNECTION_CLOSE_APP: u64 = 0x1d;
pub const HANDSHAKE_DONE: u64 = 0x1e;
/// draft-ietf-quic-ack-frequency, section 5.
pub const IMMEDIATE_ACK: u64 = 0x1f;
/// draft-ietf-quic-reliable-stream-reset-09, section 4.
pub const RESET_STREAM_AT: u64 = 0x24;
pub const DATAGRAM: u64 = 0x30;
pub const DATAGRAM_LEN: u64 = 0x31;
pub const PATH_ACK: u64 = 0x3e;
pub const PATH_ACK_ECN: u64 = 0x3f;
/// draft-ietf-quic-ack-frequency, section 4.
pub const ACK_FREQUENCY: u64 = 0xaf;
pub const PATH_ABANDON: u64 = 0x3e75;
pub const PATH_STATUS_BACKUP: u64 = 0x3e76;
pub const PATH_STATUS_AVAILABLE: u64 = 0x3e77;
pub const PATH_NEW_CONNECTION_ID: u64 = 0x3e78;
pub const PATH_RETIRE_CONNECTION_ID: u64 = 0x3e79;
pub const MAX_PATH_ID: u64 = 0x3e7a;
pub const PATHS_BLOCKED: u64 = 0x3e7b;
pub const PATH_CIDS_BLOCKED: u64 = 0x3e7c;
/// The types of draft-ietf-quic-multipath-10, section 7. The draft has other names for some: MP_ACK,
/// PATH_STANDBY, PATH_AVAILABLE, MP_NEW_CONNECTION_ID and MP_RETIRE_CONNECTION_ID.
pub mod draft10 {
    pub const PATH_ACK: u64 = 0x1522_8c00;
    pub const PATH_ACK_ECN: u64 = 0x1522_8c01;
    pub const PATH_ABANDON: u64 = 0x1522_8c05;
    pub const PATH_STATUS_BACKUP: u64 = 0x1522_8c07;
    pub const PATH_STATUS_AVAILABLE: u64 = 0x1522_8c08;
    pub const PATH_NEW_CONNECTION_ID: u64 = 0x1522_8c09;
    pub const PATH_RETIRE_CONNECTION_ID: u64 = 0x1522_8c0a;
    pub const MAX_PATH_ID: u64 = 0x1522_8c0c;
}
/// A private extension, see [`Feedback`](super::Feedback): ack-eliciting.
pub const FEEDBACK: u64 = 0x19d1_f5a4;
/// The same, not ack-eliciting.
pub const FEEDBACK_NOT_ELICITING: u64 = 0x19d1_f5a5;
