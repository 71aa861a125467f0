//! Requests over TCP, TLS 1.3 and HTTP/2: [`HttpsClient`] and [`HttpsServer`].
//!
//! What costs time and bytes is modelled: the flights of the handshake, records that are of use only
//! when whole, frames, and several exchanges on one connection, where one lost packet holds back all of
//! them. Nothing is encrypted.
//!
//! Not modelled: flow control of HTTP/2 (windows never limit), priorities other
//! than the default (responses take turns, a frame each, or are sent in order), early data of TLS.

mod client;
mod frame;
mod multiplexer;
mod record;
mod server;
mod session;

pub use client::{HttpsClient, HttpsConfig};
pub use server::HttpsServer;
pub use session::TlsSizes;

/// Most bytes of plaintext in a record (RFC 8446, section 5.1).
pub const MAX_RECORD: usize = 16 * 1024;
