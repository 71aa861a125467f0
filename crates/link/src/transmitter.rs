//! The transmitter: computes when the last bit of a packet is sent.
//!
//! Packets are sent in the order of arrival, so the time is known at arrival. Work is counted in
//! billionths of a bit ("nanobits"): a rate in bit/s times nanoseconds, whatever the rate is at the
//! time. A departure is rounded up to a nanosecond; the capacity of the rest of that nanosecond is
//! credited to the next packet, so rounding errors don't accumulate.

use swiftwater_units::Instant;

use crate::config::Rate;
use crate::trace::{OpportunityCursor, SampleCursor};

const NANOBITS_PER_BYTE: u64 = 8_000_000_000;

#[derive(Debug)]
pub(crate) struct Transmitter {
    /// When the last accepted packet departs.
    free_at: Instant,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Unlimited,
    Constant { bps: u64, credit: u64 },
    Samples { cursor: SampleCursor, credit: u64 },
    Opportunities(OpportunityCursor),
}

impl Transmitter {
    /// `rate` must have passed the configuration's checks; `offset_nanos` is where a trace starts.
    pub(crate) fn new(rate: &Rate, start: Instant, offset_nanos: u64) -> Self {
        let kind = match rate {
            Rate::Unlimited => Kind::Unlimited,
            Rate::Constant(rate) => Kind::Constant {
                bps: rate.as_bps(),
                credit: 0,
            },
            Rate::Trace(trace) => match trace.opportunity_cursor(start, offset_nanos) {
                Some(cursor) => Kind::Opportunities(cursor),
                None => match trace.sample_cursor(start, offset_nanos) {
                    Some(cursor) => Kind::Samples { cursor, credit: 0 },
                    None => Kind::Unlimited,
                },
            },
        };
        Self {
            free_at: start,
            kind,
        }
    }

    /// When the last accepted packet departs; the transmitter's start if there was none.
    pub(crate) fn idle_since(&self) -> Instant {
        self.free_at
    }

    /// When the transmission of a packet that arrives at `now` starts.
    pub(crate) fn next_start(&self, now: Instant) -> Instant {
        self.free_at.max(now)
    }

    /// When the transmission of a packet that has waited since `now` starts, if no other precedes
    /// it. With packet opportunities that is at the next one: until then another packet may be
    /// chosen.
    pub(crate) fn next_turn(&mut self, now: Instant) -> Instant {
        let begin = self.next_start(now);
        match &mut self.kind {
            Kind::Opportunities(cursor) => cursor.next_chance(begin),
            Kind::Unlimited | Kind::Constant { .. } | Kind::Samples { .. } => begin,
        }
    }

    /// Accepts a packet of `size` bytes at `now`; returns its departure.
    pub(crate) fn serve(&mut self, now: Instant, size: u32) -> Instant {
        let idle = now >= self.free_at;
        self.transmit(self.next_start(now), idle, size)
    }

    /// Transmits at `turn`, from [`Transmitter::next_turn`], a packet of `size` bytes that has waited
    /// since `since`; returns its departure, the same as [`Transmitter::serve`] at arrival.
    pub(crate) fn serve_waiting(&mut self, turn: Instant, since: Instant, size: u32) -> Instant {
        self.transmit(turn, since >= self.free_at, size)
    }

    fn transmit(&mut self, begin: Instant, idle: bool, size: u32) -> Instant {
        let work = u64::from(size) * NANOBITS_PER_BYTE;
        self.free_at = match &mut self.kind {
            Kind::Unlimited => begin,
            Kind::Constant { bps, credit } => {
                let work = work.saturating_sub(if idle { 0 } else { *credit });
                let nanos = work.div_ceil(*bps);
                *credit = nanos * *bps - work;
                Instant::from_nanos(begin.as_nanos().saturating_add(nanos))
            }
            Kind::Samples { cursor, credit } => {
                let work = work.saturating_sub(if idle { 0 } else { *credit });
                let (departure, rest) = cursor.transmit(begin, work);
                *credit = rest;
                departure
            }
            Kind::Opportunities(cursor) => cursor.transmit(begin, size),
        };
        self.free_at
    }
}
