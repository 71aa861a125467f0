//! HTTP/2 by hand, for clients that libraries don't make: frames without TLS, header blocks without
//! compression.

#![allow(dead_code, reason = "each test file uses a part")]

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::peers::in_time;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const PING: u8 = 6;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;

pub(crate) const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
const ACK: u8 = 1;

/// A frame as on the wire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RawFrame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) payload: Vec<u8>,
}

impl RawFrame {
    pub(crate) fn ends_stream(&self) -> bool {
        matches!(self.kind, DATA | HEADERS) && self.flags & END_STREAM != 0
    }

    /// The status code of a response's head, which is its first field, if the static table has it (RFC 7541,
    /// appendix A).
    pub(crate) fn status(&self) -> Option<u16> {
        assert_eq!(self.kind, HEADERS);
        match self.payload[0] {
            0x88 => Some(200),
            0x8c => Some(400),
            0x8d => Some(404),
            0x8e => Some(500),
            _ => None,
        }
    }

    /// The error code of RST_STREAM.
    pub(crate) fn code(&self) -> u32 {
        assert_eq!(self.kind, RST_STREAM);
        u32::from_be_bytes(self.payload[..4].try_into().unwrap())
    }
}

pub(crate) fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut frame = (payload.len() as u32).to_be_bytes()[1..].to_vec();
    frame.extend([kind, flags]);
    frame.extend(stream.to_be_bytes());
    frame.extend(payload);
    frame
}

/// A client's end of a connection.
pub(crate) struct RawClient {
    pub(crate) stream: TcpStream,
}

impl RawClient {
    /// A connection whose streams have `window` bytes of credit each, the connection as much as there can be.
    pub(crate) async fn connect(server: SocketAddr, window: u32) -> Self {
        let mut stream = TcpStream::connect(server).await.unwrap();
        let mut opening = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // SETTINGS_INITIAL_WINDOW_SIZE is 4.
        let setting = [&[0, 4], window.to_be_bytes().as_slice()].concat();
        opening.extend(frame(SETTINGS, 0, 0, &setting));
        let credit = (1_u32 << 31) - 1 - 65_535;
        opening.extend(frame(WINDOW_UPDATE, 0, 0, &credit.to_be_bytes()));
        stream.write_all(&opening).await.unwrap();
        Self { stream }
    }

    /// Sends the head of a request for `/` of host `a`; `last` without a body.
    pub(crate) async fn request(&mut self, stream: u32, method: &str, last: bool) {
        self.request_with(stream, method, "a", &[], last).await;
    }

    /// The same for another authority, with more fields.
    pub(crate) async fn request_with(
        &mut self,
        stream: u32,
        method: &str,
        authority: &str,
        fields: &[(&str, &str)],
        last: bool,
    ) {
        // :scheme http and :path / of the static table; :method and :authority are literals.
        let mut block = vec![0x86, 0x84];
        block.push(0x02);
        put(&mut block, method);
        block.push(0x01);
        put(&mut block, authority);
        for (name, value) in fields {
            block.push(0);
            put(&mut block, name);
            put(&mut block, value);
        }
        let flags = END_HEADERS | if last { END_STREAM } else { 0 };
        self.send(&frame(HEADERS, flags, stream, &block)).await;
    }

    /// Sends a frame of content.
    pub(crate) async fn data(&mut self, stream: u32, content: &[u8], last: bool) {
        let flags = if last { END_STREAM } else { 0 };
        self.send(&frame(DATA, flags, stream, content)).await;
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        in_time(self.stream.write_all(bytes)).await.unwrap();
    }

    /// The next frame that is not about the connection; `None` at its end. SETTINGS are acknowledged.
    pub(crate) async fn next(&mut self) -> Option<RawFrame> {
        loop {
            let frame = self.read().await?;
            match frame.kind {
                SETTINGS if frame.flags & ACK == 0 => {
                    self.send(&self::frame(SETTINGS, ACK, 0, &[])).await;
                }
                SETTINGS => {}
                _ => return Some(frame),
            }
        }
    }

    async fn read(&mut self) -> Option<RawFrame> {
        let mut head = [0; 9];
        in_time(self.stream.read_exact(&mut head)).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; length as usize];
        in_time(self.stream.read_exact(&mut payload)).await.ok()?;
        Some(RawFrame {
            kind: head[3],
            flags: head[4],
            stream: u32::from_be_bytes([head[5] & 0x7f, head[6], head[7], head[8]]),
            payload,
        })
    }

    /// Sends PING to the server, and returns the frames received before its answer.
    pub(crate) async fn until_pong(&mut self) -> Vec<RawFrame> {
        self.send(&frame(PING, 0, 0, &[0; 8])).await;
        let mut before = Vec::new();
        loop {
            let frame = self.next().await.expect("the connection goes on");
            if frame.kind == PING && frame.flags & ACK != 0 {
                return before;
            }
            before.push(frame);
        }
    }
}

/// A string as HPACK has it, without Huffman code (RFC 7541, section 5.2).
fn put(block: &mut Vec<u8>, text: &str) {
    block.push(u8::try_from(text.len()).unwrap());
    block.extend(text.as_bytes());
}
