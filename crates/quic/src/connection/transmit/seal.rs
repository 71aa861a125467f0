//! Header, padding, protection and ledger entry of one packet.

use std::time::Duration;

use swiftwater_units::{Instant, PacketNumber, PathId};
use swiftwater_wire::{ConnectionId, Frame, Header, HeaderLayout, TruncatedPacketNumber, Writer};

use crate::crypto::EncryptionLevel;
use crate::frame_writer::{Carried, FrameWriter};
use crate::observe::{Observation, Payload, Purpose, SentFrame};
use crate::recovery::DeliverySnapshot;
use crate::space::SentPacket;
use crate::streams::Carrier;

use super::super::Connection;
use super::choose::Packet;

/// Bytes of packet number and payload that header protection needs (RFC 9001, section 5.4.2).
const MIN_SAMPLED: usize = 4;

/// Least room worth starting a packet in: headers, tag, and a short ACK frame.
pub(in crate::connection) const MIN_PACKET_ROOM: usize = 64;

/// Shortest packet number of 1-RTT packets, bytes; enough for 32,768 packets in flight.
const MIN_NUMBER_LEN: usize = 2;

/// Packets in a row that ask for no acknowledgement, at most.
const MAX_SILENT_RUN: u32 = 100;

/// Longest that a packet which asks for no acknowledgement is remembered, in case that it gets one.
const MAX_MEMORY: Duration = Duration::from_secs(3);

/// How a packet must end up.
#[derive(Clone, Copy, Debug)]
pub(in crate::connection) struct Target {
    /// Least size on the wire, together with the packets that follow it in its datagram.
    pub(in crate::connection) pad_to: usize,
    /// No packet follows in its datagram.
    pub(in crate::connection) is_last: bool,
    /// It goes over a candidate path, to this connection ID.
    pub(in crate::connection) candidate_cid: Option<ConnectionId>,
}

/// A header has been written; frames follow.
pub(super) struct Started {
    pub(super) layout: HeaderLayout,
    pub(super) number: PacketNumber,
}

impl Connection {
    /// Builds, protects and records one packet in `out`; returns its size, 0 if it had nothing to
    /// carry.
    pub(in crate::connection) fn build_packet(
        &mut self,
        now: Instant,
        packet: &Packet,
        target: &Target,
        out: &mut [u8],
    ) -> usize {
        let level = packet.level;
        let tag_len = self.handshake.protection_ref().tag_len(level);
        let room = out.len();
        let mut writer = Writer::new(&mut out[..room]);
        if room < MIN_PACKET_ROOM {
            return 0;
        }
        let Some(started) = self.start_packet(level, target.candidate_cid, &mut writer) else {
            return 0;
        };
        let mut carried = std::mem::take(&mut self.scratch.need().carried);
        carried.clear();
        let mut counts = std::mem::take(&mut self.frames_sent);
        let mut frames = FrameWriter::new(&mut writer, room - tag_len, &mut carried)
            .counting(counts.as_deref_mut());
        let before = frames.remaining();
        let repeated_before = self.streams.stats().retransmitted_bytes;
        self.fill(now, packet, &mut frames);
        // What goes over a candidate path says nothing about this path: its loss is no congestion, it
        // gives no RTT sample and waits for no probe (RFC 9000, section 9.4).
        let on_path = target.candidate_cid.is_none();
        if frames.remaining() == before && target.is_last && target.pad_to > 0 {
            // Nothing fitted, but the datagram has to be filled up by somebody.
            frames.frame(&Frame::Ping);
        }
        let ack_eliciting = frames.is_ack_eliciting() && on_path;
        let is_empty = frames.remaining() == before;
        self.frames_sent = counts;
        if is_empty {
            self.scratch.need().carried = carried;
            return 0;
        }
        let size = writer.written() + tag_len;
        let goal = if target.is_last || size + MIN_PACKET_ROOM > target.pad_to {
            target.pad_to
        } else {
            0
        };
        let padded = pad(&mut writer, goal.saturating_sub(tag_len), &started);
        let size = self.finish_packet(level, writer, &started);
        let packet_size = size as u16;
        let repeated = self.streams.stats().retransmitted_bytes - repeated_before;
        let in_flight = on_path && (ack_eliciting || padded);
        let marked = on_path && self.paths.first().path.ecn.mark().is_some();
        let entry = self.paths.first_mut();
        if marked {
            entry.path.ecn.on_marked(level);
        }
        entry.recovery.on_retransmitted(repeated);
        let snapshot = if in_flight {
            entry
                .recovery
                .on_sent(now, packet_size, packet.purpose(), &mut self.rng)
        } else {
            DeliverySnapshot::default()
        };
        let sent = SentPacket {
            sent_at: now,
            size: packet_size,
            ack_eliciting,
            in_flight,
            ecn_marked: marked,
            retransmission: repeated > 0,
            mtu_probe: packet.mtu_probe,
            snapshot,
        };
        self.on_packet_sent(now, level, &started, sent, &carried);
        self.scratch.need().carried = carried;
        size
    }

    /// Writes the header of the next packet of `level`, to the connection ID in use or to that of a
    /// candidate path.
    pub(super) fn start_packet(
        &mut self,
        level: EncryptionLevel,
        candidate_cid: Option<ConnectionId>,
        writer: &mut Writer<'_>,
    ) -> Option<Started> {
        let space = self.space(level)?;
        if space.ledger.is_exhausted() {
            return None;
        }
        let number = space.ledger.next_number();
        let mut truncated = TruncatedPacketNumber::encode(number, space.ledger.largest_acked());
        if level == EncryptionLevel::OneRtt {
            // The room for data doesn't change with the packets in flight: what is retransmitted
            // fits in a packet as it did before.
            truncated = truncated.at_least(MIN_NUMBER_LEN, number);
        }
        let path = &mut self.paths.first_mut().path;
        let dst = candidate_cid.unwrap_or_else(|| path.remote_cids.current());
        let src = path.local_cids.first();
        let header = match level {
            EncryptionLevel::Initial => Header::Initial {
                dst,
                src,
                token: (self.identity.start.as_deref()).map_or(&[], |start| &start.token),
            },
            EncryptionLevel::Handshake => Header::Handshake { dst, src },
            EncryptionLevel::ZeroRtt => Header::ZeroRtt { dst, src },
            EncryptionLevel::OneRtt => Header::OneRtt {
                dst,
                // Candidate paths don't spin, and leave the wave of the path in use alone.
                spin: candidate_cid.is_none()
                    && path
                        .spin
                        .bit(dst, path.address, || self.random_bits.draw(&self.rng)),
                key_phase: self.handshake.protection_ref().phase(),
            },
        };
        let tag_len = self.handshake.protection_ref().tag_len(level);
        if header.size(truncated.len) + tag_len + MIN_SAMPLED >= writer.remaining() {
            return None;
        }
        let version = match level {
            EncryptionLevel::ZeroRtt => self.handshake.original_version(),
            _ => self.handshake.version(),
        };
        let layout = header.encode(version, truncated, writer);
        Some(Started { layout, number })
    }

    /// Adds the tag and protects the packet; returns its size.
    pub(super) fn finish_packet(
        &mut self,
        level: EncryptionLevel,
        mut writer: Writer<'_>,
        started: &Started,
    ) -> usize {
        let tag_len = self.handshake.protection_ref().tag_len(level);
        writer.reserve(tag_len);
        let packet = writer.filled_mut();
        let layout = &started.layout;
        let size = packet.len();
        if self.monitor.is_watched() {
            let plain = &packet[layout.header_len..size - tag_len];
            self.scratch.need().payload.clear();
            self.scratch.need().payload.extend_from_slice(plain);
        }
        layout.patch_length(packet, size - layout.pn_offset);
        if self.clears_quic_bit() {
            layout.clear_quic_bit(packet);
        }
        self.handshake.protection_awake().seal(
            level,
            PathId::ZERO,
            started.number,
            layout.pn_offset,
            layout.header_len,
            packet,
        );
        size
    }

    /// True if the next packet's QUIC bit is to be 0: every other one by chance, if both ends agreed
    /// (RFC 9287, section 3.1).
    fn clears_quic_bit(&mut self) -> bool {
        let peer = self.handshake.peer_terms();
        let agreed = self.identity.grease && peer.is_some_and(|peer| peer.grease_quic_bit);
        agreed && self.random_bits.draw(&self.rng)
    }

    /// Records a sealed packet.
    #[inline]
    pub(super) fn on_packet_sent(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        started: &Started,
        sent: SentPacket,
        carried: &[Carried],
    ) {
        if let Some(space) = self.space_mut(level) {
            space.ledger.on_sent(sent, carried);
            if sent.ack_eliciting {
                space.probes = space.probes.saturating_sub(1);
                space.silent_run = 0;
            } else {
                self.on_silent_packet_sent(now, level);
            }
        }
        self.lifecycle.on_sent(now, sent.ack_eliciting);
        self.monitor.stats.packets_sent += 1.into();
        if self.monitor.is_watched() {
            self.observe_sent(now, level, started.number, carried);
        }
        self.emit_streams_sent(now, started.number, carried);
        if level == EncryptionLevel::OneRtt {
            self.maybe_skip_number(now, started.number);
        }
        if level == EncryptionLevel::Handshake && self.identity.side.is_client() {
            // RFC 9001, section 4.9.1.
            self.discard(EncryptionLevel::Initial);
        }
    }

    /// A packet left that asks for no acknowledgement: such packets must not pile up in the ledger.
    fn on_silent_packet_sent(&mut self, now: Instant, level: EncryptionLevel) {
        let patience = self.pto() * 3;
        let horizon = now - patience.min(MAX_MEMORY);
        let Some(space) = self.space_mut(level) else {
            return;
        };
        space.silent_run += 1;
        if space.silent_run >= MAX_SILENT_RUN {
            // The peer acknowledges our ACKs only if something asks it to (RFC 9000, section 13.2.4).
            space.ping = true;
        }
        space.ledger.forget(horizon);
        // A handshake is short: nothing in it takes long to acknowledge.
        let overdue = match level {
            EncryptionLevel::OneRtt | EncryptionLevel::ZeroRtt => now - patience,
            EncryptionLevel::Initial | EncryptionLevel::Handshake => now,
        };
        if space.ledger.is_stuck(overdue) {
            space.neglected += 1;
        } else {
            space.neglected = 0;
        }
    }

    /// Stream data left: what is under repair has one more copy, and the re-injector hears of it.
    fn emit_streams_sent(&mut self, now: Instant, number: PacketNumber, carried: &[Carried]) {
        let carrier = Carrier {
            path: PathId::ZERO,
            number,
            sent_at: now,
        };
        let mut fresh = 0;
        for carried in carried {
            if let &Carried::Stream {
                id,
                offset,
                len,
                purpose,
                ..
            } = carried
            {
                if purpose == Purpose::New {
                    fresh += u64::from(len);
                }
                self.streams
                    .on_frame_sent(&carrier, id, offset, len, purpose);
            }
        }
        if fresh > 0 && !self.policies.reinjector.is_inert() {
            self.policies.reinjector.on_new_data(now, fresh.into());
        }
        self.emit_repairs(now);
    }

    fn observe_sent(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        number: PacketNumber,
        carried: &[Carried],
    ) {
        let space = self.space(level);
        let Some(&sent) = space.and_then(|space| space.ledger.packet(number)) else {
            return;
        };
        let mut frames = std::mem::take(&mut self.scratch.need().frames);
        frames.extend(carried.iter().map(sent_frame));
        self.monitor.observe(
            now,
            &Observation::PacketSent {
                path: PathId::ZERO,
                level,
                number,
                size: usize::from(sent.size),
                ack_eliciting: sent.ack_eliciting,
                frames: &frames,
                payload: Payload::new(&self.scratch.need().payload),
                mtu_probe: sent.mtu_probe,
            },
        );
        frames.clear();
        self.scratch.need().frames = frames;
    }

    /// Leaves out a packet number now and then: a peer that acknowledges it lies (RFC 9000, section
    /// 21.4). The distance doubles with the numbers used, so the cost vanishes.
    fn maybe_skip_number(&mut self, now: Instant, number: PacketNumber) {
        use rand_core::Rng;
        let n = number.get();
        let space = &mut self.paths.first_mut().space;
        if n < space.skip_after {
            return;
        }
        space.ledger.skip_number(now);
        space.skip_after = n + 256 + n / 2 + u64::from(self.rng.next_u32() % 256);
    }
}

/// What observers see of a frame.
fn sent_frame(carried: &Carried) -> SentFrame {
    match *carried {
        Carried::Ack { largest, .. } => SentFrame::Ack { largest },
        Carried::Crypto { offset, len } => SentFrame::Crypto { offset, len },
        Carried::Stream {
            id,
            offset,
            len,
            fin,
            purpose,
        } => SentFrame::Stream {
            id,
            offset,
            len,
            fin,
            purpose,
        },
        Carried::Control { .. } => SentFrame::Control,
    }
}

/// Pads to at least `size` bytes before the tag, and to what header protection samples; true if
/// padding was added.
pub(super) fn pad(writer: &mut Writer<'_>, size: usize, started: &Started) -> bool {
    let sampled = started.layout.pn_offset + MIN_SAMPLED;
    let goal = size.max(sampled);
    let missing = goal.saturating_sub(writer.written());
    writer.reserve(missing).fill(0);
    missing > 0
}
