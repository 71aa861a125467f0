//! The messages that a client may get after the handshake, without rustls's session.

use swiftwater_quic::crypto::TlsError;
use swiftwater_wire::ErrorCode;

use crate::confirmed_session::ConfirmedSession;

/// The alert `decode_error` (RFC 8446, section 6).
const DECODE_ERROR: u8 = 50;

/// Length of a handshake message's type and length (RFC 8446, section 4).
const HEADER_LEN: usize = 4;

/// `certificate_request` (RFC 8446, section 4).
const CERTIFICATE_REQUEST: u8 = 13;

/// `new_session_ticket`.
const NEW_SESSION_TICKET: u8 = 4;

/// The longest ticket that is skipped, in bytes: rustls's limit of a handshake message.
const MAX_TICKET_LEN: usize = 0xffff;

/// Follows where tickets begin and end, in pieces of any length, and skips their contents.
#[derive(Clone, Copy, Default)]
pub(crate) struct SkippedTickets {
    header: [u8; HEADER_LEN],
    /// Bytes of `header` that have arrived; all of them while a ticket is skipped.
    header_len: usize,
    /// Bytes of the ticket that have not arrived.
    missing: usize,
}

impl SkippedTickets {
    /// Reads handshake bytes of the 1-RTT encryption level. Fails for messages that are no tickets.
    pub(crate) fn read(&mut self, mut data: &[u8]) -> Result<(), TlsError> {
        while let Some((&first, rest)) = data.split_first() {
            if self.missing > 0 {
                let len = self.missing.min(data.len());
                self.missing -= len;
                data = &data[len..];
                continue;
            }
            if self.header_len == HEADER_LEN {
                self.header_len = 0;
            }
            self.header[self.header_len] = first;
            self.header_len += 1;
            data = rest;
            if self.header_len == HEADER_LEN {
                self.missing = ticket_len(self.header)?;
            }
        }
        Ok(())
    }
}

/// Length of the ticket whose header this is.
fn ticket_len([kind, a, b, c]: [u8; HEADER_LEN]) -> Result<usize, TlsError> {
    let len = u32::from_be_bytes([0, a, b, c]) as usize;
    match kind {
        NEW_SESSION_TICKET if len <= MAX_TICKET_LEN => Ok(len),
        NEW_SESSION_TICKET => Err(TlsError {
            code: ErrorCode::crypto(DECODE_ERROR),
            reason: format!("a session ticket of {len} bytes"),
        }),
        // RFC 9001, section 4.4.
        CERTIFICATE_REQUEST => Err(TlsError {
            code: ErrorCode::PROTOCOL_VIOLATION,
            reason: "a certificate request after the handshake".to_owned(),
        }),
        _ => Err(ConfirmedSession::refusal()),
    }
}
