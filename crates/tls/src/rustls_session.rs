//! One TLS handshake driven through rustls (RFC 9001, section 4).

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use rustls::quic::{ClientConnection, Connection, KeyChange, Secrets, ServerConnection};
use rustls::{HandshakeKind, HandshakeType};
use swiftwater_quic::crypto::{
    ApplicationKeys, CryptoError, EarlyKeys, EncryptionLevel, KeyPair, Keys, NewKeys, PacketKey,
    Session, SessionError, TlsError,
};
use swiftwater_units::Side;
use swiftwater_wire::ErrorCode;

use crate::checks::{check_level, check_version};
use crate::cipher_suite::CipherSuite;
use crate::client_sessions::ConnectionSessions;
use crate::confirmed_session::ConfirmedSession;
use crate::derived_keys::TrafficSecrets;
use crate::error_text::error_text;
use crate::handshake_output::HandshakeOutput;
use crate::rustls_keys;
use crate::secret_tap::{Pair, SecretTap};
use crate::skipped_tickets::SkippedTickets;

/// The alert `decode_error` (RFC 8446, section 6).
const DECODE_ERROR: u8 = 50;

/// The alert `illegal_parameter`.
const ILLEGAL_PARAMETER: u8 = 47;

/// A TLS session of rustls, client or server.
///
/// rustls doesn't check the encryption level at which bytes arrive; this type tracks the encryption
/// level that TLS reads from and rejects bytes of any other.
pub struct RustlsSession {
    tls: Tls,
    /// Source of the packet keys of the next key phase.
    secrets: Option<NextKeys>,
    /// Encryption level of the peer's next handshake bytes.
    read_level: EncryptionLevel,
    handshake_output: HandshakeOutput,
    /// The keys of early data were returned.
    has_early_keys: bool,
    /// The version whose labels the keys use.
    version: u32,
    /// The key log of the connection, while it exists.
    tap: Option<Arc<SecretTap>>,
    /// Client state; without a session store, while rustls's session is kept.
    client: Option<Box<ClientPart>>,
}

/// State of TLS: in progress, or released after the handshake.
enum Tls {
    Live(Box<Connection>),
    Confirmed(Box<ConfirmedSession>),
}

struct ClientPart {
    /// The connection's version differs from the one that rustls was started with.
    changed_version: bool,
    asked_name: String,
    /// The server's transport parameters of the resumed session; `Some` if early data are offered or could
    /// be.
    resumed_parameters: Option<Vec<u8>>,
    /// The application protocol of the resumed session.
    resumed_alpn: Option<Vec<u8>>,
    /// The session store of the connection.
    sessions: Option<Arc<ConnectionSessions>>,
    /// Where tickets begin and end: one may be incomplete when rustls's session is released.
    tickets: SkippedTickets,
}

/// Derives the packet keys of successive key phases.
enum NextKeys {
    Derived(Box<TrafficSecrets>),
    /// For a cipher suite that is not one of this crate's.
    Rustls(Box<Secrets>),
}

impl Tls {
    fn live(&self) -> Option<&Connection> {
        match self {
            Self::Live(connection) => Some(connection),
            Self::Confirmed(_) => None,
        }
    }

    fn confirmed(&self) -> Option<&ConfirmedSession> {
        match self {
            Self::Live(_) => None,
            Self::Confirmed(confirmed) => Some(confirmed),
        }
    }

    fn live_mut(&mut self) -> Option<&mut Connection> {
        match self {
            Self::Live(connection) => Some(connection),
            Self::Confirmed(_) => None,
        }
    }
}

impl RustlsSession {
    /// `tap` is the key log of `connection`, `version` that with which it starts.
    pub(crate) fn client(
        connection: ClientConnection,
        version: u32,
        asked_name: String,
        tap: Arc<SecretTap>,
        sessions: Option<Arc<ConnectionSessions>>,
    ) -> Self {
        let client = ClientPart {
            changed_version: false,
            asked_name,
            // Before the server's answer, only the parameters of the resumed session are available.
            resumed_parameters: connection.quic_transport_parameters().map(<[u8]>::to_vec),
            resumed_alpn: sessions.as_ref().and_then(|sessions| sessions.taken_alpn()),
            sessions,
            tickets: SkippedTickets::default(),
        };
        Self::new(connection.into(), version, tap, Some(Box::new(client)))
    }

    /// `tap` is the key log of `connection`, `version` its version.
    pub(crate) fn server(connection: ServerConnection, tap: Arc<SecretTap>, version: u32) -> Self {
        Self::new(connection.into(), version, tap, None)
    }

    fn new(
        connection: Connection,
        version: u32,
        tap: Arc<SecretTap>,
        client: Option<Box<ClientPart>>,
    ) -> Self {
        let mut session = Self {
            tls: Tls::Live(Box::new(connection)),
            secrets: None,
            read_level: EncryptionLevel::Initial,
            handshake_output: HandshakeOutput::default(),
            has_early_keys: false,
            version,
            tap: Some(tap),
            client,
        };
        // Before any input there is only a client's first message: no keys that could fail.
        let _ = session.collect();
        session
    }

    /// Checks and records of a client when the handshake is complete.
    fn conclude(&self) -> Result<(), TlsError> {
        let Some(client) = &self.client else {
            return Ok(());
        };
        let Some(sessions) = &client.sessions else {
            return Ok(());
        };
        let alpn = self.alpn();
        if self.early_data_accepted() == Some(true) && alpn != client.resumed_alpn.as_deref() {
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
        match &self.tls {
            Tls::Confirmed(confirmed) => Some(confirmed.suite),
            Tls::Live(connection) => connection
                .negotiated_cipher_suite()
                .and_then(CipherSuite::from_rustls),
        }
    }

    /// Processes rustls's output for each input at once, so that `read_level` is correct before the
    /// next input.
    fn collect(&mut self) -> Result<(), TlsError> {
        while let Some(connection) = self.tls.live_mut() {
            let mut bytes = Vec::new();
            let change = connection.write_hs(&mut bytes);
            if bytes.is_empty() && change.is_none() {
                break;
            }
            let keys = change.map(|change| self.install(change)).transpose()?;
            self.handshake_output.push(bytes, keys);
        }
        // A server has 1-RTT keys before it has read the client's last Handshake bytes.
        if !self.is_handshaking() {
            self.read_level = EncryptionLevel::OneRtt;
        }
        Ok(())
    }

    fn install(&mut self, change: KeyChange) -> Result<NewKeys, TlsError> {
        Ok(match change {
            KeyChange::Handshake { keys } => {
                self.read_level = EncryptionLevel::Handshake;
                let keys = if self.changed_version() {
                    let secrets = self.traffic_secrets(SecretTap::take_handshake);
                    secrets.ok_or_else(no_keys)?.keys()
                } else {
                    rustls_keys::keys(keys)
                };
                NewKeys {
                    level: EncryptionLevel::Handshake,
                    keys,
                }
            }
            KeyChange::OneRtt { keys, next } => NewKeys {
                level: EncryptionLevel::OneRtt,
                keys: self.install_application(keys, next)?,
            },
        })
    }

    fn install_application(
        &mut self,
        keys: rustls::quic::Keys,
        next: Secrets,
    ) -> Result<Keys, TlsError> {
        let (keys, next) = match self.traffic_secrets(SecretTap::take_application) {
            Some(secrets) => {
                let keys = if self.changed_version() {
                    secrets.keys()
                } else {
                    rustls_keys::keys(keys)
                };
                (keys, NextKeys::Derived(Box::new(secrets)))
            }
            None if self.changed_version() => return Err(no_keys()),
            None => (rustls_keys::keys(keys), NextKeys::Rustls(Box::new(next))),
        };
        self.secrets = Some(next);
        Ok(keys)
    }

    /// True if rustls derives keys for another version than the connection's.
    fn changed_version(&self) -> bool {
        (self.client.as_ref()).is_some_and(|client| client.changed_version)
    }

    /// The secrets returned by `take`; `None` if they don't fit a suite of this crate.
    fn traffic_secrets(&self, take: impl FnOnce(&SecretTap) -> Pair) -> Option<TrafficSecrets> {
        let side = match self.client {
            Some(_) => Side::Client,
            None => Side::Server,
        };
        let suite = self.cipher_suite()?;
        TrafficSecrets::new(self.version, suite, side, take(self.tap.as_ref()?)).ok()
    }

    /// Releases rustls's session, if the handshake is over and all that it wrote was taken.
    fn release(&mut self) {
        if self.handshake_output.is_empty()
            && let Some(confirmed) = self.confirmed()
        {
            self.tls = Tls::Confirmed(Box::new(confirmed));
            self.handshake_output = HandshakeOutput::default();
            self.tap = None;
            // With a store, tokens may come at any time.
            self.client.take_if(|client| client.sessions.is_none());
        }
    }

    /// The state that remains without rustls's session.
    fn confirmed(&self) -> Option<ConfirmedSession> {
        let tap = self.tap.as_ref()?;
        match self.tls.live()? {
            Connection::Server(server) => ConfirmedSession::server(server, tap),
            Connection::Client(connection) => {
                let client = self.client.as_ref()?;
                ConfirmedSession::client(connection, &client.asked_name, client.tickets, tap)
            }
        }
    }

    fn error(&self, error: &rustls::Error) -> TlsError {
        let alert = self.tls.live().and_then(Connection::alert);
        let code = match (alert, error) {
            // RFC 9001, section 4.4.
            (
                _,
                rustls::Error::InappropriateHandshakeMessage {
                    got_type: HandshakeType::CertificateRequest,
                    ..
                },
            ) if self.read_level == EncryptionLevel::OneRtt => ErrorCode::PROTOCOL_VIOLATION,
            (Some(alert), _) => ErrorCode::crypto(alert.into()),
            (None, rustls::Error::InvalidMessage(_)) => ErrorCode::crypto(DECODE_ERROR),
            (None, _) => ErrorCode::PROTOCOL_VIOLATION,
        };
        TlsError {
            code,
            reason: error_text(error),
        }
    }
}

impl fmt::Debug for RustlsSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RustlsSession")
            .field("handshaking", &self.is_handshaking())
            .field("read_level", &self.read_level)
            .finish_non_exhaustive()
    }
}

impl Session for RustlsSession {
    fn read_handshake(&mut self, level: EncryptionLevel, data: &[u8]) -> Result<(), TlsError> {
        check_level(self.read_level, level)?;
        let connection = match &mut self.tls {
            Tls::Live(connection) => connection,
            Tls::Confirmed(confirmed) => return confirmed.read(data),
        };
        connection
            .read_hs(data)
            .map_err(|error| self.error(&error))?;
        if level == EncryptionLevel::OneRtt
            && let Some(client) = &mut self.client
        {
            client.tickets.read(data)?;
        }
        let was_handshaking = self.read_level != EncryptionLevel::OneRtt;
        self.collect()?;
        if was_handshaking && self.read_level == EncryptionLevel::OneRtt {
            self.conclude()?;
        }
        Ok(())
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<NewKeys> {
        self.handshake_output.take(out)
    }

    fn set_version(&mut self, version: u32) -> Result<(), SessionError> {
        check_version(version)?;
        match &mut self.client {
            Some(client) if self.read_level == EncryptionLevel::Initial => {
                client.changed_version = true;
                self.version = version;
                if let Some(tap) = &self.tap {
                    tap.keep_handshake();
                }
                if let Some(sessions) = &client.sessions {
                    sessions.set_version(version);
                }
                Ok(())
            }
            _ => Err(SessionError("it is too late to change the version".into())),
        }
    }

    fn is_handshaking(&self) -> bool {
        self.tls
            .live()
            .is_some_and(|connection| connection.is_handshaking())
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        // Until then they may be those of the resumed session.
        let is_early = self.resumed_parameters().is_some() && self.is_handshaking();
        self.tls
            .live()?
            .quic_transport_parameters()
            .filter(|_| !is_early)
    }

    fn next_packet_keys(&mut self) -> Option<KeyPair<dyn PacketKey>> {
        self.secrets.as_mut().map(|secrets| match secrets {
            NextKeys::Rustls(secrets) => rustls_keys::packet_keys(secrets.next_packet_keys()),
            NextKeys::Derived(secrets) => secrets.next_packet_keys(),
        })
    }

    fn can_remake_keys(&self) -> bool {
        matches!(self.secrets, Some(NextKeys::Derived(_)))
    }

    fn remake_keys(&self) -> Option<ApplicationKeys> {
        match &self.secrets {
            Some(NextKeys::Derived(secrets)) => Some(secrets.remade_keys()),
            _ => None,
        }
    }

    fn alpn(&self) -> Option<&[u8]> {
        match &self.tls {
            Tls::Confirmed(confirmed) => confirmed.alpn.as_deref(),
            Tls::Live(connection) => connection.alpn_protocol(),
        }
    }

    fn server_name(&self) -> Option<&str> {
        match &self.tls {
            Tls::Confirmed(confirmed) => confirmed.server_name.as_deref(),
            Tls::Live(connection) => match &**connection {
                Connection::Client(_) => self.client.as_ref().map(|client| &*client.asked_name),
                Connection::Server(server) => server.server_name(),
            },
        }
    }

    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        match &self.tls {
            Tls::Confirmed(confirmed) => confirmed.certificates.to_vec(),
            Tls::Live(connection) => connection
                .peer_certificates()
                .unwrap_or_default()
                .iter()
                .map(|certificate| certificate.to_vec())
                .collect(),
        }
    }

    fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), CryptoError> {
        match &self.tls {
            Tls::Confirmed(confirmed) => confirmed.export(out, label, context),
            Tls::Live(connection) => connection
                .export_keying_material(out, label, Some(context))
                .map(|_| ())
                .map_err(|_| CryptoError),
        }
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn early_keys(&mut self) -> Option<EarlyKeys> {
        if self.has_early_keys {
            return None;
        }
        let keys = self.tls.live()?.zero_rtt_keys()?;
        self.has_early_keys = true;
        Some(rustls_keys::early_keys(keys))
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match self.tls.live() {
            _ if !self.has_early_keys => None,
            Some(Connection::Client(client)) => {
                (!client.is_handshaking()).then(|| client.is_early_data_accepted())
            }
            Some(Connection::Server(_)) => Some(true),
            None => Some(self.tls.confirmed()?.early_data_accepted),
        }
    }

    fn resumed_parameters(&self) -> Option<&[u8]> {
        self.client.as_ref()?.resumed_parameters.as_deref()
    }

    fn resumed_alpn(&self) -> Option<&[u8]> {
        self.client.as_ref()?.resumed_alpn.as_deref()
    }

    fn is_resumed(&self) -> bool {
        match &self.tls {
            Tls::Confirmed(confirmed) => confirmed.is_resumed,
            Tls::Live(connection) => connection.handshake_kind() == Some(HandshakeKind::Resumed),
        }
    }

    fn keep_token(&mut self, token: &[u8]) -> bool {
        let client = self.client.as_ref();
        let sessions = client.and_then(|client| client.sessions.as_ref());
        if let Some(sessions) = sessions {
            sessions.keep_token(token);
        }
        sessions.is_some()
    }

    fn reject_early_data(&mut self) {
        if let Some(Connection::Server(server)) = self.tls.live_mut()
            && server.is_handshaking()
        {
            server.reject_early_data();
        }
    }

    fn settle(&mut self) {
        // Tickets may come at any time, and storing one needs rustls's session.
        let client = self.client.as_ref();
        if client.is_none_or(|client| client.sessions.is_none()) {
            self.release();
        }
    }

    fn release_idle_memory(&mut self) {
        // Servers send their tickets when the handshake ends. Those of one that sends others much later are not missed.
        if let Some(Connection::Client(client)) = self.tls.live()
            && client.tls13_tickets_received() > 0
        {
            self.release();
        }
    }
}

fn no_keys() -> TlsError {
    TlsError {
        code: ErrorCode::INTERNAL_ERROR,
        reason: "no keys for the negotiated version with this cipher suite".to_owned(),
    }
}
