//! Client and server configurations of the null handshake.

use std::net::IpAddr;
use std::sync::Arc;

use swiftwater_quic::crypto::{ClientCrypto, Primitives, ServerCrypto, Session, SessionError};

use super::handshake::{NullSession, ServerSettings};
use super::keys::NullPrimitives;
use super::messages::{ClientHello, EncryptedExtensions};
use crate::checks::check_version;

/// A certificate as long as a small one of the web, bytes.
const DEFAULT_CHAIN_LEN: usize = 800;

/// Client side of the null handshake.
#[derive(Clone, Debug, Default)]
pub struct NullClient {
    alpn: Vec<Vec<u8>>,
}

impl NullClient {
    /// Offers these application protocols, best first.
    pub fn new(alpn: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        Self {
            alpn: alpn.into_iter().map(Into::into).collect(),
        }
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
        let sent_name = server_name.parse::<IpAddr>().is_err() && !server_name.is_empty();
        let hello = ClientHello {
            server_name: sent_name.then(|| server_name.to_owned()),
            alpn: self.alpn.clone(),
            parameters: parameters.to_vec(),
        };
        let message = hello.encode().ok_or_else(too_long)?;
        Ok(Box::new(NullSession::client(
            &self.alpn,
            server_name.to_owned(),
            message,
        )))
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
}

impl NullServer {
    /// Accepts these application protocols, best first.
    pub fn new(alpn: impl IntoIterator<Item = impl Into<Vec<u8>>>) -> Self {
        Self {
            alpn: alpn.into_iter().map(Into::into).collect(),
            chain_len: DEFAULT_CHAIN_LEN,
            ticket: false,
        }
    }

    /// Pretends a certificate of `len` bytes, at most about 65,000 and 800 unless said otherwise,
    /// which makes the server's Handshake flight about 950 bytes and its transport parameters long.
    /// Chains on the web have 2,000 to 4,000, which amplification limits feel. With the length of a
    /// [`DevCertificate::deterministic`](crate::DevCertificate::deterministic), flights have the
    /// same sizes as those of TLS with that certificate.
    #[must_use]
    pub fn with_chain_len(mut self, len: usize) -> Self {
        self.chain_len = len;
        self
    }

    /// Sends a message of a session ticket's size after the handshake; off unless said otherwise.
    #[must_use]
    pub fn with_ticket(mut self, ticket: bool) -> Self {
        self.ticket = ticket;
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
        // The protocol isn't known yet; whatever the client chooses has to fit.
        let longest = self.alpn.iter().max_by_key(|protocol| protocol.len());
        let extensions = EncryptedExtensions {
            alpn: longest.cloned().unwrap_or_default(),
            parameters: parameters.to_vec(),
        };
        extensions.encode(true).ok_or_else(too_long)?;
        let settings = ServerSettings {
            parameters: extensions.parameters,
            chain_len: self.chain_len,
            ticket: self.ticket,
        };
        Ok(Box::new(NullSession::server(&self.alpn, settings)))
    }

    fn primitives(&self) -> Arc<dyn Primitives> {
        Arc::new(NullPrimitives)
    }
}

fn too_long() -> SessionError {
    SessionError("a name, protocol or parameter is too long for the handshake".to_owned())
}
