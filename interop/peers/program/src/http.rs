//! Common parts of the HTTP/3 programs: command line, paths, generated content, and its CRC-32. The
//! contract is in `interop/README.md`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};

/// The protocol's name in ALPN.
pub const ALPN: &[u8] = b"h3";
/// The name in the server's certificate.
pub const NAME: &str = "localhost";
/// Requests of `get`; the last one doesn't exist.
pub const GETS: [&str; 5] = [
    "/bytes/0",
    "/bytes/1",
    "/bytes/100000",
    "/bytes/1000000",
    "/nothing",
];
/// Requests of `parallel`.
pub const PARALLEL: usize = 1_000;
/// Pieces of `post`, each sent after the one before was echoed.
pub const TURNS: usize = 20;
/// Their size, bytes.
pub const TURN_SIZE: usize = 50_000;
/// Requests of `headers`.
pub const HEADER_TURNS: usize = 3;
/// Length of the large header, bytes.
pub const LARGE_SIZE: usize = 20_000;
/// Number of short headers.
pub const SMALL_COUNT: usize = 50;
/// Beginning of their names.
pub const SMALL: &str = "x-small-";
/// Bytes after which `cancel` cancels.
pub const CANCEL_AFTER: usize = 100_000;
/// A piece of the endless content, bytes.
pub const PIECE: usize = 16 << 10;
/// The trailer's value.
pub const TRAILER: &str = "after all";
/// How long GOAWAY may take.
pub const SOON: Duration = Duration::from_millis(500);
/// How long a session ticket may take.
pub const TICKET: Duration = Duration::from_millis(100);
/// How long the server may take to close when all is done.
pub const CLOSE: Duration = Duration::from_secs(3);
/// `H3_NO_ERROR` (RFC 9114, section 8.1).
pub const NO_ERROR: u32 = 0x100;
/// `H3_REQUEST_CANCELLED`.
pub const REQUEST_CANCELLED: u64 = 0x10c;
/// Most content that is made in memory, bytes.
const MOST: usize = 16 << 20;

/// The role.
#[derive(Subcommand, Debug)]
pub enum Role {
    /// Answers requests.
    H3Server(H3Server),
    /// Runs a case and prints its result as a JSON object.
    H3Client(H3Client),
}

/// Options of the server.
#[derive(Args, Debug)]
pub struct H3Server {
    /// UDP address.
    #[arg(long)]
    pub listen: SocketAddr,
    /// Certificate chain, PEM.
    #[arg(long)]
    pub cert: PathBuf,
    /// Private key, PEM.
    #[arg(long)]
    pub key: PathBuf,
    /// Accept requests in 0-RTT.
    #[arg(long)]
    pub zero_rtt: bool,
}

/// Options of the client.
#[derive(Args, Debug)]
pub struct H3Client {
    /// The server's UDP address.
    #[arg(long)]
    pub connect: SocketAddr,
    /// Trusted certificates, PEM.
    #[arg(long)]
    pub ca: PathBuf,
    /// What to do.
    #[arg(long, value_enum)]
    pub case: Case,
}

/// What a client does.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub enum Case {
    /// Several sizes one after the other, and a missing path.
    Get,
    /// A thousand requests at once.
    Parallel,
    /// Content that is echoed while it is being sent.
    Post,
    /// Large headers both ways, three times.
    Headers,
    /// Trailers both ways.
    Trailers,
    /// An endless response, cancelled.
    Cancel,
    /// The server sends GOAWAY while a request is in progress.
    Goaway,
    /// A request in early data.
    Zerortt,
}

/// `size` bytes that depend on their place.
#[must_use]
pub fn pattern(size: usize) -> Vec<u8> {
    let byte = |at: usize| (at ^ (at >> 8) ^ (at >> 16)).to_le_bytes()[0];
    (0..size).map(byte).collect()
}

/// The size requested by `/bytes/N`; `None` for other paths and more than 16 MiB.
#[must_use]
pub fn asked_size(path: &str) -> Option<usize> {
    let size = path.strip_prefix("/bytes/")?.parse().ok()?;
    (size <= MOST).then_some(size)
}

/// A header value of `size` letters.
#[must_use]
pub fn letters(size: usize) -> String {
    (b'a'..=b'z').cycle().take(size).map(char::from).collect()
}

/// Name and value of the short header `nth` in the request `turn`.
#[must_use]
pub fn small(nth: usize, turn: usize) -> (String, String) {
    (
        format!("{SMALL}{nth}"),
        format!("value {nth} of turn {turn}"),
    )
}

/// CRC-32 as in zlib and Ethernet, fed piece by piece.
#[derive(Clone, Copy, Debug, Default)]
pub struct Crc(u32);

impl Crc {
    /// Of one piece.
    #[must_use]
    pub fn of(data: &[u8]) -> u32 {
        let mut crc = Self::default();
        crc.feed(data);
        crc.0
    }

    /// Takes the next piece.
    pub fn feed(&mut self, data: &[u8]) {
        let mut state = !self.0;
        for &byte in data {
            state ^= u32::from(byte);
            for _ in 0..8 {
                state = (state >> 1) ^ (0xedb8_8320 & (state & 1).wrapping_neg());
            }
        }
        self.0 = !state;
    }

    /// Of everything so far.
    #[must_use]
    pub fn value(self) -> u32 {
        self.0
    }
}
