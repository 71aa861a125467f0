//! Messages that share a connection: they take turns, a frame each, or are sent in order.

use std::collections::VecDeque;

use super::MAX_RECORD;
use super::frame::{DATA, END_STREAM, Frame, HEAD_LEN, HEADERS};
use super::session::TlsSession;
use crate::pattern::Pattern;
use crate::tcp;

/// A request or response to send.
#[derive(Debug)]
struct Message {
    stream: u32,
    /// Payload of HEADERS until it is sent.
    head: Option<Vec<u8>>,
    pattern: Pattern,
    offset: u64,
    len: u64,
}

/// Messages to send on one connection.
#[derive(Debug, Default)]
pub(super) struct Multiplexer {
    messages: VecDeque<Message>,
    in_order: bool,
}

impl Multiplexer {
    /// Messages are sent one after the other if they are to be `in_order`.
    pub(super) fn new(in_order: bool) -> Self {
        Self {
            in_order,
            ..Self::default()
        }
    }

    /// Adds a message: the payload of its HEADERS, and the number of its pattern and length of its body.
    pub(super) fn push(&mut self, stream: u32, head: Vec<u8>, (pattern, len): (u64, u64)) {
        self.messages.push_back(Message {
            stream,
            head: Some(head),
            pattern: Pattern::new(pattern),
            offset: 0,
            len,
        });
    }

    /// Writes frames, one in a record, while the connection has room.
    pub(super) fn pump(&mut self, tls: &mut TlsSession, connection: &mut tcp::Connection) {
        write_outgoing(tls, connection);
        if !tls.is_ready() {
            return;
        }
        while let Some(mut message) = self.messages.pop_front() {
            if connection.writable() == 0 {
                self.messages.push_front(message);
                connection.want_room();
                return;
            }
            tls.write(&message.next_frame());
            write_outgoing(tls, connection);
            match (message.is_over(), self.in_order) {
                (true, _) => {}
                (false, true) => self.messages.push_front(message),
                (false, false) => self.messages.push_back(message),
            }
        }
    }
}

fn write_outgoing(tls: &mut TlsSession, connection: &mut tcp::Connection) {
    let bytes = tls.take_outgoing();
    if !bytes.is_empty() {
        connection.write(&bytes);
    }
}

impl Message {
    fn is_over(&self) -> bool {
        self.head.is_none() && self.offset == self.len
    }

    fn next_frame(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut payload = Vec::new();
        let kind = if let Some(head) = self.head.take() {
            payload = head;
            HEADERS
        } else {
            let most = ((MAX_RECORD - HEAD_LEN) as u64).min(self.len - self.offset);
            while (payload.len() as u64) < most {
                let rest = most - payload.len() as u64;
                let chunk = self.pattern.chunk(self.offset, rest);
                self.offset += chunk.len() as u64;
                payload.extend_from_slice(&chunk);
            }
            DATA
        };
        let flags = if self.is_over() { END_STREAM } else { 0 };
        let frame = Frame {
            kind,
            flags,
            stream: self.stream,
            payload: &payload,
        };
        frame.write(&mut out);
        out
    }
}
