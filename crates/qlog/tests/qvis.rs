//! The logs as qvis reads them.
//!
//! qvis (github.com/quiclog/qvis, `visualizations/src`) is not a package, so its rules are restated
//! here as in `TextSequenceJSONToQlog`, `QlogLoaderV2` with `DirectEventParser`, and
//! `CongestionGraphD3Renderer.parseQlog`: what it rejects is rejected, and what it ignores is missing.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_qlog::SinkFactory;
use swiftwater_quic::TransportConfig;
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{Bandwidth, Side};

use crate::support::{Memory, info};

/// The versions that its loader of newer files accepts.
const VERSIONS: [&str; 4] = ["draft-02", "draft-02-RC1", "qlog-03-WIP", "0.3"];

/// A trace after loading: events by category and type.
struct Trace(BTreeMap<(String, String), Vec<Value>>);

impl Trace {
    /// Loads a file, or says why it is refused.
    fn load(log: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(log).map_err(|error| error.to_string())?;
        let records = text.split('\u{1e}').map(str::trim);
        let mut records = records
            .filter(|record| !record.is_empty())
            .map(|record| serde_json::from_str::<Value>(record).map_err(|error| error.to_string()));
        let header = records.next().ok_or("no entries")??;
        let version = header["qlog_version"].as_str().ok_or("no version")?;
        if header["qlog_format"] != "JSON-SEQ" || header["trace"].is_null() {
            return Err("not started with the proper header".to_owned());
        }
        if !VERSIONS.contains(&version) {
            return Err(format!("unknown version {version}"));
        }
        if header["trace"]["common_fields"]["time_format"] == "relative" {
            return Err("reference_time must then be a number".to_owned());
        }
        let mut events = BTreeMap::new();
        let mut last = f64::MIN;
        for event in records {
            let event = event?;
            if !event["group_id"].is_null() {
                return Err("it would be split into groups".to_owned());
            }
            let time = event["time"].as_f64().ok_or("no time")?;
            if time < last {
                return Err("timestamps were not in the correct order".to_owned());
            }
            last = time;
            for old in ["packet_size", "payload_length"] {
                if !event["data"]["header"][old].is_null() {
                    return Err(format!("data.header.{old} is draft 01"));
                }
            }
            let name = event["name"].as_str().ok_or("no name")?;
            let (before, kind) = name.split_once(':').unwrap_or((name, name));
            let category = event["category"].as_str().unwrap_or(before);
            let key = (category.to_owned(), kind.to_owned());
            events.entry(key).or_insert_with(Vec::new).push(event);
        }
        Ok(Self(events))
    }

    fn lookup(&self, category: &str, kind: &str) -> &[Value] {
        let key = (category.to_owned(), kind.to_owned());
        self.0.get(&key).map_or(&[], Vec::as_slice)
    }
}

fn run() -> (Pair, [Vec<u8>; 2]) {
    let memories = [Memory::default(), Memory::default()];
    let sinks = memories.clone();
    let factory = Arc::new(SinkFactory::new(move |side| {
        Some((info(side), sinks[side as usize].sink()))
    }));
    let log = |config: &mut TransportConfig| config.observer = Some(factory.clone());
    let link = LinkConfig::default()
        .rate(Bandwidth::from_mbps(10))
        .delay(Duration::from_millis(20))
        .loss(LossModel::Bernoulli(0.02));
    let mut pair = Pair::builder()
        .link(link)
        .both_configs(log)
        .build()
        .unwrap();
    assert!(pair.connect());
    pair.transfer(500_000, Direction::ToClient);
    let now = pair.now();
    pair.client().close(now, 0, b"");
    pair.run_to_end();
    if let Ok(directory) = std::env::var("SWIFTWATER_QLOG_SAMPLES") {
        for (name, memory) in ["client", "server"].iter().zip(&memories) {
            let path = std::path::Path::new(&directory).join(format!("{name}.sqlog"));
            std::fs::write(path, memory.bytes()).unwrap();
        }
    }
    (pair, memories.map(|memory| memory.bytes()))
}

#[test]
fn both_logs_load() {
    let (_, logs) = run();
    for log in &logs {
        let trace = Trace::load(log).unwrap();
        for (category, kind) in [
            ("transport", "packet_sent"),
            ("transport", "packet_received"),
            ("transport", "parameters_set"),
            ("connectivity", "connection_started"),
            ("security", "key_updated"),
            ("recovery", "metrics_updated"),
        ] {
            assert!(!trace.lookup(category, kind).is_empty(), "{kind}");
        }
    }
}

#[test]
fn what_is_no_log_is_refused() {
    assert!(Trace::load(b"").is_err());
    let (_, [log, _]) = run();
    let text = String::from_utf8(log).unwrap();
    let without = text.replacen("\"qlog_version\":\"0.3\",", "", 1);
    assert!(Trace::load(without.as_bytes()).is_err());
}

#[test]
fn the_congestion_graph_finds_what_it_draws() {
    let (pair, logs) = run();
    let server = Trace::load(&logs[1]).unwrap();
    let sent = server.lookup("transport", "packet_sent");
    let numbers: Vec<u64> = sent
        .iter()
        .map(|event| event["data"]["header"]["packet_number"].as_u64().unwrap())
        .collect();
    let total: u64 = sent
        .iter()
        .map(|event| event["data"]["raw"]["length"].as_u64().unwrap())
        .sum();
    assert_eq!(total, pair.stats(Side::Server).bytes_sent.get());
    // Acknowledgements meet packets that were sent.
    let mut acked = 0;
    for event in server.lookup("transport", "packet_received") {
        for frame in event["data"]["frames"].as_array().unwrap() {
            for range in frame["acked_ranges"].as_array().into_iter().flatten() {
                let range = range.as_array().unwrap();
                assert!((1..=2).contains(&range.len()));
                assert!(numbers.contains(&range[0].as_u64().unwrap()));
                acked += 1;
            }
        }
    }
    assert!(acked > 50, "{acked}");
    let lost = server.lookup("recovery", "packet_lost");
    assert!(!lost.is_empty());
    let metric = |name: &str| {
        let updates = server.lookup("recovery", "metrics_updated").iter();
        updates
            .filter(|event| event["data"][name].is_number())
            .count()
    };
    for name in [
        "bytes_in_flight",
        "congestion_window",
        "smoothed_rtt",
        "latest_rtt",
        "min_rtt",
    ] {
        assert!(metric(name) > 0, "{name}");
    }
    // Lines of flow control, in bytes.
    let limits = server.lookup("transport", "parameters_set").iter();
    let limit = limits
        .filter(|event| event["data"]["owner"] == "remote")
        .find_map(|event| event["data"]["initial_max_data"].as_u64());
    assert!(limit.is_some_and(|limit| limit > 0));
}

#[test]
fn the_multiplexing_graph_sees_every_byte() {
    let (_, logs) = run();
    let client = Trace::load(&logs[0]).unwrap();
    let mut bytes = vec![false; 500_000];
    for event in client.lookup("transport", "packet_received") {
        for frame in event["data"]["frames"].as_array().unwrap() {
            if frame["frame_type"] == "stream" {
                let offset = frame["offset"].as_u64().unwrap() as usize;
                let length = frame["length"].as_u64().unwrap() as usize;
                if let Some(part) = bytes.get_mut(offset..offset + length) {
                    part.fill(true);
                }
            }
        }
    }
    assert!(bytes.iter().all(|&seen| seen));
}
