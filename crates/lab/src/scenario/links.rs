//! Parses `[[link]]`: the chain between the routers.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use swiftwater_link::{
    Buffer, EcnThreshold, Jitter, LinkConfig, LossModel, ParseError, Rate, Reorder, ReorderBy,
    TraceUse, parse_duration, parse_probability,
};

use super::error::{Fault, Read, known_names};
use super::reader::{LONGEST, Reader};
use super::run::RunSettings;
use super::setup::LinkSpec;
use super::sweep::is_name;
use super::traces::Traces;

const KEYS: [&str; 13] = [
    "name",
    "rate",
    "trace",
    "scale",
    "columns",
    "delay",
    "buffer",
    "queue",
    "loss",
    "jitter",
    "ecn_threshold",
    "reorder",
    "backward",
];

/// Most links of a chain.
const MAX_LINKS: usize = 64;

/// Tolerance of the sum of delays against half the round-trip time.
const ROUNDING: Duration = Duration::from_micros(1);

/// Division of propagation delays.
#[derive(Clone, Copy, Debug)]
struct Delays {
    /// Of each link without an explicit delay.
    default: Duration,
    /// Whether a trace adds to them, so that the sum need not be half the round-trip time.
    traced: bool,
}

/// The links of one case, with the identities of their traces.
#[derive(Debug)]
pub(super) struct Links {
    pub(super) specs: Vec<LinkSpec>,
    /// By link index.
    pub(super) traces: BTreeMap<usize, String>,
}

/// Parses all links; `rows` are the tables with the case's values substituted.
pub(super) fn read(rows: &[Reader<'_>], run: &RunSettings, traces: &mut Traces) -> Read<Links> {
    if rows.len() > MAX_LINKS {
        return Err(Fault::new(
            rows[MAX_LINKS].line(),
            format!("{} links", rows.len()),
            format!("at most {MAX_LINKS}"),
        ));
    }
    let mut links = Links {
        specs: Vec::new(),
        traces: BTreeMap::new(),
    };
    let delays = share_delays(rows, run)?;
    for (index, row) in rows.iter().enumerate() {
        let default_name = match rows.len() {
            1 => "bottleneck".to_owned(),
            _ => format!("link{index}"),
        };
        let name = read_name(row, &default_name)?;
        let row = row.renamed(format!("[[link]] `{name}`"));
        row.only(&KEYS)?;
        links.add(&row, name, run, delays.default, traces)?;
    }
    check_delays(rows, &links.specs, run, delays)?;
    Ok(links)
}

/// Parses links in parallel, each with a round-trip time of its own: `[[path]]`.
pub(super) fn read_parallel(
    rows: &[Reader<'_>],
    run: &RunSettings,
    traces: &mut Traces,
) -> Read<Links> {
    if rows.len() > MAX_LINKS {
        return Err(Fault::new(
            rows[MAX_LINKS].line(),
            format!("{} paths", rows.len()),
            format!("at most {MAX_LINKS}"),
        ));
    }
    let mut links = Links {
        specs: Vec::new(),
        traces: BTreeMap::new(),
    };
    let known: Vec<&str> = KEYS.into_iter().chain(["rtt"]).collect();
    for (index, row) in rows.iter().enumerate() {
        let name = read_name(row, &format!("path{index}"))?;
        let row = row.renamed(format!("[[path]] `{name}`"));
        row.only(&known)?;
        let rtt = row.duration("rtt", Duration::from_micros(1)..=LONGEST)?;
        let own = RunSettings {
            rtt: rtt.unwrap_or(run.rtt),
            ..run.clone()
        };
        let delays = share_delays(std::slice::from_ref(&row), &own)?;
        links.add(&row, name, &own, delays.default, traces)?;
        let last = &links.specs[links.specs.len() - 1..];
        check_delays(std::slice::from_ref(&row), last, &own, delays)?;
    }
    Ok(links)
}

impl Links {
    /// Reads one link.
    fn add(
        &mut self,
        row: &Reader<'_>,
        name: String,
        run: &RunSettings,
        delay: Duration,
        traces: &mut Traces,
    ) -> Read<()> {
        if self.specs.iter().any(|link| link.name == name) {
            return Err(row.fault("name", "another link has that name"));
        }
        let (forward, identity) = read_forward(row, run, delay, traces)?;
        let backward = read_backward(row, &forward)?;
        if let Some(identity) = identity {
            self.traces.insert(self.specs.len(), identity);
        }
        self.specs.push(LinkSpec {
            name,
            forward,
            backward,
        });
        Ok(())
    }
}

/// The delays of a chain must add up to its round-trip time.
fn check_delays(
    rows: &[Reader<'_>],
    links: &[LinkSpec],
    run: &RunSettings,
    delays: Delays,
) -> Read<()> {
    let way: Duration = links.iter().map(|link| link.forward.delay).sum();
    let rounding = ROUNDING * rows.len() as u32;
    let half = run.rtt / 2;
    if way > half + rounding || (way + rounding < half && !delays.traced) {
        let last = rows.iter().rev().find(|row| row.has("delay"));
        return Err(last.or(rows.last()).map_or_else(
            || Fault::new(1, "no links", "at least one"),
            |row| {
                row.fault(
                    "delay",
                    format!(
                        "the links' delays are {way:?} one way; they must add up to half of \
                         `rtt`, {half:?} (a flow may have `extra_rtt`)"
                    ),
                )
            },
        ));
    }
    Ok(())
}

/// The remainder of half the round-trip time is divided equally among the links without an explicit
/// delay. A link that follows the delays of a trace has no constant delay unless it names one.
fn share_delays(rows: &[Reader<'_>], run: &RunSettings) -> Read<Delays> {
    let mut rest = run.rtt / 2;
    let mut sharing = 0;
    let mut traced = false;
    for row in rows {
        let follows = row.strings("columns")?.iter().any(|name| name == "delay");
        traced |= follows;
        match row.duration("delay", Duration::ZERO..=LONGEST)? {
            Some(delay) => rest = rest.saturating_sub(delay),
            None if follows => {}
            None => sharing += 1,
        }
    }
    Ok(Delays {
        default: rest.checked_div(sharing).unwrap_or_default(),
        traced,
    })
}

/// The name of a link or flow.
pub(super) fn read_name(row: &Reader<'_>, default: &str) -> Read<String> {
    let name = row.string("name")?.unwrap_or(default);
    if is_name(name) {
        return Ok(name.to_owned());
    }
    Err(row.fault(
        "name",
        "names have letters, digits, - and _, and begin with a letter",
    ))
}

fn read_forward(
    row: &Reader<'_>,
    run: &RunSettings,
    default_delay: Duration,
    traces: &mut Traces,
) -> Read<(LinkConfig, Option<String>)> {
    let mut link = LinkConfig::default().bdp_rtt(run.rtt);
    link.delay = default_delay;
    let mut identity = None;
    match (row.rate("rate")?, row.string("trace")?) {
        (Some(rate), None) => {
            if let Some(key) = ["columns", "scale"].into_iter().find(|key| row.has(key)) {
                return Err(row.fault(key, "it goes with `trace`, not with `rate`"));
            }
            link.rate = Rate::Constant(rate);
        }
        (None, Some(name)) => {
            let mut named = traces.get(row, "trace", name, run.duration)?;
            if let Some(factor) = row.number("scale", 0.001..=1000.0)? {
                named.trace = named.trace.scaled(factor);
                let _ = write!(named.identity, " scaled by {factor}");
            }
            let columns = read_columns(row)?;
            if columns.delay {
                link.delay = Duration::ZERO;
            }
            link = link.trace(&named.trace, columns);
            identity = Some(named.identity);
        }
        (Some(_), Some(_)) => {
            return Err(row.fault("trace", "write either `rate` or `trace`, not both"));
        }
        (None, None) => {
            return Err(row.fault("rate", "it is required: such as \"100mbit\", or `trace`"));
        }
    }
    if let Some(delay) = row.duration("delay", Duration::ZERO..=LONGEST)? {
        link.delay = delay;
    }
    link.buffer = Buffer::Bdp(1.0);
    read_common(row, &mut link)?;
    link.reorder = read_reorder(row)?;
    check(row, &link)?;
    Ok((link, identity))
}

/// The columns of a trace that are used.
fn read_columns(row: &Reader<'_>) -> Read<TraceUse> {
    let names = row.strings("columns")?;
    if !row.has("columns") {
        return Ok(TraceUse::RATE);
    }
    let mut columns = TraceUse {
        rate: false,
        delay: false,
        loss: false,
    };
    for name in &names {
        match name.as_str() {
            "rate" => columns.rate = true,
            "delay" => columns.delay = true,
            "loss" => columns.loss = true,
            other => {
                let known = known_names(other, ["rate", "delay", "loss"]);
                return Err(row.fault("columns", format!("no column `{other}`: {known}")));
            }
        }
    }
    if !columns.rate {
        return Err(row.fault("columns", "\"rate\" must be among them"));
    }
    Ok(columns)
}

fn read_backward(row: &Reader<'_>, forward: &LinkConfig) -> Read<LinkConfig> {
    let mut link = LinkConfig {
        rate: forward.rate.clone(),
        delay: forward.delay,
        delay_trace: forward.delay_trace.clone(),
        bdp_rtt: forward.bdp_rtt,
        ..LinkConfig::default()
    };
    if let Some(table) = row.table("backward")? {
        table.only(&["rate", "buffer", "queue", "loss", "jitter", "ecn_threshold"])?;
        if let Some(rate) = table.rate("rate")? {
            link.rate = Rate::Constant(rate);
        }
        read_common(&table, &mut link)?;
        check(&table, &link)?;
    }
    Ok(link)
}

/// Settings of both directions.
fn read_common(row: &Reader<'_>, link: &mut LinkConfig) -> Read<()> {
    if let Some(buffer) = row.parse("buffer", str::parse)? {
        link.buffer = buffer;
    }
    if let Some(queue) = row.parse("queue", str::parse)? {
        link.queue = queue;
    }
    if let Some(loss) = row.parse("loss", str::parse::<LossModel>)? {
        link.loss = loss;
    }
    link.jitter = match row.duration("jitter", Duration::ZERO..=LONGEST)? {
        None | Some(Duration::ZERO) => Jitter::None,
        Some(jitter) => Jitter::Uniform(jitter),
    };
    link.ecn_threshold = row.parse("ecn_threshold", parse_threshold)?;
    Ok(())
}

fn parse_threshold(text: &str) -> Result<EcnThreshold, ParseError> {
    match text.parse() {
        Ok(Buffer::Bytes(bytes)) => return Ok(EcnThreshold::Bytes(bytes)),
        Ok(Buffer::Packets(packets)) => return Ok(EcnThreshold::Packets(packets)),
        _ => {}
    }
    parse_duration(text).map(EcnThreshold::Delay).map_err(|_| {
        ParseError::new(
            "threshold",
            text,
            "write bytes (64kB), packets (30p) or a time (1ms)",
        )
    })
}

fn read_reorder(row: &Reader<'_>) -> Read<Option<Reorder>> {
    let Some(table) = row.table("reorder")? else {
        return Ok(None);
    };
    table.only(&["probability", "delay"])?;
    let probability = table.parse("probability", parse_probability)?;
    let delay = table.duration("delay", Duration::ZERO..=LONGEST)?;
    Ok(Some(Reorder {
        probability: table.need(
            "probability",
            probability,
            "a share of packets, such as 0.01",
        )?,
        by: ReorderBy::Delay(table.need("delay", delay, "a time, such as \"5ms\"")?),
    }))
}

fn check(row: &Reader<'_>, link: &LinkConfig) -> Read<()> {
    link.validate()
        .map_err(|error| Fault::new(row.line(), row.place(), error.to_string()))
}
