//! Requests over HTTP/3 (`--http3`), in place of the protocol on a stream.
//!
//! The path of a request is `/DOWN/CHECKSUM`: how many bytes of payload the server is to answer with, and the CRC-32 of
//! the request's content in 8 hexadecimal digits. The answer is 200 once the whole content was received and has that
//! checksum, else 400.

use crc32fast::Hasher;

use crate::outgoing::Outgoing;
use crate::payload;

/// A request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct HttpRequest {
    down: u64,
    up: u64,
    checksum: u32,
}

impl HttpRequest {
    /// Asks for `down` bytes of payload, with `up` bytes of it as content.
    pub fn new(down: u64, up: u64) -> Self {
        Self {
            down,
            up,
            checksum: payload::checksum(up),
        }
    }

    /// Its path.
    pub fn path(&self) -> String {
        format!("/{}/{:08x}", self.down, self.checksum)
    }

    /// Its content.
    pub fn content(&self) -> Outgoing {
        Outgoing::payload(self.up, true)
    }
}

/// A server's view of a request.
#[derive(Clone, Debug)]
pub struct HttpAnswer {
    down: u64,
    expected: u32,
    checksum: Hasher,
}

impl HttpAnswer {
    /// The answer to a request with this path; `None` if it is not one of a client.
    pub fn new(path: &str) -> Option<Self> {
        let (down, expected) = path.strip_prefix('/')?.split_once('/')?;
        Some(Self {
            down: down.parse().ok()?,
            expected: u32::from_str_radix(expected, 16).ok()?,
            checksum: Hasher::new(),
        })
    }

    /// Processes the next bytes of the content.
    pub fn receive(&mut self, data: &[u8]) {
        self.checksum.update(data);
    }

    /// The content has ended. Returns that of the answer; `None` if the wrong content was received.
    pub fn finish(self) -> Option<Outgoing> {
        let is_right = self.checksum.finalize() == self.expected;
        is_right.then(|| Outgoing::payload(self.down, true))
    }
}
