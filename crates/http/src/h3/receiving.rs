//! The receiving half of a request stream: the permitted order of frames (RFC 9114, sections 4.1,
//! 4.4 and 7.1), the length of content (section 4.1.2), and the state of a message.
//!
//! Reads bytes from the transport only on demand, but for short content that comes with its head, so that
//! the transport's flow control limits a peer whose content is not read. Field sections are returned in encoded form.

use bytes::Bytes;
use http::{HeaderMap, Method};
use swiftwater_quic::{Chunk, Connection, ReadChunk};
use swiftwater_units::StreamId;

use super::code::Code;
use super::error::{BodyError, Fault};
use super::frame::{FrameParser, FrameType, Token};
use super::limits::Limits;

/// State of a message.
#[derive(Debug)]
pub(crate) enum Progress {
    /// Its head was not received yet, or only informational ones.
    Head,
    /// Its head is blocked on the QPACK table.
    HeadBlocked,
    /// Content or trailers may follow.
    Content,
    /// The trailers are blocked on the QPACK table.
    TrailersBlocked,
    /// The trailers were received and not read yet.
    Trailers(HeaderMap),
    /// Only the end may follow.
    AfterTrailers,
    /// Nothing more is read: the message is complete, or was stopped.
    Over,
}

/// Result of reading.
#[derive(Debug)]
pub(crate) enum Pulled {
    /// No data yet; the transport reports when there are.
    Blocked,
    /// A complete field section, encoded.
    Section(Bytes),
    /// A field section larger than the limit; the rest of the stream is unread.
    SectionTooLarge,
    /// Content, at least one byte.
    Content(Bytes),
    /// The stream is one of the WebTransport session with this number.
    SessionStream(u64),
    /// The end of the stream.
    End,
}

/// Kind of message that a half receives.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Receives {
    Request,
    /// The response to a request of this method.
    Response(Method),
}

/// Use of the payload of the current frame.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Use {
    Content,
    Section,
    Nothing,
}

#[derive(Debug)]
pub(crate) struct Receiving {
    pub(crate) progress: Progress,
    pub(crate) receives: Receives,
    /// CONNECT succeeded: only DATA frames are permitted (RFC 9114, section 4.4).
    pub(crate) is_tunnel: bool,
    /// The stream may start with the signal value of a WebTransport session.
    sessions: bool,
    parser: FrameParser,
    payload: Use,
    /// The received part of a field section.
    section: Vec<u8>,
    /// Content length declared by the message.
    declared: Option<u64>,
    received: u64,
    /// Data were read.
    begun: bool,
}

impl Receiving {
    pub(crate) fn new(receives: Receives, sessions: bool) -> Self {
        Self {
            progress: Progress::Head,
            receives,
            is_tunnel: false,
            sessions,
            parser: FrameParser::default(),
            payload: Use::Nothing,
            section: Vec::new(),
            declared: None,
            received: 0,
            begun: false,
        }
    }

    /// The final head was received; `declared` is its Content-Length, if present.
    pub(crate) fn begin_content(&mut self, declared: Option<u64>) {
        self.progress = Progress::Content;
        self.declared = declared;
    }

    pub(crate) fn is_over(&self) -> bool {
        matches!(self.progress, Progress::Over)
    }

    /// True while the trailers are blocked on the QPACK table.
    pub(crate) fn awaits_trailers(&self) -> bool {
        matches!(self.progress, Progress::TrailersBlocked)
    }

    /// True while a field section that refers to the QPACK table may follow.
    pub(crate) fn may_hold_section(&self) -> bool {
        !matches!(self.progress, Progress::AfterTrailers | Progress::Over)
    }

    /// Reads the next part of the message from the transport.
    pub(crate) fn pull(
        &mut self,
        quic: &mut Connection,
        id: StreamId,
        limits: &Limits,
    ) -> Result<Pulled, BodyError> {
        loop {
            let mut stream = quic.recv_stream(id);
            match stream.read_chunk()? {
                ReadChunk::Blocked => return Ok(Pulled::Blocked),
                ReadChunk::Finished => return Ok(self.end()?),
                ReadChunk::Data(chunk) => {
                    let bytes = chunk.data();
                    let mut rest = bytes;
                    let pulled = self.take(&mut rest, limits);
                    let used = bytes.len() - rest.len();
                    chunk.consume(used);
                    if let Some(pulled) = pulled? {
                        return Ok(pulled);
                    }
                }
            }
        }
    }

    /// Reads the message to its end if the rest of it has been received and is nothing, or one DATA frame with at
    /// most `limit` bytes of content; returns that content. Otherwise nothing is read.
    pub(crate) fn read_short(
        &mut self,
        quic: &mut Connection,
        id: StreamId,
        limit: usize,
    ) -> Result<Option<Bytes>, BodyError> {
        let mut content = Bytes::new();
        loop {
            match quic.recv_stream(id).read_chunk()? {
                ReadChunk::Blocked => return Ok(None),
                ReadChunk::Finished => {
                    self.end()?;
                    return Ok(Some(content));
                }
                ReadChunk::Data(chunk) => {
                    let Some(short) = self.short_content(&chunk, limit) else {
                        return Ok(None);
                    };
                    self.received += short.len() as u64;
                    content = short;
                    let len = chunk.data().len();
                    chunk.consume(len);
                }
            }
        }
    }

    /// The content of the DATA frame of which `chunk`, the rest of the stream, consists.
    fn short_content(&self, chunk: &Chunk<'_>, limit: usize) -> Option<Bytes> {
        if !chunk.is_last() {
            return None;
        }
        let mut payload = chunk.data();
        let mut parser = self.parser;
        let Some(Token::Begin { frame_type, len }) = parser.next(&mut payload) else {
            return None;
        };
        let is_whole = frame_type == FrameType::Data && len == payload.len() as u64;
        // Content of another length than declared is an error, reported where it is read.
        let is_declared = self.declared.is_none_or(|declared| declared == len);
        (is_whole && is_declared && payload.len() <= limit).then(|| Bytes::copy_from_slice(payload))
    }

    /// Consumes bytes of `data` up to the next result.
    fn take(&mut self, data: &mut &[u8], limits: &Limits) -> Result<Option<Pulled>, Fault> {
        while let Some(token) = self.parser.next(data) {
            match token {
                Token::Begin { frame_type, len } => {
                    let first = !std::mem::replace(&mut self.begun, true);
                    if frame_type == FrameType::WebTransportStream && self.sessions {
                        if first {
                            self.progress = Progress::Over;
                            return Ok(Some(Pulled::SessionStream(len)));
                        }
                        let reason = "the signal of a WebTransport stream within a stream";
                        return Err(Fault::connection(Code::FRAME_ERROR, reason));
                    }
                    self.payload = self.permit(frame_type)?;
                    if self.payload == Use::Section && len > limits.max_encoded_section {
                        return Ok(Some(Pulled::SectionTooLarge));
                    }
                }
                Token::Payload(payload) => match self.payload {
                    Use::Content => return self.content(payload).map(Some),
                    Use::Section => self.section.extend_from_slice(payload),
                    Use::Nothing => {}
                },
                Token::End if self.payload == Use::Section => {
                    self.payload = Use::Nothing;
                    let section = std::mem::take(&mut self.section);
                    return Ok(Some(Pulled::Section(section.into())));
                }
                Token::End => {}
            }
        }
        Ok(None)
    }

    fn content(&mut self, payload: &[u8]) -> Result<Pulled, Fault> {
        self.received += payload.len() as u64;
        if self
            .declared
            .is_some_and(|declared| self.received > declared)
        {
            return Err(Fault::malformed("more content than content-length"));
        }
        Ok(Pulled::Content(Bytes::copy_from_slice(payload)))
    }

    /// The use of a frame of this type in the present state, if it is permitted (RFC 9114, section
    /// 7).
    fn permit(&self, frame_type: FrameType) -> Result<Use, Fault> {
        let unexpected = |reason| Err(Fault::connection(Code::FRAME_UNEXPECTED, reason));
        match (frame_type, &self.progress) {
            (FrameType::Data, Progress::Content) => Ok(Use::Content),
            (FrameType::Data, Progress::Head) => unexpected("DATA before HEADERS"),
            (FrameType::Data, _) => unexpected("DATA after trailers"),
            (FrameType::Headers, Progress::Content) if self.is_tunnel => {
                unexpected("HEADERS in a tunnel")
            }
            (FrameType::Headers, Progress::Head | Progress::Content) => Ok(Use::Section),
            (FrameType::Headers, _) => unexpected("HEADERS after trailers"),
            // This end permits no pushes (RFC 9114, section 7.2.5).
            (FrameType::PushPromise, _) if self.receives != Receives::Request => Err(
                Fault::connection(Code::ID_ERROR, "PUSH_PROMISE although no push is permitted"),
            ),
            (FrameType::Unknown(_) | FrameType::WebTransportStream, _) => Ok(Use::Nothing),
            (FrameType::Http2(_), _) => unexpected("a frame of HTTP/2"),
            _ => unexpected("a frame that is not permitted on a request stream"),
        }
    }

    /// The stream was finished.
    fn end(&mut self) -> Result<Pulled, Fault> {
        // The end of a frame has no bytes, so it may not have been returned yet.
        while self.parser.next(&mut &[][..]).is_some() {}
        let progress = std::mem::replace(&mut self.progress, Progress::Over);
        if !self.parser.is_between_frames() {
            let reason = "a stream ended within a frame";
            return Err(Fault::connection(Code::FRAME_ERROR, reason));
        }
        match (progress, &self.receives) {
            (Progress::Head, Receives::Request) => Err(Fault::stream(
                Code::REQUEST_INCOMPLETE,
                "a stream ended without a request",
            )),
            (Progress::Head, Receives::Response(_)) => {
                Err(Fault::malformed("a stream ended without a final response"))
            }
            _ if self
                .declared
                .is_some_and(|declared| declared != self.received) =>
            {
                Err(Fault::malformed("less content than content-length"))
            }
            _ => Ok(Pulled::End),
        }
    }
}
