//! The state that remains of a server's session when its handshake is confirmed.

use rustls::HandshakeKind;
use rustls::quic::ServerConnection;
use swiftwater_quic::crypto::{CryptoError, TlsError};
use swiftwater_wire::ErrorCode;

use crate::cipher_suite::CipherSuite;
use crate::exporter::Exporter;
use crate::secret_tap::SecretTap;

/// The alert `unexpected_message` (RFC 8446, section 6).
const UNEXPECTED_MESSAGE: u8 = 10;

/// The values of a completed handshake that applications may query.
///
/// A server receives no further TLS messages then: key updates are part of QUIC (RFC 9001, section
/// 6), and clients must not send other messages (sections 4.4 and 8.3).
pub(crate) struct ConfirmedSession {
    pub(crate) suite: CipherSuite,
    pub(crate) is_resumed: bool,
    pub(crate) alpn: Option<Box<[u8]>>,
    pub(crate) server_name: Option<Box<str>>,
    /// The client's chain.
    pub(crate) certificates: Box<[Vec<u8>]>,
    exporter: Exporter,
}

impl ConfirmedSession {
    /// The remaining state of `connection`; `None` if more is needed than can be stored.
    pub(crate) fn of(connection: &ServerConnection, tap: &SecretTap) -> Option<Self> {
        if connection.is_handshaking() {
            return None;
        }
        let suite = CipherSuite::from_rustls(connection.negotiated_cipher_suite()?)?;
        let exporter = Exporter::new(suite, tap.take_exporter())?;
        Some(Self {
            suite,
            is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            alpn: connection.alpn_protocol().map(Into::into),
            server_name: connection.server_name().map(Into::into),
            certificates: connection
                .peer_certificates()
                .unwrap_or_default()
                .iter()
                .map(|certificate| certificate.to_vec())
                .collect(),
            exporter,
        })
    }

    /// Exported keying material, as from the whole session.
    pub(crate) fn export(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), CryptoError> {
        self.exporter.export(out, label, context)
    }

    /// The error for handshake bytes that a client sends now.
    pub(crate) fn refusal() -> TlsError {
        TlsError {
            code: ErrorCode::crypto(UNEXPECTED_MESSAGE),
            reason: "a handshake message after the handshake".to_owned(),
        }
    }
}
