//! The sending half of a request stream: the order of its frames (RFC 9114, section 4.1), and data
//! that the transport has not accepted yet.
//!
//! A frame whose header was written is buffered here until the transport has accepted all of it, so
//! that frames are never incomplete. At most one DATA frame is buffered.

use std::collections::VecDeque;

use bytes::Bytes;
use swiftwater_quic::{Connection, WriteError};
use swiftwater_units::StreamId;

use super::error::SendError;
use super::frame::{FrameHeader, FrameType};

/// Most content in one DATA frame, bytes.
const MAX_CONTENT: usize = 64 * 1024;

/// Least content in one DATA frame, unless there is no more: the most that is buffered beyond what
/// the transport accepts.
const MIN_CONTENT: usize = 1024;

/// Size of the header of a DATA frame (RFC 9114, section 7.1): one byte, and four of the length.
const HEADER_LEN: usize = 5;

/// State of this end's message.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Stage {
    /// Nothing was sent, or only informational responses.
    Head,
    Content,
    /// Only the end may follow.
    Trailers,
    /// Everything was written; the end follows as soon as the transport has accepted it.
    Ending,
    /// The transport has accepted everything, including the end.
    Ended,
    /// Complete: the peer has acknowledged everything, or the stream was reset.
    Over,
}

#[derive(Debug)]
pub(crate) struct Sending {
    stage: Stage,
    waiting: VecDeque<Bytes>,
    /// A write was blocked, and an event is due when there is space.
    write_blocked: bool,
}

impl Sending {
    pub(crate) fn new() -> Self {
        Self {
            stage: Stage::Head,
            waiting: VecDeque::new(),
            write_blocked: false,
        }
    }

    /// True once complete.
    pub(crate) fn is_over(&self) -> bool {
        self.stage == Stage::Over
    }

    /// True once the message was finished or reset.
    pub(crate) fn is_complete(&self) -> bool {
        matches!(self.stage, Stage::Ending | Stage::Ended | Stage::Over)
    }

    /// Discards buffered data.
    pub(crate) fn give_up(&mut self) {
        self.stage = Stage::Over;
        self.waiting.clear();
        self.write_blocked = false;
    }

    fn expect(&self, wanted: Stage) -> Result<(), SendError> {
        match self.stage {
            stage if stage == wanted => Ok(()),
            Stage::Ending | Stage::Ended | Stage::Over => Err(SendError::Closed),
            _ => Err(SendError::OutOfOrder),
        }
    }

    /// Fails if no head may be sent in this state.
    pub(crate) fn expect_head(&self) -> Result<(), SendError> {
        self.expect(Stage::Head)
    }

    /// Fails if no content may be sent in this state.
    pub(crate) fn expect_content(&self) -> Result<(), SendError> {
        self.expect(Stage::Content)
    }

    /// Sends a head that is not final, of which `section` are the encoded fields.
    pub(crate) fn informational_head(
        &mut self,
        quic: &mut Connection,
        id: StreamId,
        section: &[u8],
    ) -> Result<(), SendError> {
        self.expect(Stage::Head)?;
        self.headers(quic, id, section)
    }

    /// Sends a final head, of which `section` are the encoded fields, and what of `content` the transport accepts, as
    /// [`Sending::content`] does. Returns how many bytes of it were consumed.
    pub(crate) fn head(
        &mut self,
        quic: &mut Connection,
        id: StreamId,
        section: &[u8],
        content: &mut Bytes,
    ) -> Result<usize, SendError> {
        self.expect(Stage::Head)?;
        self.stage = Stage::Content;
        // The transport copies short content anyway, and one write costs less than three.
        if (1..MIN_CONTENT).contains(&content.len()) && self.flush(quic, id)? {
            let headers = FrameHeader::new(FrameType::Headers, section.len() as u64);
            let data = FrameHeader::new(FrameType::Data, content.len() as u64);
            let frames = [headers.as_bytes(), section, data.as_bytes(), content];
            self.write(quic, id, &frames)?;
            return Ok(std::mem::take(content).len());
        }
        self.headers(quic, id, section)?;
        self.content(quic, id, content)
    }

    /// Sends trailers, of which `section` are the encoded fields.
    pub(crate) fn trailers(
        &mut self,
        quic: &mut Connection,
        id: StreamId,
        section: &[u8],
    ) -> Result<(), SendError> {
        self.expect(Stage::Content)?;
        self.stage = Stage::Trailers;
        self.headers(quic, id, section)
    }

    /// Sends a HEADERS frame.
    fn headers(
        &mut self,
        quic: &mut Connection,
        id: StreamId,
        section: &[u8],
    ) -> Result<(), SendError> {
        self.flush(quic, id)?;
        let header = FrameHeader::new(FrameType::Headers, section.len() as u64);
        self.write(quic, id, &[header.as_bytes(), section])
    }

    /// Copies `pieces` to the transport, and what it does not accept to the waiting data.
    fn write(
        &mut self,
        quic: &mut Connection,
        id: StreamId,
        pieces: &[&[u8]],
    ) -> Result<(), SendError> {
        let mut accepted = if self.waiting.is_empty() {
            quic.send_stream(id).write_vectored(pieces)?
        } else {
            0
        };
        for piece in pieces {
            let rest = &piece[accepted.min(piece.len())..];
            accepted -= piece.len() - rest.len();
            if !rest.is_empty() {
                self.waiting.push_back(Bytes::copy_from_slice(rest));
            }
        }
        Ok(())
    }

    /// Consumes content from `data` and returns how many bytes; less than all means that the
    /// transport's buffer is full.
    pub(crate) fn content(
        &mut self,
        quic: &mut Connection,
        id: StreamId,
        data: &mut Bytes,
    ) -> Result<usize, SendError> {
        self.expect(Stage::Content)?;
        let mut taken = 0;
        while !data.is_empty() {
            if !self.flush(quic, id)? {
                self.write_blocked = true;
                return Ok(taken);
            }
            let room = quic.send_stream(id).room()?.saturating_sub(HEADER_LEN);
            let len = data.len().min(room.clamp(MIN_CONTENT, MAX_CONTENT));
            let header = FrameHeader::new(FrameType::Data, len as u64);
            let header = header.as_bytes();
            let accepted = quic.send_stream(id).write(header)?;
            if accepted == 0 {
                self.write_blocked = true;
                return Ok(taken);
            }
            if accepted < header.len() {
                let rest = Bytes::copy_from_slice(&header[accepted..]);
                self.waiting.push_back(rest);
            }
            let mut piece = data.split_to(len);
            taken += len;
            if self.waiting.is_empty() {
                quic.send_stream(id).write_chunk(&mut piece)?;
            }
            if !piece.is_empty() {
                self.waiting.push_back(piece);
            }
        }
        if !self.waiting.is_empty() {
            self.flush(quic, id)?;
        }
        Ok(taken)
    }

    /// True if some content would be accepted now; otherwise an event reports when there is space.
    pub(crate) fn has_room(
        &mut self,
        quic: &mut Connection,
        id: StreamId,
    ) -> Result<bool, SendError> {
        self.expect(Stage::Content)?;
        let is_free = self.flush(quic, id)?;
        if is_free && quic.send_stream(id).room()? > 0 {
            return Ok(true);
        }
        self.write_blocked = true;
        if is_free {
            // Writes nothing, but registers for the transport's event.
            quic.send_stream(id).write(&[0])?;
        }
        Ok(false)
    }

    /// Finishes the message after the data written so far.
    pub(crate) fn end(&mut self, quic: &mut Connection, id: StreamId) -> Result<(), SendError> {
        match self.stage {
            Stage::Head => return Err(SendError::OutOfOrder),
            Stage::Content | Stage::Trailers => self.stage = Stage::Ending,
            Stage::Ending | Stage::Ended | Stage::Over => return Err(SendError::Closed),
        }
        self.flush(quic, id)?;
        Ok(())
    }

    /// Writes buffered data to the transport; true if none is left.
    pub(crate) fn flush(
        &mut self,
        quic: &mut Connection,
        id: StreamId,
    ) -> Result<bool, WriteError> {
        while let Some(front) = self.waiting.front_mut() {
            quic.send_stream(id).write_chunk(front)?;
            if !front.is_empty() {
                return Ok(false);
            }
            self.waiting.pop_front();
        }
        if self.stage == Stage::Ending {
            self.stage = Stage::Ended;
            quic.send_stream(id).finish()?;
        }
        Ok(true)
    }

    /// True once if a writer was blocked and there is space now.
    pub(crate) fn take_write_unblocked(&mut self) -> bool {
        self.waiting.is_empty() && std::mem::take(&mut self.write_blocked)
    }
}
