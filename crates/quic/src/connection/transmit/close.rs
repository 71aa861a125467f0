//! CONNECTION_CLOSE packets (RFC 9000, section 10.2).

use swiftwater_units::Instant;
use swiftwater_wire::frame::ConnectionClose;
use swiftwater_wire::{Frame, Writer};

use crate::crypto::EncryptionLevel;
use crate::frame_writer::FrameWriter;
use crate::recovery::DeliverySnapshot;
use crate::space::SentPacket;
use crate::transmit::Transmit;

use super::super::Connection;
use super::super::lifecycle::CloseFrame;
use super::MIN_INITIAL_SIZE;
use super::seal;

/// Longest reason that is sent, bytes; the rest is cut off.
const MAX_REASON: usize = 512;

impl Connection {
    /// Sends our close, in every encryption level that the peer may be able to read.
    pub(super) fn transmit_close(&mut self, now: Instant, buf: &mut [u8]) -> Option<Transmit> {
        let frame = self.lifecycle.close_to_send()?.clone();
        let path = &self.paths.first().path;
        let budget = usize::try_from(path.amplification.budget()).unwrap_or(usize::MAX);
        let limit = usize::from(path.mtu.current()).min(buf.len()).min(budget);
        let levels = EncryptionLevel::SPACES.into_iter().filter(|&level| {
            self.handshake.protection_ref().has(level)
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
            size += self.build_close(now, level, &frame, pad_to, &mut buf[size..limit]);
        }
        if size == 0 {
            return None;
        }
        self.on_datagram_sent(self.paths.first().path.id, size);
        let path = &self.paths.first().path;
        Some(Transmit {
            path: path.id,
            destination: path.address.remote,
            source_ip: path.address.local.ip,
            socket: path.address.local.socket,
            ecn: None,
            size,
            segment_size: None,
        })
    }

    fn build_close(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        frame: &CloseFrame,
        pad_to: usize,
        out: &mut [u8],
    ) -> usize {
        let room = out.len();
        let tag_len = self.handshake.protection_ref().tag_len(level);
        let mut writer = Writer::new(out);
        let Some(started) = self.start_packet(level, None, &mut writer) else {
            return 0;
        };
        let frame = Self::close_for_level(frame, level);
        let mut carried = Vec::new();
        let mut frames = FrameWriter::new(&mut writer, room - tag_len, &mut carried)
            .counting(self.frames_sent.as_deref_mut());
        if !frames.frame(&encode_close(&frame)) {
            return 0;
        }
        seal::pad(&mut writer, pad_to.saturating_sub(tag_len), &started);
        let size = self.finish_packet(level, writer, &started);
        let sent = SentPacket {
            sent_at: now,
            size: size as u16,
            ack_eliciting: false,
            in_flight: false,
            ecn_marked: false,
            retransmission: false,
            mtu_probe: false,
            snapshot: DeliverySnapshot::default(),
        };
        self.on_packet_sent(now, level, &started, sent, &[]);
        size
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
