//! The order of frames in a packet: acknowledgements, path validation, handshake, control, then
//! datagrams and streams by urgency.

use swiftwater_wire::Frame;

use crate::control::ControlPacket;
use crate::crypto::EncryptionLevel;
use crate::datagram_size::MIN_INITIAL_SIZE;
use crate::datagrams::{NextSender, WriteAttempt};
use crate::frame_writer::FrameWriter;
use crate::path::PathState;
use crate::streams::Priority;

use super::Transmission;
use super::copies::Position;
use super::plan::Packet;

/// Least room worth starting a stream frame in.
pub(super) const MIN_STREAM_ROOM: usize = 32;

impl Transmission<'_> {
    /// Fills one packet on the path in use.
    pub(super) fn fill(&mut self, packet: Packet, writer: &mut FrameWriter<'_, '_>) {
        if packet.mtu_probe {
            self.fill_mtu_probe(writer);
        } else if packet.level == EncryptionLevel::OneRtt {
            self.fill_one_rtt(packet, writer);
        } else {
            if packet.level != EncryptionLevel::ZeroRtt {
                self.fill_acks(packet, writer);
            }
            if packet.data {
                self.fill_before_one_rtt(packet, writer);
            }
        }
    }

    fn fill_mtu_probe(&mut self, writer: &mut FrameWriter<'_, '_>) {
        if self.policies.ack_frequency_sent.may_request_immediate_ack() {
            writer.frame(&Frame::ImmediateAck);
        }
        writer.frame(&Frame::Ping);
    }

    fn fill_one_rtt(&mut self, packet: Packet, writer: &mut FrameWriter<'_, '_>) {
        self.fill_acks(packet, writer);
        if let Some(feedback) = &mut self.policies.feedback {
            feedback.fill(self.control, writer);
        }
        if !packet.data {
            return;
        }
        self.fill_validation(writer);
        if packet.only_validation {
            return;
        }
        if packet.probe && self.policies.ack_frequency_sent.may_request_immediate_ack() {
            writer.frame(&Frame::ImmediateAck);
        }
        if self.handshake.has_pending(packet.level) {
            self.handshake.fill(packet.level, writer);
        }
        if let Some(feedback) = &mut self.policies.feedback {
            feedback.fill_control(self.control);
        }
        // What a timeout probe of one path repeats may leave on the others.
        if !packet.probe || !self.others.iter().any(PathState::carries_data) {
            self.fill_application(writer);
        }
        self.fill_ping(packet, writer);
    }

    /// Ack-eliciting frames of Initial, Handshake and 0-RTT packets.
    fn fill_before_one_rtt(&mut self, packet: Packet, writer: &mut FrameWriter<'_, '_>) {
        if packet.level == EncryptionLevel::ZeroRtt {
            self.fill_application(writer);
        } else {
            self.handshake.fill(packet.level, writer);
        }
        self.fill_ping(packet, writer);
    }

    /// A PING, if one was asked for or nothing else elicits the acknowledgement of a probe.
    fn fill_ping(&mut self, packet: Packet, writer: &mut FrameWriter<'_, '_>) {
        let Some(space) = self.space_mut(packet.level) else {
            return;
        };
        if !writer.is_ack_eliciting() && (packet.probe || space.ping) {
            writer.frame(&Frame::Ping);
        }
        if writer.is_ack_eliciting() {
            space.ping = false;
        }
    }

    /// Challenges and responses for the path's address in use.
    fn fill_validation(&mut self, writer: &mut FrameWriter<'_, '_>) {
        let network = &mut self.path.network;
        if network.validation.needs_challenge() {
            let data = self.identity.random.challenge_data();
            if writer.frame(&Frame::PathChallenge { data }) {
                // The datagram is padded as far as the anti-amplification limit permits.
                let expanded = network.amplification.budget() >= MIN_INITIAL_SIZE as u64;
                network.validation.on_sent(self.now, data, expanded);
            }
        }
        while let Some(data) = network.responses.first() {
            if !writer.frame(&Frame::PathResponse { data }) {
                break;
            }
            network.responses.pop();
        }
    }

    /// Control frames first, then datagrams and streams as their urgency says.
    fn fill_application(&mut self, writer: &mut FrameWriter<'_, '_>) {
        if self.control.has_pending() {
            // Early data and 1-RTT data share one packet number space.
            let packet = ControlPacket {
                sent_at: self.now,
                path: self.path.id,
                number: self.path.space.ledger.next_number(),
            };
            self.control.fill(writer, packet);
        }
        if self.datagrams.has_pending_on(self.path.id) {
            self.fill_datagrams(writer);
        }
        let before = writer.remaining();
        self.fill_streams(writer);
        self.datagrams.on_streams_sent(before - writer.remaining());
        // Streams may have blocked reports now.
        self.streams.drain_control(self.control);
    }

    /// Datagrams, and streams that have their turn before them.
    fn fill_datagrams(&mut self, writer: &mut FrameWriter<'_, '_>) {
        let room = self.path.data_room(self.handshake);
        while self.datagrams.has_pending_on(self.path.id) {
            let streams = self.stream_urgency();
            if self.datagrams.next_sender(streams, self.path.id) == NextSender::Streams {
                let before = writer.remaining();
                self.fill_streams(writer);
                let written = before - writer.remaining();
                self.datagrams.on_streams_sent(written);
                if written > 0 {
                    continue;
                }
                // What they have doesn't fit here, or is not needed any more.
            }
            if self
                .datagrams
                .write_next(self.now, writer, self.path.id, room)
                == WriteAttempt::NoRoom
            {
                return;
            }
        }
    }

    /// Urgency of the stream that sends next; `None` if none has something to send.
    fn stream_urgency(&self) -> Option<u8> {
        let has_copies = !self.policies.copies.is_empty();
        let of_copies = has_copies.then_some(Priority::default().urgency);
        self.streams
            .next_urgency(self.path.id)
            .into_iter()
            .chain(of_copies)
            .min()
    }

    /// Retransmissions, copies that the re-injector asked for, and new data of streams.
    fn fill_streams(&mut self, writer: &mut FrameWriter<'_, '_>) {
        let has_copies = !self.policies.copies.is_empty();
        if has_copies {
            self.fill_copies(writer, Position::First);
            self.streams.fill_retransmissions(writer, self.path.id);
            self.fill_copies(writer, Position::BeforeNewData);
        }
        if writer.remaining() >= MIN_STREAM_ROOM && self.streams.can_send_on(self.path.id) {
            self.streams.fill(writer, self.path.id);
        }
        if has_copies {
            self.fill_copies(writer, Position::AfterNewData);
        }
    }
}
