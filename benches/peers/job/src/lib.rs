//! What the programs of the comparison share, and nothing of any QUIC library.
//!
//! - [`Arguments`]: the command line, and with it the [`Job`]s.
//! - The protocol on a stream (ALPN [`ALPN`]): the client sends its request ([`Wanted`], 8 bytes), then its
//!   upload, then the end; the server answers after the end and finishes. [`Outgoing`] is the data to send,
//!   [`Answer`] processes a stream at a server, [`Incoming`] at a client.
//! - The same over HTTP/3 ([`ALPN_HTTP3`]): [`HttpRequest`], [`HttpAnswer`].
//! - [`payload`]: the bytes that are sent, and their checksum (CRC-32).
//! - [`events`]: the lines on standard output that the runner waits for.
//! - [`udp_socket`]: a socket with the buffer sizes of all programs.
//! - `tls` (feature `rustls`): settings for libraries that use rustls.

#![forbid(unsafe_code)]

mod answer;
mod arguments;
pub mod events;
mod http;
mod incoming;
mod latencies;
mod outgoing;
pub mod payload;
mod socket;
#[cfg(feature = "rustls")]
pub mod tls;
mod wanted;

pub use answer::Answer;
pub use arguments::{
    Arguments, ClientArguments, Controller, Direction, Job, NoHttp3, Role, ServerArguments,
    Settings,
};
pub use http::{HttpAnswer, HttpRequest};
pub use incoming::{Incoming, WrongAnswer};
pub use latencies::Latencies;
pub use outgoing::Outgoing;
pub use socket::udp_socket;
pub use wanted::Wanted;

/// What went wrong in a program, for its user to read.
pub type Failure = Box<dyn std::error::Error + Send + Sync>;

/// The protocol's name in ALPN.
pub const ALPN: &[u8] = b"bench";

/// The name of HTTP/3 in ALPN (RFC 9114, section 3.1).
pub const ALPN_HTTP3: &[u8] = b"h3";

/// What a program reports about other jobs with `--http3` than those two.
pub const NOT_OVER_HTTP: &str = "over HTTP/3 there are `requests` and `bulk` (down) only";

/// The name in the server's certificate.
pub const SERVER_NAME: &str = "localhost";

/// Flow-control window of a stream with `--tuned`, bytes; where a library buffers what is to be sent, the size
/// of that buffer.
pub const STREAM_WINDOW: u32 = 16 << 20;

/// Flow-control window of a connection with `--tuned`, bytes.
pub const CONNECTION_WINDOW: u32 = 32 << 20;

/// Initial congestion window with `--tuned`, where the library lets one choose, bytes.
pub const INITIAL_WINDOW: u32 = 256 << 10;

/// Kernel buffers requested with `--tuned`, bytes; the system may grant less.
pub const SOCKET_BUFFER: usize = 4 << 20;

/// Bytes that each connection of `hold` without streams sends and gets back.
pub const GREETING: u64 = 14;

/// Bytes that each stream that `hold` keeps open sends and gets back.
pub const ECHO: u64 = 1000;

/// Streams that a connection's client may have open at once, in every program: room for what `hold` opens and
/// for all requests in flight.
pub const MAX_STREAMS: u32 = 1024;
