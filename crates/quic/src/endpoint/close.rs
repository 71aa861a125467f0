//! Refusing a connection in a single Initial packet, without keeping state (RFC 9000, sections
//! 5.2.2 and 10.2.3).

use swiftwater_units::{PacketNumber, PathId};
use swiftwater_wire::frame::ConnectionClose;
use swiftwater_wire::{ConnectionId, ErrorCode, Frame, Header, TruncatedPacketNumber, Writer};

use crate::crypto::Keys;

/// Where a refusal goes, and how it is protected.
pub(super) struct Refusal<'a> {
    /// Initial keys of the packet that it answers.
    pub(super) keys: &'a Keys,
    pub(super) version: u32,
    pub(super) dst: ConnectionId,
    pub(super) src: ConnectionId,
    pub(super) code: ErrorCode,
}

impl Refusal<'_> {
    /// Writes the packet and returns its size, or `None` if it doesn't fit in `out`. It isn't
    /// ack-eliciting and hence needs no padding to 1200 bytes.
    pub(super) fn write(&self, out: &mut [u8]) -> Option<usize> {
        let number = PacketNumber::ZERO;
        let truncated = TruncatedPacketNumber::encode(number, None);
        let header = Header::Initial {
            dst: self.dst,
            src: self.src,
            token: &[],
        };
        let frame = Frame::ConnectionClose(ConnectionClose::Transport {
            error: self.code,
            frame_type: 0,
            reason: &[],
        });
        let tag_len = self.keys.packet.local.tag_len();
        // The sample for header protection starts 4 bytes behind the packet number's start.
        let sampled = 4 + self.keys.header.local.sample_len();
        let padding = sampled.saturating_sub(truncated.len + frame.size() + tag_len);
        let body = padding + frame.size() + tag_len;
        let size = header.size(truncated.len) + body;
        let packet = out.get_mut(..size)?;

        let mut w = Writer::new(packet);
        let layout = header.encode(self.version, truncated, &mut w);
        w.reserve(padding).fill(0);
        frame.encode(&mut w);
        layout.patch_length(packet, truncated.len + body);
        self.keys
            .packet
            .local
            .encrypt(PathId::ZERO, number, layout.header_len, packet);
        self.keys.header.local.encrypt(layout.pn_offset, packet);
        Some(size)
    }
}
