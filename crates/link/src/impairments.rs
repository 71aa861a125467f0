//! Random impairments of packets after the queue.
//!
//! A number is drawn from every random stream for every packet, lost or not, so that the
//! impairments don't affect each other's numbers.

use std::time::Duration;

use swiftwater_units::Instant;

use crate::condition::{Fault, LinkCondition};
use crate::config::{Jitter, LinkConfig};
use crate::loss::LossProcess;
use crate::random::{Chance, Purpose, Stream};
use crate::trace::SampleCursor;

/// The numbers drawn for a packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Draws {
    pub(crate) lost: bool,
    /// Propagation delay and jitter, in nanoseconds.
    pub(crate) delay: u64,
    pub(crate) reorder: bool,
    pub(crate) duplicate: bool,
    /// A random number that determines position and bits of corruption.
    pub(crate) corrupt: Option<u64>,
}

/// Most links, in particular those of hosts, only delay: the other impairments are stored
/// separately, because random number generators are large and a network has thousands of links.
#[derive(Debug)]
pub(crate) struct Impairments {
    delay: u64,
    rare: Option<Box<Rare>>,
    /// Since the first fault.
    fault: Option<Box<Fault>>,
    seed: u64,
}

/// All except the constant delay.
#[derive(Debug)]
struct Rare {
    loss: Option<LossProcess>,
    loss_trace: Option<(SampleCursor, Stream)>,
    delay_trace: Option<SampleCursor>,
    jitter: Option<(Jitter, Stream)>,
    reorder: Option<(Chance, Stream)>,
    duplicate: Option<(Chance, Stream)>,
    corrupt: Option<(Chance, Stream)>,
}

impl Impairments {
    pub(crate) fn new(config: &LinkConfig, seed: u64, start: Instant) -> Self {
        let offset = nanos(config.trace_offset);
        let cursor = |trace: &Option<crate::trace::Trace>| {
            trace
                .as_ref()
                .and_then(|trace| trace.sample_cursor(start, offset))
        };
        let chance = |probability, purpose| {
            let chance = Chance::new(probability);
            (!chance.is_never()).then(|| (chance, Stream::new(seed, purpose)))
        };
        let reorder = config.reorder.map_or(0.0, |reorder| reorder.probability);
        let rare = Rare {
            loss: LossProcess::new(config.loss, seed, start),
            loss_trace: cursor(&config.loss_trace)
                .map(|cursor| (cursor, Stream::new(seed, Purpose::TraceLoss))),
            delay_trace: cursor(&config.delay_trace),
            jitter: (config.jitter != Jitter::None)
                .then(|| (config.jitter, Stream::new(seed, Purpose::Jitter))),
            reorder: chance(reorder, Purpose::Reorder),
            duplicate: chance(config.duplicate, Purpose::Duplicate),
            corrupt: chance(config.corrupt, Purpose::Corrupt),
        };
        Self {
            delay: nanos(config.delay),
            rare: rare.can_happen().then(|| Box::new(rare)),
            fault: None,
            seed,
        }
    }

    /// What is wrong from now on; it has been validated.
    pub(crate) fn set_condition(&mut self, condition: LinkCondition) {
        let seed = self.seed;
        let fault = self.fault.get_or_insert_with(|| Box::new(Fault::new(seed)));
        fault.set(condition);
    }

    /// What is wrong at present.
    pub(crate) fn condition(&self) -> LinkCondition {
        let fault = self.fault.as_ref();
        fault.map(|fault| fault.condition).unwrap_or_default()
    }

    /// Draws for the next packet to leave the queue, at `departure`.
    pub(crate) fn draw(&mut self, departure: Instant) -> Draws {
        let mut draws = Draws {
            lost: false,
            delay: self.delay,
            reorder: false,
            duplicate: false,
            corrupt: None,
        };
        if let Some(rare) = &mut self.rare {
            rare.draw(departure, &mut draws);
        }
        if let Some(fault) = &mut self.fault {
            draws.lost |= fault.draw();
            draws.delay = fault.lengthened(draws.delay);
        }
        draws
    }
}

impl Rare {
    fn can_happen(&self) -> bool {
        self.loss.is_some()
            || self.loss_trace.is_some()
            || self.delay_trace.is_some()
            || self.jitter.is_some()
            || self.reorder.is_some()
            || self.duplicate.is_some()
            || self.corrupt.is_some()
    }

    fn draw(&mut self, departure: Instant, draws: &mut Draws) {
        let lost_by_model = self.loss.as_mut().is_some_and(|loss| loss.draw(departure));
        let lost_by_trace = self.loss_trace.as_mut().is_some_and(|(cursor, stream)| {
            // Always one draw, independent of the trace.
            stream.unit() < cursor.loss(departure)
        });
        let on_path = self
            .delay_trace
            .as_mut()
            .map_or(0, |cursor| cursor.half_rtt(departure));
        let jitter = self
            .jitter
            .as_mut()
            .map_or(0, |(jitter, stream)| draw_jitter(*jitter, stream));
        draws.lost = lost_by_model | lost_by_trace;
        draws.delay += on_path + jitter;
        draws.reorder = happens(&mut self.reorder);
        draws.duplicate = happens(&mut self.duplicate);
        draws.corrupt = self
            .corrupt
            .as_mut()
            .and_then(|(chance, stream)| chance.draw(stream).then(|| stream.next()));
    }
}

fn happens(event: &mut Option<(Chance, Stream)>) -> bool {
    event
        .as_mut()
        .is_some_and(|(chance, stream)| chance.draw(stream))
}

fn draw_jitter(jitter: Jitter, stream: &mut Stream) -> u64 {
    match jitter {
        Jitter::None => 0,
        Jitter::Uniform(max) => stream.below(nanos(max) + 1),
        Jitter::Normal { mean, deviation } => {
            let drawn = nanos(mean) as f64 + stream.normal() * nanos(deviation) as f64;
            // Negative values become zero in the cast.
            drawn.round() as u64
        }
    }
}

/// For durations that the configuration's checks have limited.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
