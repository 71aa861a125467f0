//! Shared by the tests: inspectable sinks, and a reader that checks the requirements of every log.
#![allow(clippy::unwrap_used, reason = "a test may fail")]
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use swiftwater_qlog::{EVENT_SCHEMAS, Sink, TraceInfo};
use swiftwater_quic::policy::{
    AckPolicy, EveryOther, Hints, Occasion, OutstandingRange, PathView, PolicyFactory, Reinjection,
    Reinjector, ReinjectorReport, Repair, Scheduler, SinglePath,
};
use swiftwater_units::{Instant, Side};

/// A sink that keeps what it is given.
#[derive(Clone, Debug, Default)]
pub(crate) struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    pub(crate) fn bytes(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn sink(&self) -> Sink {
        Box::new(self.clone())
    }
}

impl Write for Memory {
    fn write(&mut self, data: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(data);
        Ok(data.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

pub(crate) fn info(side: Side) -> TraceInfo {
    TraceInfo {
        side,
        group_id: "test".to_owned(),
        wall_clock: None,
    }
}

/// Every event that this crate writes, with the members that its data must have.
pub(crate) const EVENTS: &[(&str, &[&str])] = &[
    ("quic:connection_started", &["local", "remote"]),
    ("quic:connection_closed", &["trigger"]),
    ("quic:connection_state_updated", &["new"]),
    ("quic:connection_id_updated", &["initiator", "old", "new"]),
    ("quic:migration_state_updated", &["new"]),
    ("quic:tuple_assigned", &["tuple_remote"]),
    ("quic:mtu_updated", &["new"]),
    ("quic:version_information", &[]),
    ("quic:alpn_information", &["chosen_alpn"]),
    ("quic:parameters_set", &["initiator", "owner"]),
    ("quic:packet_sent", &["header", "frames", "raw"]),
    ("quic:packet_received", &["header", "raw"]),
    ("quic:packet_lost", &["header"]),
    ("quic:packet_buffered", &["header", "trigger"]),
    ("quic:packet_dropped", &["raw", "details", "trigger"]),
    (
        "quic:stream_state_updated",
        &["stream_id", "new", "stream_side"],
    ),
    ("quic:connection_data_blocked_updated", &["old", "new"]),
    ("quic:recovery_parameters_set", &["timer_granularity"]),
    ("quic:recovery_metrics_updated", &[]),
    ("recovery:metrics_updated", &[]),
    ("quic:congestion_state_updated", &["new"]),
    ("quic:ecn_state_updated", &["new"]),
    (
        "quic:timer_updated",
        &["timer_type", "event_type", "packet_number_space"],
    ),
    ("quic:key_updated", &["key_type", "trigger"]),
    ("quic:key_discarded", &["key_type", "trigger"]),
    (
        "swiftwater:data_lost",
        &["stream_id", "offset", "raw", "detection_time", "trigger"],
    ),
    (
        "swiftwater:replica_sent",
        &["packet_number", "stream_id", "offset", "raw"],
    ),
    (
        "swiftwater:data_recovered",
        &["stream_id", "by", "recovery_latency", "retransmissions"],
    ),
    ("swiftwater:redundancy_level", &["level", "decisions"]),
    ("swiftwater:datagram_fate", &["fate"]),
    ("swiftwater:early_data_decided", &["accepted"]),
    (
        "swiftwater:path_opened",
        &["path_id", "tuple_remote", "tuple_local"],
    ),
    (
        "swiftwater:path_abandoned",
        &["path_id", "initiator", "error_code"],
    ),
    (
        "swiftwater:path_status_updated",
        &["path_id", "initiator", "status"],
    ),
    ("swiftwater:log_ended", &["reason"]),
];

/// The events of a valid log: framing (RFC 7464), header, non-decreasing times, known names, and
/// the members that the drafts require.
pub(crate) fn events(log: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(log).unwrap();
    let mut records = text.split('\u{1e}');
    assert_eq!(records.next(), Some(""), "the log begins with a separator");
    let mut values = records.map(|record| {
        assert!(record.ends_with('\n') && record.matches('\n').count() == 1);
        assert!(record.len() <= 64 << 10, "{} bytes", record.len());
        serde_json::from_str::<Value>(record).unwrap()
    });
    check_header(&values.next().unwrap());
    let known: BTreeMap<_, _> = EVENTS.iter().copied().collect();
    let mut last = 0.0;
    let events: Vec<Value> = values.collect();
    for event in &events {
        let time = event["time"].as_f64().unwrap();
        assert!(time >= last, "{event} after {last}");
        last = time;
        let members = known[event["name"].as_str().unwrap()];
        for member in members {
            assert!(!event["data"][member].is_null(), "{event} lacks {member}");
        }
    }
    if let Some(first) = events.first() {
        assert_eq!(first["time"], 0.0);
        assert_eq!(first["name"], "quic:connection_started");
    }
    events
}

fn check_header(header: &Value) {
    assert_eq!(header["qlog_version"], "0.3");
    assert_eq!(header["qlog_format"], "JSON-SEQ");
    assert_eq!(
        header["file_schema"],
        "urn:ietf:params:qlog:file:sequential"
    );
    assert_eq!(header["serialization_format"], "application/qlog+json-seq");
    let trace = &header["trace"];
    assert!(["client", "server"].contains(&trace["vantage_point"]["type"].as_str().unwrap()));
    assert_eq!(trace["event_schemas"], serde_json::json!(EVENT_SCHEMAS));
    let reference = &trace["common_fields"]["reference_time"];
    assert_eq!(reference["clock_type"], "monotonic");
    assert_eq!(reference["level"], "unknown", "the draft wants it so");
}

/// The events of a name.
pub(crate) fn named<'a>(events: &'a [Value], name: &str) -> Vec<&'a Value> {
    events
        .iter()
        .filter(|event| event["name"] == name)
        .collect()
}

/// Policies that send one replica of every retransmission.
#[derive(Debug)]
pub(crate) struct OneReplica;

impl PolicyFactory for OneReplica {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(SinglePath)
    }

    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::<Repeater>::default()
    }

    fn ack_policy(&self, threshold: u64) -> Box<dyn AckPolicy> {
        Box::new(EveryOther { threshold })
    }
}

#[derive(Debug, Default)]
struct Repeater {
    waiting: Vec<Reinjection>,
    level: u32,
}

impl Reinjector for Repeater {
    fn can_use_spare_room(&self) -> bool {
        !self.waiting.is_empty()
    }

    fn on_repair(&mut self, _now: Instant, event: &Repair) {
        if let Repair::Retransmitted {
            range, round: 1, ..
        } = event
        {
            self.waiting.push(range.reinjection());
            self.level = 1;
        }
    }

    fn reinject(
        &mut self,
        _now: Instant,
        _occasion: Occasion,
        _outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        _paths: &[PathView],
        _hints: &Hints,
        out: &mut Vec<Reinjection>,
    ) {
        out.append(&mut self.waiting);
    }

    fn report(&self) -> ReinjectorReport {
        ReinjectorReport {
            redundancy_level: self.level,
            queued: self.waiting.len(),
            decisions: self.level.into(),
            ..ReinjectorReport::default()
        }
    }
}
