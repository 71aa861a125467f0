//! The null handshake: who says what in which epoch, as in TLS 1.3's full handshake.
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
//! connection IDs, which makes every connection's keys its own.

use std::any::Any;
use std::fmt;

use swiftwater_quic::crypto::{CryptoError, Epoch, KeyPair, NewKeys, PacketKey, Session, TlsError};
use swiftwater_units::Side;

use super::keys::Secret;
use super::messages::{self, ClientHello, EncryptedExtensions, Kind, alert, failure};
use crate::checks::check_epoch;
use crate::outbox::Outbox;

/// What a server says whatever the client asks.
pub(super) struct ServerSettings {
    pub(super) parameters: Vec<u8>,
    pub(super) chain_len: usize,
    pub(super) ticket: bool,
}

/// Which message comes next from the peer.
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
    /// `None` on the client.
    server: Option<ServerSettings>,
    expect: Expect,
    read_epoch: Epoch,
    /// Handshake bytes that don't make a whole message yet.
    buffer: Vec<u8>,
    outbox: Outbox,
    /// Checksum of all messages so far.
    transcript: Secret,
    /// The secret of the newest key phase, and the one that exporters use.
    application: Option<(Secret, Secret)>,
    our_alpn: Vec<Vec<u8>>,
    /// Empty if both sides do without.
    alpn: Option<Vec<u8>>,
    server_name: Option<String>,
    peer_parameters: Option<Vec<u8>>,
}

impl NullSession {
    pub(super) fn client(alpn: &[Vec<u8>], server_name: String, hello: Vec<u8>) -> Self {
        let mut session = Self::new(alpn, Expect::ServerHello);
        session.server_name = Some(server_name);
        session.absorb(&hello);
        session.outbox.push(hello, None);
        session
    }

    pub(super) fn server(alpn: &[Vec<u8>], settings: ServerSettings) -> Self {
        let mut session = Self::new(alpn, Expect::ClientHello);
        session.server = Some(settings);
        session
    }

    fn new(alpn: &[Vec<u8>], expect: Expect) -> Self {
        Self {
            server: None,
            expect,
            read_epoch: Epoch::Initial,
            buffer: Vec::new(),
            outbox: Outbox::default(),
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

    /// Adds our own message to the transcript and to `flight`.
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
        self.read_epoch = Epoch::Handshake;
        NewKeys {
            epoch: Epoch::Handshake,
            keys: self.transcript.derive("handshake", &[]).keys(self.side()),
        }
    }

    fn application_keys(&mut self) -> NewKeys {
        let secret = self.transcript.derive("application", &[]);
        self.application = Some((secret, secret));
        NewKeys {
            epoch: Epoch::OneRtt,
            keys: secret.keys(self.side()),
        }
    }

    /// Reads one whole message.
    fn on_message(&mut self, kind: Kind, message: &[u8]) -> Result<(), TlsError> {
        match (self.expect, kind) {
            (Expect::ClientHello, Kind::ClientHello) => {
                let hello = ClientHello::decode(message)?;
                self.absorb(message);
                self.on_client_hello(hello)
            }
            (Expect::ServerHello, Kind::ServerHello) => {
                self.absorb(message);
                let keys = self.handshake_keys();
                self.outbox.push(Vec::new(), Some(keys));
                self.expect = Expect::EncryptedExtensions;
                Ok(())
            }
            (Expect::EncryptedExtensions, Kind::EncryptedExtensions) => {
                let extensions = EncryptedExtensions::decode(message)?;
                self.absorb(message);
                self.expect = Expect::Certificate;
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
            (Expect::Nothing, Kind::NewSessionTicket) if self.server.is_none() => Ok(()),
            (expect, kind) => Err(failure(
                alert::UNEXPECTED_MESSAGE,
                format!("{kind:?} where {expect:?} was expected"),
            )),
        }
    }

    fn on_client_hello(&mut self, hello: ClientHello) -> Result<(), TlsError> {
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
        self.server_name = hello.server_name;
        self.peer_parameters = Some(hello.parameters);
        self.alpn = Some(alpn.clone());
        self.answer(alpn);
        self.expect = Expect::Finished;
        Ok(())
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
        };
        let mut flight = Vec::new();
        self.say(&messages::server_hello(), &mut flight);
        let keys = self.handshake_keys();
        self.outbox.push(flight, Some(keys));

        let mut flight = Vec::new();
        let extensions = extensions
            .encode(self.server_name.is_some())
            .expect("the lengths were checked when the session started");
        self.say(&extensions, &mut flight);
        self.say(&messages::certificate(chain_len), &mut flight);
        self.say(&messages::certificate_verify(), &mut flight);
        let proof = self.proof(Side::Server);
        self.say(&messages::finished(proof), &mut flight);
        let keys = self.application_keys();
        self.outbox.push(flight, Some(keys));
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
            let reason = "the two sides saw different handshakes";
            return Err(failure(alert::DECRYPT_ERROR, reason));
        }
        self.absorb(message);
        match &self.server {
            None => {
                let keys = self.application_keys();
                let proof = self.proof(Side::Client);
                let mut flight = Vec::new();
                self.say(&messages::finished(proof), &mut flight);
                self.outbox.push(flight, Some(keys));
            }
            Some(settings) if settings.ticket => self.outbox.push(messages::ticket(), None),
            Some(_) => {}
        }
        self.expect = Expect::Nothing;
        self.read_epoch = Epoch::OneRtt;
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
    fn read_handshake(&mut self, epoch: Epoch, data: &[u8]) -> Result<(), TlsError> {
        check_epoch(self.read_epoch, epoch)?;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.extend_from_slice(data);
        let mut read = 0;
        while let Some((kind, len)) = messages::first(&buffer[read..])? {
            self.on_message(kind, &buffer[read..read + len])?;
            read += len;
            if self.read_epoch != epoch && read < buffer.len() {
                let reason = "handshake bytes behind a change of keys";
                return Err(failure(alert::UNEXPECTED_MESSAGE, reason));
            }
        }
        buffer.drain(..read);
        self.buffer = buffer;
        Ok(())
    }

    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<NewKeys> {
        self.outbox.take(out)
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
}

fn no_protocol() -> TlsError {
    failure(
        alert::NO_APPLICATION_PROTOCOL,
        "no application protocol in common",
    )
}
