//! The two ends of a stream whose content is a pattern.

use swiftwater_quic::{Connection, ReadError, ReadOutcome, WriteError};
use swiftwater_units::StreamId;

use crate::pattern::Pattern;

/// Bytes read at once.
const READ_LEN: usize = 1 << 15;

/// Most bytes written at once; at least a period of the pattern would suffice.
const WRITE_LEN: u64 = 1 << 16;

/// Writes a pattern to a stream as fast as it accepts it, then ends the stream.
#[derive(Clone, Debug)]
pub struct Source {
    pattern: Pattern,
    written: u64,
    total: Option<u64>,
    /// Bytes that may be written so far.
    allowed: u64,
    finished: bool,
}

impl Source {
    /// A source of `total` bytes, or of bytes without end.
    pub fn new(pattern: Pattern, total: Option<u64>) -> Self {
        Self {
            pattern,
            written: 0,
            total,
            allowed: u64::MAX,
            finished: false,
        }
    }

    /// Starts with the byte at `offset` of the pattern; `total` includes the bytes before it.
    #[must_use]
    pub fn skip(mut self, offset: u64) -> Self {
        self.written = offset;
        self
    }

    /// Limits the total of written bytes to `bytes` from now on. Default: no limit.
    pub fn allow(&mut self, bytes: u64) {
        self.allowed = bytes;
    }

    /// Bytes that the stream has accepted.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// True once everything is written and the stream is ended.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Writes until the stream is blocked or the limit is reached.
    pub fn pump(&mut self, connection: &mut Connection, id: StreamId) -> Result<(), WriteError> {
        let mut stream = connection.send_stream(id);
        while !self.finished {
            let left = self.total.map_or(u64::MAX, |total| total - self.written);
            if left == 0 {
                stream.finish()?;
                self.finished = true;
                break;
            }
            let left = left.min(self.allowed.saturating_sub(self.written));
            if left == 0 {
                break;
            }
            let mut chunk = self.pattern.chunk(self.written, left.min(WRITE_LEN));
            let taken = stream.write_chunk(&mut chunk)?;
            self.written += taken as u64;
            if !chunk.is_empty() {
                break;
            }
        }
        Ok(())
    }
}

/// Reads a stream that should hold a pattern.
#[derive(Clone, Debug)]
pub struct Sink {
    pattern: Pattern,
    received: u64,
    intact: bool,
    finished: bool,
    buffer: Vec<u8>,
}

impl Sink {
    /// A sink that expects this pattern.
    pub fn new(pattern: Pattern) -> Self {
        Self {
            pattern,
            received: 0,
            intact: true,
            finished: false,
            buffer: Vec::new(),
        }
    }

    /// Expects the byte at `offset` of the pattern first; [`Sink::received`] includes those before it.
    #[must_use]
    pub fn skip(mut self, offset: u64) -> Self {
        self.received = offset;
        self
    }

    /// Bytes read, in order.
    pub fn received(&self) -> u64 {
        self.received
    }

    /// True unless a byte differed from the pattern.
    pub fn is_intact(&self) -> bool {
        self.intact
    }

    /// True once the end of the stream was read.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    /// Reads and checks all available data.
    pub fn drain(&mut self, connection: &mut Connection, id: StreamId) -> Result<(), ReadError> {
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(READ_LEN, 0);
        let result = self.drain_into(connection, id, &mut buffer);
        if self.finished {
            buffer = Vec::new();
        }
        self.buffer = buffer;
        result
    }

    fn drain_into(
        &mut self,
        connection: &mut Connection,
        id: StreamId,
        buffer: &mut [u8],
    ) -> Result<(), ReadError> {
        let mut stream = connection.recv_stream(id);
        while !self.finished {
            match stream.read(buffer)? {
                ReadOutcome::Data(len) => {
                    let data = &buffer[..len];
                    self.intact = self.intact && self.pattern.matches(self.received, data);
                    self.received += len as u64;
                }
                ReadOutcome::Blocked => break,
                ReadOutcome::Finished => self.finished = true,
            }
        }
        Ok(())
    }
}
