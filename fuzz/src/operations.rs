//! Plans of random operations from the fuzzer's bytes: two whole stacks, a network between them, and
//! invariants after every event, as in `crates/sim/tests/random_operations`.
//!
//! A plan is read byte by byte, each operation from few of them: a changed byte changes one thing.

#[path = "../../crates/sim/tests/random_operations/check.rs"]
mod check;
#[path = "../../crates/sim/tests/random_operations/faults.rs"]
mod faults;
#[path = "../../crates/sim/tests/random_operations/finale.rs"]
mod finale;
#[path = "../../crates/sim/tests/random_operations/model.rs"]
mod model;
#[path = "../../crates/sim/tests/random_operations/plan.rs"]
mod plan;
#[path = "../../crates/sim/tests/random_operations/run.rs"]
mod run;
#[path = "../../crates/sim/tests/random_operations/setup.rs"]
mod setup;

use arbitrary::{Arbitrary, Result, Unstructured};
use swiftwater_quic::wire::{VERSION_1, VERSION_2};
use swiftwater_quic::{MultipathVersions, Priority};
use swiftwater_sim::Direction;
use swiftwater_units::{Dir, Side};

use plan::{Early, Marks, Op, Plan, Settings, Wire};

/// More would make a case slow.
const MAX_OPS: usize = 120;

/// A case.
#[derive(Debug)]
pub struct Case(Plan);

impl Case {
    /// Carries it out.
    pub fn run(&self) {
        run::run(&self.0);
    }
}

impl<'a> Arbitrary<'a> for Case {
    fn arbitrary(u: &mut Unstructured<'a>) -> Result<Self> {
        let mut source = Source(u);
        Ok(Self(source.plan()?))
    }
}

/// Draws from the fuzzer's bytes; without any left, the usual.
struct Source<'u, 'a>(&'u mut Unstructured<'a>);

impl Source<'_, '_> {
    fn byte(&mut self) -> Result<u8> {
        u8::arbitrary(self.0)
    }

    fn bit(&mut self) -> Result<bool> {
        Ok(self.byte()? & 1 == 1)
    }

    /// True for one byte in `n`, never for 0.
    fn rarely(&mut self, n: u8) -> Result<bool> {
        let byte = self.byte()?;
        Ok(byte != 0 && byte % n == 0)
    }

    /// 0 to 65535.
    fn number(&mut self) -> Result<u64> {
        Ok(u16::arbitrary(self.0)?.into())
    }

    /// From `low` to `high`, of which the first byte decides: small numbers more often.
    fn within(&mut self, low: u64, high: u64) -> Result<u64> {
        let scale = u64::from(self.byte()?);
        Ok(low + (high - low) * scale * scale / (255 * 255))
    }

    fn side(&mut self) -> Result<Side> {
        Ok(if self.bit()? {
            Side::Server
        } else {
            Side::Client
        })
    }

    fn dir(&mut self) -> Result<Dir> {
        Ok(if self.bit()? { Dir::Uni } else { Dir::Bi })
    }

    fn direction(&mut self) -> Result<Direction> {
        Ok(if self.bit()? {
            Direction::ToClient
        } else {
            Direction::ToServer
        })
    }

    fn stream(&mut self) -> Result<usize> {
        Ok(usize::from(self.byte()? % 16))
    }

    fn plan(&mut self) -> Result<Plan> {
        // The ends and the network take one byte each unless they are unusual: operations count.
        let seed = self.byte()?.into();
        let wires = [self.wire()?, self.wire()?];
        let mut ends = [self.settings()?, self.settings()?];
        let [client, server] = &mut ends;
        server.cid_len = server.cid_len.max(4);
        if client.search_up_to.is_none() || server.search_up_to.is_none() {
            client.search_up_to = None;
            server.search_up_to = None;
        }
        let flags = self.byte()?;
        let segments = [10, 1, 2, 5][usize::from(flags >> 4 & 3)];
        let early = match flags >> 6 {
            0 => Early::Stranger,
            1 => Early::Accepted,
            2 => Early::Rejected,
            _ => Early::Lowered,
        };
        let mut ops = vec![Op::Advance(if flags & 8 == 0 { 500 } else { 0 })];
        while ops.len() < MAX_OPS && !self.0.is_empty() {
            ops.push(self.op()?);
        }
        Ok(Plan {
            seed,
            wires,
            ends,
            early,
            retry: flags & 1 == 1,
            preferred: flags & 2 == 2,
            segments,
            finish_all: flags & 4 == 0,
            ops,
        })
    }

    fn wire(&mut self) -> Result<Wire> {
        let unusual = self.byte()?;
        let mut wire = Wire::default();
        if unusual & 1 != 0 {
            wire.delay_ms = self.within(0, 400)?;
        }
        if unusual & 2 != 0 {
            wire.jitter_ms = self.within(0, 60)?;
        }
        if unusual & 4 != 0 {
            wire.rate_kbps = Some(self.within(200, 20_000)?);
            wire.buffer_packets = Some(self.within(2, 60)?);
            wire.mark_above = Some(self.within(1, 20)?);
        }
        if unusual & 8 != 0 {
            wire.loss = self.within(0, 40)? as u32;
        }
        if unusual & 16 != 0 {
            wire.duplicate = self.within(0, 30)? as u32;
        }
        if unusual & 32 != 0 {
            wire.corrupt = self.within(0, 20)? as u32;
        }
        if unusual & 64 != 0 {
            wire.late = self.within(0, 40)? as u32;
            wire.late_ms = self.within(0, 200)?;
        }
        if unusual & 128 != 0 {
            wire.marks = match self.byte()? % 3 {
                0 => Marks::Kept,
                1 => Marks::Cleared,
                _ => Marks::AllCongested,
            };
        }
        Ok(wire)
    }

    fn settings(&mut self) -> Result<Settings> {
        let unusual = self.byte()?;
        let mut end = Settings {
            search_up_to: Some(1_472),
            ..Settings::default()
        };
        if unusual & 1 != 0 {
            end.bidi_streams = self.within(0, 10)?;
            end.uni_streams = self.within(0, 10)?;
        }
        if unusual & 2 != 0 {
            end.stream_window = self.within(50, 60_000)?;
            end.window = self.within(50, 60_000)?;
            end.growth = self.within(1, 20)?;
            end.send_window = self.within(50, 100_000)?;
        }
        if unusual & 4 != 0 {
            end.idle_ms = Some(self.within(500, 40_000)?);
            end.keep_alive_ms = Some(self.within(50, 10_000)?).filter(|ms| ms % 2 == 0);
        }
        if unusual & 8 != 0 {
            end.key_update_interval = self.within(1, 40)?;
            end.cid_limit = self.within(2, 8)?;
            end.cid_len = self.within(0, 20)? as usize;
            // Lengths below 4 would not be unique for long.
            if (1..4).contains(&end.cid_len) {
                end.cid_len = 0;
            }
        }
        if unusual & 16 != 0 {
            end.ack_threshold = self.within(1, 12)?;
            end.max_ack_delay_ms = self.within(0, 200)?;
            end.packet_threshold = self.within(3, 10)?;
            end.ack_frequency = self.bit()?;
        }
        if unusual & 32 != 0 {
            self.sizes(&mut end)?;
        }
        if unusual & 64 != 0 {
            end.initial_rtt_ms = self.within(1, 1_000)?;
            end.initial_window = Some(self.within(2_400, 100_000)?);
            let flags = self.byte()?;
            end.pacing = flags & 1 == 0;
            end.ecn = flags & 2 == 0;
            end.newreno = flags & 4 == 0;
            end.migration = flags & 8 == 0;
            end.handshake_copies = flags >> 4 & 3;
            end.half_rtt = flags & 64 != 0;
        }
        if unusual & 128 != 0 {
            let choice = self.byte()?;
            end.multipath = match choice >> 4 & 3 {
                0 => None,
                1 => Some(MultipathVersions::Rfc10069),
                2 => Some(MultipathVersions::Draft10),
                _ => Some(MultipathVersions::Both),
            };
            end.versions = match choice % 4 {
                0 => &[VERSION_1],
                1 => &[VERSION_1, VERSION_2],
                2 => &[VERSION_2, VERSION_1],
                _ => &[VERSION_2],
            };
            end.recovery = match self.byte()? % 8 {
                0 => "art",
                1 => "autorec",
                2 => "autorec-paper:alpha=0ms,beta=1,gamma=1",
                3 => "autorec+:alpha=0ms,beta=1,gamma=1",
                _ => "arq",
            };
        }
        Ok(end)
    }

    fn sizes(&mut self, end: &mut Settings) -> Result<()> {
        end.packet_size = self.within(1_200, 1_500)? as u16;
        end.search_up_to = match self.within(1_199, 9_000)? as u16 {
            1_199 => None,
            bound => Some(bound),
        };
        end.largest = self.within(1_200, 9_000)? as u16;
        end.datagram_frames = match self.within(0, 1_500)? {
            0 => None,
            most => Some(most),
        };
        end.datagram_queue = self.within(1, 4_000)?;
        Ok(())
    }

    fn op(&mut self) -> Result<Op> {
        let kind = self.byte()?;
        let op = match kind % 48 {
            0..4 => Op::Open(self.side()?, self.dir()?),
            4..7 => Op::Accept(self.side()?, self.dir()?),
            7..12 => {
                let (side, stream) = (self.side()?, self.stream()?);
                Op::Write(side, stream, self.number()? as usize % 60_000)
            }
            12 | 13 => Op::Finish(self.side()?, self.stream()?),
            14 => Op::Reset(self.side()?, self.stream()?, 1),
            15 => Op::ResetAt(self.side()?, self.stream()?, 2, self.number()? % 20_000),
            16 => Op::Stop(self.side()?, self.stream()?, 3),
            17 => {
                let (side, stream, byte) = (self.side()?, self.stream()?, self.byte()?);
                Op::Priority(side, stream, Priority::new(byte % 8, byte & 8 == 0))
            }
            18 => {
                let (side, stream, millis) = (self.side()?, self.stream()?, self.number()?);
                if millis % 2 == 0 {
                    Op::Deadline(side, stream, millis % 500)
                } else {
                    Op::Expire(side, stream, millis % 2_000, self.number()? % 20_000)
                }
            }
            19..23 => {
                let (side, stream) = (self.side()?, self.stream()?);
                Op::Read(side, stream, 1 + self.number()? as usize % 60_000)
            }
            23 => Op::SendDatagram(self.side()?, self.number()? as usize % 1_600),
            24 => Op::ReadDatagrams(self.side()?),
            25..30 => Op::Advance(self.within(0, 6_000)?),
            30..34 => Op::Step(1 + u32::from(self.byte()? % 12)),
            34 => Op::DropNext(self.direction()?, 1 + u32::from(self.byte()? % 8)),
            35 => Op::CorruptNext(self.direction()?, 1 + u32::from(self.byte()? % 4)),
            36 => Op::Rebind { ip: self.bit()? },
            37 | 38 => Op::Migrate {
                away: self.bit()?,
                at_once: self.bit()?,
            },
            39 => {
                let to = self.direction()?;
                Op::Shrink(to, self.within(1_200, 9_000)? as usize)
            }
            40 => Op::UpdateKeys(self.side()?),
            41 => Op::Rotate(self.side()?),
            42 => Op::Ping(self.side()?),
            43 => Op::Redundancy(self.side()?, self.within(0, 100)? as u32),
            44 => {
                let side = self.side()?;
                let rate = self.within(0, 20_000)?;
                Op::ReceiveRate(side, (rate >= 100).then_some(rate))
            }
            45 => Op::Replay {
                to: self.direction()?,
                index: self.byte()?.into(),
                damaged: self.bit()?,
                stranger: self.rarely(6)?,
            },
            46 => Op::Garbage {
                to: self.direction()?,
                index: self.byte()?.into(),
                keep: usize::from(self.byte()? % 30),
                len: self.number()? as usize % 1_300,
            },
            // Closing ends the case: rarely.
            _ if kind > 240 => Op::Close(self.side()?),
            47 => match self.byte()? % 8 {
                0..4 => Op::OpenPath { away: self.bit()? },
                4 | 5 => Op::AbandonPath(self.side()?, self.byte()?.into()),
                6 => Op::PathStatus(self.side()?, self.byte()?.into(), self.bit()?),
                _ => Op::Step(1),
            },
            _ => Op::Step(1),
        };
        Ok(op)
    }
}
