//! Our control and QPACK streams: what waits on them for the peer's credit.

use swiftwater_quic::{Connection, WriteError};
use swiftwater_units::StreamId;

/// A stream of ours that lives as long as the connection.
#[derive(Debug, Default)]
pub(super) struct OwnStream {
    id: Option<StreamId>,
    waiting: Vec<u8>,
}

impl OwnStream {
    /// Begins the stream, which now has an identifier.
    pub(super) fn open(&mut self, id: StreamId) {
        self.id = Some(id);
    }

    pub(super) fn is_open(&self) -> bool {
        self.id.is_some()
    }

    /// True if nothing waits.
    pub(super) fn is_idle(&self) -> bool {
        self.is_open() && self.waiting.is_empty()
    }

    /// What is to be sent goes here.
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        &mut self.waiting
    }

    /// Gives the transport what it takes.
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
    /// Those that are not open yet, in the order of opening.
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

    /// Gives the transport what it takes of all.
    pub(super) fn flush(&mut self, quic: &mut Connection) -> Result<(), WriteError> {
        self.control.flush(quic)?;
        self.encoder.flush(quic)?;
        self.decoder.flush(quic)
    }

    /// Bytes that wait on the fullest.
    pub(super) fn backlog(&self) -> usize {
        let all = [&self.control, &self.encoder, &self.decoder];
        all.iter()
            .map(|stream| stream.waiting.len())
            .max()
            .unwrap_or(0)
    }
}
