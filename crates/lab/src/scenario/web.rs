//! The keys of `app = "web"`: a user who browses one site over QUIC and TCP, as a selector of protocols decides.

use std::time::Duration;

use swiftwater_link::{Buffer, ParseError};
use swiftwater_select::{Boundary, Strategy};
use swiftwater_units::Bandwidth;

use super::error::Read;
use super::reader::{LONGEST, Reader};

/// Keys of the application.
pub(super) const KEYS: &[&str] = &[
    "strategy",
    "models",
    "experiment_size",
    "score_threshold",
    "stall_factor",
    "stall_factor_min",
    "plus_spread",
    "hedge_floor",
    "policer",
    "walk",
    "requests",
    "bytes",
    "think",
    "clicks",
    "tcp_delay",
];

/// Requests of a click, mean (WiseTrans, section on live experiments).
const REQUESTS: f64 = 13.5;

/// Time from a complete page to the next click, mean.
const THINK: Duration = Duration::from_secs(3);

/// The range of `hedge_floor`, that of the selector's parameter.
const SHORTEST_HEDGE: Duration = Duration::from_millis(10);
const LONGEST_HEDGE: Duration = Duration::from_secs(10);

/// Largest response.
const MAX_RESPONSE: u64 = 1 << 30;

/// A browsing user.
#[derive(Clone, Debug, PartialEq)]
pub struct WebSpec {
    /// How protocols are chosen.
    pub choice: WebChoice,
    /// The models of strategies that use some.
    pub models: WebModels,
    /// Requests per protocol in an experiment; `None` is the selector's default.
    pub experiment_size: Option<u64>,
    /// Movement of the score that starts an experiment; `None` is the selector's default.
    pub score_threshold: Option<f64>,
    /// Mean times to first byte after which a request on QUIC also goes over TCP; `None` is the selector's default.
    pub stall_factor: Option<f64>,
    /// Least mean times to first byte before that, of the selector.
    pub stall_factor_min: Option<f64>,
    /// Relative gain from which `plus` sends a request where it waits for fewer others, of the selector.
    pub plus_spread: Option<f64>,
    /// Least time after which a request on QUIC also goes over TCP; `None` is the selector's default.
    pub hedge_floor: Option<Duration>,
    /// What the network does to QUIC only.
    pub policer: Policer,
    /// The link walks at random over a grid of conditions, with this time at each; `None`: it is as its
    /// table says.
    pub walk: Option<Duration>,
    /// Requests of a click, mean of a geometric distribution.
    pub requests: f64,
    /// Bytes of each response; `None` draws 2, 10, 30 or 50 kB for each.
    pub bytes: Option<u64>,
    /// Time from a complete page to the next click, mean of an exponential distribution.
    pub think: Duration,
    /// Clicks after which the user leaves; `None`: there are clicks until the end of the run.
    pub clicks: Option<u64>,
    /// Time by which both ends are late with each TCP segment: a slow implementation.
    pub tcp_delay: Duration,
}

/// Who chooses the protocol of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum WebChoice {
    /// A selector with this strategy.
    Selector(Strategy),
    /// In each condition the protocol with the lesser mean, found by browsing with each of them first.
    Ideal,
}

/// The models of a selector.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum WebModels {
    /// Those of the crate.
    Shipped,
    /// The one that was trained on requests over both protocols, for both.
    Single,
    /// None.
    None,
}

/// What the network does to QUIC only, in both directions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Policer {
    /// Nothing.
    None,
    /// Drops this share of the datagrams.
    Loss(f64),
    /// Drops what exceeds this rate; 32 kB may come at once.
    Rate(Bandwidth),
    /// Drops everything from this time on.
    Block(Duration),
}

/// The boundary of the strawman: a logistic regression over the same rows as the models (`training/`).
const STRAWMAN: Boundary = Boundary {
    bias: 1.62747,
    rtt: -0.00035,
    bandwidth: 0.00096,
    loss: -0.60314,
};

fn strategies() -> Vec<(&'static str, WebChoice)> {
    let v2 = |trigger, rollback| Strategy::WiseV2 { trigger, rollback };
    let named = [
        ("strawman", Strategy::Strawman(STRAWMAN)),
        ("wise1", Strategy::wise_v1()),
        ("wise1-no-rollback", Strategy::WiseV1 { rollback: false }),
        ("wise", Strategy::wise()),
        ("wise-no-trigger", v2(false, true)),
        ("wise-no-rollback", v2(true, false)),
        ("plus", Strategy::Plus),
        ("h2", Strategy::Fixed(swiftwater_select::Arm::h2())),
        ("h3", Strategy::Fixed(swiftwater_select::Arm::h3())),
    ];
    let named = named.map(|(name, strategy)| (name, WebChoice::Selector(strategy)));
    let ideal = ("ideal", WebChoice::Ideal);
    named.into_iter().chain([ideal]).collect()
}

/// Reads the keys.
pub(super) fn read(row: &Reader<'_>) -> Read<WebSpec> {
    let known = strategies();
    let places: Vec<(&str, usize)> = (known.iter().map(|(name, _)| *name)).zip(0..).collect();
    let place = row.word("strategy", &places)?;
    let place = row.need("strategy", place, "such as \"wise\", \"h2\" or \"ideal\"")?;
    let models = [
        ("shipped", WebModels::Shipped),
        ("single", WebModels::Single),
        ("none", WebModels::None),
    ];
    let shortest = Duration::from_secs(1);
    Ok(WebSpec {
        choice: known[place].1.clone(),
        models: row.word("models", &models)?.unwrap_or(WebModels::Shipped),
        experiment_size: row.whole("experiment_size", 2..=8)?,
        score_threshold: row.number("score_threshold", 0.01..=1.0)?,
        stall_factor: row.number("stall_factor", 1.0..=50.0)?,
        stall_factor_min: row.number("stall_factor_min", 1.0..=50.0)?,
        plus_spread: row.number("plus_spread", 0.0..=1.0)?,
        hedge_floor: row.duration("hedge_floor", SHORTEST_HEDGE..=LONGEST_HEDGE)?,
        policer: read_policer(row)?,
        walk: row.duration("walk", shortest..=LONGEST)?,
        requests: row.number("requests", 1.0..=1000.0)?.unwrap_or(REQUESTS),
        bytes: read_bytes(row)?,
        think: (row.duration("think", Duration::ZERO..=LONGEST)?).unwrap_or(THINK),
        clicks: row.whole("clicks", 1..=1_000_000)?,
        tcp_delay: (row.duration("tcp_delay", Duration::ZERO..=Duration::from_secs(1))?)
            .unwrap_or_default(),
    })
}

fn read_policer(row: &Reader<'_>) -> Read<Policer> {
    let Some(text) = row.string("policer")? else {
        return Ok(Policer::None);
    };
    let expected = "write \"none\", \"block\", \"block:30s\", \"loss:0.05\" or \"rate:512kbit\"";
    let fault = || row.fault("policer", expected);
    let (name, value) = text.split_once(':').unwrap_or((text, ""));
    match name {
        "none" if value.is_empty() => Ok(Policer::None),
        "block" if value.is_empty() => Ok(Policer::Block(Duration::ZERO)),
        "block" => match swiftwater_link::parse_duration(value) {
            Ok(from) if from <= LONGEST => Ok(Policer::Block(from)),
            _ => Err(fault()),
        },
        "loss" => match value.parse::<f64>() {
            Ok(share) if (0.0..=1.0).contains(&share) => Ok(Policer::Loss(share)),
            _ => Err(fault()),
        },
        "rate" => match swiftwater_link::parse_rate(value) {
            Ok(rate) if !rate.is_zero() => Ok(Policer::Rate(rate)),
            _ => Err(fault()),
        },
        _ => Err(fault()),
    }
}

fn read_bytes(row: &Reader<'_>) -> Read<Option<u64>> {
    if matches!(row.string("bytes"), Ok(Some("mixed"))) {
        return Ok(None);
    }
    let expected = "write bytes, at most 1 GiB (30000, \"30kB\"), or \"mixed\"";
    let bytes = row.parse("bytes", |text| match text.parse() {
        Ok(Buffer::Bytes(bytes)) => Ok(bytes.get()),
        _ => Err(ParseError::new("size", text, expected)),
    })?;
    match bytes {
        Some(bytes) if !(1..=MAX_RESPONSE).contains(&bytes) => Err(row.fault("bytes", expected)),
        bytes => Ok(bytes),
    }
}
