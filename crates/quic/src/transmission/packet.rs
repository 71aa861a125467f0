//! One packet: header, frames, padding, protection and ledger entry.

use std::time::Duration;

use rand_core::Rng;
use swiftwater_units::PacketNumber;
use swiftwater_wire::{ConnectionId, Frame, Header, HeaderLayout, TruncatedPacketNumber, Writer};

use crate::crypto::EncryptionLevel;
use crate::datagram_size::MIN_PACKET_ROOM;
use crate::frame_writer::{Carried, FrameWriter};
use crate::handshake::{KeysUnavailable, PacketName};
use crate::observe::{Observation, Payload, Purpose, SentFrame};
use crate::recovery::DeliverySnapshot;
use crate::space::SentPacket;
use crate::streams::Carrier;

use super::Transmission;
use super::plan::Packet;
use crate::buffers::{PacketBuffers, Workspace};

/// Bytes of packet number and payload that header protection needs (RFC 9001, section 5.4.2).
const MIN_SAMPLED: usize = 4;

/// Shortest packet number of 1-RTT packets, bytes; enough for 32,768 packets in flight.
pub(super) const MIN_NUMBER_LEN: usize = 2;

/// Non-ack-eliciting packets in a row, at most.
const MAX_NON_ELICITING_RUN: u32 = 100;

/// Longest time for which a non-ack-eliciting packet is kept, in case that it is acknowledged.
const MAX_MEMORY: Duration = Duration::from_secs(3);

/// How a packet must end up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    /// Least size on the wire, together with the packets that follow it in its datagram.
    pub(crate) pad_to: usize,
    /// No packet follows in its datagram.
    pub(crate) is_last: bool,
    pub(crate) destination: Destination,
}

/// Where a packet is sent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Destination {
    /// To the address in use.
    InUse,
    /// On a candidate path, to this connection ID, with these frames and nothing else.
    Candidate {
        cid: ConnectionId,
        frames: ValidationFrames,
    },
}

impl Destination {
    /// The connection ID, if it is that of a candidate path.
    fn candidate_cid(&self) -> Option<ConnectionId> {
        match self {
            Self::InUse => None,
            Self::Candidate { cid, .. } => Some(*cid),
        }
    }
}

/// Data of a PATH_CHALLENGE and of a PATH_RESPONSE frame to send.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValidationFrames {
    pub(crate) challenge: Option<[u8; 8]>,
    pub(crate) response: Option<[u8; 8]>,
}

/// A header has been written; frames follow.
pub(super) struct Started {
    pub(super) layout: HeaderLayout,
    pub(super) number: PacketNumber,
    /// Bytes that protecting it adds.
    pub(super) tag_len: usize,
}

impl ValidationFrames {
    fn write(&self, writer: &mut FrameWriter<'_, '_>) {
        if let Some(data) = self.challenge {
            writer.frame(&Frame::PathChallenge { data });
        }
        if let Some(data) = self.response {
            writer.frame(&Frame::PathResponse { data });
        }
    }
}

impl Transmission<'_> {
    /// Builds, protects and records one packet in `out`; returns its size, 0 if it had nothing to
    /// carry.
    ///
    /// # Errors
    ///
    /// There are no keys to protect it with: nothing may be sent.
    pub(crate) fn build_packet(
        &mut self,
        packet: Packet,
        target: &Target,
        out: &mut [u8],
        workspace: &mut Workspace,
    ) -> Result<usize, KeysUnavailable> {
        let level = packet.level;
        let room = out.len();
        if room < MIN_PACKET_ROOM {
            return Ok(0);
        }
        let mut writer = Writer::new(out);
        let Some(started) =
            self.start_packet(level, target.destination.candidate_cid(), &mut writer)
        else {
            return Ok(0);
        };
        let tag_len = started.tag_len;
        let before_packet = self.streams.stats();
        let (buffers, frames_sent) = workspace.for_packet();
        buffers.carried.clear();
        let mut frames = FrameWriter::new(&mut writer, room - tag_len, &mut buffers.carried)
            .in_version(self.multipath_version)
            .counting(frames_sent);
        let before = frames.remaining();
        match &target.destination {
            Destination::InUse => self.fill(packet, &mut frames),
            Destination::Candidate { frames: own, .. } => own.write(&mut frames),
        }
        if frames.remaining() == before && target.is_last && target.pad_to > 0 {
            // Nothing fitted, but the datagram has to be filled up.
            frames.frame(&Frame::Ping);
        }
        let (is_empty, ack_eliciting) = (frames.remaining() == before, frames.is_ack_eliciting());
        if is_empty {
            return Ok(0);
        }
        let size = writer.written() + tag_len;
        let goal = if target.is_last || size + MIN_PACKET_ROOM > target.pad_to {
            target.pad_to
        } else {
            0
        };
        let padded = pad(&mut writer, goal.saturating_sub(tag_len), &started);
        let size = self.finish_packet(level, writer, &started, buffers)?;
        let after_packet = self.streams.stats();
        let written = WrittenPacket {
            size: size as u16,
            ack_eliciting,
            padded,
            repeated: after_packet.retransmitted_bytes - before_packet.retransmitted_bytes,
            copied: after_packet.copied_bytes - before_packet.copied_bytes,
        };
        let sent = self.count_sent(packet, target, &written);
        self.on_packet_sent(level, &started, sent, buffers);
        Ok(size)
    }

    /// Counts a packet for congestion control and ECN; returns its record.
    fn count_sent(
        &mut self,
        packet: Packet,
        target: &Target,
        written: &WrittenPacket,
    ) -> SentPacket {
        // What is sent on a candidate path says nothing about this path: its loss is no congestion, it
        // gives no RTT sample and no probe timeout runs for it (RFC 9000, section 9.4).
        let on_path = matches!(target.destination, Destination::InUse);
        let ack_eliciting = written.ack_eliciting && on_path;
        let in_flight = on_path && (ack_eliciting || written.padded);
        let (network, recovery) = (&mut self.path.network, &mut self.path.recovery);
        let ecn_marked = on_path && network.ecn.mark().is_some();
        if ecn_marked {
            network.ecn.on_marked(packet.level);
        }
        recovery.on_retransmitted(written.repeated, written.copied);
        let snapshot = if in_flight {
            let rng = &mut self.identity.random.generator;
            recovery.on_sent(self.now, written.size, packet.purpose(), rng)
        } else {
            DeliverySnapshot::default()
        };
        SentPacket {
            sent_at: self.now,
            size: written.size,
            ack_eliciting,
            in_flight,
            ecn_marked,
            retransmission: written.repeated > 0,
            mtu_probe: packet.mtu_probe,
            on_path,
            snapshot,
        }
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
        let cids = &self.path.cids;
        let dst = candidate_cid.unwrap_or_else(|| cids.remote.current());
        let src = cids.local.first();
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
                // Candidate paths don't spin, and leave the spin bit of the path in use alone.
                spin: candidate_cid.is_none() && {
                    let (network, random) = (&mut self.path.network, &mut self.identity.random);
                    network.spin.bit(dst, network.address, || random.bit())
                },
                key_phase: self.handshake.keys().phase(),
            },
        };
        let tag_len = self.handshake.keys().tag_len(level);
        if header.size(truncated.len) + tag_len + MIN_SAMPLED >= writer.remaining() {
            return None;
        }
        let version = match level {
            EncryptionLevel::ZeroRtt => self.handshake.original_version(),
            _ => self.handshake.version(),
        };
        let layout = header.encode(version, truncated, writer);
        Some(Started {
            layout,
            number,
            tag_len,
        })
    }

    /// Adds the tag and protects the packet; returns its size.
    pub(super) fn finish_packet(
        &mut self,
        level: EncryptionLevel,
        mut writer: Writer<'_>,
        started: &Started,
        buffers: &mut PacketBuffers,
    ) -> Result<usize, KeysUnavailable> {
        let tag_len = started.tag_len;
        writer.reserve(tag_len);
        let packet = writer.filled_mut();
        let layout = &started.layout;
        let size = packet.len();
        if self.monitor.is_observed() {
            let plain = &packet[layout.header_len..size - tag_len];
            buffers.payload.clear();
            buffers.payload.extend_from_slice(plain);
        }
        layout.patch_length(packet, size - layout.pn_offset);
        if self.clears_quic_bit() {
            layout.clear_quic_bit(packet);
        }
        let name = PacketName {
            level,
            path: self.path.id,
            number: started.number,
        };
        let (phase_numbers, header_len) = (&mut self.path.key_phase_numbers, layout.header_len);
        let mut keys = self.handshake.active_keys()?;
        keys.seal(name, phase_numbers, layout.pn_offset, header_len, packet)?;
        Ok(size)
    }

    /// True if the next packet's QUIC bit is to be 0: every other one by chance, if both ends agreed
    /// (RFC 9287, section 3.1).
    fn clears_quic_bit(&mut self) -> bool {
        let peer = self.handshake.peer_terms();
        let agreed = self.identity.grease && peer.is_some_and(|peer| peer.grease_quic_bit);
        agreed && self.identity.random.bit()
    }

    /// Records a sealed packet.
    #[inline]
    pub(super) fn on_packet_sent(
        &mut self,
        level: EncryptionLevel,
        started: &Started,
        sent: SentPacket,
        buffers: &mut PacketBuffers,
    ) {
        if let Some(space) = self.space_mut(level) {
            space.ledger.on_sent(sent, &buffers.carried);
            if sent.ack_eliciting {
                space.probes = space.probes.saturating_sub(1);
                space.non_eliciting_run = 0;
            } else {
                self.on_non_eliciting_sent(level);
            }
        }
        self.lifecycle.on_sent(self.now, sent.ack_eliciting);
        self.monitor.stats.packets_sent += 1.into();
        if self.monitor.is_observed() {
            self.observe_sent(level, started.number, buffers);
        }
        self.on_streams_sent(started.number, &buffers.carried);
        if level == EncryptionLevel::OneRtt {
            self.maybe_skip_number(started.number);
        }
        if level == EncryptionLevel::Handshake && self.identity.side.is_client() {
            // RFC 9001, section 4.9.1.
            self.discard(EncryptionLevel::Initial);
        }
    }

    /// A non-ack-eliciting packet left: such packets must not pile up in the ledger.
    fn on_non_eliciting_sent(&mut self, level: EncryptionLevel) {
        let (now, longest_delay) = (self.now, self.path.pto(self.max_ack_delay) * 3);
        let horizon = now - longest_delay.min(MAX_MEMORY);
        let Some(space) = self.space_mut(level) else {
            return;
        };
        space.non_eliciting_run += 1;
        if space.non_eliciting_run >= MAX_NON_ELICITING_RUN {
            // The peer acknowledges ACKs only with something that elicits an ACK (RFC 9000, section
            // 13.2.4).
            space.ping = true;
        }
        space.ledger.discard(horizon);
        // A handshake is short: nothing in it takes long to acknowledge.
        let overdue = match level {
            EncryptionLevel::OneRtt | EncryptionLevel::ZeroRtt => now - longest_delay,
            EncryptionLevel::Initial | EncryptionLevel::Handshake => now,
        };
        if space.ledger.is_stuck(overdue) {
            space.unacknowledged_run += 1;
        } else {
            space.unacknowledged_run = 0;
        }
    }

    /// Stream data left: data under repair have one more copy, which is reported to the re-injector.
    fn on_streams_sent(&mut self, number: PacketNumber, carried: &[Carried]) {
        let carrier = Carrier {
            path: self.path.id,
            number,
            sent_at: self.now,
        };
        let mut new_bytes = 0;
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
                    new_bytes += u64::from(len);
                }
                self.streams
                    .on_frame_sent(&carrier, id, offset, len, purpose);
            }
        }
        let reinjector = &mut self.policies.reinjector;
        if new_bytes > 0 && !reinjector.is_inert() {
            reinjector.on_new_data(self.now, new_bytes.into());
        }
        (self.policies).report_repairs(self.now, self.streams, self.monitor);
    }

    fn observe_sent(
        &mut self,
        level: EncryptionLevel,
        number: PacketNumber,
        buffers: &mut PacketBuffers,
    ) {
        let space = self.space(level);
        let Some(&sent) = space.and_then(|space| space.ledger.packet(number)) else {
            return;
        };
        buffers.frames.clear();
        buffers
            .frames
            .extend(buffers.carried.iter().filter_map(sent_frame));
        let observation = Observation::PacketSent {
            path: self.path.id,
            level,
            number,
            size: usize::from(sent.size),
            ack_eliciting: sent.ack_eliciting,
            frames: &buffers.frames,
            payload: Payload::new(&buffers.payload),
            mtu_probe: sent.mtu_probe,
        };
        self.monitor.observe(self.now, &observation);
    }

    /// Leaves out a packet number now and then: a peer that acknowledges it lies (RFC 9000, section
    /// 21.4). The distance doubles with the numbers used, so that the share of skipped numbers falls towards zero.
    fn maybe_skip_number(&mut self, number: PacketNumber) {
        let n = number.get();
        let space = &mut self.path.space;
        if n < space.skip_after {
            return;
        }
        space.ledger.skip_number(self.now);
        let random = self.identity.random.generator.next_u32();
        space.skip_after = n + 256 + n / 2 + u64::from(random % 256);
    }
}

/// What was written of a packet.
struct WrittenPacket {
    /// Bytes.
    size: u16,
    ack_eliciting: bool,
    padded: bool,
    /// Stream bytes that were sent before.
    repeated: u64,
    /// Of these, copies of what was still in flight.
    copied: u64,
}

/// What observers see of a frame; nothing of datagrams, of which only those with a key are recorded.
fn sent_frame(carried: &Carried) -> Option<SentFrame> {
    Some(match *carried {
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
        Carried::Datagram { .. } => return None,
    })
}

/// Pads to at least `size` bytes before the tag, and to what header protection samples; true if
/// padding was added.
pub(super) fn pad(writer: &mut Writer<'_>, size: usize, started: &Started) -> bool {
    let sampled = started.layout.pn_offset + MIN_SAMPLED;
    let goal = size.max(sampled);
    let missing = goal.saturating_sub(writer.written());
    if missing == 0 {
        return false;
    }
    writer.reserve(missing).fill(0);
    true
}
