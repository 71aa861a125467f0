//! What one segment carries, and how many bytes it takes on an IPv4 link.
//!
//! Sequence numbers are 64-bit offsets in the stream: SYN takes none of them, and FIN takes one after
//! the last byte. How they are written with 32 bits is in the module `header`.

use std::ops::Range;

/// Payload of a full segment with timestamps at an MTU of 1500 bytes.
pub const MSS: u64 = 1448;

/// Blocks that fit beside timestamps in the 40 bytes of options (RFC 2018, section 3).
pub const MAX_SACK_BLOCKS: usize = 3;

const IP_HEADER: u64 = 20;
const TCP_HEADER: u64 = 20;
/// Ten bytes (RFC 7323, section 3.2) and two of padding.
const TIMESTAMPS: u64 = 12;
/// MSS, SACK permitted, timestamps and window scale, with one byte of padding, as Linux sends them.
const SYN_OPTIONS: u64 = 20;

/// What a receiver reports: the next offset it expects, its window, and blocks beyond a hole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acknowledgement {
    /// All bytes before this offset have arrived.
    pub next: u64,
    /// Bytes from `next` on that the receiver accepts.
    pub window: u64,
    /// A duplicate, if there was one (RFC 2883), then the blocks beyond `next`, latest first; at most
    /// [`MAX_SACK_BLOCKS`].
    pub blocks: Vec<Range<u64>>,
}

/// A segment of an established connection, or the SYN of either side.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Segment {
    /// Whether this is a SYN or SYN-ACK; such a segment carries no payload here.
    pub syn: bool,
    /// Whether the stream ends after the payload.
    pub fin: bool,
    /// Whether the connection is aborted (RFC 9293, section 3.5.2).
    pub reset: bool,
    /// Whether the sender had nothing more to send (RFC 9293, section 3.9.1.2).
    pub push: bool,
    /// Offsets of the payload; empty for a pure acknowledgement.
    pub payload: Range<u64>,
    /// The acknowledgement; absent only in the client's SYN.
    pub ack: Option<Acknowledgement>,
    /// When the segment was sent, in milliseconds on the sender's clock (RFC 7323).
    pub timestamp: u32,
    /// The timestamp of the peer that this segment returns; 0 for none.
    pub echo: u32,
}

impl Segment {
    /// Bytes of the IP packet: headers, options and payload.
    pub fn wire_size(&self) -> u64 {
        let options = if self.syn {
            SYN_OPTIONS
        } else {
            let blocks = self.ack.as_ref().map_or(0, |ack| ack.blocks.len()) as u64;
            // Two bytes of padding, two of kind and length, eight a block.
            TIMESTAMPS + if blocks == 0 { 0 } else { 4 + 8 * blocks }
        };
        let payload = self.payload.end.saturating_sub(self.payload.start);
        IP_HEADER + TCP_HEADER + options + payload
    }

    /// The offsets that the segment takes: those of the payload, and one of FIN.
    pub fn span(&self) -> Range<u64> {
        self.payload.start..self.payload.end + u64::from(self.fin)
    }
}
