//! What every session refuses, whatever is below it.

use swiftwater_quic::crypto::{Epoch, SessionError, TlsError};
use swiftwater_wire::ErrorCode;

/// Refuses handshake bytes that came under other keys than TLS reads from now: new bytes in an old
/// epoch, or bytes ahead of the keys (RFC 9001, section 4.1.3).
pub(crate) fn check_epoch(expected: Epoch, got: Epoch) -> Result<(), TlsError> {
    if expected == got {
        return Ok(());
    }
    Err(TlsError {
        code: ErrorCode::PROTOCOL_VIOLATION,
        reason: format!("handshake bytes in epoch {got:?}, expected in {expected:?}"),
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
