//! Payloads in a stream, each after its length of two bytes.

use std::collections::VecDeque;

use swiftwater_quic::{Connection, ReadOutcome};
use swiftwater_units::StreamId;

/// Bytes that may wait to be written.
const CAPACITY: usize = 1 << 20;

/// Both directions of the stream.
#[derive(Debug, Default)]
pub(super) struct Segments {
    stream: Option<StreamId>,
    waiting: VecDeque<u8>,
    received: Vec<u8>,
}

impl Segments {
    pub(super) fn set_stream(&mut self, stream: StreamId) {
        self.stream = Some(stream);
    }

    /// Bytes that wait to be written.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Queues a payload; false if there is no room.
    pub(super) fn push(&mut self, payload: &[u8]) -> bool {
        let Ok(len) = u16::try_from(payload.len()) else {
            return false;
        };
        if self.waiting.len() + payload.len() > CAPACITY {
            return false;
        }
        self.waiting.extend(len.to_be_bytes());
        self.waiting.extend(payload);
        true
    }

    /// Writes what the stream accepts.
    pub(super) fn write(&mut self, connection: &mut Connection) {
        let Some(stream) = self.stream else {
            return;
        };
        while !self.waiting.is_empty() {
            let written = connection
                .send_stream(stream)
                .write(self.waiting.make_contiguous());
            match written {
                Ok(written) if written > 0 => {
                    self.waiting.drain(..written);
                }
                // Blocked, or over.
                _ => return,
            }
        }
    }

    /// The payloads that are complete.
    pub(super) fn read(&mut self, connection: &mut Connection) -> Vec<Vec<u8>> {
        let Some(stream) = self.stream else {
            return Vec::new();
        };
        let mut buffer = [0; 4_096];
        while let Ok(ReadOutcome::Data(len)) = connection.recv_stream(stream).read(&mut buffer) {
            self.received.extend(&buffer[..len]);
        }
        let mut payloads = Vec::new();
        let mut rest = self.received.as_slice();
        while let Some((len, after)) = rest.split_first_chunk::<2>() {
            let len = usize::from(u16::from_be_bytes(*len));
            let Some((payload, after)) = after.split_at_checked(len) else {
                break;
            };
            payloads.push(payload.to_vec());
            rest = after;
        }
        let used = self.received.len() - rest.len();
        self.received.drain(..used);
        payloads
    }
}
