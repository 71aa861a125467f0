//! A replacement for TLS and packet protection in simulations. **It protects nothing**: packets are
//! sent in plain text, and with this source they can be forged.
//!
//! It preserves these properties of TLS, because results depend on them:
//!
//! - sizes: 16 bytes of tag on every packet, flights of the handshake as long as those of rustls
//!   with an Ed25519 certificate of the same length;
//! - resumption: tickets, handshakes without certificate, early data, single-use tickets;
//! - order: the same messages at the same encryption levels, keys available at the same times,
//!   ALPN, server name, transport parameters, key updates, key limits of AES-GCM;
//! - detection of damage: a 64-bit checksum over path, number, header and payload, keyed by
//!   connection, encryption level, direction and key phase, so that a changed packet or one of
//!   other keys fails authentication.
//!
//! It omits confidentiality, authentication, certificates and randomness. The same inputs give the
//! same bytes. It is not compatible with any QUIC peer but itself.

mod checksum;
mod config;
mod handshake;
mod keys;
mod messages;
mod tickets;

pub use config::{NullClient, NullServer};
pub use handshake::NullSession;
pub use keys::NullPrimitives;
pub(crate) use tickets::NullTicket;
