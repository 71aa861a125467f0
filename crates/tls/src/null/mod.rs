//! A stand-in for TLS and packet protection in simulations. **It protects nothing**: packets travel
//! in the clear, and anybody who reads this source can forge them.
//!
//! What it keeps of the real thing, because results depend on it:
//!
//! - sizes: 16 bytes of tag on every packet, flights of the handshake as long as those of rustls
//!   with an Ed25519 certificate of the same length;
//! - resumption: tickets, handshakes without certificate, early data, tickets that work once;
//! - order: the same messages in the same encryption levels, keys at the same moments, ALPN, server name,
//!   transport parameters, key updates, key limits of AES-GCM;
//! - detection of damage: a 64-bit checksum over path, number, header and payload, keyed by
//!   connection, encryption level, direction and key phase, so that a changed packet or one of other keys does
//!   not open.
//!
//! What it leaves out: secrecy, authentication, certificates, randomness. The same inputs give the
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
