//! What the peer says: frames of QUIC, and on its streams frames of HTTP/3, whole and in pieces.

use std::collections::BTreeMap;

use swiftwater_http::h3::capsule::{Capsule, capsule_type};
use swiftwater_http::h3::frame::FrameType;
use swiftwater_http::h3::webtransport::{close_session, drain_session};
use swiftwater_quic::wire::frame::{self, ConnectionClose};
use swiftwater_quic::wire::{ErrorCode, Frame};
use swiftwater_units::{Dir, Side, StreamId};

use crate::coding::{encode, varint};
use crate::http3::support::peer::{frame as h3_frame, headers};

/// Bytes of frames in one packet.
const ROOM: usize = 1200;
/// Streams of each kind that the peer uses.
const STREAMS: u64 = 5;

/// A piece of a packet.
#[derive(Clone, Debug)]
pub enum Piece {
    /// Bytes of a stream.
    Stream {
        stream: u8,
        bytes: Vec<u8>,
        /// So many bytes before them were never sent.
        gap: u8,
        fin: bool,
    },
    /// Bytes for the part that was left out at the start of a stream.
    Beginning {
        stream: u8,
        bytes: Vec<u8>,
    },
    Reset {
        stream: u8,
    },
    Stop {
        stream: u8,
    },
    Datagram {
        request: u8,
        payload: Vec<u8>,
    },
    /// A frame type that is unknown to QUIC connections.
    Unknown,
    Close {
        application: bool,
    },
    Credit,
    Raw(u8),
}

/// The peer's streams, and the packet that it is about to send.
#[derive(Debug)]
pub struct Speaker {
    side: Side,
    offsets: BTreeMap<StreamId, u64>,
    packet: Vec<u8>,
}

impl Speaker {
    /// The peer of an engine on side `engine`.
    pub fn new(engine: Side) -> Self {
        Self {
            side: !engine,
            offsets: BTreeMap::new(),
            packet: Vec::new(),
        }
    }

    /// SETTINGS on a control stream, the usual start of a peer.
    pub fn begin(&mut self, sessions: bool) {
        let mut bytes = vec![0x00];
        bytes.extend(settings(sessions));
        self.say(Piece::Stream {
            // The peer's first unidirectional stream.
            stream: STREAMS as u8,
            bytes,
            gap: 0,
            fin: false,
        });
    }

    /// One of the streams that the peer may send on: its own bidirectional ones, its own unidirectional
    /// ones, those of the engine.
    pub fn stream(&self, nth: u8) -> StreamId {
        let nth = u64::from(nth) % (3 * STREAMS);
        let (side, dir) = match nth / STREAMS {
            0 => (self.side, Dir::Bi),
            1 => (self.side, Dir::Uni),
            _ => (!self.side, Dir::Bi),
        };
        StreamId::new(side, dir, nth % STREAMS)
    }

    /// The first request, and later ones: those may be sessions.
    pub fn request(nth: u8) -> StreamId {
        StreamId::new(Side::Client, Dir::Bi, (nth % 4).into())
    }

    /// Adds to the packet.
    pub fn say(&mut self, piece: Piece) {
        let encoded = match piece {
            Piece::Stream {
                stream,
                bytes,
                gap,
                fin,
            } => {
                let id = self.stream(stream);
                let offset = self.offsets.entry(id).or_default();
                *offset += u64::from(gap);
                let at = *offset;
                *offset += bytes.len() as u64;
                stream_frame(id, at, &bytes, fin)
            }
            Piece::Beginning { stream, bytes } => {
                stream_frame(self.stream(stream), 0, &bytes, false)
            }
            Piece::Reset { stream } => {
                let id = self.stream(stream);
                let final_size = self.offsets.get(&id).copied().unwrap_or(0);
                encode(&[Frame::ResetStream(frame::ResetStream {
                    id,
                    error: 0x10c,
                    final_size,
                })])
            }
            Piece::Stop { stream } => encode(&[Frame::StopSending(frame::StopSending {
                id: self.stream(stream),
                error: 0x10c,
            })]),
            Piece::Datagram { request, payload } => {
                let data = [varint(u64::from(request % 8)), payload].concat();
                encode(&[Frame::Datagram { data: &data }])
            }
            Piece::Unknown => vec![0x21],
            Piece::Close { application } => close(application),
            Piece::Credit => encode(&[
                Frame::MaxData { limit: 1 << 30 },
                Frame::MaxStreams {
                    dir: Dir::Bi,
                    count: 100,
                },
                Frame::MaxStreams {
                    dir: Dir::Uni,
                    count: 100,
                },
            ]),
            Piece::Raw(byte) => vec![byte],
        };
        if self.packet.len() + encoded.len() <= 2 * ROOM {
            self.packet.extend(encoded);
        }
    }

    /// True once the packet should leave.
    pub fn is_full(&self) -> bool {
        self.packet.len() >= ROOM
    }

    /// The packet's frames; later ones go into another packet.
    pub fn take(&mut self) -> Vec<u8> {
        self.packet.truncate(ROOM + 200);
        std::mem::take(&mut self.packet)
    }
}

fn stream_frame(id: StreamId, offset: u64, data: &[u8], fin: bool) -> Vec<u8> {
    encode(&[Frame::Stream(frame::Stream {
        id,
        offset,
        fin,
        data,
    })])
}

fn close(application: bool) -> Vec<u8> {
    let close = if application {
        ConnectionClose::Application {
            error: 0x100,
            reason: b"",
        }
    } else {
        ConnectionClose::Transport {
            error: ErrorCode::NO_ERROR,
            frame_type: 0,
            reason: b"",
        }
    };
    encode(&[Frame::ConnectionClose(close)])
}

fn settings(sessions: bool) -> Vec<u8> {
    let mut payload = Vec::new();
    if sessions {
        // Extended CONNECT, datagrams, and two sessions in the settings of old and new drafts.
        for (id, value) in [
            (0x08, 1),
            (0x33, 1),
            (0x2b60_3742, 1),
            (0xc671_706a, 2),
            (0x14e9_cd29, 2),
        ] {
            payload.extend(varint(id));
            payload.extend(varint(value));
        }
    }
    // A dynamic table.
    payload.extend([0x01, 0x40, 0x64, 0x07, 0x04]);
    h3_frame(FrameType::Settings, &payload)
}

fn capsule(capsule: &Capsule) -> Vec<u8> {
    let mut bytes = Vec::new();
    capsule.encode(&mut bytes);
    h3_frame(FrameType::Data, &bytes)
}

fn request(method: &str, protocol: Option<&str>) -> Vec<u8> {
    let mut fields = vec![
        (":method", method),
        (":scheme", "https"),
        (":authority", "localhost"),
        (":path", "/session"),
    ];
    fields.extend(protocol.map(|protocol| (":protocol", protocol)));
    headers(&fields)
}

/// Something that means something on a stream of HTTP/3; `of` chooses a session where there is one.
pub fn phrase(nth: u8, of: u8) -> Vec<u8> {
    let session = varint(Speaker::request(of).get());
    match nth % 32 {
        0 => request("GET", None),
        1 => request("POST", None),
        2 | 3 => request("CONNECT", Some("webtransport")),
        4 => headers(&[(":status", "200")]),
        5 => headers(&[(":status", "103")]),
        6 => headers(&[(":status", "200"), ("content-length", "5")]),
        7 => headers(&[("trailer", "x")]),
        8 => h3_frame(FrameType::Data, b"hello"),
        // A frame whose payload follows later.
        9 => vec![0x00, 0x44, 0x00],
        10 => vec![0x01, 0x44, 0x00],
        11 => h3_frame(FrameType::Unknown(0x21), b"what is not known"),
        // Streams of a session: one direction, both.
        12 => [&[0x40, 0x54][..], &session].concat(),
        13 => [&[0x40, 0x41][..], &session].concat(),
        14 => vec![0x00],
        15 => vec![0x02],
        16 => vec![0x03],
        17 => vec![0x01],
        18 => settings(true),
        19 => h3_frame(FrameType::GoAway, &[of & 0x3c]),
        20 => h3_frame(FrameType::MaxPushId, &[8]),
        21 => h3_frame(FrameType::CancelPush, &[of & 0x3f]),
        22 => h3_frame(FrameType::PushPromise, &[0, 0, 0]),
        23 => h3_frame(
            FrameType::PriorityUpdateRequest,
            &[of & 0x3c, b'u', b'=', b'1'],
        ),
        24 => capsule(&close_session(7, "bye")),
        25 => capsule(&drain_session()),
        26 => capsule(&Capsule::datagram(b"datagram".as_slice().into())),
        27 => capsule(&Capsule {
            capsule_type: capsule_type::CLOSE_WEBTRANSPORT_SESSION,
            value: vec![b'x'; 40].into(),
        }),
        // The encoder stream: a capacity, an entry.
        28 => vec![0x3f, 0xe1, 0x1f],
        29 => vec![0x41, b'a', 0x01, b'b'],
        // A section that needs an entry that may not have been received: as a message's head, as
        // trailers.
        30 => h3_frame(FrameType::Headers, &[0x02, 0x00, 0x80]),
        // The decoder stream: a section acknowledged, a stream cancelled, an increment.
        _ => vec![0x80 | of & 0x3c, 0x40 | of & 0x3c, of & 0x3f],
    }
}
