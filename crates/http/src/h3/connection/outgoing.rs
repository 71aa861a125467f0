//! The control and QPACK streams of this end, and their data that are blocked by flow control.

use swiftwater_quic::{Connection, WriteError};
use swiftwater_units::StreamId;

/// A critical stream of this end, open as long as the connection.
#[derive(Debug, Default)]
pub(super) struct OwnStream {
    id: Option<StreamId>,
    waiting: Vec<u8>,
}

impl OwnStream {
    /// Assigns the stream its identifier.
    pub(super) fn open(&mut self, id: StreamId) {
        self.id = Some(id);
    }

    pub(super) fn is_open(&self) -> bool {
        self.id.is_some()
    }

    /// True if no data wait.
    pub(super) fn is_idle(&self) -> bool {
        self.is_open() && self.waiting.is_empty()
    }

    /// Buffer for data to send.
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.waiting
    }

    /// Writes to the transport what it accepts.
    fn flush(&mut self, quic: &mut Connection) -> Result<(), WriteError> {
        let Some(id) = self.id else { return Ok(()) };
        while !self.waiting.is_empty() {
            let taken = quic.send_stream(id).write(&self.waiting)?;
            if taken == 0 {
                return Ok(());
            }
            self.waiting.drain(..taken);
        }
        Ok(())
    }
}

/// The three streams of RFC 9114, section 6.2.1, and RFC 9204, section 4.2.
#[derive(Debug, Default)]
pub(super) struct OwnStreams {
    pub(super) control: OwnStream,
    pub(super) encoder: OwnStream,
    pub(super) decoder: OwnStream,
    /// The stream of a reserved type was opened.
    pub(super) greased: bool,
}

impl OwnStreams {
    /// Streams not open yet, in the order of opening.
    pub(super) fn unopened(&mut self) -> Option<&mut OwnStream> {
        let mut all = [&mut self.control, &mut self.encoder, &mut self.decoder].into_iter();
        all.find(|stream| !stream.is_open())
    }

    /// True if `id` is one of them.
    pub(super) fn owns(&self, id: StreamId) -> bool {
        [&self.control, &self.encoder, &self.decoder]
            .iter()
            .any(|stream| stream.id == Some(id))
    }

    /// Writes to the transport what it accepts of each stream.
    pub(super) fn flush(&mut self, quic: &mut Connection) -> Result<(), WriteError> {
        self.control.flush(quic)?;
        self.encoder.flush(quic)?;
        self.decoder.flush(quic)
    }

    /// Bytes waiting on the stream with most of them.
    pub(super) fn backlog(&self) -> usize {
        let all = [&self.control, &self.encoder, &self.decoder];
        all.iter()
            .map(|stream| stream.waiting.len())
            .max()
            .unwrap_or(0)
    }
}
