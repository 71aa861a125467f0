//! Properties that hold for every configuration and all arrivals.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_link::{
    Buffer, Counters, Ecn, EcnThreshold, Jitter, Link, LinkConfig, LossModel, Packet, Rate,
    Reorder, ReorderBy, Tally, Trace,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PacketCount};

fn rates() -> impl Strategy<Value = Rate> {
    prop_oneof![
        Just(Rate::Unlimited),
        (10_000u64..1_000_000_000).prop_map(|bps| Rate::Constant(Bandwidth::from_bps(bps))),
        (0u64..9, any::<bool>()).prop_map(|(seed, wifi)| {
            let length = Duration::from_secs(2);
            Rate::Trace(if wifi {
                Trace::synthetic_wifi(seed, length)
            } else {
                Trace::synthetic_lte(seed, length)
            })
        }),
        prop::collection::vec(0u64..50, 1..20).prop_map(|gaps| {
            let mut at = 0;
            let lines = gaps.iter().map(|gap| {
                at += gap;
                format!("{at}\n")
            });
            let text = lines.chain(["1000\n".to_owned()]).collect::<String>();
            Rate::Trace(Trace::parse_mahimahi(&text).unwrap())
        }),
    ]
}

fn reorders() -> impl Strategy<Value = Option<Reorder>> {
    let delay = (0u64..50).prop_map(|ms| ReorderBy::Delay(Duration::from_millis(ms)));
    let packets = (1u32..5, 0u64..50).prop_map(|(count, ms)| ReorderBy::Packets {
        count,
        at_most: Duration::from_millis(ms),
    });
    prop::option::of(
        (0.0..0.5, prop_oneof![delay, packets])
            .prop_map(|(probability, by)| Reorder { probability, by }),
    )
}

prop_compose! {
    fn configs()(
        rate in rates(),
        delay in 0u64..100,
        jitter in 0u64..30_000,
        jitter_reorders in any::<bool>(),
        buffer in prop_oneof![
            Just(Buffer::Unlimited),
            (1u64..50_000).prop_map(|n| Buffer::Bytes(ByteCount::new(n))),
            (1u64..30).prop_map(|n| Buffer::Packets(PacketCount::new(n))),
        ],
        loss in prop_oneof![
            Just(LossModel::None),
            (0.0..=1.0).prop_map(LossModel::Bernoulli),
            (0.0..=1.0, 0.0..=1.0, 0.0..=1.0, 0.0..=1.0)
                .prop_map(|(p, r, h, k)| LossModel::GilbertElliott { p, r, h, k }),
            (0.0..=1.0, 0.0..=1.0, 0.0..=1.0, 0.0..=1.0, 1..50u64).prop_map(
                |(p, r, h, k, millis)| LossModel::GilbertElliottStepped {
                    p,
                    r,
                    h,
                    k,
                    step: Duration::from_millis(millis),
                }
            ),
        ],
        reorder in reorders(),
        duplicate in 0.0..0.5,
        corrupt in 0.0..0.5,
        mtu in prop::option::of(100u32..2000),
    ) -> LinkConfig {
        let mut config = LinkConfig::default()
            .rate(rate)
            .delay(Duration::from_millis(delay))
            .jitter(Jitter::Uniform(Duration::from_micros(jitter)))
            .jitter_reorders(jitter_reorders)
            .buffer(buffer)
            .loss(loss)
            .duplicate(duplicate)
            .corrupt(corrupt)
            .ecn_threshold(EcnThreshold::Packets(PacketCount::new(3)));
        config.reorder = reorder;
        config.mtu = mtu;
        config
    }
}

/// Gap before the packet in microseconds, its length, whether to poll before it.
type Arrivals = Vec<(u64, usize, bool)>;

fn sum(a: Tally, b: Tally) -> Tally {
    Tally {
        packets: a.packets + b.packets,
        bytes: a.bytes + b.bytes,
    }
}

fn assert_conserved(link: &Link<Vec<u8>>) {
    let counters = link.counters();
    let inputs = sum(counters.enqueued, counters.duplicated);
    let outputs = sum(
        sum(counters.delivered, counters.dropped()),
        link.in_transit(),
    );
    assert_eq!(inputs, outputs);
}

/// Runs the arrivals through a link and checks on the way; returns the log and the counters.
fn run(config: &LinkConfig, seed: u64, arrivals: &Arrivals) -> (Vec<(Instant, Vec<u8>)>, Counters) {
    let start = Instant::from_millis(3);
    let mut link = Link::new(config.clone(), seed, start).unwrap();
    let mut now = start;
    let mut log: Vec<(Instant, Vec<u8>)> = Vec::new();
    for (number, (gap, len, poll)) in arrivals.iter().enumerate() {
        now += Duration::from_micros(*gap);
        if *poll {
            drain(&mut link, now, &mut log);
        }
        let before = link.counters().enqueued.packets;
        let mut payload = vec![0; *len];
        payload[0] = number as u8;
        link.enqueue(now, Packet::with_ecn(payload, Ecn::Ect0));
        assert_eq!(
            link.counters().enqueued.packets,
            before + PacketCount::new(1)
        );
        assert_conserved(&link);
        let stats = link.queue_stats(now);
        assert!(stats.bytes <= stats.max_bytes && stats.packets <= stats.max_packets);
        assert!(stats.mean_bytes <= stats.max_bytes.get() as f64);
        match link.config().buffer {
            Buffer::Bytes(limit) => {
                assert!(stats.bytes <= limit || stats.packets.get() == 1);
            }
            Buffer::Packets(limit) => assert!(stats.packets <= limit),
            _ => {}
        }
    }
    drain(&mut link, Instant::FAR_FUTURE, &mut log);
    assert_conserved(&link);
    assert_eq!(link.in_transit(), Tally::default());
    assert_eq!(
        link.queue_stats(Instant::FAR_FUTURE).packets,
        PacketCount::ZERO
    );
    assert!(
        log.is_sorted_by_key(|(at, _)| *at),
        "arrivals out of time order"
    );
    if config.reorder.is_none() && !config.jitter_reorders {
        assert_eq!(link.counters().reordered, Tally::default());
    }
    (log, *link.counters())
}

fn drain(link: &mut Link<Vec<u8>>, until: Instant, log: &mut Vec<(Instant, Vec<u8>)>) {
    while let Some(at) = link.next_event().filter(|at| *at <= until) {
        let packet = link.poll(at).expect("announced for this time");
        log.push((at, packet.payload));
        assert_conserved(link);
    }
    assert!(link.poll(until).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_has_one_fate(
        config in configs(),
        seed in any::<u64>(),
        arrivals in prop::collection::vec((0u64..5_000, 1usize..3_000, any::<bool>()), 1..120),
    ) {
        let (log, counters) = run(&config, seed, &arrivals);
        prop_assert_eq!(counters.enqueued.packets.get() as usize, arrivals.len());
        // When it is polled makes no difference to what happens.
        let lazy: Arrivals = arrivals.iter().map(|(gap, len, _)| (*gap, *len, false)).collect();
        let (lazy_log, lazy_counters) = run(&config, seed, &lazy);
        prop_assert_eq!(counters, lazy_counters);
        prop_assert_eq!(log, lazy_log);
    }

    #[test]
    fn no_text_makes_a_parser_panic(text in "[0-9a-z,.%:\n -]{0,60}") {
        let _ = Trace::detect(&text);
        let _ = Trace::parse_csv(&format!("t_ms,rate_kbps,rtt_ms,loss\n{text}"));
        let _ = Trace::parse_mahimahi(&text);
        let _ = swiftwater_link::parse_rate(&text);
        let _ = swiftwater_link::parse_duration(&text);
        let _ = text.parse::<Buffer>();
        let _ = text.parse::<LossModel>();
    }
}
