//! Flags that describe emulated links, and the resulting link configurations.

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use swiftwater::link::{
    Buffer, EcnThreshold, Jitter, LinkConfig, LossModel, QueueDiscipline, Rate, Reorder, ReorderBy,
    Trace, TraceUse, parse_duration, parse_probability,
};
use swiftwater::units::ByteCount;
use thiserror::Error;

use crate::exit::{Exit, Failure, plain_io_error};
use crate::files::{MAX_TRACE, read_limited};

/// Default lower bound of the queue of a link with a rate.
const MIN_DEFAULT_BUFFER: ByteCount = ByteCount::new(64_000);

/// Longest wait of a packet held back by `--reorder SHARE,Np`.
const REORDER_AT_MOST: Duration = Duration::from_millis(100);

/// The links of a relay.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Link")]
pub struct RelayLinkArgs {
    /// Rate of each direction: 20mbit, 800kbps, unlimited [default: unlimited]
    #[arg(long, value_name = "RATE", conflicts_with = "trace")]
    pub rate: Option<Rate>,

    /// Delay of each direction (half the round-trip time): 30ms
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub delay: Option<Duration>,

    /// Random loss: 1%, or in bursts: ge:10%,60%@3ms starts a burst with 10 % probability per step of 3 ms
    /// and ends it with 60 % (Gilbert-Elliott); without @TIME the steps are packets, so that a burst lasts
    /// while nothing is sent
    #[arg(long, value_name = "LOSS")]
    pub loss: Option<LossModel>,

    /// Random delay: 5ms (uniform, 0 to 5 ms) or normal:MEAN,DEVIATION
    #[arg(long, value_name = "JITTER", value_parser = parse_jitter)]
    pub jitter: Option<Jitter>,

    /// Size of the queue: bytes (64kB), packets (100p), 1bdp, or unlimited [default: 1bdp, at least 64 kB, if
    /// there is a rate]
    #[arg(long, value_name = "SIZE")]
    pub buffer: Option<Buffer>,

    /// The queue discipline: droptail, red, codel, fq-codel or dualpi2, with parameters if needed
    /// (codel:target=5ms,interval=100ms) [default: droptail]
    #[arg(long, value_name = "DISCIPLINE")]
    pub queue: Option<QueueDiscipline>,

    /// Delay a share of packets: 1%,5ms or 1%,3p (until 3 others have passed)
    #[arg(long, value_name = "SHARE,BY", value_parser = parse_reorder)]
    pub reorder: Option<Reorder>,

    /// Share of packets that are duplicated
    #[arg(long, value_name = "SHARE", value_parser = parse_probability)]
    pub duplicate: Option<f64>,

    /// Share of packets in which bits are flipped
    #[arg(long, value_name = "SHARE", value_parser = parse_probability)]
    pub corrupt: Option<f64>,

    /// Drop packets larger than this, bytes with IP and UDP headers (28)
    #[arg(long, value_name = "BYTES")]
    pub mtu: Option<u32>,

    /// Mark ECN-capable packets that find more than this in the queue (droptail only): 30kB, 20p
    /// or 5ms
    #[arg(long, value_name = "THRESHOLD", value_parser = parse_ecn_threshold)]
    pub ecn_threshold: Option<EcnThreshold>,

    /// Follow a trace file in the direction to the clients (rate, round-trip time and loss, as far
    /// as present); the other direction follows its round-trip time
    #[arg(long, value_name = "FILE")]
    pub trace: Option<PathBuf>,

    /// Rate from clients to server, if different
    #[arg(long, value_name = "RATE")]
    pub up_rate: Option<Rate>,

    /// Delay from clients to server, if different
    #[arg(long, value_name = "TIME", value_parser = parse_duration)]
    pub up_delay: Option<Duration>,

    /// Loss from clients to server, if different
    #[arg(long, value_name = "LOSS")]
    pub up_loss: Option<LossModel>,

    /// Size of the queue from clients to server, if different
    #[arg(long, value_name = "SIZE")]
    pub up_buffer: Option<Buffer>,
}

/// A link for each direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Links {
    /// From clients to server.
    pub up: LinkConfig,
    /// From server to clients.
    pub down: LinkConfig,
}

impl RelayLinkArgs {
    /// The links that the flags describe, checked.
    pub fn links(&self) -> Result<Links, Failure> {
        let trace = self.trace.as_deref().map(read_trace).transpose()?;
        let mut down = self.common();
        let mut up = self.common();
        if let Some(rate) = &self.up_rate {
            up.rate = rate.clone();
        }
        up.delay = self.up_delay.unwrap_or(up.delay);
        up.loss = self.up_loss.unwrap_or(up.loss);
        let mut rtt = down.delay + up.delay;
        if let Some(trace) = &trace {
            let columns = TraceUse::all(trace);
            down = down.trace(trace, columns);
            up = up.trace(
                trace,
                TraceUse {
                    rate: false,
                    loss: false,
                    ..columns
                },
            );
            rtt += trace.mean_rtt().unwrap_or_default();
        }
        down.bdp_rtt = Some(rtt);
        up.bdp_rtt = Some(rtt);
        down.buffer = self.buffer.unwrap_or_else(|| default_buffer(&down));
        up.buffer = self
            .up_buffer
            .or(self.buffer)
            .unwrap_or_else(|| default_buffer(&up));
        for (direction, link) in [("to the server", &up), ("to the clients", &down)] {
            link.validate().map_err(|error| {
                Failure::new(
                    Exit::Usage,
                    format_args!("the link {direction} is invalid: {error}"),
                )
            })?;
        }
        Ok(Links { up, down })
    }

    /// These, and for what they leave open those of `base`.
    #[must_use]
    pub fn or(&self, base: &Self) -> Self {
        let has_rate = self.rate.is_some() || self.trace.is_some();
        let base_rate = if has_rate { None } else { base.rate.clone() };
        let base_trace = if has_rate { None } else { base.trace.clone() };
        Self {
            rate: self.rate.clone().or(base_rate),
            trace: self.trace.clone().or(base_trace),
            delay: self.delay.or(base.delay),
            loss: self.loss.or(base.loss),
            jitter: self.jitter.or(base.jitter),
            buffer: self.buffer.or(base.buffer),
            queue: self.queue.or(base.queue),
            reorder: self.reorder.or(base.reorder),
            duplicate: self.duplicate.or(base.duplicate),
            corrupt: self.corrupt.or(base.corrupt),
            mtu: self.mtu.or(base.mtu),
            ecn_threshold: self.ecn_threshold.or(base.ecn_threshold),
            up_rate: self.up_rate.clone().or(base.up_rate.clone()),
            up_delay: self.up_delay.or(base.up_delay),
            up_loss: self.up_loss.or(base.up_loss),
            up_buffer: self.up_buffer.or(base.up_buffer),
        }
    }

    /// Settings common to both directions.
    fn common(&self) -> LinkConfig {
        LinkConfig {
            rate: self.rate.clone().unwrap_or_default(),
            delay: self.delay.unwrap_or_default(),
            loss: self.loss.unwrap_or_default(),
            jitter: self.jitter.unwrap_or_default(),
            reorder: self.reorder,
            duplicate: self.duplicate.unwrap_or_default(),
            corrupt: self.corrupt.unwrap_or_default(),
            mtu: self.mtu,
            ecn_threshold: self.ecn_threshold,
            queue: self.queue.unwrap_or_default(),
            ..LinkConfig::default()
        }
    }
}

/// One bandwidth-delay product, at least [`MIN_DEFAULT_BUFFER`]; unlimited without a rate.
fn default_buffer(link: &LinkConfig) -> Buffer {
    let Some(rate) = link.rate.mean() else {
        return Buffer::Unlimited;
    };
    let product = rate.bytes_in(link.bdp_rtt.unwrap_or_default());
    Buffer::Bytes(ByteCount::new(product).max(MIN_DEFAULT_BUFFER))
}

/// Reads a trace in either format.
pub fn read_trace(path: &Path) -> Result<Trace, Failure> {
    let unusable = |why: &dyn std::fmt::Display| {
        Failure::new(Exit::LocalFile, format_args!("{}: {why}", path.display()))
    };
    let content =
        read_limited(path, MAX_TRACE).map_err(|error| unusable(&plain_io_error(&error)))?;
    let text = String::from_utf8(content).map_err(|_| unusable(&"it is not text"))?;
    Trace::detect(&text).map_err(|error| unusable(&error))
}

/// A value of one of the flags that could not be parsed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("'{input}' not understood: write {expected}")]
pub struct LinkArgError {
    input: String,
    expected: &'static str,
}

/// Reads `5ms` or `normal:10ms,2ms`.
pub fn parse_jitter(input: &str) -> Result<Jitter, LinkArgError> {
    let fail = || LinkArgError {
        input: input.to_owned(),
        expected: "the largest random delay (5ms), or normal:MEAN,DEVIATION (normal:10ms,2ms)",
    };
    let duration = |text| parse_duration(text).map_err(|_| fail());
    match input.trim().strip_prefix("normal:") {
        None => duration(input).map(Jitter::Uniform),
        Some(parameters) => {
            let (mean, deviation) = parameters.split_once(',').ok_or_else(fail)?;
            Ok(Jitter::Normal {
                mean: duration(mean)?,
                deviation: duration(deviation)?,
            })
        }
    }
}

/// Reads `1%,5ms` or `1%,3p`.
pub fn parse_reorder(input: &str) -> Result<Reorder, LinkArgError> {
    let fail = || LinkArgError {
        input: input.to_owned(),
        expected: "a share and a delay (1%,5ms) or a number of packets (1%,3p)",
    };
    let (share, by) = input.split_once(',').ok_or_else(fail)?;
    let probability = parse_probability(share).map_err(|_| fail())?;
    let by = match by.trim().strip_suffix('p') {
        Some(count) => ReorderBy::Packets {
            count: count
                .parse()
                .ok()
                .filter(|count| *count > 0)
                .ok_or_else(fail)?,
            at_most: REORDER_AT_MOST,
        },
        None => ReorderBy::Delay(parse_duration(by).map_err(|_| fail())?),
    };
    Ok(Reorder { probability, by })
}

/// Reads `30kB`, `20p` or `5ms`.
pub fn parse_ecn_threshold(input: &str) -> Result<EcnThreshold, LinkArgError> {
    match input.parse() {
        Ok(Buffer::Bytes(bytes)) => return Ok(EcnThreshold::Bytes(bytes)),
        Ok(Buffer::Packets(packets)) => return Ok(EcnThreshold::Packets(packets)),
        _ => {}
    }
    parse_duration(input)
        .map(EcnThreshold::Delay)
        .map_err(|_| LinkArgError {
            input: input.to_owned(),
            expected: "bytes (30kB), packets (20p) or a waiting time (5ms)",
        })
}
