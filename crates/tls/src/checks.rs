//! Checks common to all session implementations.

use swiftwater_quic::crypto::{EncryptionLevel, SessionError, TlsError};
use swiftwater_wire::ErrorCode;

/// Rejects handshake bytes at another encryption level than the one that TLS reads from at present
/// (RFC 9001, section 4.1.3).
pub(crate) fn check_level(expected: EncryptionLevel, got: EncryptionLevel) -> Result<(), TlsError> {
    if expected == got {
        return Ok(());
    }
    Err(TlsError {
        code: ErrorCode::PROTOCOL_VIOLATION,
        reason: format!("handshake bytes at encryption level {got:?}, expected at {expected:?}"),
    })
}

/// Rejects a version whose keys are not implemented.
pub(crate) fn check_version(version: u32) -> Result<(), SessionError> {
    if swiftwater_wire::is_known(version) {
        return Ok(());
    }
    Err(SessionError(format!(
        "QUIC version {version:#x} is not supported"
    )))
}
