//! Segments as bytes in the simulated network.
//!
//! Links add 28 bytes to each datagram, the headers of IPv4 and UDP. TCP's header has to fit into the
//! rest, so that packets have their true size: ports are kept with the addresses, as for UDP; the
//! urgent pointer and two bytes of padding (in a SYN: SACK permitted) are left out. These are the eight
//! bytes that UDP's header takes.

use std::ops::Range;

use super::segment::{Acknowledgement, MAX_SACK_BLOCKS, MSS, Segment};

/// Bytes of headers that links add to each datagram.
const ADDED_BY_LINK: u64 = 28;
/// Offset of the checksum.
const CHECKSUM: usize = 12;
/// Sequence number, acknowledgement number, data offset, flags, window, checksum.
const FIXED: usize = 14;
/// Kind, length and two values (RFC 7323, section 3.2).
const TIMESTAMPS: usize = 10;
/// Header without blocks.
const PLAIN: usize = FIXED + TIMESTAMPS;
/// MSS, padding and window scale.
const SYN_REST: usize = 8;
/// Padding, kind and length of SACK.
const SACK_HEAD: usize = 4;
/// Start and end of a block.
const SACK_BLOCK: usize = 8;
/// The window scale of both sides (RFC 7323, section 2.2): windows are multiples of 1 KiB.
const WINDOW_SHIFT: u8 = 10;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const PSH: u8 = 8;
const ACK: u8 = 16;

/// Where sequence numbers of 32 bits are expected, to extend them to 64 bits.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Expected {
    /// The next offset of the peer's stream.
    pub incoming: u64,
    /// The earliest unacknowledged offset of the own stream.
    pub outgoing: u64,
}

impl Segment {
    /// Appends the segment, whose payload is `payload`, to `out`.
    pub fn encode(&self, payload: &[u8], out: &mut Vec<u8>) {
        let begin = out.len();
        let header = self.wire_size() - (self.payload.end - self.payload.start) - ADDED_BY_LINK;
        let ack = self.ack.as_ref();
        let flag = |set: bool, bit: u8| if set { bit } else { 0 };
        let flags = flag(self.fin, FIN)
            | flag(self.syn, SYN)
            | flag(self.reset, RST)
            | flag(self.push, PSH)
            | flag(ack.is_some(), ACK);
        let window = ack.map_or(0, |ack| ack.window >> WINDOW_SHIFT);
        out.extend_from_slice(&(self.payload.start as u32).to_be_bytes());
        out.extend_from_slice(&(ack.map_or(0, |ack| ack.next) as u32).to_be_bytes());
        // In words of the true header, which has eight bytes more.
        out.push((((header + 8) / 4) as u8) << 4);
        out.push(flags);
        out.extend_from_slice(&u16::try_from(window).unwrap_or(u16::MAX).to_be_bytes());
        out.extend_from_slice(&[0, 0, 8, 10]);
        out.extend_from_slice(&self.timestamp.to_be_bytes());
        out.extend_from_slice(&self.echo.to_be_bytes());
        if self.syn {
            let [high, low] = (MSS as u16 + 12).to_be_bytes();
            out.extend_from_slice(&[2, 4, high, low, 1, 3, 3, WINDOW_SHIFT]);
        } else if let Some(ack) = ack.filter(|ack| !ack.blocks.is_empty()) {
            let length = 2 + 8 * ack.blocks.len() as u8;
            out.extend_from_slice(&[1, 1, 5, length]);
            for block in &ack.blocks {
                out.extend_from_slice(&(block.start as u32).to_be_bytes());
                out.extend_from_slice(&(block.end as u32).to_be_bytes());
            }
        }
        out.extend_from_slice(payload);
        let sum = checksum(&out[begin..]);
        out[begin + CHECKSUM..begin + CHECKSUM + 2].copy_from_slice(&sum.to_be_bytes());
    }

    /// Reads a segment, and where in `data` its payload begins; `None` if it is damaged.
    pub fn decode(data: &[u8], expected: Expected) -> Option<(Self, usize)> {
        if data.len() < PLAIN || checksum(data) != 0 {
            return None;
        }
        let number = |at: usize| -> Option<u32> {
            let bytes = data.get(at..at + 4)?.first_chunk()?;
            Some(u32::from_be_bytes(*bytes))
        };
        let flags = data[9];
        let has = |bit: u8| flags & bit != 0;
        let header = (usize::from(data[8] >> 4) * 4).checked_sub(8)?;
        let mut blocks = Vec::new();
        if has(SYN) {
            if header != PLAIN + SYN_REST {
                return None;
            }
        } else if header != PLAIN {
            let options = header.checked_sub(PLAIN + SACK_HEAD)?;
            if options % SACK_BLOCK != 0 || options / SACK_BLOCK > MAX_SACK_BLOCKS {
                return None;
            }
            for nth in 0..options / SACK_BLOCK {
                let at = PLAIN + SACK_HEAD + nth * SACK_BLOCK;
                blocks.push(extend_range(
                    number(at)?,
                    number(at + 4)?,
                    expected.outgoing,
                ));
            }
        }
        let length = data.len().checked_sub(header)? as u64;
        let start = extend(number(0)?, expected.incoming);
        let window = u64::from(u16::from_be_bytes([data[10], data[11]])) << WINDOW_SHIFT;
        let ack = Acknowledgement {
            next: extend(number(4)?, expected.outgoing),
            window,
            blocks,
        };
        let segment = Self {
            syn: has(SYN),
            fin: has(FIN),
            reset: has(RST),
            push: has(PSH),
            payload: start..start + length,
            ack: has(ACK).then_some(ack),
            timestamp: number(FIXED + 2)?,
            echo: number(FIXED + 6)?,
        };
        Some((segment, header))
    }
}

/// The offset with these low bits that is nearest to `near`.
fn extend(low: u32, near: u64) -> u64 {
    const SPAN: u64 = 1 << 32;
    let candidate = (near & !(SPAN - 1)) | u64::from(low);
    let half = SPAN / 2;
    if candidate + half < near {
        candidate.saturating_add(SPAN)
    } else if candidate > near.saturating_add(half) && candidate >= SPAN {
        candidate - SPAN
    } else {
        candidate
    }
}

fn extend_range(start: u32, end: u32, near: u64) -> Range<u64> {
    let start = extend(start, near);
    start..extend(end, start)
}

/// The Internet checksum (RFC 1071): zero over bytes that contain their own.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|pair| {
        let low = pair.get(1).copied().unwrap_or_default();
        u64::from(u16::from_be_bytes([pair[0], low]))
    });
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}
