//! How a connection starts a TLS session: with which crypto, in which version, saying what of itself.
//!
//! A client may have to start a second one after Version Negotiation; a server starts its session when
//! it has seen enough of the client's first message to know the version.

use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use rand_core::Rng;
use swiftwater_units::Side;
use swiftwater_wire::{TransportParameters, VersionInformation, are_compatible};

use crate::crypto::{ClientCrypto, Hello, ServerCrypto, Session, SessionError};

/// The stream of a connection's generator that the reserved version comes from.
const VERSION_STREAM: u64 = 2;

/// Longest value of the parameter that peers must ignore.
const MAX_GREASE_LEN: usize = 8;

/// Where sessions come from.
pub(crate) enum Crypto {
    Client {
        crypto: Arc<dyn ClientCrypto>,
        server_name: String,
    },
    Server(Arc<dyn ServerCrypto>),
}

/// What means nothing and is sent to keep peers used to it.
pub(crate) struct Grease {
    /// Identifier and value of a reserved transport parameter (RFC 9000, section 18.1).
    parameter: u64,
    value: [u8; MAX_GREASE_LEN],
    len: usize,
    /// A reserved version (RFC 9000, section 15).
    version: u32,
}

impl Grease {
    pub(crate) fn new(rng: &mut ChaCha20Rng) -> Self {
        // A stream of its own: what the connection decides by `rng` stays the same.
        let mut own = rng.clone();
        own.set_stream(VERSION_STREAM);
        let mut value = [0; MAX_GREASE_LEN];
        let parameter = 31 * u64::from(rng.next_u32()) + 27;
        rng.fill_bytes(&mut value);
        Self {
            parameter,
            value,
            len: rng.next_u32() as usize % (MAX_GREASE_LEN + 1),
            version: reserved_version(own.next_u32()),
        }
    }
}

/// A version of the form `0x?a?a?a?a`.
pub(crate) fn reserved_version(random: u32) -> u32 {
    random & 0xf0f0_f0f0 | 0x0a0a_0a0a
}

/// Starts the sessions of one connection.
pub(crate) struct Opening {
    pub(crate) crypto: Crypto,
    /// This end's, but for the version information.
    pub(crate) parameters: TransportParameters,
    /// The versions that this end supports, best first.
    pub(crate) versions: Vec<u32>,
    /// A server takes early data.
    pub(crate) early_data: bool,
    pub(crate) grease: Option<Grease>,
}

impl Opening {
    /// Starts a session in `version`.
    pub(crate) fn start(&self, version: u32) -> Result<Box<dyn Session>, SessionError> {
        match &self.crypto {
            Crypto::Client {
                crypto,
                server_name,
            } => {
                let parameters = self.encode(Side::Client, version);
                crypto.start_session(version, server_name, &parameters)
            }
            Crypto::Server(crypto) => {
                let parameters = self.encode(Side::Server, version);
                let mut session = crypto.start_session(version, &parameters)?;
                if !self.early_data {
                    session.reject_early_data();
                }
                Ok(session)
            }
        }
    }

    /// What a server reads from the client's first handshake bytes.
    pub(crate) fn hello<'a>(&self, bytes: &'a [u8]) -> Hello<'a> {
        match &self.crypto {
            Crypto::Client { .. } => Hello::Opaque,
            Crypto::Server(crypto) => crypto.hello(bytes),
        }
    }

    /// The local transport parameters in a connection of `version` (RFC 9368, section 3): a client offers
    /// what its first flight could be read as, a server lists all that it supports.
    pub(crate) fn encode(&self, side: Side, version: u32) -> Vec<u8> {
        let mut parameters = self.parameters;
        let supported = self.versions.iter().copied();
        let available = supported.filter(|&supported| {
            side.is_server() || are_compatible(version, supported) || supported == version
        });
        let grease = self.grease.as_ref().map(|grease| grease.version);
        let information = VersionInformation::new(version, grease.into_iter().chain(available));
        parameters.version_information = Some(information);
        let grease = self
            .grease
            .as_ref()
            .map(|grease| (grease.parameter, &grease.value[..grease.len]));
        let mut out = Vec::with_capacity(256);
        parameters.encode(side, &mut out, grease);
        out
    }
}
