//! The peer's control stream (RFC 9114, sections 6.2.1 and 7.2): SETTINGS first and once, then the
//! frames that may follow.

use swiftwater_quic as quic;
use swiftwater_units::{Instant, Side};
use swiftwater_wire::Reader;

use super::Connection;
use crate::h3::code::Code;
use crate::h3::error::Fault;
use crate::h3::event::Event;
use crate::h3::frame::{FrameParser, FrameType, Token};
use crate::h3::priority;
use crate::h3::settings::Settings;

/// Largest encoding of a variable-length integer: the payload of frames of one integer.
const MAX_INT: u64 = 8;

/// Parser of the control stream.
#[derive(Debug, Default)]
pub(super) struct ControlReader {
    parser: FrameParser,
    /// The frame in progress, if its payload is used.
    frame: Option<FrameType>,
    payload: Vec<u8>,
    settings_seen: bool,
    /// The largest MAX_PUSH_ID received.
    max_push: Option<u64>,
}

impl ControlReader {
    /// Whether a frame is permitted here, and whether its payload is used.
    fn begin(
        &mut self,
        side: Side,
        frame_type: FrameType,
        len: u64,
        max: u64,
    ) -> Result<(), Fault> {
        let unexpected = |reason| Err(Fault::connection(Code::FRAME_UNEXPECTED, reason));
        if !self.settings_seen && frame_type != FrameType::Settings {
            let reason = "the control stream does not begin with SETTINGS";
            return Err(Fault::connection(Code::MISSING_SETTINGS, reason));
        }
        let longest = match frame_type {
            FrameType::Settings if self.settings_seen => {
                return unexpected("a second SETTINGS frame");
            }
            FrameType::MaxPushId if side.is_client() => {
                return unexpected("MAX_PUSH_ID of a server");
            }
            FrameType::PriorityUpdateRequest | FrameType::PriorityUpdatePush
                if side.is_client() =>
            {
                return unexpected("PRIORITY_UPDATE of a server");
            }
            FrameType::Settings
            | FrameType::PriorityUpdateRequest
            | FrameType::PriorityUpdatePush => max,
            FrameType::GoAway | FrameType::MaxPushId | FrameType::CancelPush => MAX_INT,
            FrameType::Unknown(_) | FrameType::WebTransportStream => return Ok(()),
            FrameType::Http2(_) => return unexpected("a frame of HTTP/2"),
            FrameType::Data | FrameType::Headers | FrameType::PushPromise => {
                return unexpected("a frame that is not permitted on a control stream");
            }
        };
        if len > longest {
            let code = if longest == MAX_INT {
                Code::FRAME_ERROR
            } else {
                Code::EXCESSIVE_LOAD
            };
            return Err(Fault::connection(
                code,
                "a frame that exceeds the length limit",
            ));
        }
        self.settings_seen |= frame_type == FrameType::Settings;
        self.frame = Some(frame_type);
        Ok(())
    }

    /// The next frame whose payload is used, with its payload.
    fn next(
        &mut self,
        side: Side,
        data: &mut &[u8],
        max: u64,
    ) -> Result<Option<(FrameType, Vec<u8>)>, Fault> {
        while let Some(token) = self.parser.next(data) {
            match token {
                Token::Begin { frame_type, len } => self.begin(side, frame_type, len, max)?,
                Token::Payload(payload) if self.frame.is_some() => {
                    self.payload.extend_from_slice(payload);
                }
                Token::Payload(_) => {}
                Token::End => {
                    if let Some(frame_type) = self.frame.take() {
                        return Ok(Some((frame_type, std::mem::take(&mut self.payload))));
                    }
                }
            }
        }
        Ok(None)
    }
}

/// The single integer of a payload.
fn int(payload: &[u8]) -> Result<u64, Fault> {
    let mut reader = Reader::new(payload);
    match reader.varint() {
        Ok(n) if reader.is_empty() => Ok(n),
        _ => Err(Fault::connection(
            Code::FRAME_ERROR,
            "a frame whose payload is not one integer",
        )),
    }
}

impl Connection {
    pub(super) fn on_control_bytes(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        mut data: &[u8],
    ) -> Result<(), Fault> {
        let max = self.config.limits.max_control_frame;
        while let Some((frame_type, payload)) = self.peer.control.next(self.side, &mut data, max)? {
            match frame_type {
                FrameType::Settings => self.on_settings(quic, &payload)?,
                FrameType::GoAway => self.on_goaway(now, quic, int(&payload)?)?,
                FrameType::MaxPushId => self.on_max_push_id(int(&payload)?)?,
                FrameType::CancelPush => {
                    int(&payload)?;
                    // This end has permitted and announced no push (RFC 9114, section 7.2.3).
                    let reason = "CANCEL_PUSH for a push that does not exist";
                    return Err(Fault::connection(Code::ID_ERROR, reason));
                }
                FrameType::PriorityUpdatePush => {
                    priority::parse_update(&payload)?;
                    let reason = "PRIORITY_UPDATE for a push that does not exist";
                    return Err(Fault::connection(Code::ID_ERROR, reason));
                }
                FrameType::PriorityUpdateRequest => {
                    let (id, priority) = priority::parse_update(&payload)?;
                    self.on_priority_update(quic, id, priority)?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn on_settings(&mut self, quic: &mut quic::Connection, payload: &[u8]) -> Result<(), Fault> {
        let settings = Settings::parse(payload)?;
        // A peer that does not accept DATAGRAM frames can't use HTTP datagrams (RFC 9297, section
        // 2.1.1). Before the handshake is complete, its transport parameters may be unknown.
        if settings.h3_datagram && !quic.is_handshaking() && quic.max_datagram_size().is_none() {
            let reason = "HTTP datagrams without DATAGRAM frames";
            return Err(Fault::connection(Code::SETTINGS_ERROR, reason));
        }
        self.check_remembered(quic, &settings)?;
        self.compression.on_settings(&settings)?;
        self.peer.settings = Some(settings);
        self.report(Event::Settings(settings));
        Ok(())
    }

    fn on_max_push_id(&mut self, id: u64) -> Result<(), Fault> {
        // RFC 9114, section 7.2.7.
        if self.peer.control.max_push.is_some_and(|max| id < max) {
            return Err(Fault::connection(Code::ID_ERROR, "MAX_PUSH_ID decreased"));
        }
        self.peer.control.max_push = Some(id);
        Ok(())
    }
}
