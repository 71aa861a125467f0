//! What one segment carries, and how many bytes it takes on an IPv4 link.
//!
//! Sequence numbers are 64-bit offsets in the stream: they do not wrap, and SYN takes none of them.

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Whether this is a SYN or SYN-ACK; such a segment carries no payload here.
    pub syn: bool,
    /// Offsets of the payload; empty for a pure acknowledgement.
    pub payload: Range<u64>,
    /// The acknowledgement; absent only in the client's SYN.
    pub ack: Option<Acknowledgement>,
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
}
