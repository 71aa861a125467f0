//! Client and server configurations of the null handshake.

use std::net::IpAddr;
use std::sync::Arc;

use swiftwater_quic::crypto::{
    ClientCrypto, Hello, Primitives, ServerCrypto, Session, SessionError,
};

use super::handshake::{ClientSettings, NullSession, ServerSettings};
use super::keys::NullPrimitives;
use super::messages::{self, ClientHello, EncryptedExtensions};
use super::tickets::{Issued, NullTicket};
use crate::checks::check_version;
use crate::sessions::{ServerId, SessionKind, SessionStore};

/// A certificate with the length of a small one of the web, bytes.
const DEFAULT_CHAIN_LEN: usize = 800;

/// Client side of the null handshake.
#[derive(Clone, Debug, Default)]
pub struct NullClient {
    alpn: Vec<Vec<u8>>,
    sessions: Option<Arc<dyn SessionStore>>,
    early_data: bool,
}

impl NullClient {
    /// Offers these application protocols, in order of preference.
    pub fn new(alpn: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        Self {
            alpn: alpn.into_iter().map(Into::into).collect(),
            sessions: None,
            early_data: false,
        }
    }

    /// Resumes sessions, and stores them and address validation tokens in `store`; default off.
    #[must_use]
    pub fn with_sessions(mut self, store: Arc<dyn SessionStore>) -> Self {
        self.sessions = Some(store);
        self
    }

    /// Offers early data when it resumes; default off.
    #[must_use]
    pub fn with_early_data(mut self, offer: bool) -> Self {
        self.early_data = offer;
        self
    }

    /// The newest session with an offered protocol.
    fn session_for(&self, server: &ServerId) -> Option<NullTicket> {
        let store = self.sessions.as_ref()?;
        while let Some(session) = store.take_session(server) {
            if let SessionKind::Null(ticket) = session.kind
                && (ticket.alpn.is_empty() || self.alpn.contains(&ticket.alpn))
            {
                return Some(ticket);
            }
        }
        None
    }
}

impl ClientCrypto for NullClient {
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, SessionError> {
        check_version(version)?;
        // As in TLS, an address isn't sent as a name.
        let server = ServerId {
            name: server_name.to_owned(),
            version,
        };
        let ticket = self.session_for(&server);
        let early_data = self.early_data && ticket.as_ref().is_some_and(|it| it.early_data);
        let sent_name = server_name.parse::<IpAddr>().is_err() && !server_name.is_empty();
        let hello = ClientHello {
            server_name: sent_name.then(|| server_name.to_owned()),
            alpn: self.alpn.clone(),
            parameters: parameters.to_vec(),
            ticket: ticket.as_ref().map(NullTicket::encode).unwrap_or_default(),
            early_data,
        };
        let message = hello.encode().ok_or_else(too_long)?;
        Ok(Box::new(NullSession::client(
            version,
            &self.alpn,
            ClientSettings {
                server,
                sessions: self.sessions.clone(),
                ticket,
                early_data,
            },
            message,
        )))
    }

    fn take_token(&self, version: u32, server_name: &str) -> Option<Vec<u8>> {
        self.sessions.as_ref()?.take_token(&ServerId {
            name: server_name.to_owned(),
            version,
        })
    }

    fn primitives(&self) -> Arc<dyn Primitives> {
        Arc::new(NullPrimitives)
    }
}

/// Server side of the null handshake.
#[derive(Clone, Debug)]
pub struct NullServer {
    alpn: Vec<Vec<u8>>,
    chain_len: usize,
    ticket: bool,
    early_data: bool,
    replayable: bool,
    forgetful: bool,
    issued: Arc<Issued>,
}

impl NullServer {
    /// Accepts these application protocols, in order of preference.
    pub fn new(alpn: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        Self {
            alpn: alpn.into_iter().map(Into::into).collect(),
            chain_len: DEFAULT_CHAIN_LEN,
            ticket: false,
            early_data: false,
            replayable: false,
            forgetful: false,
            issued: Arc::default(),
        }
    }

    /// Sets the length of the simulated certificate, at most about 65,000 bytes, by default 800,
    /// with which the server's Handshake flight has about 950 bytes plus its transport parameters.
    /// Chains on the web have 2,000 to 4,000, which can reach the anti-amplification limit. With
    /// the length of a [`DevCertificate::deterministic`](crate::DevCertificate::deterministic),
    /// flights have the same sizes as those of TLS with that certificate.
    #[must_use]
    pub fn with_chain_len(mut self, len: usize) -> Self {
        self.chain_len = len;
        self
    }

    /// Sends a single-use session ticket after the handshake; default off. Clones accept each
    /// other's tickets.
    #[must_use]
    pub fn with_ticket(mut self, ticket: bool) -> Self {
        self.ticket = ticket;
        self
    }

    /// Accepts early data with its tickets; default off.
    #[must_use]
    pub fn with_early_data(mut self, accept: bool) -> Self {
        self.early_data = accept;
        self
    }

    /// Accepts tickets any number of times, so that early data can be replayed; default off.
    #[must_use]
    pub fn with_replayable_tickets(mut self, replayable: bool) -> Self {
        self.replayable = replayable;
        self
    }

    /// Accepts early data even if a limit is lower than when the ticket was issued, which servers must
    /// not do (RFC 9000, section 7.4.1): for tests of clients.
    #[must_use]
    pub fn forgetting_limits(mut self, forgetful: bool) -> Self {
        self.forgetful = forgetful;
        self
    }
}

impl ServerCrypto for NullServer {
    fn start_session(
        &self,
        version: u32,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, SessionError> {
        check_version(version)?;
        // The protocol is not chosen yet; every offered one has to fit.
        let longest = self.alpn.iter().max_by_key(|protocol| protocol.len());
        let extensions = EncryptedExtensions {
            alpn: longest.cloned().unwrap_or_default(),
            parameters: parameters.to_vec(),
            early_data: true,
        };
        extensions.encode(true).ok_or_else(too_long)?;
        let settings = ServerSettings {
            parameters: extensions.parameters,
            chain_len: self.chain_len,
            version,
            ticket: self.ticket,
            early_data: self.early_data,
            replayable: self.replayable,
            forgetful: self.forgetful,
            issued: Arc::clone(&self.issued),
        };
        Ok(Box::new(NullSession::server(version, &self.alpn, settings)))
    }

    fn hello<'a>(&self, bytes: &'a [u8]) -> Hello<'a> {
        messages::look(bytes)
    }

    fn primitives(&self) -> Arc<dyn Primitives> {
        Arc::new(NullPrimitives)
    }
}

fn too_long() -> SessionError {
    SessionError("a name, protocol or parameter is too long for the handshake".to_owned())
}
