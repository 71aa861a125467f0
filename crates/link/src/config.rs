//! Configuration of a link.

use std::fmt;
use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount, PacketCount};
use thiserror::Error;

use crate::loss::LossModel;
use crate::queue::{Buffer, EcnThreshold, Limit, QueueConfigError, QueueDiscipline};
use crate::trace::Trace;

/// The highest rate of a link or trace, 10 Tbit/s: arithmetic stays within 64 bits.
pub(crate) const MAX_RATE: Bandwidth = Bandwidth::from_mbps(10_000_000);

/// The largest packet, overhead included, that any link carries: 16 MiB.
pub(crate) const MAX_PACKET: u32 = 1 << 24;

/// The longest delay, jitter or hold time: a day.
const MAX_DELAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Transmission rate of a link.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Rate {
    /// Unlimited: packets pass at once, without a queue.
    #[default]
    Unlimited,
    /// Constant.
    Constant(Bandwidth),
    /// The rates, or packet opportunities, of a trace.
    Trace(Trace),
}

impl Rate {
    /// The long-term mean rate; `None` if unlimited, or if the trace has no rates.
    pub fn mean(&self) -> Option<Bandwidth> {
        match self {
            Self::Unlimited => None,
            Self::Constant(rate) => Some(*rate),
            Self::Trace(trace) => trace.mean_rate(),
        }
    }
}

impl From<Bandwidth> for Rate {
    fn from(rate: Bandwidth) -> Self {
        Self::Constant(rate)
    }
}

impl From<Trace> for Rate {
    fn from(trace: Trace) -> Self {
        Self::Trace(trace)
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unlimited => f.write_str("unlimited"),
            Self::Constant(rate) => rate.fmt(f),
            Self::Trace(trace) => match trace.mean_rate() {
                Some(mean) => write!(f, "trace (mean {mean})"),
                None => f.write_str("trace"),
            },
        }
    }
}

/// Random delay on top of the propagation delay, drawn for each packet. It's never negative: the
/// propagation delay stays the minimum.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Jitter {
    /// None.
    #[default]
    None,
    /// Uniform from zero to this.
    Uniform(Duration),
    /// Normal; what would be negative is zero. (The sum of twelve uniform variates: it ends at six
    /// standard deviations from the mean.)
    Normal {
        /// Mean.
        mean: Duration,
        /// Standard deviation.
        deviation: Duration,
    },
}

/// How a packet chosen for reordering is made late.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReorderBy {
    /// It arrives this much later than it would, whatever arrives meanwhile.
    Delay(Duration),
    /// It is held back until some later packets have arrived.
    Packets {
        /// How many: at least one.
        count: u32,
        /// It arrives when it has been held this long, even if fewer packets have followed.
        at_most: Duration,
    },
}

/// Reordering of some packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reorder {
    /// The share of delayed packets, 0 to 1.
    pub probability: f64,
    /// The kind of delay.
    pub by: ReorderBy,
}

/// Which columns of a trace a link follows, for [`LinkConfig::trace`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TraceUse {
    /// Follow its rates.
    pub rate: bool,
    /// Add half its round-trip time to the propagation delay.
    pub delay: bool,
    /// Lose packets with the probability of its loss column.
    pub loss: bool,
}

impl TraceUse {
    /// The rates only.
    pub const RATE: Self = Self {
        rate: true,
        delay: false,
        loss: false,
    };

    /// Every column that `trace` has.
    pub fn all(trace: &Trace) -> Self {
        Self {
            rate: trace.has_rate(),
            delay: trace.has_rtt(),
            loss: trace.has_loss(),
        }
    }
}

/// Everything about a link. The default is an ideal one: unlimited rate, no delay, no loss.
///
/// Set the fields, or chain the methods of the same names.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkConfig {
    /// How fast the link transmits. Default: unlimited.
    pub rate: Rate,
    /// Propagation delay, one way, at most a day. Default: none.
    pub delay: Duration,
    /// Adds half the round-trip time of this trace, at the time the packet leaves the queue, to
    /// `delay`. Packets stay in order when it decreases.
    pub delay_trace: Option<Trace>,
    /// Random delay. Default: none.
    pub jitter: Jitter,
    /// Lets jitter and `delay_trace` change the order of packets. Default: false, a packet never
    /// arrives before one sent earlier (unless that one was delayed by `reorder`).
    pub jitter_reorders: bool,
    /// The queue's limit. Default: unlimited.
    pub buffer: Buffer,
    /// The queue discipline. Default: drop-tail.
    pub queue: QueueDiscipline,
    /// The round-trip time that [`Buffer::Bdp`] refers to: that of the whole path, which is unknown
    /// to the link.
    pub bdp_rtt: Option<Duration>,
    /// Random loss, after the queue. Default: none.
    pub loss: LossModel,
    /// Loses packets with the loss probability of this trace at the time they leave the queue, in
    /// addition to `loss`.
    pub loss_trace: Option<Trace>,
    /// Delays some packets. Default: none.
    pub reorder: Option<Reorder>,
    /// Share of packets that are duplicated; an intact copy arrives right after the first, 0 to 1.
    /// Default: 0.
    pub duplicate: f64,
    /// Share of packets in one random byte of which bits are flipped, 0 to 1. Default: 0.
    pub corrupt: f64,
    /// Largest packet in bytes, overhead included; larger ones are dropped. Default: only the limit
    /// of all links, 16 MiB.
    pub mtu: Option<u32>,
    /// ECN-capable packets that find more than this in the queue are marked. With drop-tail only:
    /// the other disciplines have their own rules. Default: never.
    pub ecn_threshold: Option<EcnThreshold>,
    /// Bytes that the link adds to each payload, for serialisation, queue, MTU and counters.
    /// Default: 28, the headers of IPv4 and UDP, for payloads that are UDP datagrams' contents.
    pub per_packet_overhead: u32,
    /// Position in the traces `rate`, `delay_trace` and `loss_trace` at the start of the link.
    /// Default: the start.
    pub trace_offset: Duration,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: Rate::Unlimited,
            delay: Duration::ZERO,
            delay_trace: None,
            jitter: Jitter::None,
            jitter_reorders: false,
            buffer: Buffer::Unlimited,
            queue: QueueDiscipline::DropTail,
            bdp_rtt: None,
            loss: LossModel::None,
            loss_trace: None,
            reorder: None,
            duplicate: 0.0,
            corrupt: 0.0,
            mtu: None,
            ecn_threshold: None,
            per_packet_overhead: 28,
            trace_offset: Duration::ZERO,
        }
    }
}

macro_rules! setters {
    ($($(#[$doc:meta])* $name:ident: $argument:ty => $value:expr;)*) => {
        impl LinkConfig {
            $($(#[$doc])*
            #[must_use]
            pub fn $name(mut self, $name: $argument) -> Self {
                self.$name = $value;
                self
            })*
        }
    };
}

setters! {
    /// Sets [`LinkConfig::rate`](#structfield.rate).
    rate: impl Into<Rate> => rate.into();
    /// Sets [`LinkConfig::delay`](#structfield.delay).
    delay: Duration => delay;
    /// Sets [`LinkConfig::delay_trace`](#structfield.delay_trace).
    delay_trace: Trace => Some(delay_trace);
    /// Sets [`LinkConfig::jitter`](#structfield.jitter).
    jitter: Jitter => jitter;
    /// Sets [`LinkConfig::jitter_reorders`](#structfield.jitter_reorders).
    jitter_reorders: bool => jitter_reorders;
    /// Sets [`LinkConfig::buffer`](#structfield.buffer).
    buffer: Buffer => buffer;
    /// Sets [`LinkConfig::queue`](#structfield.queue).
    queue: QueueDiscipline => queue;
    /// Sets [`LinkConfig::bdp_rtt`](#structfield.bdp_rtt).
    bdp_rtt: Duration => Some(bdp_rtt);
    /// Sets [`LinkConfig::loss`](#structfield.loss).
    loss: LossModel => loss;
    /// Sets [`LinkConfig::loss_trace`](#structfield.loss_trace).
    loss_trace: Trace => Some(loss_trace);
    /// Sets [`LinkConfig::reorder`](#structfield.reorder).
    reorder: Reorder => Some(reorder);
    /// Sets [`LinkConfig::duplicate`](#structfield.duplicate).
    duplicate: f64 => duplicate;
    /// Sets [`LinkConfig::corrupt`](#structfield.corrupt).
    corrupt: f64 => corrupt;
    /// Sets [`LinkConfig::mtu`](#structfield.mtu).
    mtu: u32 => Some(mtu);
    /// Sets [`LinkConfig::ecn_threshold`](#structfield.ecn_threshold).
    ecn_threshold: EcnThreshold => Some(ecn_threshold);
    /// Sets [`LinkConfig::per_packet_overhead`](#structfield.per_packet_overhead).
    per_packet_overhead: u32 => per_packet_overhead;
    /// Sets [`LinkConfig::trace_offset`](#structfield.trace_offset).
    trace_offset: Duration => trace_offset;
}

impl LinkConfig {
    /// Follows the columns of `trace` that `columns` names.
    #[must_use]
    pub fn trace(mut self, trace: &Trace, columns: TraceUse) -> Self {
        if columns.rate {
            self.rate = Rate::Trace(trace.clone());
        }
        if columns.delay {
            self.delay_trace = Some(trace.clone());
        }
        if columns.loss {
            self.loss_trace = Some(trace.clone());
        }
        self
    }

    /// Checks that every value is in its range and that the values are consistent.
    pub fn validate(&self) -> Result<(), LinkConfigError> {
        self.validate_rate()?;
        self.validate_delays()?;
        self.validate_probabilities()?;
        for (field, trace, has_column, column) in [
            (
                "delay_trace",
                &self.delay_trace,
                Trace::has_rtt as fn(&Trace) -> bool,
                "rtt_ms",
            ),
            ("loss_trace", &self.loss_trace, Trace::has_loss, "loss"),
        ] {
            if trace.as_ref().is_some_and(|trace| !has_column(trace)) {
                return Err(LinkConfigError::TraceColumn { field, column });
            }
        }
        if let Some(mtu) = self.mtu
            && mtu <= self.per_packet_overhead
        {
            return Err(LinkConfigError::Mtu {
                mtu,
                overhead: self.per_packet_overhead,
            });
        }
        if self.per_packet_overhead > u32::from(u16::MAX) {
            return Err(LinkConfigError::Overhead {
                overhead: self.per_packet_overhead,
            });
        }
        self.queue.validate()?;
        if self.ecn_threshold.is_some() && self.queue != QueueDiscipline::DropTail {
            return Err(LinkConfigError::EcnThresholdWithoutDropTail);
        }
        self.queue.validate_with(self.limit()?)?;
        Ok(())
    }

    /// The queue's limit with bandwidth-delay products resolved to bytes (at least one).
    pub fn resolved_buffer(&self) -> Result<Buffer, LinkConfigError> {
        let Buffer::Bdp(factor) = self.buffer else {
            return Ok(self.buffer);
        };
        if !(factor > 0.0 && factor <= 1e6) {
            return Err(LinkConfigError::BdpFactor { factor });
        }
        let rate = self.rate.mean().ok_or(LinkConfigError::BdpNeedsRate)?;
        let rtt = self.bdp_rtt.ok_or(LinkConfigError::BdpNeedsRtt)?;
        let bytes = ByteCount::new(rate.bytes_in(rtt)).scaled(factor);
        Ok(Buffer::Bytes(bytes.max(ByteCount::new(1))))
    }

    pub(crate) fn limit(&self) -> Result<Limit, LinkConfigError> {
        let none = Limit {
            bytes: u64::MAX,
            packets: u64::MAX,
        };
        match self.resolved_buffer()? {
            Buffer::Bytes(ByteCount::ZERO) | Buffer::Packets(PacketCount::ZERO) => {
                Err(LinkConfigError::BufferZero)
            }
            Buffer::Bytes(bytes) => Ok(Limit {
                bytes: bytes.get(),
                ..none
            }),
            Buffer::Packets(packets) => Ok(Limit {
                packets: packets.get(),
                ..none
            }),
            Buffer::Unlimited | Buffer::Bdp(_) => Ok(none),
        }
    }

    fn validate_rate(&self) -> Result<(), LinkConfigError> {
        match &self.rate {
            Rate::Constant(Bandwidth::ZERO) => Err(LinkConfigError::RateZero),
            Rate::Constant(rate) if *rate > MAX_RATE => {
                Err(LinkConfigError::RateTooHigh { rate: *rate })
            }
            Rate::Trace(trace) if !trace.has_rate() => Err(LinkConfigError::TraceColumn {
                field: "rate",
                column: "rate_kbps",
            }),
            Rate::Trace(trace) if !trace.ever_passes() => Err(LinkConfigError::TraceAlwaysZero),
            Rate::Unlimited | Rate::Constant(_) | Rate::Trace(_) => Ok(()),
        }
    }

    fn validate_delays(&self) -> Result<(), LinkConfigError> {
        let check = |field, value| {
            if value > MAX_DELAY {
                return Err(LinkConfigError::TooLong { field, value });
            }
            Ok(())
        };
        check("delay", self.delay)?;
        check("bdp_rtt", self.bdp_rtt.unwrap_or_default())?;
        check("trace_offset", self.trace_offset)?;
        match self.jitter {
            Jitter::None => {}
            Jitter::Uniform(max) => check("jitter", max)?,
            Jitter::Normal { mean, deviation } => {
                check("jitter: mean", mean)?;
                check("jitter: deviation", deviation)?;
            }
        }
        match self.reorder.map(|reorder| reorder.by) {
            None => Ok(()),
            Some(ReorderBy::Delay(delay)) => check("reorder: delay", delay),
            Some(ReorderBy::Packets { count: 0, .. }) => Err(LinkConfigError::ReorderByNothing),
            Some(ReorderBy::Packets { at_most, .. }) => check("reorder: at_most", at_most),
        }
    }

    fn validate_probabilities(&self) -> Result<(), LinkConfigError> {
        if let Some((field, value)) = self.loss.invalid() {
            return Err(LinkConfigError::Probability { field, value });
        }
        if let Some(value) = self.loss.invalid_step() {
            return Err(LinkConfigError::LossStep { value });
        }
        let reorder = self.reorder.map_or(0.0, |reorder| reorder.probability);
        for (field, value) in [
            ("duplicate", self.duplicate),
            ("corrupt", self.corrupt),
            ("reorder", reorder),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(LinkConfigError::Probability { field, value });
            }
        }
        Ok(())
    }
}

/// Why a [`LinkConfig`] is invalid.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum LinkConfigError {
    /// A probability is out of range.
    #[error("{field} is {value}; a probability must be from 0 to 1")]
    Probability {
        /// The field of the configuration.
        field: &'static str,
        /// Its value.
        value: f64,
    },
    /// Out of range.
    #[error("delays are {value} times as long; the factor must be from 1 to 1000")]
    DelayFactor {
        /// The factor.
        value: f64,
    },
    /// The step of the loss model is out of range.
    #[error("loss: a step is {value:?}; it must be from 1 ms to a day")]
    LossStep {
        /// The length of a step.
        value: Duration,
    },
    /// No packet would ever pass.
    #[error("rate is 0, so nothing would ever pass; give a positive rate, or none for unlimited")]
    RateZero,
    /// Out of range.
    #[error("rate is {rate}; it must be at most 10 Tbit/s, or unlimited")]
    RateTooHigh {
        /// The rate.
        rate: Bandwidth,
    },
    /// A trace lacks a required column.
    #[error("{field} follows a trace whose column {column} is empty; choose another trace")]
    TraceColumn {
        /// The field of the configuration.
        field: &'static str,
        /// The required column.
        column: &'static str,
    },
    /// No packet would ever pass.
    #[error("rate follows a trace that is 0 throughout, so nothing would ever pass")]
    TraceAlwaysZero,
    /// The queue discipline is invalid.
    #[error("queue: {0}")]
    Queue(#[from] QueueConfigError),
    /// Two marking rules.
    #[error("ecn_threshold is for drop-tail queues; leave it out, or set queue to droptail")]
    EcnThresholdWithoutDropTail,
    /// The queue has no space.
    #[error("buffer is 0; it must be at least 1 byte or 1 packet, or unlimited")]
    BufferZero,
    /// Out of range.
    #[error("buffer is {factor} bandwidth-delay products; it must be above 0 and at most 1000000")]
    BdpFactor {
        /// The number of bandwidth-delay products.
        factor: f64,
    },
    /// A bandwidth-delay product without bandwidth.
    #[error("buffer is in bandwidth-delay products, which needs a rate; set rate, or give bytes")]
    BdpNeedsRate,
    /// A bandwidth-delay product without delay.
    #[error("buffer is in bandwidth-delay products of an unknown delay; set bdp_rtt to the path's")]
    BdpNeedsRtt,
    /// Out of range.
    #[error("{field} is {value:?}; it must be at most a day")]
    TooLong {
        /// The field of the configuration.
        field: &'static str,
        /// Its value.
        value: Duration,
    },
    /// Reordering without effect.
    #[error("reorder holds packets back by 0 packets; it must be at least 1")]
    ReorderByNothing,
    /// No space for payload.
    #[error("mtu is {mtu}, no more than the per-packet overhead of {overhead}; nothing would pass")]
    Mtu {
        /// The MTU.
        mtu: u32,
        /// The overhead that it includes.
        overhead: u32,
    },
    /// Out of range.
    #[error("per_packet_overhead is {overhead}; it must be at most 65535")]
    Overhead {
        /// The overhead.
        overhead: u32,
    },
}
