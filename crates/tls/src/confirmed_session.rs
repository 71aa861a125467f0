//! The state that remains of a session that needs rustls no longer, once its handshake is confirmed.

use rustls::quic::{ClientConnection, ServerConnection};
use rustls::{CommonState, HandshakeKind};
use swiftwater_quic::crypto::{CryptoError, TlsError};
use swiftwater_wire::ErrorCode;

use crate::cipher_suite::CipherSuite;
use crate::exporter::Exporter;
use crate::secret_tap::SecretTap;
use crate::skipped_tickets::SkippedTickets;

/// The alert `unexpected_message` (RFC 8446, section 6).
const UNEXPECTED_MESSAGE: u8 = 10;

/// The values of a completed handshake that applications may query.
///
/// A server receives no further TLS messages then: key updates are part of QUIC (RFC 9001, section
/// 6), and clients must not send other messages (sections 4.4 and 8.3). A client may receive tickets,
/// which are not stored any more.
pub(crate) struct ConfirmedSession {
    pub(crate) suite: CipherSuite,
    pub(crate) is_resumed: bool,
    /// If early data were offered.
    pub(crate) early_data_accepted: bool,
    pub(crate) alpn: Option<Box<[u8]>>,
    pub(crate) server_name: Option<Box<str>>,
    /// The peer's chain.
    pub(crate) certificates: Box<[Vec<u8>]>,
    /// The tickets that a client receives; `None` on a server.
    tickets: Option<SkippedTickets>,
    exporter: Exporter,
}

impl ConfirmedSession {
    /// The remaining state of a server's `connection`; `None` if more is needed than can be stored.
    pub(crate) fn server(connection: &ServerConnection, tap: &SecretTap) -> Option<Self> {
        Self::new(connection, connection.server_name(), true, tap)
    }

    /// The remaining state of a client's `connection` to the server that it calls `server_name`; `None` as
    /// for [`ConfirmedSession::server`].
    pub(crate) fn client(
        connection: &ClientConnection,
        server_name: &str,
        tickets: SkippedTickets,
        tap: &SecretTap,
    ) -> Option<Self> {
        let accepted = connection.is_early_data_accepted();
        let confirmed = Self::new(connection, Some(server_name), accepted, tap)?;
        Some(Self {
            tickets: Some(tickets),
            ..confirmed
        })
    }

    fn new(
        connection: &CommonState,
        server_name: Option<&str>,
        early_data_accepted: bool,
        tap: &SecretTap,
    ) -> Option<Self> {
        if connection.is_handshaking() {
            return None;
        }
        let suite = CipherSuite::from_rustls(connection.negotiated_cipher_suite()?)?;
        let exporter = Exporter::new(suite, tap.take_exporter())?;
        Some(Self {
            suite,
            is_resumed: connection.handshake_kind() == Some(HandshakeKind::Resumed),
            early_data_accepted,
            alpn: connection.alpn_protocol().map(Into::into),
            server_name: server_name.map(Into::into),
            certificates: connection
                .peer_certificates()
                .unwrap_or_default()
                .iter()
                .map(|certificate| certificate.to_vec())
                .collect(),
            tickets: None,
            exporter,
        })
    }

    /// Takes handshake bytes of the 1-RTT encryption level: tickets, to a client.
    pub(crate) fn read(&mut self, data: &[u8]) -> Result<(), TlsError> {
        match &mut self.tickets {
            Some(tickets) => tickets.read(data),
            None => Err(Self::refusal()),
        }
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

    /// The error for messages that no peer may send now.
    pub(crate) fn refusal() -> TlsError {
        TlsError {
            code: ErrorCode::crypto(UNEXPECTED_MESSAGE),
            reason: "a handshake message after the handshake".to_owned(),
        }
    }
}
