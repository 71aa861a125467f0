//! What the logs of both ends say of packets and their frames, held against each other; and what a
//! connection agrees on.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_qlog::SinkFactory;
use swiftwater_quic::TransportConfig;
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{Bandwidth, Side};

use crate::support::{Memory, events, info, named};

/// A transfer over a link that loses packets, in both logs.
fn run(loss: f64) -> (Pair, [Vec<Value>; 2], [Value; 2]) {
    let memories = [Memory::default(), Memory::default()];
    let sinks = memories.clone();
    let factory = Arc::new(SinkFactory::new(move |side| {
        Some((info(side), sinks[side as usize].sink()))
    }));
    let log = |config: &mut TransportConfig| config.observer = Some(factory.clone());
    let link = LinkConfig::default()
        .rate(Bandwidth::from_mbps(10))
        .delay(Duration::from_millis(20))
        .loss(LossModel::Bernoulli(loss));
    let mut pair = Pair::builder()
        .seed(11)
        .link(link)
        .both_configs(log)
        .build()
        .unwrap();
    assert!(pair.connect());
    pair.transfer(400_000, Direction::ToClient);
    pair.client().update_keys();
    pair.transfer(50_000, Direction::ToServer);
    let now = pair.now();
    pair.client().close(now, 7, b"enough");
    pair.run_to_end();
    let logs = memories.map(|memory| memory.bytes());
    let header = |log: &Vec<u8>| {
        let text = std::str::from_utf8(log).unwrap();
        serde_json::from_str(text.split('\u{1e}').nth(1).unwrap()).unwrap()
    };
    let headers = [header(&logs[0]), header(&logs[1])];
    (pair, logs.map(|log| events(&log)), headers)
}

fn packet(event: &Value) -> (String, u64) {
    let header = &event["data"]["header"];
    let packet_type = header["packet_type"].as_str().unwrap();
    (
        packet_type.to_owned(),
        header["packet_number"].as_u64().unwrap(),
    )
}

/// The frames of each packet, without information that only a sender has.
fn frames(events: &[Value], name: &str) -> BTreeMap<(String, u64), Value> {
    let mut packets = BTreeMap::new();
    for event in named(events, name) {
        let mut frames = event["data"]["frames"].clone();
        for frame in frames.as_array_mut().unwrap() {
            frame.as_object_mut().unwrap().remove("purpose");
        }
        assert!(packets.insert(packet(event), frames).is_none());
    }
    packets
}

#[test]
fn what_one_end_received_is_what_the_other_sent() {
    let (_, logs, _) = run(0.02);
    for (from, to) in [(0, 1), (1, 0)] {
        let sent = frames(&logs[from], "quic:packet_sent");
        let received = frames(&logs[to], "quic:packet_received");
        assert!(received.len() > 100 && received.len() <= sent.len());
        for (packet, frames) in &received {
            assert_eq!(frames, &sent[packet], "{packet:?}");
        }
    }
}

#[test]
fn every_frame_is_in_the_log() {
    let (pair, logs, _) = run(0.02);
    for side in [Side::Client, Side::Server] {
        let stats = pair.stats(side);
        let pairs = [
            ("quic:packet_sent", &stats.frames_sent),
            ("quic:packet_received", &stats.frames_received),
        ];
        for (name, counted) in pairs {
            let mut seen = BTreeMap::new();
            for event in named(&logs[side as usize], name) {
                for frame in event["data"]["frames"].as_array().unwrap() {
                    let kind = frame["frame_type"].as_str().unwrap().to_owned();
                    *seen.entry(kind).or_insert(0) += 1;
                }
            }
            seen.remove("padding");
            let counted: BTreeMap<_, _> = counted
                .iter()
                .filter(|(kind, _)| *kind != "padding")
                .map(|(kind, count)| (kind.to_owned(), count))
                .collect();
            assert_eq!(seen, counted, "{side:?} {name}");
            assert!(seen["ack"] > 10 && seen["crypto"] > 0);
        }
    }
}

#[test]
fn acknowledgements_cover_what_arrived_and_nothing_else() {
    let (_, logs, _) = run(0.05);
    let received = frames(&logs[0], "quic:packet_received");
    let mut many = 0;
    for event in named(&logs[0], "quic:packet_sent") {
        let (space, _) = packet(event);
        for frame in event["data"]["frames"].as_array().unwrap() {
            let Some(ranges) = frame["acked_ranges"].as_array() else {
                continue;
            };
            many += usize::from(ranges.len() > 1);
            for range in ranges {
                let range = range.as_array().unwrap();
                let (first, last) = (range[0].as_u64().unwrap(), range.last().unwrap());
                for number in first..=last.as_u64().unwrap() {
                    assert!(received.contains_key(&(space.clone(), number)));
                }
            }
        }
    }
    assert!(many > 10, "gaps show: {many}");
}

#[test]
fn losses_say_what_showed_them() {
    let (pair, logs, _) = run(0.05);
    let lost = named(&logs[1], "quic:packet_lost");
    assert_eq!(
        lost.len() as u64,
        pair.stats(Side::Server).paths[0].lost_packets.get()
    );
    let mut largest = 0;
    let mut by_packets = 0;
    for event in &logs[1] {
        let data = &event["data"];
        if data["header"]["packet_type"] != "1RTT" {
            continue;
        }
        if event["name"] == "quic:packet_received" {
            for frame in data["frames"].as_array().unwrap() {
                for range in frame["acked_ranges"].as_array().into_iter().flatten() {
                    let last = range.as_array().unwrap().last().unwrap();
                    largest = largest.max(last.as_u64().unwrap());
                }
            }
        } else if event["name"] == "quic:packet_lost" {
            // RFC 9002, section 6.1.1.
            let overtaken = packet(event).1 + 3 <= largest;
            let trigger = if overtaken {
                "reordering_threshold"
            } else {
                "time_threshold"
            };
            assert_eq!(data["trigger"], trigger, "{event} with {largest}");
            by_packets += usize::from(overtaken);
        }
    }
    assert!(0 < by_packets && by_packets < lost.len(), "{by_packets}");
}

#[test]
fn both_logs_have_the_same_parameters_from_either_side() {
    let (_, logs, headers) = run(0.0);
    let of = |log: usize, initiator: &str| {
        let sets = named(&logs[log], "quic:parameters_set");
        let mut set = sets
            .iter()
            .find(|event| event["data"]["initiator"] == initiator)
            .unwrap()["data"]
            .clone();
        for name in ["initiator", "owner"] {
            set.as_object_mut().unwrap().remove(name);
        }
        set
    };
    assert_eq!(of(0, "local"), of(1, "remote"));
    assert_eq!(of(1, "local"), of(0, "remote"));
    let odcid = of(1, "local")["original_destination_connection_id"].clone();
    for header in headers {
        assert_eq!(header["trace"]["common_fields"]["group_id"], odcid);
    }
}

#[test]
fn keys_and_stages_come_in_order() {
    let (_, logs, _) = run(0.0);
    for log in logs {
        let stages = named(&log, "quic:connection_state_updated");
        let stages: Vec<_> = stages.iter().map(|event| &event["data"]["new"]).collect();
        let order = [
            "attempted",
            "handshake_started",
            "handshake_complete",
            "handshake_confirmed",
            "closed",
        ];
        assert_eq!(json!(stages), json!(order));
        let keys = |name| {
            let keys = named(&log, name);
            let keys = keys.iter().map(|event| event["data"]["key_type"].clone());
            keys.collect::<Vec<_>>()
        };
        let updated = keys("quic:key_updated");
        assert_eq!(updated.len(), 8, "three levels and an update, both ways");
        assert_eq!(keys("quic:key_discarded")[..], updated[..4]);
    }
}
