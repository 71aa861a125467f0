//! QUIC packets, frames and transport parameters: parse and encode, no state, no clock.
//!
//! Parsing borrows from the datagram and never allocates; encoding writes into a borrowed buffer.
//! There is no connection state: a value is either well formed or a [`DecodeError`], and rules that
//! need state (which frame in which packet, limits, ordering) are implemented by `swiftwater-quic`.
//!
//! Sources: RFC 8999, 9000 (sections 16 to 20), 9221, 9287, 9368, 9369, and draft-ietf-quic-multipath-21 and -10.

#![forbid(unsafe_code)]

mod coding;
mod connection_id;
mod error;
pub mod frame;
mod header;
mod multipath_version;
mod packet_number;
mod transport_parameters;
mod varint;

pub use coding::{Reader, Writer};
pub use connection_id::{ConnectionId, MAX_CID_LEN, ResetToken};
pub use error::{DecodeError, ErrorCode};
pub use frame::Frame;
pub use header::{
    Header, HeaderLayout, InvariantHeader, PacketType, PartialHeader, PlainFirstByte,
    RETRY_TAG_LEN, VERSION_1, VERSION_2, are_compatible, has_short_header, is_known, is_reserved,
    write_retry, write_version_negotiation,
};
pub use multipath_version::MultipathVersion;
pub use packet_number::TruncatedPacketNumber;
pub use transport_parameters::{
    PreferredAddress, TransportParameterError, TransportParameters, VersionInformation,
};
pub use varint::{EncodedVarInt, VarInt, VarIntBoundsExceeded};
