//! Versions of QUIC and their compatibility.

/// QUIC version 1 (RFC 9000, section 15).
pub const VERSION_1: u32 = 1;

/// QUIC version 2 (RFC 9369, section 3.1).
pub const VERSION_2: u32 = 0x6b33_43cf;

/// True for versions whose packets this crate reads and writes.
pub const fn is_known(version: u32) -> bool {
    matches!(version, VERSION_1 | VERSION_2)
}

/// True for versions of the form `0x?a?a?a?a`, which are reserved for greasing: peers must ignore
/// versions that they don't know (RFC 9000, section 15).
pub const fn is_reserved(version: u32) -> bool {
    version & 0x0f0f_0f0f == 0x0a0a_0a0a
}

/// True if a first flight of version `from` can be converted to one of version `to` (RFC 9368, section
/// 2.2). A known version is compatible with itself, versions 1 and 2 with each other (RFC 9369, section
/// 4).
pub const fn are_compatible(from: u32, to: u32) -> bool {
    is_known(from) && is_known(to)
}

/// By how much the numbers of the types of long headers are rotated against those of version 1
/// (RFC 9369, section 3.2).
pub(super) const fn type_offset(version: u32) -> u8 {
    if version == VERSION_2 { 1 } else { 0 }
}
