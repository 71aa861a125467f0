//! Traits implemented by TLS and packet protection (RFC 9001).
//!
//! `swiftwater-tls` implements them with rustls; its null cipher implements them for simulations
//! for which speed matters. Nothing here computes anything.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use swiftwater_units::{PacketNumber, PathId, Side};
use swiftwater_wire::{ConnectionId, ErrorCode, ResetToken};
use thiserror::Error;

/// Encryption levels (RFC 9001, section 4.1): first those with a packet-number space of their own, in
/// the order in which they come into use.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub enum EncryptionLevel {
    /// Keys derived from the client's first destination connection ID.
    Initial,
    /// Handshake keys.
    Handshake,
    /// Application keys.
    OneRtt,
    /// Keys of early data, from an earlier session; only clients send with them. Their packets are
    /// numbered in the space of [`EncryptionLevel::OneRtt`] (RFC 9000, section 12.3).
    ZeroRtt,
}

impl EncryptionLevel {
    /// All encryption levels, in the order of the packets of a datagram.
    pub const ALL: [Self; 4] = [Self::Initial, Self::ZeroRtt, Self::Handshake, Self::OneRtt];

    /// Those with a packet-number space of their own, in order.
    pub const SPACES: [Self; 3] = [Self::Initial, Self::Handshake, Self::OneRtt];

    /// The one in whose packet-number space its packets are numbered.
    #[must_use]
    pub const fn space(self) -> Self {
        match self {
            Self::ZeroRtt => Self::OneRtt,
            own => own,
        }
    }
}

/// A packet failed authentication; the cause is not revealed (RFC 9001, section 5.5: discard).
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

    /// Removes the protection; afterwards the first byte has the packet number's length.
    /// `packet` has at least `pn_offset + 4 + sample_len()` bytes.
    fn decrypt(&self, pn_offset: usize, packet: &mut [u8]);

    /// Bytes of ciphertext sampled, 16 in QUIC v1.
    fn sample_len(&self) -> usize;
}

/// A key for sending and one for receiving.
pub struct KeyPair<K: ?Sized> {
    /// Protects what this end sends.
    pub local: Box<K>,
    /// Opens what the peer sent.
    pub remote: Box<K>,
}

impl<K: ?Sized> fmt::Debug for KeyPair<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyPair(..)")
    }
}

/// The keys of one encryption level.
#[derive(Debug)]
pub struct Keys {
    /// Header protection.
    pub header: KeyPair<dyn HeaderKey>,
    /// Packet protection.
    pub packet: KeyPair<dyn PacketKey>,
}

/// The 1-RTT keys of a connection at some moment.
#[derive(Debug)]
pub struct ApplicationKeys {
    /// Those of the present key phase.
    pub current: Keys,
    /// Packet protection of the next one, ready before the peer moves on: how long it takes to make
    /// keys must not reveal a key update (RFC 9001, section 9.5).
    pub next: Option<KeyPair<dyn PacketKey>>,
}

/// The keys of early data (RFC 9001, section 5.6): a client protects with them, a server opens.
pub struct EarlyKeys {
    /// Header protection.
    pub header: Box<dyn HeaderKey>,
    /// Packet protection.
    pub packet: Box<dyn PacketKey>,
}

impl fmt::Debug for EarlyKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EarlyKeys(..)")
    }
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
    /// Which encryption level they serve.
    pub level: EncryptionLevel,
    /// The keys.
    pub keys: Keys,
}

/// One TLS session driving one connection's handshake.
pub trait Session: Send {
    /// Takes handshake bytes that arrived, in order, in `level`.
    fn read_handshake(&mut self, level: EncryptionLevel, data: &[u8]) -> Result<(), TlsError>;

    /// Appends to `out` the handshake bytes to send. They belong to the encryption level that was last
    /// returned (Initial at first). If keys are returned, the bytes appended by *this* call still
    /// belong to the previous encryption level; the caller installs the keys and calls again until nothing is
    /// appended and `None` is returned.
    fn write_handshake(&mut self, out: &mut Vec<u8>) -> Option<NewKeys>;

    /// The server chose another version than the one that the session was started in (client only).
    /// Called before any handshake bytes of the server are read; keys are of `version` from now on.
    fn set_version(&mut self, version: u32) -> Result<(), SessionError> {
        Err(SessionError(format!(
            "the session can't change to QUIC version {version:#x}"
        )))
    }

    /// True until the TLS handshake is complete (RFC 9001, section 4.1.1).
    fn is_handshaking(&self) -> bool;

    /// The peer's transport parameters as received in this handshake, once known; never those of an
    /// earlier session.
    fn peer_transport_parameters(&self) -> Option<&[u8]>;

    /// Packet keys of the next key phase (RFC 9001, section 6); `None` before 1-RTT keys exist. Each call
    /// after the first means that the phase of the keys handed out before has begun.
    fn next_packet_keys(&mut self) -> Option<KeyPair<dyn PacketKey>>;

    /// True if [`Session::remake_keys`] can make the 1-RTT keys again, so that an idle connection may give
    /// them up.
    fn can_remake_keys(&self) -> bool {
        false
    }

    /// Makes the 1-RTT keys of the present key phase and the packet keys of the next one once more, as
    /// they were; `None` if it can't.
    fn remake_keys(&self) -> Option<ApplicationKeys> {
        None
    }

    /// The application protocol that was negotiated (ALPN), once known.
    fn alpn(&self) -> Option<&[u8]>;

    /// The server name that the client asked for (server side), or that this end asks for (client side).
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

    /// Hands out the keys of early data, once: a client's as soon as it has started, if it resumes a
    /// session that permits early data; a server's after it has read the `ClientHello`, if it accepts
    /// them. `None` otherwise; by default always.
    fn early_keys(&mut self) -> Option<EarlyKeys> {
        None
    }

    /// Whether the server accepted early data. `None` if none were offered, and on a client until the
    /// server has answered.
    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    /// The server's transport parameters in the session that a client resumes with early
    /// data.
    fn resumed_parameters(&self) -> Option<&[u8]> {
        None
    }

    /// The application protocol of the session that a client resumes with early data.
    fn resumed_alpn(&self) -> Option<&[u8]> {
        None
    }

    /// True once it is known that an earlier session was resumed.
    fn is_resumed(&self) -> bool {
        false
    }

    /// Keeps a token for the next connection to the same server, beside the session; false if there is
    /// no place for it.
    fn keep_token(&mut self, token: &[u8]) -> bool {
        let _ = token;
        false
    }

    /// Makes a server refuse early data; to be called before it reads the `ClientHello`.
    fn reject_early_data(&mut self) {}

    /// The handshake is confirmed and what the session wrote was taken: it may release what is not
    /// needed any more. It need not return the peer's transport parameters again, and may refuse all
    /// further handshake bytes but a server's tickets, which it need not look into.
    fn settle(&mut self) {}

    /// The connection has been idle for a while since the handshake was confirmed: a client's session may release, if
    /// it has received tickets, what only others would need.
    fn release_idle_memory(&mut self) {}
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
    /// Starts a session towards `server_name`, carrying the encoded local transport `parameters`. `version` is
    /// that of the first packets; see [`Session::set_version`].
    fn start_session(
        &self,
        version: u32,
        server_name: &str,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, SessionError>;

    /// Key derivation to use with it.
    fn primitives(&self) -> Arc<dyn Primitives>;

    /// A token that [`Session::keep_token`] kept for `server_name`, each once. Those of another QUIC
    /// version don't count (RFC 9369, section 5).
    fn take_token(&self, version: u32, server_name: &str) -> Option<Vec<u8>> {
        let _ = (version, server_name);
        None
    }
}

/// What a server can derive from a client's first handshake bytes before it starts a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Hello<'a> {
    /// More bytes are needed.
    Incomplete,
    /// The message is complete; these are the client's transport parameters, not authenticated yet.
    Parameters(&'a [u8]),
    /// No parameters can be found. The session reports the error, if there is one.
    Opaque,
}

/// Server side of TLS: certificate, ALPN, key log.
pub trait ServerCrypto: Send + Sync + fmt::Debug {
    /// Starts a session, carrying the encoded local transport `parameters`. `version` is the negotiated one.
    fn start_session(
        &self,
        version: u32,
        parameters: &[u8],
    ) -> Result<Box<dyn Session>, SessionError>;

    /// Looks into the client's first handshake bytes, all of them from the start. The version of the
    /// connection is chosen by the client's version information (RFC 9368), and a session depends on
    /// it. The default finds nothing: connections keep the version that they begin with.
    fn hello<'a>(&self, bytes: &'a [u8]) -> Hello<'a> {
        let _ = bytes;
        Hello::Opaque
    }

    /// Key derivation to use with it.
    fn primitives(&self) -> Arc<dyn Primitives>;
}

/// A block cipher with 16-byte blocks and a key of its own, such as AES-128, for what
/// [`QuicLbCodec`](crate::QuicLbCodec) hides.
pub trait BlockCipher: Send + Sync + fmt::Debug {
    /// Encrypts one block in place.
    fn encrypt_block(&self, block: &mut [u8; 16]);

    /// Decrypts one block in place.
    fn decrypt_block(&self, block: &mut [u8; 16]);
}

/// Keyed functions of an endpoint: they make stateless-reset tokens and address tokens, so that
/// every process that holds the same key understands them.
pub trait EndpointKey: Send + Sync + fmt::Debug {
    /// The reset token of `cid` (RFC 9000, section 10.3.2).
    fn reset_token(&self, cid: &ConnectionId) -> ResetToken;

    /// Seals an address token; `nonce` must be fresh. The result is opaque to the peer and
    /// authenticated.
    fn seal_token(&self, nonce: [u8; 12], plaintext: &[u8]) -> Vec<u8>;

    /// Opens what [`EndpointKey::seal_token`] made; `None` if it was sealed with another key.
    fn open_token(&self, token: &[u8]) -> Option<Vec<u8>>;

    /// Bytes that can't be distinguished from random ones without the key, the same for the same input. It
    /// hides the worker's index in connection IDs ([`WorkerCids`](crate::WorkerCids)).
    fn mask(&self, input: &[u8; 16]) -> [u8; 4];
}
