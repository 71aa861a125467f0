//! Records of TLS 1.3 (RFC 8446, section 5.2): five bytes before the plaintext; a byte of type and a tag
//! of sixteen behind it, if it is protected.

use super::MAX_RECORD;

/// Content types.
pub(super) const HANDSHAKE: u8 = 22;
pub(super) const APPLICATION: u8 = 23;

const HEAD_LEN: usize = 5;
/// The true type of the content, and the tag.
const PROTECTION_LEN: usize = 1 + 16;

/// Appends `plaintext` to `out` in records of at most 16 KiB.
pub(super) fn write(kind: u8, plaintext: &[u8], out: &mut Vec<u8>) {
    for chunk in plaintext.chunks(MAX_RECORD) {
        let length = (chunk.len() + PROTECTION_LEN) as u16;
        out.push(kind);
        out.extend_from_slice(&[3, 3]);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(&[0; PROTECTION_LEN]);
    }
}

/// Takes records out of a stream of bytes.
#[derive(Debug, Default)]
pub(super) struct Reader {
    bytes: Vec<u8>,
}

impl Reader {
    /// Bytes arrived.
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Appends the plaintext of the next whole record to `out`; returns its content type.
    pub(super) fn next(&mut self, out: &mut Vec<u8>) -> Option<u8> {
        let (head, rest) = self.bytes.split_first_chunk::<HEAD_LEN>()?;
        let length = usize::from(u16::from_be_bytes([head[3], head[4]]));
        let body = rest.get(..length)?;
        let kind = head[0];
        out.extend_from_slice(&body[..length.saturating_sub(PROTECTION_LEN)]);
        self.bytes.drain(..HEAD_LEN + length);
        Some(kind)
    }
}
