//! Logs of real connections in virtual time, held against what the connections themselves count.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_qlog::SinkFactory;
use swiftwater_quic::policy::{PathPreference, PathStatus};
use swiftwater_quic::{DatagramFate, DatagramOptions, Event, MultipathConfig, TransportConfig};
use swiftwater_sim::{Direction, Pair, PairBuilder};
use swiftwater_units::{Bandwidth, Side};

use crate::support::{Memory, OneReplica, events, info, named};

/// Logs both sides of a pair into memory.
fn logged(builder: PairBuilder) -> (Pair, [Memory; 2]) {
    let memories = [Memory::default(), Memory::default()];
    let sinks = memories.clone();
    let factory = Arc::new(SinkFactory::new(move |side| {
        Some((info(side), sinks[side as usize].sink()))
    }));
    let log = |config: &mut TransportConfig| config.observer = Some(factory.clone());
    let pair = builder.both_configs(log).build().unwrap();
    (pair, memories)
}

fn link(loss: f64) -> LinkConfig {
    LinkConfig::default()
        .rate(Bandwidth::from_mbps(10))
        .delay(Duration::from_millis(20))
        .loss(LossModel::Bernoulli(loss))
}

/// A transfer from the server, with replicas, over a bad link; the events of both sides.
fn lossy_run() -> (Pair, [Memory; 2]) {
    let builder = Pair::builder()
        .seed(3)
        .links(link(0.0), link(0.05))
        .server_config(|config| config.policies = Arc::new(OneReplica));
    let (mut pair, memories) = logged(builder);
    assert!(pair.connect());
    pair.transfer(1_000_000, Direction::ToClient);
    pair.client().update_keys();
    pair.transfer(100_000, Direction::ToClient);
    let now = pair.now();
    pair.client().close(now, 7, b"enough");
    pair.run_to_end();
    (pair, memories)
}

fn purposes<'a>(sent: &'a [&Value], purpose: &'a str) -> impl Iterator<Item = &'a Value> {
    sent.iter()
        .flat_map(|event| event["data"]["frames"].as_array().unwrap())
        .filter(move |frame| frame["purpose"] == purpose)
}

#[test]
fn the_log_and_the_counters_agree() {
    let (pair, memories) = lossy_run();
    for side in [Side::Client, Side::Server] {
        let events = events(&memories[side as usize].bytes());
        let stats = pair.stats(side);
        let path = &stats.paths[0];
        let count = |name| named(&events, name).len() as u64;
        assert_eq!(count("quic:packet_sent"), stats.packets_sent.get());
        assert_eq!(count("quic:packet_received"), stats.packets_received.get());
        assert_eq!(count("quic:packet_lost"), path.lost_packets.get());
        assert_eq!(count("quic:packet_dropped"), stats.packets_dropped.get());
        let phases = named(&events, "quic:key_updated");
        let phases = phases.iter().filter(|key| key["data"]["trigger"] != "tls");
        assert_eq!(phases.count() as u64, 2 * stats.key_updates);
        assert_eq!(
            count("quic:recovery_metrics_updated"),
            count("recovery:metrics_updated")
        );
        let streams = named(&events, "quic:stream_state_updated");
        let open = streams
            .iter()
            .filter(|event| event["data"]["new"] == "open");
        let open: std::collections::BTreeSet<u64> = open
            .map(|event| event["data"]["stream_id"].as_u64().unwrap())
            .collect();
        let opened = stats.streams_opened + stats.streams_opened_by_peer;
        assert_eq!(open.len() as u64, opened);
        assert_eq!(count("quic:connection_closed"), 1);
    }
}

#[test]
fn repairs_are_logged() {
    let (pair, memories) = lossy_run();
    let events = events(&memories[Side::Server as usize].bytes());
    let sent = named(&events, "quic:packet_sent");
    let again = purposes(&sent, "retransmission").count();
    let replicas = named(&events, "swiftwater:replica_sent");
    assert!(again > 10, "{again}");
    assert_eq!(purposes(&sent, "replica").count(), replicas.len());
    assert!(replicas.len() > 10, "{}", replicas.len());

    let bytes: u64 = replicas
        .iter()
        .map(|event| event["data"]["raw"]["length"].as_u64().unwrap())
        .sum();
    let stats = pair.stats(Side::Server);
    assert_eq!(bytes, stats.repair.replica_bytes.get());
    let recovered = named(&events, "swiftwater:data_recovered");
    assert!(!named(&events, "swiftwater:data_lost").is_empty());
    assert!(!recovered.is_empty());
    assert!(
        recovered
            .iter()
            .any(|event| event["data"]["by"] == "replica")
    );
    assert!(!named(&events, "swiftwater:redundancy_level").is_empty());
}

#[test]
fn fates_of_datagrams_are_logged() {
    let (mut pair, memories) = logged(Pair::builder().seed(5).links(link(0.0), link(0.3)));
    assert!(pair.connect());
    let now = pair.now();
    let server = pair.server();
    let data = || vec![1; 1_000].into();
    for key in 0..40 {
        let options = DatagramOptions::default().with_key(key);
        server.send_datagram_with(data(), options).unwrap();
    }
    // Dropped unsent, with a key and without.
    let late = DatagramOptions::default()
        .with_urgency(7)
        .with_deadline(now);
    for options in [late, late.with_key(40)] {
        server.send_datagram_with(data(), options).unwrap();
    }
    pair.advance(Duration::from_secs(2));
    let mut reported: Vec<(Option<u64>, String)> = (pair.events(Side::Server).iter())
        .filter_map(|event| match *event {
            Event::DatagramFate { key, fate } => {
                let name = match fate {
                    DatagramFate::Lost { .. } => "lost".to_owned(),
                    other => format!("{other:?}").to_lowercase(),
                };
                Some((Some(key), name))
            }
            _ => None,
        })
        .collect();
    reported.push((None, "expired".to_owned()));
    reported.sort();
    let log = memories[Side::Server as usize].bytes();
    let events = events(&log);
    let logged = named(&events, "swiftwater:datagram_fate");
    let mut logged: Vec<(Option<u64>, String)> = (logged.iter())
        .map(|event| {
            let fate = event["data"]["fate"].as_str().unwrap();
            (event["data"]["key"].as_u64(), fate.to_owned())
        })
        .collect();
    logged.sort();
    assert_eq!(logged, reported);
    for fate in ["acknowledged", "lost", "expired"] {
        assert!(logged.iter().any(|(_, other)| other == fate), "{fate}");
    }
}

#[test]
fn metrics_have_only_what_has_changed() {
    let (_, memories) = lossy_run();
    let events = events(&memories[Side::Server as usize].bytes());
    let updates = named(&events, "quic:recovery_metrics_updated");
    assert!(updates[0]["data"].as_object().unwrap().len() >= 7);
    let mut state = updates[0]["data"].clone();
    for update in &updates[1..] {
        let changes = update["data"].as_object().unwrap();
        assert!(!changes.is_empty());
        for (name, value) in changes {
            assert_ne!(&state[name], value, "{name} has not changed");
            state[name] = value.clone();
        }
    }
    let rtt = state["smoothed_rtt"].as_f64().unwrap();
    assert!((40.0..200.0).contains(&rtt), "{rtt} ms over a link of 40");
}

#[test]
fn both_ends_log_which_end_closed() {
    let (_, memories) = lossy_run();
    let close = |side| {
        let events = events(&memories[side as usize].bytes());
        named(&events, "quic:connection_closed")[0]["data"].clone()
    };
    let client = close(Side::Client);
    assert_eq!(client["initiator"], "local");
    assert_eq!(client["error_code"], 7);
    let server = close(Side::Server);
    assert_eq!(server["initiator"], "remote");
    assert_eq!(server["trigger"], "application");
    assert_eq!(server["error_code"], 7);
    assert_eq!(server["reason"], "enough");
}

#[test]
fn packets_dropped_on_arrival_have_a_reason() {
    let (mut pair, memories) = logged(Pair::builder().link(link(0.0)));
    let recording = pair.record(Direction::ToClient);
    assert!(pair.connect());
    pair.transfer(20_000, Direction::ToClient);
    let last = recording.datagrams().last().unwrap().data.clone();
    pair.inject(Direction::ToClient, &last, None);
    pair.advance(Duration::from_secs(1));
    let now = pair.now();
    pair.client().close(now, 0, b"");
    pair.run_to_end();
    let events = events(&memories[Side::Client as usize].bytes());
    let dropped = named(&events, "quic:packet_dropped");
    assert_eq!(dropped.len(), 1);
    assert_eq!(dropped[0]["data"]["trigger"], "duplicate");
}

#[test]
fn a_peer_without_answers_shows_as_probe_timeouts() {
    let (mut pair, memories) = logged(
        Pair::builder()
            .link(link(0.0))
            .client_config(|config| config.max_idle_timeout = Some(Duration::from_secs(3))),
    );
    assert!(pair.connect());
    pair.tap(Direction::ToServer, |_| swiftwater_sim::Verdict::Drop);
    pair.start_transfer(10_000, Direction::ToServer);
    pair.run_to_end();
    let events = events(&memories[Side::Client as usize].bytes());
    let timeouts = named(&events, "quic:timer_updated");
    assert!(timeouts.len() > 2);
    let expired = timeouts
        .iter()
        .filter(|timeout| timeout["data"]["event_type"] == "expired");
    for (timeout, count) in expired.zip(1..) {
        assert_eq!(timeout["data"]["timer_type"], "pto");
        assert_eq!(timeout["data"]["event_type"], "expired");
        assert_eq!(timeout["data"]["pto_count"], count);
    }
    let closed = named(&events, "quic:connection_closed");
    assert_eq!(closed[0]["data"]["trigger"], "idle_timeout");
}

#[test]
fn the_same_run_makes_the_same_log_and_logging_changes_nothing() {
    let (first, memories) = lossy_run();
    let (second, again) = lossy_run();
    for side in 0..2 {
        assert_eq!(memories[side].bytes(), again[side].bytes());
    }
    assert_eq!(first.now(), second.now());
    let mut plain = Pair::builder()
        .seed(3)
        .links(link(0.0), link(0.05))
        .server_config(|config| config.policies = Arc::new(OneReplica))
        .build()
        .unwrap();
    assert!(plain.connect());
    plain.transfer(1_000_000, Direction::ToClient);
    plain.client().update_keys();
    plain.transfer(100_000, Direction::ToClient);
    let now = plain.now();
    plain.client().close(now, 7, b"enough");
    plain.run_to_end();
    assert_eq!(plain.now(), first.now());
}

/// Lets so much time pass while something happens.
fn run_for(pair: &mut Pair, duration: Duration) {
    let until = pair.now() + duration;
    pair.run_until(|pair| pair.now() >= until);
}

#[test]
fn paths_are_logged_from_their_opening_to_their_end() {
    let builder = Pair::builder().seed(5).both_configs(|config| {
        config.multipath = Some(MultipathConfig::default());
    });
    let (mut pair, memories) = logged(builder.links(link(0.0), link(0.0)));
    assert!(pair.connect());
    run_for(&mut pair, Duration::from_millis(200));
    let now = pair.now();
    let address = pair.client().path_address();
    let path = pair.client().open_path(now, address).unwrap();
    run_for(&mut pair, Duration::from_millis(300));
    let backup = PathPreference {
        status: PathStatus::Backup,
        ..PathPreference::default()
    };
    assert!(pair.client().set_path_preference(path, backup));
    run_for(&mut pair, Duration::from_millis(300));
    let now = pair.now();
    pair.client().abandon_path(now, path).unwrap();
    run_for(&mut pair, Duration::from_millis(300));
    let now = pair.now();
    pair.client().close(now, 0, b"");
    pair.run_to_end();

    for side in [Side::Client, Side::Server] {
        let events = events(&memories[side as usize].bytes());
        let one = |name| {
            let found = named(&events, name);
            assert_eq!(found.len(), 1, "{name} of {side:?}");
            found[0].clone()
        };
        let opened = one("swiftwater:path_opened");
        assert_eq!(opened["tuple"], "1");
        assert_eq!(opened["data"]["path_id"], 1);
        assert!(
            opened["data"]["tuple_remote"]["port_v4"].is_number()
                || opened["data"]["tuple_remote"]["port_v6"].is_number()
        );
        let assigned = one("quic:tuple_assigned");
        assert_eq!(assigned["data"]["tuple_id"], "1");
        assert!(assigned["time"].as_f64() >= opened["time"].as_f64());
        let abandoned = one("swiftwater:path_abandoned");
        let by = ["local", "remote"][side as usize];
        assert_eq!(abandoned["data"]["initiator"], by);
        assert_eq!(abandoned["data"]["error_code"], 0x3e);

        let frames = |event, frame_type: &str| {
            let packets = named(&events, event);
            let frames = packets
                .iter()
                .flat_map(|packet| packet["data"]["frames"].as_array().unwrap());
            let frames = frames.filter(|frame| frame["frame_type"] == frame_type);
            frames.cloned().collect::<Vec<_>>()
        };
        let acks = frames("quic:packet_sent", "path_ack");
        assert!(
            acks.iter()
                .any(|ack| ack["path_id"] == 1 && ack["acked_ranges"].is_array())
        );
        assert_eq!(frames("quic:packet_sent", "path_abandon")[0]["path_id"], 1);
        let ids = frames("quic:packet_sent", "path_new_connection_id");
        assert!(
            ids.iter()
                .any(|id| id["path_id"] == 1 && id["connection_id"].is_string())
        );
        assert!(frames("quic:packet_sent", "unknown").is_empty());
        let parameters = named(&events, "quic:parameters_set");
        assert!(
            parameters
                .iter()
                .all(|set| set["data"]["initial_max_path_id"] == 3)
        );
        if side == Side::Server {
            let status = one("swiftwater:path_status_updated");
            assert_eq!(status["data"]["status"], "backup");
            assert_eq!(status["data"]["initiator"], "remote");
            let frame = &frames("quic:packet_received", "path_status_backup")[0];
            assert_eq!(frame["path_id"], 1);
        }
    }
}
