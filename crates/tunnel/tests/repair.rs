//! Repair of losses between proxy and client: the agreement, what is sent again, and the effect on a lossy link.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderValue;
use proptest::prelude::*;
use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_net::relay::{Relay, RelayConfig};
use swiftwater_tunnel::client::{FromTunnel, TunnelClient, UdpTunnel};
use swiftwater_tunnel::context::ContextId;
use swiftwater_tunnel::proxy::ProxyConfig;
use swiftwater_tunnel::target::Template;
use swiftwater_tunnel::tecc::{Agreement, Repair, RepairLimits, TunnelReport, data};
use swiftwater_units::Instant;
use swiftwater_wire::VarInt;

use crate::stage::{NAME, Stage, config, echo, guard, token};

const HORIZON: Duration = Duration::from_millis(100);

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

fn datagram(len: usize) -> Bytes {
    vec![0; len].into()
}

#[test]
fn offers() {
    let parse = |text: &str| Agreement::parse(&HeaderValue::from_str(text).unwrap());
    let offer = Agreement::OFFER.field().unwrap();
    assert_eq!(offer, "?1;v=1;d=2");
    assert_eq!(Agreement::parse(&offer), Some(Agreement::OFFER));
    let both = parse("?1; d=4; v=1; r=6; unknown=\"x\"").unwrap();
    assert_eq!(both.data().get(), 4);
    assert_eq!(both.reports().map(ContextId::get), Some(6));
    let with_reports = Agreement::OFFER_WITH_REPORTS.field().unwrap();
    assert_eq!(with_reports, "?1;v=1;d=2;r=4");
    let with_reports = Agreement::parse(&with_reports).unwrap();
    assert_eq!(with_reports, Agreement::OFFER_WITH_REPORTS);
    // A proxy may leave reports out, but not give what was not asked for.
    assert!(Agreement::OFFER.answers(with_reports));
    assert!(with_reports.answers(with_reports));
    assert!(!with_reports.answers(Agreement::OFFER));
    assert!(!both.answers(with_reports));
    for text in [
        "",
        "?0;v=1;d=2",
        "1;v=1;d=2",
        "?1",
        "?1;v=1",
        "?1;d=2",
        "?1;v=2;d=2",
        // The context of UDP payloads, one of the proxy's, none at all.
        "?1;v=1;d=0",
        "?1;v=1;d=3",
        "?1;v=1;d=-2",
        "?1;v=1;d=2.0",
        "?1;v=1;d=\"2\"",
        "?1;v=1;d=2, ?1",
        "?1;v=1;d=2;r=2",
        "?1;v=1;d=2;r=5",
        "?1;v=1;d=2;r=0",
        "?1;v=1;d=2;r",
        "?1;v=1;d=99999999999999999999",
    ] {
        assert_eq!(parse(text), None, "{text}");
    }
}

#[test]
fn packets_with_long_headers_are_not_numbered() {
    assert!(data::is_numbered(&[0x40, 1, 2]) && data::is_numbered(&[0]));
    assert!(!data::is_numbered(&[0xc0, 1, 2]) && !data::is_numbered(&[]));
}

#[test]
fn a_lost_payload_is_sent_again_a_few_times() {
    let mut repair = Repair::new(RepairLimits::default());
    repair.on_queued(datagram(100));
    repair.on_queued(datagram(200));
    assert_eq!((repair.next_number(), repair.settled()), (2, 0));
    for attempt in 1..=3 {
        let sent_at = at(10 * (attempt - 1));
        let again = repair.on_lost(at(10 * attempt), 0, sent_at, HORIZON);
        assert_eq!(again, Some((datagram(100), at(100))));
    }
    assert_eq!(repair.on_lost(at(40), 0, at(30), HORIZON), None);
    assert_eq!(repair.settled(), 1);
    // It arrived all the same.
    repair.on_acknowledged(0);
    repair.on_acknowledged(1);
    assert_eq!(repair.settled(), 2);
    let stats = repair.stats();
    assert_eq!((stats.lost, stats.resent, stats.abandoned), (4, 3, 1));
}

#[test]
fn an_old_payload_is_not_sent_again() {
    let mut repair = Repair::new(RepairLimits::default());
    repair.on_queued(datagram(100));
    repair.on_queued(datagram(100));
    assert!(repair.on_lost(at(99), 0, at(0), HORIZON).is_some());
    assert!(repair.on_lost(at(100), 1, at(0), HORIZON).is_none());
    let limits = repair.limits();
    let millis = Duration::from_millis;
    assert_eq!(limits.horizon(millis(20), millis(5)), millis(125));
    assert_eq!(limits.horizon(millis(200), millis(50)), limits.longest);
    // The sender leaves losses to a tunnel that reports, so it takes its time.
    let reporting = limits.with_reports();
    assert_eq!(reporting.horizon(millis(20), millis(5)), millis(225));
    assert_eq!(reporting.horizon(millis(200), millis(50)), limits.longest);
    assert_eq!(reporting.attempts, 2 * limits.attempts);
    // A probe timeout and a round trip until its probe is acknowledged: RFC 9002, section 6.2.1.
    let (rtt, variation) = (millis(5), millis(1));
    let found = rtt + 4 * variation + millis(25) + rtt;
    assert!(limits.horizon(rtt, variation) > found);
}

#[test]
fn a_payload_that_waited_for_long_is_sent_again() {
    let mut repair = Repair::new(RepairLimits::default());
    // However long it waited, it left after 300 ms.
    repair.on_queued(datagram(100));
    let again = repair.on_lost(at(340), 0, at(300), HORIZON);
    assert_eq!(again, Some((datagram(100), at(400))));
    // The time since it left for the first time counts.
    assert!(repair.on_lost(at(380), 0, at(340), HORIZON).is_some());
    assert!(repair.on_lost(at(400), 0, at(380), HORIZON).is_none());
    assert_eq!(repair.stats().abandoned, 1);
}

#[test]
fn an_acknowledged_payload_is_not_sent_again() {
    let mut repair = Repair::new(RepairLimits::default());
    repair.on_queued(datagram(100));
    assert!(repair.on_lost(at(10), 0, at(0), HORIZON).is_some());
    // The first datagram was late, not lost.
    repair.on_acknowledged(0);
    assert!(repair.on_lost(at(20), 0, at(10), HORIZON).is_none());
    assert_eq!(repair.stats().lost, 1);
}

proptest! {
    #[test]
    fn numbered_payloads_decode(number in 0_u64..1 << 62, payload: Vec<u8>) {
        let context = ContextId::new(VarInt::from_u32(2));
        let encoded = Bytes::from(data::encode(context, number, &payload));
        let decoded = data::decode(encoded.slice(context.size()..));
        prop_assert_eq!(decoded, Some((number, payload.into())));
    }

    #[test]
    fn any_content_decodes_without_panic(content: Vec<u8>) {
        let _ = data::decode(content.into());
    }

    /// Whatever becomes of the datagrams: what is kept is bounded, no payload is sent more often than allowed, and
    /// what is settled stays settled.
    #[test]
    fn repair_is_bounded(steps in prop::collection::vec((0_u8..4, 0_u64..40, 1_usize..400), 1..300)) {
        let limits = RepairLimits { attempts: 2, most_bytes: 1000, ..RepairLimits::default() };
        let mut repair = Repair::new(limits);
        let mut resent = vec![0; 300];
        let mut settled = 0;
        for (now, (what, number, len)) in steps.into_iter().enumerate() {
            let now = at(now as u64);
            match what {
                0 => repair.on_queued(datagram(len)),
                1 => repair.on_acknowledged(number),
                2 => repair.on_unsent(number),
                _ => {
                    if repair.on_lost(now, number, now, HORIZON).is_some() {
                        prop_assert!(number < repair.next_number());
                        resent[number as usize] += 1;
                    }
                }
            }
            prop_assert!(repair.settled() >= settled && repair.settled() <= repair.next_number());
            settled = repair.settled();
            prop_assert!(repair.kept_bytes() <= 1000);
        }
        prop_assert!(resent.iter().all(|&times| times <= 2));
    }
}

/// A lossy link from the proxy to the client, and nothing lost on the way back.
fn lossy(stage: &Stage) -> Relay {
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let delay = Duration::from_millis(20);
    let mut through = RelayConfig::new(any, stage.server_end.local_addr());
    through.up = LinkConfig {
        delay,
        ..LinkConfig::default()
    };
    through.down = LinkConfig {
        delay,
        loss: LossModel::Bernoulli(0.1),
        ..LinkConfig::default()
    };
    Relay::start(through).unwrap()
}

/// How many of `count` payloads come back.
async fn returned(tunnel: &mut UdpTunnel, count: usize) -> usize {
    let mut seen = std::collections::BTreeSet::new();
    for number in 0..count {
        // As of packets with a short header.
        tunnel
            .send(&[&[0x40][..], &number.to_be_bytes()].concat())
            .await
            .unwrap();
        let wait = tokio::time::timeout(Duration::from_millis(2), tunnel.recv());
        if let Ok(payload) = wait.await {
            seen.insert(payload.unwrap());
        }
    }
    let quiet = Duration::from_millis(500);
    while let Ok(payload) = tokio::time::timeout(quiet, tunnel.recv()).await {
        seen.insert(payload.unwrap());
    }
    seen.len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn losses_on_the_way_to_the_client_are_repaired() {
    guard(async {
        let stage = Stage::new();
        let relay = lossy(&stage);
        let client = |repair: bool| {
            let template = Template::new(NAME).unwrap();
            let connector = stage.connector_to(relay.local_addr());
            if repair {
                TunnelClient::with_repair(template, Some(&token()), connector)
            } else {
                TunnelClient::new(template, Some(&token()), connector)
            }
        };
        let target = echo().await;
        let count = 300;
        let mut plain = client(false).open(&target).await.unwrap();
        assert!(!plain.is_repaired());
        let lost = count - returned(&mut plain, count).await;
        // A tenth is lost: fewer than ten of 300 are once in millions of runs.
        assert!(lost >= 10, "{lost}");
        assert_eq!(stage.proxy.stats().repaired, 0);

        let mut repaired = client(true).open(&target).await.unwrap();
        assert!(repaired.is_repaired());
        let still_lost = count - returned(&mut repaired, count).await;
        // One in 10,000 is lost four times, but what is older than four round trips is given up: on a machine that is
        // busy with something else, some more are.
        assert!(3 * still_lost <= lost, "{still_lost} of {lost}");
        assert!(stage.proxy.stats().repaired >= 10);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_proxy_without_repair_opens_plain_tunnels() {
    guard(async {
        let stage = Stage::with(ProxyConfig {
            repair: None,
            ..config()
        });
        let template = Template::new(NAME).unwrap();
        let connector = stage.connector_to(stage.server_end.local_addr());
        let client = TunnelClient::with_repair(template, Some(&token()), connector);
        let mut tunnel = client.open(&echo().await).await.unwrap();
        assert!(!tunnel.is_repaired());
        tunnel.send(b"@short").await.unwrap();
        assert_eq!(tunnel.recv().await.unwrap(), "@short");
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn reports_come_to_a_client_that_asked_for_them() {
    guard(async {
        let stage = Stage::new();
        let relay = lossy(&stage);
        let template = Template::new(NAME).unwrap();
        let connector = stage.connector_to(relay.local_addr());
        let client = TunnelClient::with_reports(template, Some(&token()), connector);
        let mut tunnel = client.open(&echo().await).await.unwrap();
        assert!(tunnel.is_repaired() && tunnel.has_reports());
        let (mut numbers, mut reports): (Vec<u64>, Vec<TunnelReport>) = Default::default();
        while reports.len() < 3 || numbers.len() < 20 {
            tunnel.send(b"@short").await.unwrap();
            let next = tokio::time::timeout(Duration::from_millis(20), tunnel.recv_any()).await;
            match next {
                Ok(Ok(FromTunnel::Payload { payload, number })) => {
                    assert_eq!(payload, "@short");
                    numbers.extend(number);
                }
                Ok(Ok(FromTunnel::Report(report))) => {
                    reports.push(TunnelReport::decode(&report).unwrap());
                }
                Ok(Err(error)) => panic!("{error}"),
                // Lost on the way to the proxy.
                Err(_) => {}
            }
        }
        let newest = reports.iter().max_by_key(|report| report.sequence).unwrap();
        assert!(newest.rate.as_bps() > 0 && !newest.smoothed_rtt.is_zero());
        assert!(newest.settled <= newest.next_number);
        assert!(newest.next_number > 0);
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_agreement_every_payload_is_in_the_context_of_rfc_9298() {
    guard(async {
        let stage = Stage::new();
        let template = Template::new(NAME).unwrap();
        let connector = stage.connector_to(stage.server_end.local_addr());
        let client = TunnelClient::new(template, Some(&token()), connector);
        let mut tunnel = client.open(&echo().await).await.unwrap();
        for _ in 0..50 {
            tunnel.send(b"@short").await.unwrap();
            let (payload, number) = (Bytes::from_static(b"@short"), None);
            let expected = FromTunnel::Payload { payload, number };
            assert_eq!(tunnel.recv_any().await.unwrap(), expected);
        }
    })
    .await;
}
