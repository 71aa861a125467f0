//! Traits behind which TLS and packet protection live (RFC 9001).
//!
//! `swiftwater-tls` implements them with rustls; its null cipher implements them for simulations
//! that want speed. Nothing here computes anything.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use swiftwater_units::{PacketNumber, PathId, Side};
use swiftwater_wire::{ConnectionId, ErrorCode, ResetToken};
use thiserror::Error;

/// Encryption levels (RFC 9001, section 4.1), in the order in which they come into use.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum Epoch {
    /// Keys derived from the client's first destination connection ID.
    Initial,
    /// Handshake keys.
    Handshake,
    /// Application keys.
    OneRtt,
}

impl Epoch {
    /// All epochs, in order.
    pub const ALL: [Self; 3] = [Self::Initial, Self::Handshake, Self::OneRtt];
}

/// A packet failed authentication; it says nothing about why (RFC 9001, section 5.5: discard).
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("packet protection could not be removed")]
pub struct CryptoError;

/// Protects and unprotects packet payloads for one direction and key phase.
pub trait PacketKey: Send + Sync {
    /// Encrypts in place. `packet` is the whole packet: header of `header_len` bytes (packet number
    /// included, not yet protected), plaintext, and [`PacketKey::tag_len`] bytes of room at the end.
    fn encrypt(&self, path: PathId, number: PacketNumber, header_len: usize, packet: &mut [u8]);

    /// Decrypts `payload` (ciphertext and tag) in place and returns the plaintext's length; the
    /// plaintext is at the start of `payload`. On error `payload` is garbage.
    fn decrypt(
        &self,
        path: PathId,
        number: PacketNumber,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, CryptoError>;

    /// Bytes that protection adds.
    fn tag_len(&self) -> usize;

    /// Packets that may be protected with this key (RFC 9001, section 6.6).
    fn confidentiality_limit(&self) -> u64;

    /// Packets that may fail authentication with this key (RFC 9001, section 6.6).
    fn integrity_limit(&self) -> u64;
}

/// Protects and unprotects headers for one direction (RFC 9001, section 5.4).
pub trait HeaderKey: Send + Sync {
    /// Protects the first byte and the packet number, which starts at `pn_offset`; the length of
    /// the packet number is read from the first byte. `packet` reaches to its end.
    fn encrypt(&self, pn_offset: usize, packet: &mut [u8]);

    /// Removes the protection; afterwards the first byte tells the packet number's length.
    /// `packet` has at least `pn_offset + 4 + sample_len()` bytes.
    fn decrypt(&self, pn_offset: usize, packet: &mut [u8]);

    /// Bytes of ciphertext sampled, 16 in QUIC v1.
    fn sample_len(&self) -> usize;
}

/// A key for sending and one for receiving.
pub struct KeyPair<K: ?Sized> {
    /// Protects what we send.
    pub local: Box<K>,
    /// Opens what the peer sent.
    pub remote: Box<K>,
}

impl<K: ?Sized> fmt::Debug for KeyPair<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyPair(..)")
    }
}

/// The keys of one epoch.
#[derive(Debug)]
pub struct Keys {
    /// Header protection.
    pub header: KeyPair<dyn HeaderKey>,
    /// Packet protection.
    pub packet: KeyPair<dyn PacketKey>,
}

/// The TLS handshake failed or the peer broke its rules.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{reason}")]
pub struct TlsError {
    /// `CRYPTO_ERROR` with the alert, or a transport error.
    pub code: ErrorCode,
    /// What was wrong, for people.
    pub reason: String,
}

/// New keys that a step of the handshake made available.
#[derive(Debug)]
pub struct NewKeys {
    /// Which epoch they serve.
    pub epoch: Epoch,
    /// The keys.
    pub keys: Keys,
}

/// One TLS session driving one connection's handshake.
pub trait Session: Send {
    /// Takes handshake bytes that arrived, in order, in `epoch`.
    fn read_handshake(&mut self, epoch: Epoch, data: &[u8]) -> Result<(), TlsError>;

    /// Appends to `out` the handshake bytes to send. They belong to the epoch that was last
    /// returned (Initial at first). If keys are returned, the bytes appended by *this* call still
    /// belong to the previous epoch; the caller installs the keys and calls again until nothing is
    /// appended and `None` is returned.
    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<NewKeys>;

    /// True until the TLS handshake is complete (RFC 9001, section 4.1.1).
    fn is_handshaking(&self) -> bool;

    /// The peer's transport parameters as received, once known.
    fn peer_transport_parameters(&self) -> Option<&[u8]>;

    /// Packet keys of the next key phase (RFC 9001, section 6); `None` before 1-RTT keys exist.
    fn next_packet_keys(&mut self) -> Option<KeyPair<dyn PacketKey>>;

    /// The application protocol that was negotiated (ALPN), once known.
    fn alpn(&self) -> Option<&[u8]>;

    /// The server name that the client asked for (server side), or asked by us (client side).
    fn server_name(&self) -> Option<&str>;

    /// The peer's certificate chain, DER, end-entity first; empty if it sent none.
    fn peer_certificates(&self) -> Vec<Vec<u8>>;

    /// Keying material for the application (RFC 8446, section 7.5).
    fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), CryptoError>;

    /// For adapters that offer more.
    fn as_any(&self) -> &dyn Any;
}

/// Key derivation that needs no session; the same for both sides and every session.
pub trait Primitives: Send + Sync + fmt::Debug {
    /// Initial keys (RFC 9001, section 5.2).
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId, side: Side) -> Keys;

    /// Integrity tag of a Retry packet (RFC 9001, section 5.8). `packet` is the Retry without its
    /// tag.
    fn retry_tag(&self, version: u32, original_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16];
}

/// Could not start a session.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0}")]
pub struct SessionError(pub String);

/// Client side of TLS: trust, ALPN, key log.
pub trait ClientCrypto: Send + Sync + fmt::Debug {
    /// Starts a session towards `server_name`, carrying our encoded transport `parameters`.
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, SessionError>;

    /// Key derivation to use with it.
    fn primitives(&self) -> Arc<dyn Primitives>;
}

/// Server side of TLS: certificate, ALPN, key log.
pub trait ServerCrypto: Send + Sync + fmt::Debug {
    /// Starts a session, carrying our encoded transport `parameters`.
    fn start_session(
        &self,
        version: u32,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, SessionError>;

    /// Key derivation to use with it.
    fn primitives(&self) -> Arc<dyn Primitives>;
}

/// Keyed functions of an endpoint: they make stateless-reset tokens and address tokens, so that
/// every process that holds the same key understands them.
pub trait EndpointKey: Send + Sync + fmt::Debug {
    /// The reset token of `cid` (RFC 9000, section 10.3.2).
    fn reset_token(&self, cid: &ConnectionId) -> ResetToken;

    /// Seals an address token; `nonce` must be fresh. The result is opaque to the peer and
    /// authenticated.
    fn seal_token(&self, nonce: [u8; 12], plaintext: &[u8]) -> Vec<u8>;

    /// Opens what [`EndpointKey::seal_token`] made; `None` if it isn't ours.
    fn open_token(&self, token: &[u8]) -> Option<Vec<u8>>;
}
