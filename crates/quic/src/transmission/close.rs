//! CONNECTION_CLOSE packets (RFC 9000, section 10.2).

use swiftwater_wire::frame::ConnectionClose;
use swiftwater_wire::{Frame, Writer};

use crate::crypto::EncryptionLevel;
use crate::datagram_size::MIN_INITIAL_SIZE;
use crate::frame_writer::FrameWriter;
use crate::handshake::KeysUnavailable;
use crate::space::SentPacket;
use crate::transmit::Transmit;

use super::Transmission;
use super::packet;
use crate::buffers::Workspace;
use crate::lifecycle::CloseFrame;

/// Longest reason that is sent, bytes; the rest is cut off.
const MAX_REASON: usize = 512;

impl Transmission<'_> {
    /// Writes this end's close if it is due, in every encryption level that the peer may be able to read.
    pub(crate) fn send_close(
        &mut self,
        buf: &mut [u8],
        workspace: &mut Workspace,
    ) -> Option<Transmit> {
        let frame = self.lifecycle.close_to_send()?.clone();
        let network = &self.path.network;
        let budget = usize::try_from(network.amplification.budget()).unwrap_or(usize::MAX);
        let limit = usize::from(network.mtu.current())
            .min(buf.len())
            .min(budget);
        let levels = EncryptionLevel::SPACES.into_iter().filter(|&level| {
            self.handshake.keys().has(level)
                && self.space(level).is_some()
                && (level != EncryptionLevel::OneRtt || self.handshake.is_complete())
        });
        let levels: Vec<EncryptionLevel> = levels.collect();
        self.lifecycle.on_close_sent();
        let mut size = 0;
        for (nth, &level) in levels.iter().enumerate() {
            let is_last = nth + 1 == levels.len();
            let pads =
                is_last && levels[0] == EncryptionLevel::Initial && limit >= MIN_INITIAL_SIZE;
            let pad_to = if pads {
                MIN_INITIAL_SIZE.saturating_sub(size)
            } else {
                0
            };
            let frame = frame.for_level(level);
            let out = &mut buf[size..limit];
            // A close that can't be protected is not sent: the peer's idle timeout ends it.
            let built = self.build_close(level, &frame, pad_to, out, workspace);
            size += built.unwrap_or(0);
        }
        if size == 0 {
            return None;
        }
        self.path.network.on_datagram_sent(size);
        self.monitor.on_datagram_sent(size);
        let address = &self.path.network.address;
        Some(Transmit::single(self.path.id, address, None, size))
    }

    fn build_close(
        &mut self,
        level: EncryptionLevel,
        frame: &CloseFrame,
        pad_to: usize,
        out: &mut [u8],
        workspace: &mut Workspace,
    ) -> Result<usize, KeysUnavailable> {
        let room = out.len();
        let mut writer = Writer::new(out);
        let Some(started) = self.start_packet(level, None, &mut writer) else {
            return Ok(0);
        };
        let tag_len = started.tag_len;
        let (buffers, frames_sent) = workspace.for_packet();
        buffers.carried.clear();
        let mut frames = FrameWriter::new(&mut writer, room - tag_len, &mut buffers.carried)
            .counting(frames_sent);
        if !frames.frame(&encode_close(frame)) {
            return Ok(0);
        }
        // Its fate is of no interest.
        buffers.carried.clear();
        packet::pad(&mut writer, pad_to.saturating_sub(tag_len), &started);
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
