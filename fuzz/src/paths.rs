//! Several paths against an established connection: a peer that issues connection IDs for paths, opens them from any
//! address, and says anything about them, in both versions of the extension; the victim's application opens and
//! abandons paths meanwhile.

use std::net::SocketAddr;
use std::time::Duration;

use arbitrary::Arbitrary;
use swiftwater_quic::policy::{PathPreference, PathStatus};
use swiftwater_quic::wire::frame::types::{self, draft10};
use swiftwater_quic::wire::frame::{self, Frame};
use swiftwater_quic::wire::{ErrorCode, MultipathVersion, ResetToken, TransportParameters, Writer};
use swiftwater_quic::{
    LocalAddress, MultipathConfig, MultipathVersions, PathAddress, SocketId, TransportConfig,
};
use swiftwater_units::{PathId, StreamId};

use crate::attack::{Attack, Setup, home, on_client, on_server};
use crate::coding::{cid, encode, varints};
use crate::inputs::{Step, finish};
use crate::persona::Persona;

/// More would make a case slow.
const MAX_STEPS: usize = 64;
/// Paths that a correct identifier may name; every now and then another one is named.
const NAMED: u8 = 6;

/// A frame of the extension.
#[derive(Arbitrary, Debug)]
pub enum PathPiece {
    /// Acknowledges what came on the path, or also what did not.
    Ack {
        path: u8,
        largest: u8,
        first_range: u8,
        arrived: bool,
    },
    Abandon {
        path: u8,
        code: u16,
        reason: u8,
    },
    Status {
        path: u8,
        sequence: u8,
        backup: bool,
    },
    NewCid {
        path: u8,
        sequence: u8,
        retire: u8,
        id: u8,
    },
    RetireCid {
        path: u8,
        sequence: u8,
    },
    MaxPathId(u8),
    PathsBlocked(u8),
    PathCidsBlocked {
        path: u8,
        next: u8,
    },
    Challenge(u8),
    /// The echo of the newest challenge on a path.
    Response(u8),
    Ping,
    /// Stream bytes.
    Stream(u8),
    /// In the version that is not in use.
    Other(Box<PathPiece>),
}

/// One step.
#[derive(Arbitrary, Debug)]
pub enum PathStep {
    /// What can be done to a connection with one path, too.
    Plain(Step),
    /// The peer issues its connection ID of a path.
    Issue(u8),
    /// A genuine packet on a path, from any of some addresses; it opens the path if it is a new one.
    OnPath {
        path: u8,
        from: u8,
        pieces: Vec<PathPiece>,
    },
    /// The same in the space of a path with a number that is so much later or earlier.
    Numbered {
        path: u8,
        distance: i16,
        pieces: Vec<PathPiece>,
    },
    /// A packet whose nonce is that of another path.
    WrongPath {
        path: u8,
        nonce: u8,
    },
    /// The victim's application opens a path.
    Open {
        socket: u8,
        remote: u8,
    },
    Abandon(u8),
    Prefer {
        path: u8,
        backup: bool,
    },
    Wait(u16),
}

/// A connection with several paths and its events.
#[derive(Arbitrary, Debug)]
pub struct PathSteps {
    client: bool,
    silent: bool,
    /// What the victim declares, and what its peer.
    offers: [u8; 2],
    max_paths: u8,
    peers_max: u8,
    steps: Vec<PathStep>,
}

fn versions(choice: u8) -> MultipathVersions {
    match choice % 3 {
        0 => MultipathVersions::Rfc10069,
        1 => MultipathVersions::Draft10,
        _ => MultipathVersions::Both,
    }
}

/// One of a few, or rarely any.
fn path(n: u8) -> PathId {
    PathId::new(match n {
        250..=255 => u32::MAX - u32::from(255 - n),
        _ => u32::from(n % NAMED),
    })
}

fn address(n: u8) -> SocketAddr {
    match n % 4 {
        0 => home(),
        n => SocketAddr::from(([198, 51, 100, n], 7000)),
    }
}

impl PathPiece {
    fn encode(&self, version: MultipathVersion, attack: &Attack) -> Vec<u8> {
        let frame = match *self {
            Self::Ack {
                path: named,
                largest,
                first_range,
                arrived,
            } => {
                let named = path(named);
                let numbers = attack.peer.packets.iter();
                let numbers = numbers.filter(|packet| packet.path == named);
                let newest = numbers.map(|packet| packet.number).max();
                let largest = match newest {
                    Some(newest) if arrived => newest.saturating_sub(u64::from(largest) % 4),
                    _ => largest.into(),
                };
                let kind = match version {
                    MultipathVersion::Rfc10069 => types::PATH_ACK,
                    MultipathVersion::Draft10 => draft10::PATH_ACK,
                };
                let first_range = u64::from(first_range).min(largest);
                return varints(&[kind, named.get().into(), largest, 0, 0, first_range]);
            }
            Self::Abandon {
                path: named,
                code,
                reason,
            } => Frame::PathAbandon {
                path: path(named),
                error: ErrorCode(code.into()),
                reason: &[b'r'; 255][..reason.into()],
            },
            Self::Status {
                path: named,
                sequence,
                backup,
            } => Frame::PathStatus {
                path: path(named),
                sequence: sequence.into(),
                backup,
            },
            Self::NewCid {
                path: named,
                sequence,
                retire,
                id,
            } => {
                let mut bytes = *b"any cid ";
                bytes[7] = id;
                Frame::NewConnectionId(frame::NewConnectionId {
                    path: Some(path(named)),
                    sequence: sequence.into(),
                    retire_prior_to: retire.min(sequence).into(),
                    cid: cid(&bytes),
                    reset_token: ResetToken([id; 16]),
                })
            }
            Self::RetireCid {
                path: named,
                sequence,
            } => Frame::RetireConnectionId {
                path: Some(path(named)),
                sequence: sequence.into(),
            },
            Self::MaxPathId(max) => Frame::MaxPathId {
                max: PathId::new(max.into()),
            },
            Self::PathsBlocked(max) => Frame::PathsBlocked { max: path(max) },
            Self::PathCidsBlocked { path: named, next } => Frame::PathCidsBlocked {
                path: path(named),
                next_sequence: next.into(),
            },
            Self::Challenge(n) => Frame::PathChallenge { data: [n; 8] },
            Self::Response(named) => {
                let packets = attack.peer.packets.iter().rev();
                let mut packets = packets.filter(|packet| packet.path == path(named));
                let challenge = packets.find_map(|packet| {
                    packet.frames().find_map(|(_, frame)| match frame {
                        Frame::PathChallenge { data } => Some(data),
                        _ => None,
                    })
                });
                Frame::PathResponse {
                    data: challenge.unwrap_or_default(),
                }
            }
            Self::Ping => Frame::Ping,
            Self::Stream(len) => Frame::Stream(frame::Stream {
                id: StreamId::from_wire(u64::from(attack.peer.side().is_server())),
                offset: 0,
                fin: false,
                data: &[0x55; 255][..len.into()],
            }),
            Self::Other(ref piece) => {
                let other = match version {
                    MultipathVersion::Rfc10069 => MultipathVersion::Draft10,
                    MultipathVersion::Draft10 => MultipathVersion::Rfc10069,
                };
                return piece.encode_once(other, attack);
            }
        };
        let mut out = vec![0; frame.size_in(version)];
        frame.encode_in(version, &mut Writer::new(&mut out));
        out
    }

    /// Without going back to the first version.
    fn encode_once(&self, version: MultipathVersion, attack: &Attack) -> Vec<u8> {
        match self {
            Self::Other(_) => encode(&[Frame::Ping]),
            piece => piece.encode(version, attack),
        }
    }
}

impl PathSteps {
    /// Plays them.
    pub fn run(self) {
        let [victims, peers] = self.offers.map(versions);
        let persona = Persona::default();
        let declared = |version| {
            let max = u32::from(self.peers_max % 8);
            peers.includes(version).then_some(max)
        };
        let setup = Setup {
            transport: TransportConfig {
                multipath: Some(MultipathConfig {
                    versions: victims,
                    max_paths: 1 + self.max_paths % 8,
                    ..MultipathConfig::default()
                }),
                ..TransportConfig::default()
            },
            persona: Persona {
                parameters: TransportParameters {
                    initial_max_path_id: declared(MultipathVersion::Rfc10069),
                    initial_max_path_id_draft10: declared(MultipathVersion::Draft10),
                    ..persona.parameters
                },
                ..persona
            },
            ..Setup::default()
        };
        let mut attack = if self.client {
            on_client(setup)
        } else {
            on_server(setup)
        };
        attack.peer.acknowledges = !self.silent;
        let mut streams = Vec::new();
        for step in self.steps.into_iter().take(MAX_STEPS) {
            step.play(&mut attack, &mut streams);
            check(&mut attack);
        }
        finish(&mut attack);
    }
}

impl PathStep {
    fn play(self, attack: &mut Attack, streams: &mut Vec<StreamId>) {
        let version = attack.victim.connection().multipath_version();
        let version = version.unwrap_or_default();
        let now = attack.now;
        match self {
            Self::Plain(step) => step.play(attack, streams),
            Self::Issue(named) => {
                let frame = attack.peer.issue_path_cid(version, path(named));
                attack.send(&frame);
            }
            Self::OnPath {
                path: named,
                from,
                pieces,
            } => {
                let payload = payload(&pieces, version, attack);
                if let Some(datagram) = attack.peer.seal_on_path(path(named), &payload) {
                    attack.from = address(from);
                    attack.deliver(&datagram);
                    attack.from = home();
                }
            }
            Self::Numbered {
                path: named,
                distance,
                pieces,
            } => {
                let payload = payload(&pieces, version, attack);
                attack.peer.skip_on_path(path(named), distance);
                if let Some(datagram) = attack.peer.seal_on_path(path(named), &payload) {
                    attack.deliver(&datagram);
                }
            }
            Self::WrongPath { path: named, nonce } => {
                if let Some(datagram) =
                    attack
                        .peer
                        .seal_with_nonce(path(named), path(nonce), &encode(&[Frame::Ping]))
                {
                    attack.deliver(&datagram);
                }
            }
            Self::Open { socket, remote } => {
                let local = LocalAddress::any(SocketId((socket % 3).into()));
                let remote = address(remote);
                let _ = attack
                    .victim
                    .connection()
                    .open_path(now, PathAddress { remote, local });
                attack.collect();
            }
            Self::Abandon(named) => {
                let _ = attack.victim.connection().abandon_path(now, path(named));
                attack.collect();
            }
            Self::Prefer {
                path: named,
                backup,
            } => {
                let status = if backup {
                    PathStatus::Backup
                } else {
                    PathStatus::Available
                };
                let preference = PathPreference {
                    status,
                    ..PathPreference::default()
                };
                let connection = attack.victim.connection();
                connection.set_path_preference(path(named), preference);
                attack.collect();
            }
            Self::Wait(millis) => attack.wait(Duration::from_millis(millis.into())),
        }
    }
}

fn payload(pieces: &[PathPiece], version: MultipathVersion, attack: &Attack) -> Vec<u8> {
    let pieces = pieces.iter().take(20);
    let mut payload: Vec<u8> = pieces
        .flat_map(|piece| piece.encode(version, attack))
        .collect();
    payload.truncate(1300);
    payload
}

/// Never more paths than were permitted, and always one while the connection is open.
fn check(attack: &mut Attack) {
    if !attack.victim.has_connection() {
        return;
    }
    let connection = attack.victim.connection();
    let open = connection.open_paths().count();
    assert!(open <= 8, "{open} paths");
    assert!(open >= 1 || connection.is_closed(), "no path is left");
}
