//! A client's view of an answer.

use crc32fast::Hasher;
use thiserror::Error;

use crate::payload;
use crate::wanted::Wanted;

/// Counts and checks the received bytes of a stream.
///
/// To be made before the measured part, as it works out the expected checksum; clones are for further streams
/// with the same request.
#[derive(Clone, Debug)]
pub struct Incoming {
    expected: u64,
    expected_checksum: u32,
    received: u64,
    checksum: Hasher,
}

/// The server's answer is not the requested one.
#[derive(Clone, Copy, Debug, Error)]
#[error(
    "the answer has {received} bytes with checksum {checksum:08x}, expected were {expected} with {expected_checksum:08x}"
)]
pub struct WrongAnswer {
    received: u64,
    checksum: u32,
    expected: u64,
    expected_checksum: u32,
}

impl Incoming {
    /// The answer to a request with so many bytes of upload.
    pub fn new(wanted: Wanted, upload: u64) -> Self {
        let (expected, expected_checksum) = match wanted {
            Wanted::Payload(bytes) | Wanted::Echo(bytes) => (bytes, payload::checksum(bytes)),
            Wanted::Checksum => {
                let answer = u64::from(payload::checksum(upload)).to_be_bytes();
                (answer.len() as u64, crc32fast::hash(&answer))
            }
        };
        Self {
            expected,
            expected_checksum,
            received: 0,
            checksum: Hasher::new(),
        }
    }

    /// Takes the next bytes, in order.
    pub fn receive(&mut self, data: &[u8]) {
        self.received += data.len() as u64;
        self.checksum.update(data);
    }

    /// True once all expected bytes were received.
    pub fn is_complete(&self) -> bool {
        self.received >= self.expected
    }

    /// At the end: whether everything was received correctly.
    pub fn check(self) -> Result<(), WrongAnswer> {
        let checksum = self.checksum.finalize();
        if self.received == self.expected && checksum == self.expected_checksum {
            return Ok(());
        }
        Err(WrongAnswer {
            received: self.received,
            checksum,
            expected: self.expected,
            expected_checksum: self.expected_checksum,
        })
    }
}
