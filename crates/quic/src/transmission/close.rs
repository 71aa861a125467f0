//! CONNECTION_CLOSE packets (RFC 9000, section 10.2).

use swiftwater_wire::frame::ConnectionClose;
use swiftwater_wire::{Frame, Writer};

use crate::crypto::EncryptionLevel;
use crate::frame_writer::FrameWriter;
use crate::handshake::KeysUnavailable;
use crate::space::SentPacket;

use super::Transmission;
use super::seal;
use crate::buffers::PacketBuffers;
use crate::lifecycle::CloseFrame;

/// Longest reason that is sent, bytes; the rest is cut off.
const MAX_REASON: usize = 512;

impl Transmission<'_> {
    pub(crate) fn build_close(
        &mut self,
        level: EncryptionLevel,
        frame: &CloseFrame,
        pad_to: usize,
        out: &mut [u8],
        buffers: &mut PacketBuffers,
    ) -> Result<usize, KeysUnavailable> {
        let room = out.len();
        let tag_len = self.handshake.keys().tag_len(level);
        let mut writer = Writer::new(out);
        let Some(started) = self.start_packet(level, None, &mut writer) else {
            return Ok(0);
        };
        buffers.carried.clear();
        let mut frames = FrameWriter::new(&mut writer, room - tag_len, &mut buffers.carried)
            .counting(self.monitor.frames_sent.as_deref_mut());
        if !frames.frame(&encode_close(frame)) {
            return Ok(0);
        }
        // Its fate is of no interest.
        buffers.carried.clear();
        seal::pad(&mut writer, pad_to.saturating_sub(tag_len), &started);
        let size = self.finish_packet(level, writer, &started, buffers)?;
        let sent = SentPacket::not_in_flight(self.now, size as u16);
        self.on_packet_sent(level, &started, sent, buffers);
        Ok(size)
    }
}

fn encode_close(frame: &CloseFrame) -> Frame<'_> {
    let cut = |reason: &[u8]| reason.len().min(MAX_REASON);
    Frame::ConnectionClose(match frame {
        CloseFrame::Transport(error) => {
            let reason = error.reason.as_bytes();
            ConnectionClose::Transport {
                error: error.code,
                frame_type: error.frame_type.unwrap_or(0),
                reason: &reason[..cut(reason)],
            }
        }
        CloseFrame::Application { code, reason } => ConnectionClose::Application {
            error: *code,
            reason: &reason[..cut(reason)],
        },
    })
}
