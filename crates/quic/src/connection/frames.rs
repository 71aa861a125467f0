//! Frames of an authenticated packet, each to its owner (RFC 9000, sections 12.4 and 19).

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::frame::{Ack, ConnectionClose, FrameIter};
use swiftwater_wire::{ErrorCode, Frame};

use crate::control::{BlockedReport, ControlKey};
use crate::crypto::EncryptionLevel;
use crate::error::{ConnectionError, TransportError};
use crate::establishment;
use crate::lifecycle::Termination;
use crate::reception::Origin;
use crate::space::SpaceId;

use super::Connection;
use crate::events::Event;

/// What a packet's frames amount to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content {
    pub(super) ack_eliciting: bool,
    /// Nothing but probing frames (RFC 9000, section 9.1).
    pub(super) only_probing: bool,
}

fn violation(reason: &'static str) -> TransportError {
    TransportError::new(ErrorCode::PROTOCOL_VIOLATION, reason)
}

/// The frames that Initial and Handshake packets may carry (RFC 9000, section 12.4, table 3).
fn is_allowed_in_handshake(frame: &Frame<'_>) -> bool {
    matches!(
        frame,
        Frame::Padding { .. }
            | Frame::Ping
            | Frame::Ack(Ack { path: None, .. })
            | Frame::Crypto(_)
            | Frame::ConnectionClose(ConnectionClose::Transport { .. })
    )
}

fn is_probing(frame: &Frame<'_>) -> bool {
    matches!(
        frame,
        Frame::Padding { .. }
            | Frame::PathChallenge { .. }
            | Frame::PathResponse { .. }
            | Frame::NewConnectionId(_)
    )
}

impl Connection {
    /// Dispatches every frame of a packet.
    pub(super) fn on_payload(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        origin: &Origin<'_>,
        payload: &[u8],
    ) -> Result<Content, TransportError> {
        if payload.is_empty() {
            return Err(violation("a packet without frames"));
        }
        self.streams
            .set_receiving_zero_rtt(level == EncryptionLevel::ZeroRtt);
        let mut content = Content {
            ack_eliciting: false,
            only_probing: true,
        };
        for item in FrameIter::new(payload) {
            let (frame_type, frame) = item.map_err(TransportError::from)?;
            self.path_management(now)
                .check_version(level, frame_type)
                .map_err(|error| error.in_frame(frame_type))?;
            let allowed = match level {
                EncryptionLevel::OneRtt => true,
                EncryptionLevel::ZeroRtt => establishment::is_allowed(&frame),
                EncryptionLevel::Initial | EncryptionLevel::Handshake => {
                    is_allowed_in_handshake(&frame)
                }
            };
            if !allowed {
                return Err(
                    violation("a frame that this packet type must not carry").in_frame(frame_type)
                );
            }
            self.monitor.stats.frames_received.add(frame_type);
            content.ack_eliciting |= frame.is_ack_eliciting();
            content.only_probing &= is_probing(&frame);
            self.on_frame(now, level, origin, frame_type, frame)
                .map_err(|error| error.in_frame(frame_type))?;
            if !self.lifecycle.is_open() {
                break;
            }
        }
        Ok(content)
    }

    fn on_frame(
        &mut self,
        now: Instant,
        level: EncryptionLevel,
        origin: &Origin<'_>,
        frame_type: u64,
        frame: Frame<'_>,
    ) -> Result<(), TransportError> {
        match frame {
            Frame::Padding { .. } | Frame::Ping => Ok(()),
            Frame::DataBlocked { .. }
            | Frame::StreamDataBlocked { .. }
            | Frame::StreamsBlocked { .. } => self.on_blocked_frame(now, &frame),
            Frame::Ack(ack) => {
                let id = SpaceId::of(level, self.path_management(now).path_named(ack.path)?);
                self.on_ack(now, id, &ack)
            }
            Frame::Crypto(crypto) => self.on_crypto(now, level, &crypto),
            Frame::Stream(stream) => self.streams.on_stream(&stream),
            Frame::ResetStream(reset) => self.streams.on_reset_stream(&reset),
            Frame::ResetStreamAt(reset) if self.identity.config.reset_stream_at => {
                self.streams.on_reset_stream_at(&reset)
            }
            Frame::StopSending(stop) => self.streams.on_stop_sending(&stop),
            Frame::MaxData { limit } => {
                self.streams.on_max_data(limit);
                Ok(())
            }
            Frame::MaxStreamData { id, limit } => self.streams.on_max_stream_data(id, limit),
            Frame::MaxStreams { dir, count } => {
                self.streams.on_max_streams(dir, count);
                Ok(())
            }
            Frame::NewToken { token } => self.on_new_token(token),
            Frame::NewConnectionId(_)
            | Frame::RetireConnectionId { .. }
            | Frame::PathChallenge { .. }
            | Frame::PathResponse { .. } => self.on_path_frame(now, origin, &frame),
            Frame::ConnectionClose(close) => {
                self.on_connection_close(now, &close);
                Ok(())
            }
            Frame::HandshakeDone => self.on_handshake_done(now),
            Frame::Feedback(feedback) => self.on_feedback(now, origin.path, &feedback),
            Frame::AckFrequency(requested) => {
                self.policies.ack_frequency_received.on_frame(&requested)
            }
            Frame::ImmediateAck => self.on_immediate_ack(now, origin.path),
            Frame::Datagram { data } => {
                if self.datagrams.receive(frame_type, data)? {
                    self.outbox.event(Event::DatagramReceived);
                }
                Ok(())
            }
            Frame::PathAbandon { .. }
            | Frame::PathStatus { .. }
            | Frame::MaxPathId { .. }
            | Frame::PathsBlocked { .. }
            | Frame::PathCidsBlocked { .. } => self.on_multipath_frame(now, &frame),
            // Frames of extensions that were not negotiated.
            frame => Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                format!("frame {:#x} was not negotiated", frame.frame_type()),
            )),
        }
    }

    /// The peer reports that a limit blocks it (RFC 9000, sections 19.12 to 19.14).
    fn on_blocked_frame(&mut self, now: Instant, frame: &Frame<'_>) -> Result<(), TransportError> {
        let (key, limit) = match *frame {
            Frame::DataBlocked { limit } => (ControlKey::MaxData, limit),
            Frame::StreamsBlocked { dir, limit } => (ControlKey::MaxStreams(dir), limit),
            Frame::StreamDataBlocked { id, limit } => {
                self.streams.on_stream_data_blocked(id)?;
                (ControlKey::MaxStreamData(id), limit)
            }
            _ => return Ok(()),
        };
        let path = self.paths.primary();
        let report = BlockedReport {
            now,
            limit,
            smoothed_rtt: path.recovery.rtt().smoothed,
            path: path.id,
            largest_acked: path.space.ledger.largest_acked(),
        };
        self.control.on_blocked(key, report);
        Ok(())
    }

    /// The peer asks for an acknowledgement at once (draft-ietf-quic-ack-frequency).
    fn on_immediate_ack(&mut self, now: Instant, path: PathId) -> Result<(), TransportError> {
        self.policies.ack_frequency_received.check_offered()?;
        if let Some(path) = self.paths.get_mut(path) {
            path.space.received.require_ack(now);
        }
        Ok(())
    }

    fn on_new_token(&mut self, token: &[u8]) -> Result<(), TransportError> {
        if self.identity.side.is_server() {
            return Err(violation("NEW_TOKEN from a client"));
        }
        if !self.handshake.keep_token(token) {
            let token = token.to_vec();
            self.outbox.event(Event::NewToken { token });
        }
        Ok(())
    }

    fn on_handshake_done(&mut self, now: Instant) -> Result<(), TransportError> {
        if self.identity.side.is_server() {
            return Err(violation("HANDSHAKE_DONE from a client"));
        }
        self.on_handshake_confirmed(now);
        Ok(())
    }

    fn on_connection_close(&mut self, now: Instant, close: &ConnectionClose<'_>) {
        let reason = match *close {
            ConnectionClose::Transport {
                error,
                frame_type,
                reason,
            } => {
                let error = TransportError::new(error, String::from_utf8_lossy(reason));
                ConnectionError::PeerTransport(match frame_type {
                    0 => error,
                    frame_type => error.in_frame(frame_type),
                })
            }
            ConnectionClose::Application { error, reason } => ConnectionError::PeerApplication {
                code: error,
                reason: reason.to_vec(),
            },
        };
        self.terminate(now, Termination::Draining { reason });
    }

    /// In the closing state, only the peer's close still counts: it ends the exchange.
    pub(super) fn on_payload_after_close(&mut self, now: Instant, payload: &[u8]) {
        let closes = FrameIter::new(payload)
            .map_while(Result::ok)
            .any(|(_, frame)| matches!(frame, Frame::ConnectionClose(_)));
        if closes {
            let reason = ConnectionError::Reset;
            self.terminate(now, Termination::Draining { reason });
            self.monitor
                .dropped(now, "arrived after the connection closed");
        }
    }
}
