//! One TLS handshake driven through rustls (RFC 9001, section 4).

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use rustls::quic::{ClientConnection, Connection, KeyChange, Secrets, ServerConnection};
use rustls::{HandshakeKind, HandshakeType};
use swiftwater_quic::crypto::{
    CryptoError, EarlyKeys, Epoch, KeyPair, Keys, NewKeys, PacketKey, Session, SessionError,
    TlsError,
};
use swiftwater_units::Side;
use swiftwater_wire::ErrorCode;

use crate::checks::{check_epoch, check_version};
use crate::cipher_suite::CipherSuite;
use crate::client_sessions::ConnectionSessions;
use crate::derived_keys::TrafficSecrets;
use crate::outbox::Outbox;
use crate::rustls_keys;
use crate::secret_tap::{Pair, SecretTap};

/// The alert `decode_error` (RFC 8446, section 6).
const DECODE_ERROR: u8 = 50;

/// The alert `illegal_parameter`.
const ILLEGAL_PARAMETER: u8 = 47;

/// A TLS session of rustls, client or server.
///
/// rustls doesn't ask in which epoch bytes arrived; this type knows which epoch TLS reads from at
/// each moment and refuses bytes of any other.
pub struct RustlsSession {
    connection: Connection,
    /// From which the packet keys of the next key phase come.
    secrets: Option<NextKeys>,
    /// Shows the secrets of a client's session, for the case that it changes its version.
    tap: Option<Arc<SecretTap>>,
    /// The version that it changed to.
    other_version: Option<u32>,
    /// Where the peer's next handshake bytes have to arrive.
    read_epoch: Epoch,
    outbox: Outbox,
    /// The name that a client asked for; a server's is inside the connection.
    asked_name: Option<String>,
    early: Early,
    /// Where a client takes sessions from and leaves them.
    sessions: Option<Arc<ConnectionSessions>>,
}

/// Early data of a session.
#[derive(Default)]
struct Early {
    /// The keys were handed out.
    has_keys: bool,
    /// What a client remembers of the server's transport parameters; `Some` if it offers early data
    /// or could.
    parameters: Option<Vec<u8>>,
    /// The application protocol of the session that a client resumes.
    alpn: Option<Vec<u8>>,
}

/// Makes the packet keys of one key phase after another.
enum NextKeys {
    Rustls(Secrets),
    Derived(TrafficSecrets),
}

impl RustlsSession {
    /// `tap` is the key log of `connection`.
    pub(crate) fn client(
        connection: ClientConnection,
        asked_name: Option<String>,
        tap: Arc<SecretTap>,
        sessions: Option<Arc<ConnectionSessions>>,
    ) -> Self {
        // Before the server's answer, they can only be remembered ones.
        let early = Early {
            has_keys: false,
            parameters: connection.quic_transport_parameters().map(<[u8]>::to_vec),
            alpn: sessions.as_ref().and_then(|sessions| sessions.taken_alpn()),
        };
        Self::new(connection.into(), asked_name, Some(tap), early, sessions)
    }

    pub(crate) fn server(connection: ServerConnection) -> Self {
        Self::new(connection.into(), None, None, Early::default(), None)
    }

    fn new(
        connection: Connection,
        asked_name: Option<String>,
        tap: Option<Arc<SecretTap>>,
        early: Early,
        sessions: Option<Arc<ConnectionSessions>>,
    ) -> Self {
        let mut session = Self {
            connection,
            secrets: None,
            tap,
            other_version: None,
            read_epoch: Epoch::Initial,
            outbox: Outbox::default(),
            asked_name,
            early,
            sessions,
        };
        // Before any input there is nothing but a client's first message: no keys that could fail.
        let _ = session.collect();
        session
    }

    /// What a client checks and notes when the handshake is complete.
    fn conclude(&self) -> Result<(), TlsError> {
        let Some(sessions) = &self.sessions else {
            return Ok(());
        };
        let alpn = self.connection.alpn_protocol();
        if self.early_data_accepted() == Some(true) && alpn != self.early.alpn.as_deref() {
            // RFC 8446, section 4.2.10.
            return Err(TlsError {
                code: ErrorCode::crypto(ILLEGAL_PARAMETER),
                reason: "early data accepted for another application protocol".to_owned(),
            });
        }
        sessions.agree(alpn);
        Ok(())
    }

    /// The suite that was negotiated, once known.
    pub fn cipher_suite(&self) -> Option<CipherSuite> {
        self.connection
            .negotiated_cipher_suite()
            .and_then(CipherSuite::from_rustls)
    }

    /// Takes over what rustls made of its input at once, so that `read_epoch` is right before the
    /// next input.
    fn collect(&mut self) -> Result<(), TlsError> {
        loop {
            let mut bytes = Vec::new();
            let change = self.connection.write_hs(&mut bytes);
            if bytes.is_empty() && change.is_none() {
                break;
            }
            let keys = change.map(|change| self.install(change)).transpose()?;
            self.outbox.push(bytes, keys);
        }
        // A server has 1-RTT keys before it has read the client's last Handshake bytes.
        if !self.connection.is_handshaking() {
            self.read_epoch = Epoch::OneRtt;
        }
        Ok(())
    }

    fn install(&mut self, change: KeyChange) -> Result<NewKeys, TlsError> {
        Ok(match change {
            KeyChange::Handshake { keys } => {
                self.read_epoch = Epoch::Handshake;
                let keys = match self.derived(SecretTap::take_handshake)? {
                    Some(secrets) => secrets.keys(),
                    None => rustls_keys::keys(keys),
                };
                NewKeys {
                    epoch: Epoch::Handshake,
                    keys,
                }
            }
            KeyChange::OneRtt { keys, next } => NewKeys {
                epoch: Epoch::OneRtt,
                keys: self.install_application(keys, next)?,
            },
        })
    }

    fn install_application(
        &mut self,
        keys: rustls::quic::Keys,
        next: Secrets,
    ) -> Result<Keys, TlsError> {
        let derived = self.derived(SecretTap::take_application)?;
        let (keys, next) = match derived {
            Some(secrets) => (secrets.keys(), NextKeys::Derived(secrets)),
            None => (rustls_keys::keys(keys), NextKeys::Rustls(next)),
        };
        self.secrets = Some(next);
        Ok(keys)
    }

    /// If the version changed: the secrets that `take` takes, instead of rustls's keys.
    fn derived(
        &self,
        take: impl FnOnce(&SecretTap) -> Pair,
    ) -> Result<Option<TrafficSecrets>, TlsError> {
        let (Some(version), Some(tap)) = (self.other_version, &self.tap) else {
            return Ok(None);
        };
        let secrets = take(tap);
        self.cipher_suite()
            .and_then(|suite| TrafficSecrets::new(version, suite, Side::Client, secrets).ok())
            .map(Some)
            .ok_or_else(|| TlsError {
                code: ErrorCode::INTERNAL_ERROR,
                reason: "no keys for the negotiated version with this cipher suite".to_owned(),
            })
    }

    fn error(&self, error: &rustls::Error) -> TlsError {
        let code = match (self.connection.alert(), error) {
            // RFC 9001, section 4.4.
            (
                _,
                rustls::Error::InappropriateHandshakeMessage {
                    got_type: HandshakeType::CertificateRequest,
                    ..
                },
            ) if self.read_epoch == Epoch::OneRtt => ErrorCode::PROTOCOL_VIOLATION,
            (Some(alert), _) => ErrorCode::crypto(alert.into()),
            (None, rustls::Error::InvalidMessage(_)) => ErrorCode::crypto(DECODE_ERROR),
            (None, _) => ErrorCode::PROTOCOL_VIOLATION,
        };
        TlsError {
            code,
            reason: error.to_string(),
        }
    }
}

impl fmt::Debug for RustlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RustlsSession")
            .field("handshaking", &self.is_handshaking())
            .field("read_epoch", &self.read_epoch)
            .finish_non_exhaustive()
    }
}

impl Session for RustlsSession {
    fn read_handshake(&mut self, epoch: Epoch, data: &[u8]) -> Result<(), TlsError> {
        check_epoch(self.read_epoch, epoch)?;
        self.connection
            .read_hs(data)
            .map_err(|error| self.error(&error))?;
        let was_handshaking = self.read_epoch != Epoch::OneRtt;
        self.collect()?;
        if was_handshaking && self.read_epoch == Epoch::OneRtt {
            self.conclude()?;
        }
        Ok(())
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<NewKeys> {
        self.outbox.take(out)
    }

    fn set_version(&mut self, version: u32) -> Result<(), SessionError> {
        check_version(version)?;
        match &self.tap {
            Some(tap) if self.read_epoch == Epoch::Initial => tap.open(),
            _ => return Err(SessionError("it is too late to change the version".into())),
        }
        self.other_version = Some(version);
        if let Some(sessions) = &self.sessions {
            sessions.set_version(version);
        }
        Ok(())
    }

    fn is_handshaking(&self) -> bool {
        self.connection.is_handshaking()
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        // Until then they may be those of the session that is resumed.
        let is_early = self.early.parameters.is_some() && self.is_handshaking();
        self.connection
            .quic_transport_parameters()
            .filter(|_| !is_early)
    }

    fn next_packet_keys(&mut self) -> Option<KeyPair<dyn PacketKey>> {
        self.secrets.as_mut().map(|secrets| match secrets {
            NextKeys::Rustls(secrets) => rustls_keys::packet_keys(secrets.next_packet_keys()),
            NextKeys::Derived(secrets) => secrets.next_packet_keys(),
        })
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.connection.alpn_protocol()
    }

    fn server_name(&self) -> Option<&str> {
        match &self.connection {
            Connection::Client(_) => self.asked_name.as_deref(),
            Connection::Server(server) => server.server_name(),
        }
    }

    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        self.connection
            .peer_certificates()
            .unwrap_or_default()
            .iter()
            .map(|certificate| certificate.to_vec())
            .collect()
    }

    fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), CryptoError> {
        self.connection
            .export_keying_material(out, label, Some(context))
            .map(|_| ())
            .map_err(|_| CryptoError)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn early_keys(&mut self) -> Option<EarlyKeys> {
        if self.early.has_keys {
            return None;
        }
        let keys = self.connection.zero_rtt_keys()?;
        self.early.has_keys = true;
        Some(rustls_keys::early_keys(keys))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.connection {
            _ if !self.early.has_keys => None,
            Connection::Client(client) => {
                (!client.is_handshaking()).then(|| client.is_early_data_accepted())
            }
            Connection::Server(_) => Some(true),
        }
    }

    fn remembered_parameters(&self) -> Option<&[u8]> {
        self.early.parameters.as_deref()
    }

    fn remembered_alpn(&self) -> Option<&[u8]> {
        self.early.alpn.as_deref()
    }

    fn is_resumed(&self) -> bool {
        self.connection.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    fn keep_token(&mut self, token: &[u8]) -> bool {
        if let Some(sessions) = &self.sessions {
            sessions.keep_token(token);
        }
        self.sessions.is_some()
    }

    fn reject_early_data(&mut self) {
        if let Connection::Server(server) = &mut self.connection
            && server.is_handshaking()
        {
            server.reject_early_data();
        }
    }
}
