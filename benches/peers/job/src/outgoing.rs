//! What is to be sent on a stream.

use bytes::{BufMut, Bytes, BytesMut};

use crate::payload;
use crate::wanted::Wanted;

/// Data to send on a stream: at most 8 separate bytes, then payload.
#[derive(Clone, Copy, Debug)]
pub struct Outgoing {
    head: [u8; Wanted::LEN],
    /// Of the head, or none of it.
    head_len: usize,
    len: u64,
    sent: u64,
    finishes: bool,
}

impl Outgoing {
    /// A client's request with so many bytes of upload.
    pub fn request(wanted: Wanted, upload: u64) -> Self {
        Self {
            head: wanted.to_bytes(),
            head_len: Wanted::LEN,
            len: Wanted::LEN as u64 + upload,
            sent: 0,
            finishes: !matches!(wanted, Wanted::Echo(_)),
        }
    }

    pub(crate) fn payload(bytes: u64, finishes: bool) -> Self {
        Self {
            head: [0; Wanted::LEN],
            head_len: 0,
            len: bytes,
            sent: 0,
            finishes,
        }
    }

    pub(crate) fn checksum(checksum: u32) -> Self {
        let head = u64::from(checksum).to_be_bytes();
        Self {
            head,
            head_len: head.len(),
            len: head.len() as u64,
            sent: 0,
            finishes: true,
        }
    }

    /// The next contiguous bytes; empty when everything was sent.
    pub fn next(&self) -> &[u8] {
        match self.head[..self.head_len].get(self.sent as usize..) {
            Some(head) if !head.is_empty() => head,
            _ => self.next_payload(),
        }
    }

    /// The same for libraries that send [`Bytes`] without a copy.
    pub fn next_bytes(&self) -> Bytes {
        if self.sent < self.head_len as u64 {
            Bytes::copy_from_slice(self.next())
        } else {
            Bytes::from_static(self.next_payload())
        }
    }

    fn next_payload(&self) -> &'static [u8] {
        payload::slice(self.sent - self.head_len as u64, self.left())
    }

    /// The library accepted so many of the next bytes.
    pub fn advance(&mut self, bytes: usize) {
        self.sent += bytes as u64;
    }

    /// Bytes not yet sent.
    pub fn left(&self) -> u64 {
        self.len - self.sent
    }

    /// True if the stream ends after this.
    pub fn finishes(&self) -> bool {
        self.finishes
    }

    /// All that is left in one piece, for small messages that are sent often.
    pub fn to_bytes(mut self) -> Bytes {
        let mut all = BytesMut::with_capacity(self.left() as usize);
        while self.left() > 0 {
            let piece = self.next();
            let len = piece.len();
            all.put_slice(piece);
            self.advance(len);
        }
        all.freeze()
    }
}
