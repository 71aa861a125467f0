//! Parses `[run]` and its changes by `[quick]` and the command line.

use std::time::Duration;

use swiftwater_sim::Cipher;

use super::error::{Fault, Read, known_names};
use super::library::LoadOptions;
use super::reader::{LONGEST, Reader};
use super::sweep::{Sweep, plain};
use super::tree::{Entry, Node, Table};

const KEYS: [&str; 9] = [
    "duration",
    "warmup",
    "repeats",
    "seed",
    "rtt",
    "datagram_size",
    "cipher",
    "record",
    "bin",
];

/// Most repeats of a case.
const MAX_REPEATS: u64 = 10_000;

/// Most bins and recorded points of a flow.
const MAX_POINTS: u128 = 1_000_000;

/// Network parameters from `[run]`.
#[derive(Clone, Debug)]
pub(super) struct RunSettings {
    pub(super) duration: Duration,
    pub(super) warmup: Duration,
    pub(super) rtt: Duration,
    pub(super) datagram_size: u16,
    pub(super) cipher: Cipher,
    pub(super) record: Option<Duration>,
    pub(super) bin: Duration,
}

/// The table `[run]` with the changes of `[quick]`, if selected by `options`, and of the command
/// line. Every setting of the command line must be used, here or in `sweep`.
pub(super) fn table(root: &Reader<'_>, sweep: &Sweep, options: &LoadOptions) -> Read<Table> {
    let Some(run) = root.section("run")? else {
        return Err(root.fault("run", "a scenario needs [run] with `duration` and `rtt`"));
    };
    run.only(&KEYS)?;
    let mut table = Table {
        line: run.line(),
        entries: run.entries().to_vec(),
    };
    if let Some(quick) = root.section("quick")? {
        let known: Vec<&str> = KEYS.into_iter().chain(["sweep"]).collect();
        quick.only(&known)?;
        if options.quick {
            for entry in quick.entries().iter().filter(|entry| entry.key != "sweep") {
                table.replace(entry.clone());
            }
        }
    }
    for (key, text) in &options.set {
        if sweep.axis(key).is_some() {
            continue;
        }
        if !KEYS.contains(&key.as_str()) {
            return Err(Fault::Setting {
                setting: format!("--set {key}={text}"),
                expected: known_names(key, sweep.names().chain(KEYS)),
            });
        }
        let line = table.entry(key).map_or(table.line, |entry| entry.line);
        let value = plain(text);
        table.replace(Entry {
            key: key.clone(),
            line,
            node: Node { line, value },
        });
    }
    Ok(table)
}

/// Repeats and first seed, which are the same for all cases.
pub(super) fn repeats(table: &Table, options: &LoadOptions) -> Read<(u32, u64)> {
    let run = Reader::new(table, "[run]");
    let repeats = run.whole("repeats", 1..=MAX_REPEATS)?.unwrap_or(1);
    let seed = run.whole("seed", 0..=i64::MAX as u64)?.unwrap_or(1);
    let repeats = match options.repeats {
        None => repeats,
        Some(other) if (1..=MAX_REPEATS).contains(&u64::from(other)) => u64::from(other),
        Some(other) => {
            return Err(Fault::Setting {
                setting: format!("--repeats {other}"),
                expected: format!("from 1 to {MAX_REPEATS}"),
            });
        }
    };
    Ok((repeats as u32, seed))
}

/// The settings of one case.
pub(super) fn read(table: &Table, options: &LoadOptions) -> Read<RunSettings> {
    let run = Reader::new(table, "[run]");
    let shortest = Duration::from_micros(1);
    let duration = run.duration("duration", shortest..=LONGEST)?;
    let duration = run.need("duration", duration, "the length of a run, such as \"40s\"")?;
    let rtt = run.duration("rtt", shortest..=Duration::from_secs(60))?;
    let rtt = run.need("rtt", rtt, "the base round-trip time, such as \"30.6ms\"")?;
    let warmup = run
        .duration("warmup", Duration::ZERO..=LONGEST)?
        .unwrap_or_default();
    if warmup >= duration {
        return Err(run.fault(
            "warmup",
            format!("it must be shorter than `duration`, {duration:?}"),
        ));
    }
    let record = match options.record {
        Some(record) => record,
        None => run.duration("record", shortest..=LONGEST)?,
    };
    let bin = run
        .duration("bin", shortest..=LONGEST)?
        .unwrap_or(Duration::from_millis(100));
    for (key, interval) in [("record", record), ("bin", Some(bin))] {
        if interval.is_some_and(|interval| {
            interval.is_zero() || duration.as_nanos() / interval.as_nanos() > MAX_POINTS
        }) {
            return Err(run.fault(
                key,
                format!("it must be at least a millionth of `duration`, {duration:?}"),
            ));
        }
    }
    let ciphers = [("null", Cipher::Null), ("aes128", Cipher::Tls)];
    Ok(RunSettings {
        duration,
        warmup,
        rtt,
        datagram_size: run.whole("datagram_size", 1_200..=65_507)?.unwrap_or(1_472) as u16,
        cipher: run.word("cipher", &ciphers)?.unwrap_or_default(),
        record,
        bin,
    })
}
