//! A server's view of a stream.

use crc32fast::Hasher;

use crate::outgoing::Outgoing;
use crate::wanted::Wanted;

/// Processes a stream's bytes in order and determines the answer.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    head: [u8; Wanted::LEN],
    head_len: usize,
    uploaded: u64,
    checksum: Hasher,
}

impl Answer {
    /// Processes the next bytes. Returns data to send back already, before the end.
    pub fn receive(&mut self, mut data: &[u8]) -> Option<Outgoing> {
        if self.head_len < Wanted::LEN {
            let (head, rest) = data.split_at(data.len().min(Wanted::LEN - self.head_len));
            self.head[self.head_len..][..head.len()].copy_from_slice(head);
            self.head_len += head.len();
            data = rest;
        }
        self.checksum.update(data);
        let before = self.uploaded;
        self.uploaded += data.len() as u64;
        match self.wanted() {
            Some(Wanted::Echo(bytes)) if before < bytes && self.uploaded >= bytes => {
                Some(Outgoing::payload(bytes, false))
            }
            _ => None,
        }
    }

    /// The client has finished. Returns the answer; after a truncated head, only the end.
    pub fn finish(self) -> Outgoing {
        match self.wanted() {
            Some(Wanted::Payload(bytes)) => Outgoing::payload(bytes, true),
            Some(Wanted::Checksum) => Outgoing::checksum(self.checksum.finalize()),
            Some(Wanted::Echo(_)) | None => Outgoing::payload(0, true),
        }
    }

    /// The client's request, once received.
    fn wanted(&self) -> Option<Wanted> {
        (self.head_len == Wanted::LEN).then(|| Wanted::from_bytes(self.head))
    }
}
