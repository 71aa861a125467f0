//! Extracts the transport parameters of a `ClientHello` (RFC 8446, section 4.1.2) before TLS reads it:
//! a server needs the client's version information to choose the QUIC version of the session.
//!
//! Nothing is validated here. Malformed messages are left to TLS, which has an alert for them.

use swiftwater_quic::crypto::Hello;
use swiftwater_wire::{DecodeError, Reader};

/// The handshake type `client_hello`.
const CLIENT_HELLO: u8 = 1;

/// Bytes of a handshake message before its body.
const HEADER_LEN: usize = 4;

/// Longest message that TLS accepts.
const MAX_BODY_LEN: usize = 65_535;

/// Bytes of the legacy version and the random value.
const FIXED_LEN: usize = 2 + 32;

/// The extension `quic_transport_parameters` (RFC 9001, section 8.2).
const QUIC_TRANSPORT_PARAMETERS: u16 = 0x39;

/// The transport parameters in the `ClientHello` at the start of `bytes`.
pub(crate) fn look(bytes: &[u8]) -> Hello<'_> {
    let Some((&[kind, a, b, c], rest)) = bytes.split_first_chunk::<HEADER_LEN>() else {
        return Hello::Incomplete;
    };
    let body_len = u32::from_be_bytes([0, a, b, c]) as usize;
    if kind != CLIENT_HELLO || body_len > MAX_BODY_LEN {
        return Hello::Opaque;
    }
    let Some(body) = rest.get(..body_len) else {
        return Hello::Incomplete;
    };
    match parameters(body) {
        Ok(Some(parameters)) => Hello::Parameters(parameters),
        Ok(None) | Err(_) => Hello::Opaque,
    }
}

fn parameters(body: &[u8]) -> Result<Option<&[u8]>, DecodeError> {
    let mut r = Reader::new(body);
    r.bytes(FIXED_LEN)?;
    let session_id = r.u8()?;
    r.bytes(usize::from(session_id))?;
    let suites = r.u16()?;
    r.bytes(usize::from(suites))?;
    let compression = r.u8()?;
    r.bytes(usize::from(compression))?;
    let extensions = r.u16()?;
    let mut r = Reader::new(r.bytes(usize::from(extensions))?);
    while !r.is_empty() {
        let (kind, len) = (r.u16()?, r.u16()?);
        let value = r.bytes(usize::from(len))?;
        if kind == QUIC_TRANSPORT_PARAMETERS {
            return Ok(Some(value));
        }
    }
    Ok(None)
}
