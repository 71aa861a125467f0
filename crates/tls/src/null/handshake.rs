//! The null handshake: the messages of each encryption level, as in TLS 1.3's full handshake.
//!
//! ```text
//! client                                             server
//! Initial    ClientHello            -->
//!                                   <--   ServerHello            Initial
//!                                         EncryptedExtensions    Handshake
//!                                         Certificate
//!                                         CertificateVerify
//!                                   <--   Finished
//! Handshake  Finished               -->
//!                                   <--   [NewSessionTicket]     1-RTT
//! ```
//!
//! Secrets are checksums of the messages so far. The transport parameters among them carry
//! connection IDs, so that every connection has different keys.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use swiftwater_quic::EarlyLimits;
use swiftwater_quic::crypto::{
    CryptoError, EarlyKeys, EncryptionLevel, KeyPair, NewKeys, PacketKey, Session, SessionError,
    TlsError,
};
use swiftwater_units::Side;

use super::keys::Secret;
use super::messages::{self, ClientHello, EncryptedExtensions, Kind, alert, failure};
use super::tickets::{Issued, NullTicket};
use crate::checks::{check_level, check_version};
use crate::handshake_output::HandshakeOutput;
use crate::sessions::{ServerId, SessionKind, SessionStore, StoredSession};

/// Settings of a server.
pub(super) struct ServerSettings {
    pub(super) parameters: Vec<u8>,
    pub(super) chain_len: usize,
    pub(super) version: u32,
    pub(super) ticket: bool,
    pub(super) early_data: bool,
    pub(super) replayable: bool,
    pub(super) forgetful: bool,
    pub(super) issued: Arc<Issued>,
}

/// Settings of a client at the start.
pub(super) struct ClientSettings {
    pub(super) server: ServerId,
    pub(super) sessions: Option<Arc<dyn SessionStore>>,
    /// The session to resume.
    pub(super) ticket: Option<NullTicket>,
    pub(super) early_data: bool,
}

/// The next expected message of the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Expect {
    ClientHello,
    ServerHello,
    EncryptedExtensions,
    Certificate,
    CertificateVerify,
    Finished,
    /// The handshake is complete.
    Nothing,
}

/// One side of a null handshake.
pub struct NullSession {
    /// Keys are those of this version of QUIC.
    version: u32,
    /// `None` on a client.
    server: Option<ServerSettings>,
    /// `None` on a server.
    client: Option<ClientSettings>,
    /// An earlier session is resumed.
    resumed: bool,
    early_keys: Option<EarlyKeys>,
    /// The server accepts early data.
    early_accepted: bool,
    /// The secret of the next connection's early data keys.
    resumption: Option<Secret>,
    expect: Expect,
    read_level: EncryptionLevel,
    /// Handshake bytes of an incomplete message.
    buffer: Vec<u8>,
    handshake_output: HandshakeOutput,
    /// Checksum of all messages so far.
    transcript: Secret,
    /// The secret of the newest key phase, and the one that exporters use.
    application: Option<(Secret, Secret)>,
    our_alpn: Vec<Vec<u8>>,
    /// Empty if none was negotiated.
    alpn: Option<Vec<u8>>,
    server_name: Option<String>,
    peer_parameters: Option<Vec<u8>>,
}

impl NullSession {
    pub(super) fn client(
        version: u32,
        alpn: &[Vec<u8>],
        client: ClientSettings,
        hello: Vec<u8>,
    ) -> Self {
        let mut session = Self::new(version, alpn, Expect::ServerHello);
        session.server_name = Some(client.server.name.clone());
        if let Some(ticket) = client.ticket.as_ref().filter(|_| client.early_data) {
            session.early_keys = Some(ticket.secret.derive("early", &hello).early_keys());
        }
        session.client = Some(client);
        session.absorb(&hello);
        session.handshake_output.push(hello, None);
        session
    }

    pub(super) fn server(version: u32, alpn: &[Vec<u8>], settings: ServerSettings) -> Self {
        let mut session = Self::new(version, alpn, Expect::ClientHello);
        session.server = Some(settings);
        session
    }

    fn new(version: u32, alpn: &[Vec<u8>], expect: Expect) -> Self {
        Self {
            version,
            server: None,
            client: None,
            resumed: false,
            early_keys: None,
            early_accepted: false,
            resumption: None,
            expect,
            read_level: EncryptionLevel::Initial,
            buffer: Vec::new(),
            handshake_output: HandshakeOutput::default(),
            transcript: Secret(0),
            application: None,
            our_alpn: alpn.to_vec(),
            alpn: None,
            server_name: None,
            peer_parameters: None,
        }
    }

    fn side(&self) -> Side {
        match self.server {
            Some(_) => Side::Server,
            None => Side::Client,
        }
    }

    /// Adds a message, as it is on the wire, to the transcript.
    fn absorb(&mut self, message: &[u8]) {
        self.transcript = self.transcript.derive("message", message);
    }

    /// Adds a message of this end to the transcript and to `flight`.
    fn say(&mut self, message: &[u8], flight: &mut Vec<u8>) {
        self.absorb(message);
        flight.extend_from_slice(message);
    }

    /// The proof in a Finished message of `side` at this point of the handshake.
    fn proof(&self, side: Side) -> u64 {
        let side: &[u8] = match side {
            Side::Client => b"client",
            Side::Server => b"server",
        };
        self.transcript.derive("finished", side).0
    }

    fn handshake_keys(&mut self) -> NewKeys {
        self.read_level = EncryptionLevel::Handshake;
        NewKeys {
            level: EncryptionLevel::Handshake,
            keys: self
                .transcript
                .derive("handshake", &self.version.to_be_bytes())
                .keys(self.side()),
        }
    }

    fn application_keys(&mut self) -> NewKeys {
        let secret = self
            .transcript
            .derive("application", &self.version.to_be_bytes());
        self.application = Some((secret, secret));
        NewKeys {
            level: EncryptionLevel::OneRtt,
            keys: secret.keys(self.side()),
        }
    }

    /// Reads one whole message.
    fn on_message(&mut self, kind: Kind, message: &[u8]) -> Result<(), TlsError> {
        match (self.expect, kind) {
            (Expect::ClientHello, Kind::ClientHello) => {
                let hello = ClientHello::decode(message)?;
                self.absorb(message);
                self.on_client_hello(hello, message)
            }
            (Expect::ServerHello, Kind::ServerHello) => {
                self.absorb(message);
                self.resumed = messages::server_resumes(message)?;
                let offered = self.client.as_ref().is_some_and(|it| it.ticket.is_some());
                if self.resumed && !offered {
                    let reason = "resumes a session that was not offered";
                    return Err(failure(alert::ILLEGAL_PARAMETER, reason));
                }
                let keys = self.handshake_keys();
                self.handshake_output.push(Vec::new(), Some(keys));
                self.expect = Expect::EncryptedExtensions;
                Ok(())
            }
            (Expect::EncryptedExtensions, Kind::EncryptedExtensions) => {
                let extensions = EncryptedExtensions::decode(message)?;
                self.absorb(message);
                // A session that is resumed needs no certificate.
                self.expect = if self.resumed {
                    Expect::Finished
                } else {
                    Expect::Certificate
                };
                self.on_extensions(extensions)
            }
            (Expect::Certificate, Kind::Certificate) => {
                self.absorb(message);
                self.expect = Expect::CertificateVerify;
                Ok(())
            }
            (Expect::CertificateVerify, Kind::CertificateVerify) => {
                self.absorb(message);
                self.expect = Expect::Finished;
                Ok(())
            }
            (Expect::Finished, Kind::Finished) => self.on_finished(message),
            (Expect::Nothing, Kind::NewSessionTicket) if self.server.is_none() => {
                self.on_ticket(message)
            }
            (expect, kind) => Err(failure(
                alert::UNEXPECTED_MESSAGE,
                format!("{kind:?} where {expect:?} was expected"),
            )),
        }
    }

    fn on_client_hello(&mut self, hello: ClientHello, message: &[u8]) -> Result<(), TlsError> {
        let common = self
            .our_alpn
            .iter()
            .find(|protocol| hello.alpn.contains(protocol));
        let none_wanted = self.our_alpn.is_empty() && hello.alpn.is_empty();
        let alpn = match common {
            Some(protocol) => protocol.clone(),
            None if none_wanted => Vec::new(),
            None => return Err(no_protocol()),
        };
        self.resume(&hello, &alpn, message);
        self.server_name = hello.server_name;
        self.peer_parameters = Some(hello.parameters);
        self.alpn = Some(alpn.clone());
        self.answer(alpn);
        self.expect = Expect::Finished;
        Ok(())
    }

    /// Evaluates the ticket of a client.
    fn resume(&mut self, hello: &ClientHello, alpn: &[u8], message: &[u8]) {
        let Some(settings) = self.server.as_ref().filter(|settings| settings.ticket) else {
            return;
        };
        let Some(ticket) = NullTicket::decode(&hello.ticket) else {
            return;
        };
        let redeemed = settings.replayable || settings.issued.redeem(ticket.id);
        self.resumed = redeemed && ticket.version == settings.version;
        let limits = EarlyLimits::of_encoded(&settings.parameters);
        let covers = match (limits, ticket.limits) {
            (Some(present), Some(earlier)) => settings.forgetful || present.cover(&earlier),
            _ => false,
        };
        let may = hello.early_data && settings.early_data;
        self.early_accepted = may && self.resumed && covers && ticket.alpn == alpn;
        if self.early_accepted {
            self.early_keys = Some(ticket.secret.derive("early", message).early_keys());
        }
    }

    /// The server's two flights.
    fn answer(&mut self, alpn: Vec<u8>) {
        let Some(settings) = &self.server else {
            return;
        };
        let chain_len = settings.chain_len;
        let extensions = EncryptedExtensions {
            alpn,
            parameters: settings.parameters.clone(),
            early_data: self.early_accepted,
        };
        let mut flight = Vec::new();
        self.say(&messages::server_hello(self.resumed), &mut flight);
        let keys = self.handshake_keys();
        self.handshake_output.push(flight, Some(keys));

        let mut flight = Vec::new();
        let extensions = extensions
            .encode(self.server_name.is_some())
            .expect("the lengths were checked when the session started");
        self.say(&extensions, &mut flight);
        if !self.resumed {
            self.say(&messages::certificate(chain_len), &mut flight);
            self.say(&messages::certificate_verify(), &mut flight);
        }
        let proof = self.proof(Side::Server);
        self.say(&messages::finished(proof), &mut flight);
        let keys = self.application_keys();
        self.handshake_output.push(flight, Some(keys));
    }

    fn on_extensions(&mut self, extensions: EncryptedExtensions) -> Result<(), TlsError> {
        let agreed = if extensions.alpn.is_empty() {
            self.our_alpn.is_empty()
        } else {
            self.our_alpn.contains(&extensions.alpn)
        };
        if !agreed {
            return Err(no_protocol());
        }
        self.early_accepted = extensions.early_data;
        let permitted = self.client.as_ref().is_some_and(|client| {
            let alpn = client.ticket.as_ref().map(|ticket| &ticket.alpn);
            self.resumed && client.early_data && alpn == Some(&extensions.alpn)
        });
        if extensions.early_data && !permitted {
            let reason = "accepts early data that were not offered";
            return Err(failure(alert::ILLEGAL_PARAMETER, reason));
        }
        self.alpn = Some(extensions.alpn);
        self.peer_parameters = Some(extensions.parameters);
        Ok(())
    }

    fn on_finished(&mut self, message: &[u8]) -> Result<(), TlsError> {
        let peer = match self.side() {
            Side::Client => Side::Server,
            Side::Server => Side::Client,
        };
        if message != messages::finished(self.proof(peer)) {
            let reason = "the transcripts of the two ends differ";
            return Err(failure(alert::DECRYPT_ERROR, reason));
        }
        self.absorb(message);
        match &self.server {
            None => {
                let keys = self.application_keys();
                let proof = self.proof(Side::Client);
                let mut flight = Vec::new();
                self.say(&messages::finished(proof), &mut flight);
                self.handshake_output.push(flight, Some(keys));
            }
            Some(settings) if settings.ticket => {
                let ticket = NullTicket {
                    id: settings.issued.issue(),
                    secret: self.transcript.derive("resumption", &[]),
                    version: settings.version,
                    early_data: settings.early_data,
                    limits: EarlyLimits::of_encoded(&settings.parameters),
                    alpn: self.alpn.clone().unwrap_or_default(),
                    parameters: Vec::new(),
                };
                let message = messages::ticket(&ticket.encode());
                self.handshake_output
                    .push(message.unwrap_or_default(), None);
            }
            Some(_) => {}
        }
        self.resumption = Some(self.transcript.derive("resumption", &[]));
        self.expect = Expect::Nothing;
        self.read_level = EncryptionLevel::OneRtt;
        Ok(())
    }
}

impl NullSession {
    /// A ticket for later; an unusable one is ignored.
    fn on_ticket(&self, message: &[u8]) -> Result<(), TlsError> {
        let contents = messages::ticket_contents(message)?;
        let Some(client) = &self.client else {
            return Ok(());
        };
        if let (Some(store), Some(ticket), Some(secret)) = (
            &client.sessions,
            NullTicket::decode(contents),
            self.resumption,
        ) {
            let session = StoredSession {
                alpn: self.alpn().map(<[u8]>::to_vec),
                kind: SessionKind::Null(NullTicket {
                    secret,
                    parameters: self.peer_parameters.clone().unwrap_or_default(),
                    ..ticket
                }),
            };
            store.put_session(&client.server, session);
        }
        Ok(())
    }
}

impl fmt::Debug for NullSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NullSession")
            .field("side", &self.side())
            .field("expect", &self.expect)
            .finish_non_exhaustive()
    }
}

impl Session for NullSession {
    fn read_handshake(&mut self, level: EncryptionLevel, data: &[u8]) -> Result<(), TlsError> {
        check_level(self.read_level, level)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.extend_from_slice(data);
        let mut read = 0;
        while let Some((kind, len)) = messages::first(&buffer[read..])? {
            self.on_message(kind, &buffer[read..read + len])?;
            read += len;
            if self.read_level != level && read < buffer.len() {
                let reason = "handshake bytes after a change of keys";
                return Err(failure(alert::UNEXPECTED_MESSAGE, reason));
            }
        }
        buffer.drain(..read);
        self.buffer = buffer;
        Ok(())
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<NewKeys> {
        self.handshake_output.take(out)
    }

    fn set_version(&mut self, version: u32) -> Result<(), SessionError> {
        check_version(version)?;
        if self.expect != Expect::ServerHello {
            return Err(SessionError("it is too late to change the version".into()));
        }
        self.version = version;
        Ok(())
    }

    fn is_handshaking(&self) -> bool {
        self.expect != Expect::Nothing
    }

    fn peer_transport_parameters(&self) -> Option<&[u8]> {
        self.peer_parameters.as_deref()
    }

    fn next_packet_keys(&mut self) -> Option<KeyPair<dyn PacketKey>> {
        let side = self.side();
        let (newest, _) = self.application.as_mut()?;
        *newest = newest.next_phase();
        Some(newest.packet_keys(side))
    }

    fn alpn(&self) -> Option<&[u8]> {
        self.alpn.as_deref().filter(|alpn| !alpn.is_empty())
    }

    fn server_name(&self) -> Option<&str> {
        self.server_name.as_deref()
    }

    /// Always empty: there are no certificates.
    fn peer_certificates(&self) -> Vec<Vec<u8>> {
        Vec::new()
    }

    fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), CryptoError> {
        let (_, exporter) = self.application.ok_or(CryptoError)?;
        if self.is_handshaking() {
            return Err(CryptoError);
        }
        let mut block = exporter.derive("label", label).derive("context", context);
        for chunk in out.chunks_mut(8) {
            block = block.derive("next", &[]);
            chunk.copy_from_slice(&block.0.to_be_bytes()[..chunk.len()]);
        }
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn early_keys(&mut self) -> Option<EarlyKeys> {
        self.early_keys.take()
    }

    fn early_data_accepted(&self) -> Option<bool> {
        match &self.client {
            Some(client) => {
                (client.early_data && !self.is_handshaking()).then_some(self.early_accepted)
            }
            None => self.early_accepted.then_some(true),
        }
    }

    fn resumed_parameters(&self) -> Option<&[u8]> {
        let ticket = self.client.as_ref()?.ticket.as_ref()?;
        Some(&ticket.parameters)
    }

    fn resumed_alpn(&self) -> Option<&[u8]> {
        let ticket = self.client.as_ref()?.ticket.as_ref()?;
        Some(&*ticket.alpn).filter(|alpn| !alpn.is_empty())
    }

    fn is_resumed(&self) -> bool {
        self.resumed
    }

    fn keep_token(&mut self, token: &[u8]) -> bool {
        let Some(client) = &self.client else {
            return false;
        };
        if let Some(store) = &client.sessions {
            store.put_token(&client.server, token.to_vec());
        }
        client.sessions.is_some()
    }

    fn reject_early_data(&mut self) {
        if let Some(settings) = &mut self.server {
            settings.early_data = false;
        }
    }
}

fn no_protocol() -> TlsError {
    failure(
        alert::NO_APPLICATION_PROTOCOL,
        "no application protocol in common",
    )
}
