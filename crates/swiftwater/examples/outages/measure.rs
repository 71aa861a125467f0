//! A sender of small frames whose path falls silent for a while, over virtual time.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "an example and a test use a part of it each"
)]

use std::error::Error;
use std::time::Duration;

use swiftwater::Profile;
use swiftwater_link::{Jitter, LinkConfig};
use swiftwater_sim::{Direction, Pair, Verdict};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, StreamId};

/// 25 frames a second of 5 kB: 1 Mbit/s.
const FRAME_INTERVAL: Duration = Duration::from_millis(40);
const FRAME: [u8; 5_000] = [7; 5_000];

/// Sent undisturbed before the outage.
const WARM_UP: u32 = 50;

/// Which datagrams an outage takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Lost {
    /// All.
    Both,
    /// Those with frames.
    Data,
    /// Those with acknowledgements.
    Acks,
}

/// One outage.
#[derive(Clone, Copy, Debug)]
pub struct Outage {
    /// Of the sender.
    pub profile: Profile,
    /// Which way the frames go.
    pub direction: Direction,
    pub lost: Lost,
    /// Round-trip time of the path.
    pub rtt: Duration,
    pub length: Duration,
    pub seed: u64,
}

/// What an outage cost.
#[derive(Clone, Copy, Debug)]
pub struct Resumption {
    /// From the end of the outage until an acknowledgement reached the sender; `None` if the
    /// connection had ended by then.
    pub time: Option<Duration>,
    /// Probe timeouts in the outage.
    pub probe_timeouts: u64,
    /// Datagrams that the sender sent in the outage.
    pub datagrams: u64,
}

impl Outage {
    /// Lives through it.
    pub fn run(self) -> Result<Resumption, Box<dyn Error>> {
        let mut pair = self.pair()?;
        if !pair.connect() {
            return Err("no connection".into());
        }
        let connection = pair.connection(self.direction.sender());
        let stream = connection.ok_or("no connection")?.open(Dir::Uni);
        let mut frames = Frames {
            direction: self.direction,
            stream: stream.ok_or("no stream")?,
            next: pair.now(),
        };
        // Seeds also differ in the start of the outage between two frames.
        let phase = Duration::from_millis(self.seed * 7 % 40);
        let begin = pair.now() + FRAME_INTERVAL * WARM_UP + phase;
        let end = begin + self.length;
        self.interrupt(&mut pair, begin, end);
        frames.run(&mut pair, begin, |_| false);
        let before = frames.progress(&pair);
        frames.run(&mut pair, end, |_| false);
        let after = frames.progress(&pair);
        let limit = end + Duration::from_secs(120);
        frames.run(&mut pair, limit, |progress| {
            progress.acknowledged > after.acknowledged
        });
        let resumed = frames.progress(&pair).acknowledged > after.acknowledged;
        Ok(Resumption {
            time: resumed.then(|| pair.now() - end),
            probe_timeouts: after.probe_timeouts - before.probe_timeouts,
            datagrams: after.datagrams - before.datagrams,
        })
    }

    fn pair(self) -> Result<Pair, Box<dyn Error>> {
        let link = LinkConfig::default()
            .rate(Bandwidth::from_mbps(20))
            .delay(self.rtt / 2)
            .jitter(Jitter::Uniform(Duration::from_millis(2)));
        let transport = self.profile.transport();
        Ok(Pair::builder()
            .seed(self.seed)
            .link(link)
            .both_configs(|config| *config = transport.clone())
            .build()?)
    }

    /// Lets the links lose what the outage takes.
    fn interrupt(self, pair: &mut Pair, begin: Instant, end: Instant) {
        let back = match self.direction {
            Direction::ToServer => Direction::ToClient,
            Direction::ToClient => Direction::ToServer,
        };
        let lost: &[Direction] = match self.lost {
            Lost::Both => &[self.direction, back],
            Lost::Data => &[self.direction],
            Lost::Acks => &[back],
        };
        for &direction in lost {
            pair.tap(direction, move |datagram| {
                if datagram.now >= begin && datagram.now < end {
                    return Verdict::Drop;
                }
                Verdict::Pass
            });
        }
    }
}

/// What a sender has done so far.
struct Progress {
    acknowledged: ByteCount,
    probe_timeouts: u64,
    datagrams: u64,
}

/// Frames written to a stream as time goes on.
struct Frames {
    direction: Direction,
    stream: StreamId,
    next: Instant,
}

impl Frames {
    /// Runs until `limit`, or until `is_done` says so after something happened.
    fn run(&mut self, pair: &mut Pair, limit: Instant, is_done: impl Fn(&Progress) -> bool) {
        while pair.now() < limit && !is_done(&self.progress(pair)) {
            if pair.now() >= self.next {
                self.next += FRAME_INTERVAL;
                if let Some(connection) = pair.connection(self.direction.sender()) {
                    // What doesn't fit into the send buffer is left out.
                    let _ = connection.send_stream(self.stream).write(&FRAME);
                }
            }
            pair.network().settle();
            if !pair.network().step_until(self.next.min(limit)) {
                let rest = self.next.min(limit).saturating_since(pair.now());
                pair.advance(rest);
            }
        }
    }

    fn progress(&self, pair: &Pair) -> Progress {
        let stats = pair.stats(self.direction.sender());
        let path = stats.paths.first();
        Progress {
            acknowledged: path.map_or(ByteCount::ZERO, |path| path.delivered),
            probe_timeouts: path.map_or(0, |path| path.pto_count),
            datagrams: stats.datagrams_sent,
        }
    }
}
