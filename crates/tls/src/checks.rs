//! What every session refuses, whatever is below it.

use swiftwater_quic::crypto::{EncryptionLevel, SessionError, TlsError};
use swiftwater_wire::ErrorCode;

/// Refuses handshake bytes that came under other keys than TLS reads from now: new bytes in an old
/// encryption level, or bytes ahead of the keys (RFC 9001, section 4.1.3).
pub(crate) fn check_level(expected: EncryptionLevel, got: EncryptionLevel) -> Result<(), TlsError> {
    if expected == got {
        return Ok(());
    }
    Err(TlsError {
        code: ErrorCode::PROTOCOL_VIOLATION,
        reason: format!("handshake bytes in level {got:?}, expected in {expected:?}"),
    })
}

/// Refuses a version whose keys we don't derive.
pub(crate) fn check_version(version: u32) -> Result<(), SessionError> {
    if swiftwater_wire::is_known(version) {
        return Ok(());
    }
    Err(SessionError(format!(
        "QUIC version {version:#x} is not supported"
    )))
}
