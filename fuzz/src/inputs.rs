//! The inputs that targets read from the fuzzer's bytes.

use std::net::SocketAddr;
use std::time::Duration;

use arbitrary::Arbitrary;
use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::wire::frame::{self, ConnectionClose};
use swiftwater_quic::wire::{ErrorCode, Frame, ResetToken};
use swiftwater_quic::{LocalAddress, Priority, ReadOutcome, SocketId};
use swiftwater_units::{Bandwidth, Dir, PathId, Side, StreamId};

use crate::attack::{
    Attack, Setup, client_victim, home, on_client, on_server, returning_client, server_victim,
};
use crate::coding::{ack, cid, encode, ranges};
use crate::peer::Packet;

/// A datagram to an endpoint, from any address.
#[derive(Arbitrary, Debug)]
pub enum Datagram {
    /// Any bytes.
    Bytes(Vec<u8>),
    /// Any bytes with a connection ID of the victim at its place in a short header.
    Short(Vec<u8>),
    /// The peer's next genuine datagram with some bytes changed (position, exclusive or) and cut.
    Mutated { changes: Vec<(u16, u8)>, cut: u16 },
    /// A genuine Initial packet with these frames, padded to this size.
    Initial { payload: Vec<u8>, size: u16 },
    /// A genuine Handshake packet, if there are keys.
    Handshake { payload: Vec<u8> },
    /// A genuine packet of early data, if the client was there before.
    Early { payload: Vec<u8> },
    /// What the peer should send.
    Genuine,
    /// Milliseconds in which nothing arrives.
    Wait(u16),
}

/// Datagrams to a victim that has no connection yet, or is in its handshake.
#[derive(Arbitrary, Debug)]
pub struct Datagrams {
    client: bool,
    /// The peer was there before, if it is a client.
    returning: bool,
    steps: Vec<Datagram>,
}

const MAX_STEPS: usize = 64;

impl Datagrams {
    /// Plays them.
    pub fn run(self) {
        let setup = Setup {
            chain_len: 3000,
            ..Setup::default()
        };
        let mut attack = if self.client {
            client_victim(setup).meet_server()
        } else if self.returning {
            returning_client(setup.transport).0
        } else {
            server_victim(setup)
        };
        for step in self.steps.into_iter().take(MAX_STEPS) {
            step.play(&mut attack);
        }
        finish(&mut attack);
    }
}

impl Datagram {
    fn play(self, attack: &mut Attack) {
        match self {
            Self::Bytes(bytes) => attack.deliver(&bytes),
            Self::Short(mut bytes) => {
                let dst = attack.peer.dst;
                if let Some(place) = bytes.get_mut(1..=dst.len()) {
                    place.copy_from_slice(dst.as_bytes());
                }
                attack.deliver(&bytes);
            }
            Self::Mutated { changes, cut } => {
                for mut datagram in attack.peer.answers() {
                    for &(at, mask) in &changes {
                        let at = usize::from(at) % datagram.len();
                        datagram[at] ^= mask;
                    }
                    datagram.truncate(usize::from(cut).max(1));
                    attack.deliver(&datagram);
                }
            }
            Self::Initial { payload, size } => {
                let payload = &payload[..payload.len().min(2000)];
                if attack.peer.has_keys(EncryptionLevel::Initial) {
                    let size = usize::from(size % 1500);
                    let datagram = attack.peer.seal_initial(payload, size);
                    attack.deliver(&datagram);
                }
            }
            Self::Handshake { payload } => {
                let payload = &payload[..payload.len().min(2000)];
                if attack.peer.has_keys(EncryptionLevel::Handshake) {
                    attack.send_packet(&Packet::new(EncryptionLevel::Handshake, payload));
                }
            }
            Self::Early { payload } => {
                let payload = &payload[..payload.len().min(2000)];
                if attack.peer.has_keys(EncryptionLevel::ZeroRtt) {
                    attack.send_packet(&Packet::new(EncryptionLevel::ZeroRtt, payload));
                }
            }
            Self::Genuine => {
                for datagram in attack.peer.answers() {
                    attack.deliver(&datagram);
                }
            }
            Self::Wait(millis) => {
                if attack.victim.has_connection() {
                    attack.wait(Duration::from_millis(millis.into()));
                }
            }
        }
    }
}

/// A frame with fields of a size that often means something.
#[derive(Arbitrary, Debug)]
pub enum Piece {
    Stream {
        id: u8,
        offset: u16,
        len: u8,
        fin: bool,
    },
    Reset {
        id: u8,
        size: u16,
    },
    ResetAt {
        id: u8,
        size: u16,
        reliable: u16,
    },
    Stop {
        id: u8,
    },
    AckFrequency {
        sequence: u8,
        threshold: u8,
        max_delay: u32,
        reordering: u8,
    },
    ImmediateAck,
    MaxData(u32),
    MaxStreamData {
        id: u8,
        limit: u32,
    },
    MaxStreams {
        uni: bool,
        count: u8,
    },
    Blocked {
        id: u8,
        limit: u16,
    },
    Crypto {
        offset: u16,
        len: u8,
    },
    /// Those of the packets that arrived whose bit is set, counted from the newest.
    Ack {
        arrived: u64,
        ecn: Option<[u8; 3]>,
    },
    /// Everything up to the newest, whether it arrived or not.
    BlindAck {
        span: u8,
    },
    NewCid {
        sequence: u8,
        retire: u8,
        id: u8,
    },
    RetireCid(u8),
    Challenge(u8),
    /// The echo of the newest challenge but so many.
    Response(u8),
    Datagram(u8),
    Ping,
    Token(u8),
    HandshakeDone,
    Close(bool),
    Raw([u8; 4]),
}

impl Piece {
    fn encode(&self, attack: &Attack) -> Vec<u8> {
        let id = |id: u8| StreamId::from_wire(id.into());
        let data = [0x55; 256];
        let frame = match *self {
            Self::Stream {
                id: stream,
                offset,
                len,
                fin,
            } => Frame::Stream(frame::Stream {
                id: id(stream),
                offset: offset.into(),
                fin,
                data: &data[..len.into()],
            }),
            Self::Reset { id: stream, size } => Frame::ResetStream(frame::ResetStream {
                id: id(stream),
                error: 1,
                final_size: size.into(),
            }),
            Self::ResetAt {
                id: stream,
                size,
                reliable,
            } => Frame::ResetStreamAt(frame::ResetStreamAt {
                id: id(stream),
                error: 1,
                final_size: size.into(),
                reliable_size: reliable.into(),
            }),
            Self::AckFrequency {
                sequence,
                threshold,
                max_delay,
                reordering,
            } => Frame::AckFrequency(frame::AckFrequency {
                sequence: sequence.into(),
                ack_eliciting_threshold: threshold.into(),
                max_ack_delay: max_delay.into(),
                reordering_threshold: reordering.into(),
            }),
            Self::ImmediateAck => Frame::ImmediateAck,
            Self::Stop { id: stream } => Frame::StopSending(frame::StopSending {
                id: id(stream),
                error: 1,
            }),
            Self::MaxData(limit) => Frame::MaxData {
                limit: limit.into(),
            },
            Self::MaxStreamData { id: stream, limit } => Frame::MaxStreamData {
                id: id(stream),
                limit: limit.into(),
            },
            Self::MaxStreams { uni, count } => Frame::MaxStreams {
                dir: if uni { Dir::Uni } else { Dir::Bi },
                count: count.into(),
            },
            Self::Blocked { id: stream, limit } => Frame::StreamDataBlocked {
                id: id(stream),
                limit: limit.into(),
            },
            Self::Crypto { offset, len } => Frame::Crypto(frame::Crypto {
                offset: offset.into(),
                data: &data[..len.into()],
            }),
            Self::Ack { arrived, ecn } => {
                let mut numbers = attack.peer.numbers(EncryptionLevel::OneRtt);
                numbers.sort_unstable();
                let chosen: Vec<u64> = numbers
                    .iter()
                    .rev()
                    .take(64)
                    .enumerate()
                    .filter(|(nth, _)| arrived >> nth & 1 == 1)
                    .map(|(_, number)| *number)
                    .collect();
                if chosen.is_empty() {
                    return Vec::new();
                }
                return ack(&ranges(chosen), ecn.map(|counts| counts.map(u64::from)));
            }
            Self::BlindAck { span } => {
                let numbers = attack.peer.numbers(EncryptionLevel::OneRtt);
                let largest = numbers.into_iter().max().unwrap_or(0);
                return ack(&[largest.saturating_sub(span.into())..=largest], None);
            }
            Self::NewCid {
                sequence,
                retire,
                id,
            } => {
                let mut bytes = *b"raw cid ";
                bytes[7] = id;
                Frame::NewConnectionId(frame::NewConnectionId {
                    path: None,
                    sequence: sequence.into(),
                    retire_prior_to: retire.into(),
                    cid: cid(&bytes),
                    reset_token: ResetToken([id; 16]),
                })
            }
            Self::RetireCid(sequence) => Frame::RetireConnectionId {
                path: None,
                sequence: sequence.into(),
            },
            Self::Challenge(n) => Frame::PathChallenge { data: [n; 8] },
            Self::Response(skip) => {
                let challenges: Vec<[u8; 8]> = attack
                    .peer
                    .packets
                    .iter()
                    .flat_map(|packet| {
                        packet.frames().filter_map(|(_, frame)| match frame {
                            Frame::PathChallenge { data } => Some(data),
                            _ => None,
                        })
                    })
                    .collect();
                let newest = challenges.into_iter().rev().nth((skip % 4).into());
                Frame::PathResponse {
                    data: newest.unwrap_or_default(),
                }
            }
            Self::Datagram(len) => Frame::Datagram {
                data: &data[..len.into()],
            },
            Self::Ping => Frame::Ping,
            Self::Token(len) => Frame::NewToken {
                token: &data[..usize::from(len.max(1))],
            },
            Self::HandshakeDone => Frame::HandshakeDone,
            Self::Close(true) => Frame::ConnectionClose(ConnectionClose::Application {
                error: 1,
                reason: b"",
            }),
            Self::Close(false) => Frame::ConnectionClose(ConnectionClose::Transport {
                error: ErrorCode::NO_ERROR,
                frame_type: 0,
                reason: b"",
            }),
            Self::Raw(bytes) => return bytes.to_vec(),
        };
        encode(&[frame])
    }
}

/// One step against an established connection.
#[derive(Arbitrary, Debug)]
pub enum Step {
    /// A genuine packet with any payload.
    Payload(Vec<u8>),
    /// The same from another address.
    FromElsewhere(Vec<u8>, u8),
    /// The same with a number that is so much later, or an older one again.
    Numbered(Vec<u8>, i16),
    /// A genuine packet of frames that are well formed, if not reasonable.
    Frames(Vec<Piece>, Option<u8>),
    /// An ACK of everything that arrived, and other answers.
    Answer,
    /// Any datagram.
    Datagram(Vec<u8>),
    /// The peer updates its keys.
    UpdateKeys,
    /// Milliseconds pass.
    Wait(u16),
    /// The application opens a stream and writes as much.
    Write { uni: bool, len: u16, finish: bool },
    /// The application accepts and reads everything available.
    Read,
    /// The application resets and stops its open streams.
    Abandon(u8),
    /// The application resets what it writes, except for the first bytes.
    GiveUp { stream: u8, reliable: u16 },
    /// The application prefers a stream.
    Prefer { stream: u8, urgency: u8 },
    /// The application moves to another socket, by a probe or at once.
    Move { socket: u8, at_once: bool },
    /// The application limits what it receives, kbit/s.
    Limit(Option<u16>),
    /// The socket said that a datagram was too large.
    TooLarge(u16),
    /// The application sends a datagram.
    SendDatagram(u16),
    /// The application requests a key update, or other connection IDs.
    Rotate(bool),
}

/// An established connection and its events.
#[derive(Arbitrary, Debug)]
pub struct Steps {
    client: bool,
    silent: bool,
    steps: Vec<Step>,
}

impl Steps {
    /// Plays them.
    pub fn run(self) {
        let mut attack = if self.client {
            on_client(Setup::default())
        } else {
            on_server(Setup::default())
        };
        attack.peer.acknowledges = !self.silent;
        let mut streams = Vec::new();
        for step in self.steps.into_iter().take(MAX_STEPS) {
            step.play(&mut attack, &mut streams);
        }
        finish(&mut attack);
    }
}

impl Step {
    /// Plays it; `streams` are those that the victim has.
    pub(crate) fn play(self, attack: &mut Attack, streams: &mut Vec<StreamId>) {
        match self {
            Self::Payload(payload) => attack.send(cut(&payload)),
            Self::FromElsewhere(payload, port) => {
                attack.from = SocketAddr::from(([198, 51, 100, port % 3], 7000));
                attack.send(cut(&payload));
                attack.from = home();
            }
            Self::Numbered(payload, distance) => {
                let next = attack.peer.next_number(EncryptionLevel::OneRtt);
                let number = next.saturating_add_signed(distance.into());
                attack.send_packet(&Packet {
                    number: Some(number),
                    ..Packet::new(EncryptionLevel::OneRtt, cut(&payload))
                });
            }
            Self::Frames(pieces, port) => {
                let payload: Vec<u8> = pieces
                    .iter()
                    .take(50)
                    .flat_map(|piece| piece.encode(attack))
                    .collect();
                if let Some(port) = port {
                    attack.from = SocketAddr::from(([198, 51, 100, port % 3], 7000));
                }
                attack.send(cut(&payload));
                attack.from = home();
            }
            Self::Answer => {
                for datagram in attack.peer.answers() {
                    attack.deliver(&datagram);
                }
            }
            Self::Datagram(bytes) => attack.deliver(&bytes),
            Self::UpdateKeys => attack.peer.update_keys(),
            Self::Wait(millis) => attack.wait(Duration::from_millis(millis.into())),
            application => application.act(attack, streams),
        }
    }

    /// What the victim's application does.
    fn act(self, attack: &mut Attack, streams: &mut Vec<StreamId>) {
        let now = attack.now;
        let connection = attack.victim.connection();
        let chosen = |nth: u8| {
            let nth = usize::from(nth) % streams.len().max(1);
            streams.get(nth).copied()
        };
        match self {
            Self::Write { uni, len, finish } => {
                let dir = if uni { Dir::Uni } else { Dir::Bi };
                if let Some(id) = connection.open(dir) {
                    streams.push(id);
                    let _ = connection.send_stream(id).write(&vec![7; len.into()]);
                    if finish {
                        let _ = connection.send_stream(id).finish();
                    }
                }
            }
            Self::Read => {
                for dir in Dir::ALL {
                    while let Some(id) = connection.accept(dir) {
                        streams.push(id);
                    }
                }
                let mut buf = [0; 4096];
                for &id in &*streams {
                    while let Ok(ReadOutcome::Data(n)) = connection.recv_stream(id).read(&mut buf) {
                        assert!(n > 0);
                    }
                }
                while connection.recv_datagram().is_some() {}
            }
            Self::Abandon(code) => {
                for id in streams.drain(..) {
                    let _ = connection.send_stream(id).reset(code.into());
                    let _ = connection.recv_stream(id).stop(code.into());
                }
            }
            Self::GiveUp { stream, reliable } => {
                if let Some(id) = chosen(stream) {
                    let _ = connection.send_stream(id).reset_at(9, reliable.into());
                }
            }
            Self::Prefer { stream, urgency } => {
                if let Some(id) = chosen(stream) {
                    let priority = Priority::new(urgency % 8, urgency & 8 == 0);
                    let _ = connection.send_stream(id).set_priority(priority);
                }
            }
            Self::Move { socket, at_once } => {
                let to = LocalAddress::any(SocketId((socket % 3).into()));
                let _ = if at_once {
                    connection.rebind(now, to)
                } else {
                    connection.migrate(now, to)
                };
            }
            Self::Limit(kbps) => {
                let rate = kbps.map(|kbps| Bandwidth::from_kbps(kbps.into()));
                connection.set_receive_rate(now, rate);
            }
            Self::TooLarge(size) => {
                connection.on_datagram_too_large(now, PathId::ZERO, size.into());
            }
            Self::SendDatagram(len) => {
                let _ = connection.send_datagram(vec![7; len.into()].into());
            }
            Self::Rotate(true) => connection.update_keys(),
            Self::Rotate(false) => connection.rotate_connection_ids(),
            _ => {}
        }
        attack.collect();
    }
}

/// What fits in a packet.
fn cut(payload: &[u8]) -> &[u8] {
    &payload[..payload.len().min(1400)]
}

/// In every case, the connection is either closed with one reason or still works; in the end it is
/// removed.
pub(crate) fn finish(attack: &mut Attack) {
    if !attack.victim.has_connection() {
        return;
    }
    attack.collect();
    let closed = attack.victim.reasons().len();
    assert!(closed <= 1, "{:?}", attack.victim.reasons());
    assert_eq!(attack.victim.connection().is_closed(), closed == 1);
    if closed == 0 && attack.peer.has_keys(EncryptionLevel::OneRtt) {
        attack.send(&encode(&[Frame::Ping]));
    }
    let now = attack.now;
    attack.victim.connection().close(now, 0, b"");
    // Probe timeouts, hence the closing period, may have become long in the meantime.
    attack.wait(Duration::from_secs(100_000));
    assert!(attack.victim.connection().is_drained());
    assert_eq!(attack.victim.endpoint.connections(), 0);
}

/// The side that sent parameters or frames, from a bit.
pub fn side(bit: u8) -> Side {
    if bit & 1 == 0 {
        Side::Client
    } else {
        Side::Server
    }
}
