//! Programs from the fuzzer's bytes.

use std::time::Duration;

use swiftwater_units::Side;

use super::speaker::{Piece, phrase};

/// Instructions that are carried out; more would make a case slow.
const MAX_OPS: usize = 160;

/// Start of a case.
#[derive(Clone, Copy, Debug)]
pub struct Beginning {
    /// Which side the engine is.
    pub engine: Side,
    /// The peer's SETTINGS precede everything else.
    pub well_begun: bool,
    /// WebTransport sessions are offered.
    pub sessions: bool,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fate {
    Delivered,
    Lost,
    Late,
}

/// What an application does.
#[derive(Clone, Copy, Debug)]
pub enum Call {
    /// Sends a request, for a session if `session`.
    Request {
        session: bool,
        end: bool,
    },
    /// Answers: with 200, informational, with an error and the end.
    Respond {
        nth: u8,
        kind: u8,
    },
    Write {
        nth: u8,
        len: u16,
    },
    Trailers {
        nth: u8,
    },
    Finish {
        nth: u8,
    },
    Read {
        nth: u8,
    },
    Reset {
        nth: u8,
    },
    Stop {
        nth: u8,
    },
    Cancel {
        nth: u8,
    },
    Datagram {
        nth: u8,
        len: u8,
    },
    OpenSessionStream {
        nth: u8,
        uni: bool,
    },
    /// Reads, writes, ends, resets or stops a session's stream.
    SessionStream {
        nth: u8,
        act: u8,
    },
    Shutdown,
    Close,
    /// Stops reading when data arrive.
    Lazy(bool),
}

/// An instruction.
#[derive(Clone, Debug)]
pub enum Op {
    Say(Piece),
    Flush(Fate),
    /// A packet that was late arrives.
    Late,
    /// The peer acknowledges received packets.
    Answer,
    /// Events are withheld from the engine until it gets all of them at once.
    Withhold(bool),
    Wait(Duration),
    StatelessReset,
    IdleTimeout,
    Call(Call),
}

/// A program as it is read.
#[derive(Debug)]
pub struct Program<'a> {
    bytes: std::slice::Iter<'a, u8>,
    ops: usize,
}

impl<'a> Program<'a> {
    /// The program that `bytes` are.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes: bytes.iter(),
            ops: 0,
        }
    }

    fn byte(&mut self) -> Option<u8> {
        self.bytes.next().copied()
    }

    /// Start of the case; `None` if there are no bytes.
    pub fn setup(&mut self) -> Option<Beginning> {
        let flags = self.byte()?;
        Some(Beginning {
            engine: if flags & 1 == 0 {
                Side::Server
            } else {
                Side::Client
            },
            well_begun: flags & 2 == 0,
            sessions: flags & 4 == 0,
        })
    }

    /// The next instruction; `None` at the end.
    pub fn next_op(&mut self) -> Option<Op> {
        self.ops += 1;
        if self.ops > MAX_OPS {
            return None;
        }
        let op = self.byte()?;
        Some(match op % 32 {
            0..=9 => Op::Say(self.piece(op % 32)?),
            10 | 11 => Op::Say(Piece::Unknown),
            12 => Op::Say(Piece::Close { application: true }),
            13 => Op::Say(Piece::Close { application: false }),
            14 | 15 => Op::Flush(Fate::Delivered),
            16 => Op::Flush(Fate::Lost),
            17 => Op::Flush(Fate::Late),
            18 => Op::Late,
            19 => Op::Answer,
            20 => Op::Withhold(true),
            21 => Op::Withhold(false),
            22 => Op::Wait(Duration::from_millis(self.byte()?.into())),
            23 => match self.byte()? % 8 {
                0 => Op::StatelessReset,
                1 => Op::IdleTimeout,
                seconds => Op::Wait(Duration::from_secs((seconds * 4).into())),
            },
            _ => Op::Call(self.call(op)?),
        })
    }

    fn piece(&mut self, op: u8) -> Option<Piece> {
        Some(match op {
            // A phrase, perhaps cut short or after a gap.
            0..=4 => {
                let (stream, nth, form) = (self.byte()?, self.byte()?, self.byte()?);
                let mut bytes = phrase(nth, form >> 4);
                if form & 4 != 0 {
                    bytes.truncate(usize::from(self.byte()?) % (bytes.len() + 1));
                }
                let gap = if form & 8 != 0 { self.byte()? } else { 0 };
                Piece::Stream {
                    stream,
                    bytes,
                    gap,
                    fin: form & 3 == 3,
                }
            }
            // Any bytes.
            5 => {
                let (stream, form) = (self.byte()?, self.byte()?);
                let len = usize::from(form >> 3);
                let bytes = self.bytes.by_ref().take(len).copied().collect();
                let gap = if form & 4 != 0 { self.byte()? } else { 0 };
                Piece::Stream {
                    stream,
                    bytes,
                    gap,
                    fin: form & 3 == 3,
                }
            }
            6 => {
                let (stream, nth, form) = (self.byte()?, self.byte()?, self.byte()?);
                if form & 1 == 0 {
                    let bytes = phrase(nth, form >> 4);
                    Piece::Beginning { stream, bytes }
                } else {
                    Piece::Reset { stream }
                }
            }
            7 => {
                let stream = self.byte()?;
                if stream & 0x80 == 0 {
                    Piece::Reset { stream }
                } else {
                    Piece::Stop { stream }
                }
            }
            8 => Piece::Datagram {
                request: self.byte()?,
                payload: vec![0xda; usize::from(self.byte()? % 64)],
            },
            _ => match self.byte()? {
                0..=127 => Piece::Credit,
                byte => Piece::Raw(byte & 0x3f),
            },
        })
    }

    fn call(&mut self, op: u8) -> Option<Call> {
        let nth = op >> 5;
        Some(match op % 32 {
            24 => {
                let form = self.byte()?;
                Call::Request {
                    session: form & 1 == 1,
                    end: form & 2 == 2,
                }
            }
            25 => Call::Respond {
                nth,
                kind: self.byte()?,
            },
            26 => Call::Write {
                nth,
                len: u16::from(self.byte()?).pow(2),
            },
            27 => Call::Read { nth },
            28 => match self.byte()? % 8 {
                0 | 1 => Call::Finish { nth },
                2 => Call::Trailers { nth },
                3 => Call::Reset { nth },
                4 => Call::Stop { nth },
                5 => Call::Cancel { nth },
                _ => Call::Lazy(nth & 1 == 0),
            },
            29 => Call::OpenSessionStream {
                nth: nth >> 1,
                uni: nth & 1 == 1,
            },
            30 => Call::SessionStream {
                nth,
                act: self.byte()?,
            },
            _ => match self.byte()? % 8 {
                0 => Call::Shutdown,
                1 => Call::Close,
                len => Call::Datagram { nth, len: len * 8 },
            },
        })
    }
}
