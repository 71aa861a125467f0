//! Properties of every queue discipline under all arrivals.

use crate::support;

use std::time::Duration;

use proptest::prelude::*;
use support::{Driver, Fate};
use swiftwater_link::{
    Buffer, CoDelConfig, Counters, DualPi2Config, DualQueueScheduler, Ecn, FqCoDelConfig, Jitter,
    LinkConfig, LossModel, QueueDiscipline, Rate, RedConfig, RedThreshold, Reorder, ReorderBy,
    Tally, Trace,
};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PacketCount};

fn micros(range: std::ops::Range<u64>) -> impl Strategy<Value = Duration> {
    range.prop_map(Duration::from_micros)
}

fn codels() -> impl Strategy<Value = CoDelConfig> {
    (
        micros(1..10_000),
        micros(1..50_000),
        0u64..3_000,
        any::<bool>(),
    )
        .prop_map(|(target, interval, mtu, ecn)| CoDelConfig {
            target,
            interval,
            mtu: ByteCount::new(mtu),
            ecn,
        })
}

fn reds() -> impl Strategy<Value = RedConfig> {
    (
        1u64..10_000,
        1u64..10_000,
        0.001..=1.0,
        0.001..=1.0,
        any::<bool>(),
        any::<bool>(),
    )
        .prop_map(
            |(min, more, max_probability, weight, gentle, ecn)| RedConfig {
                min: RedThreshold::Bytes(ByteCount::new(min)),
                max: RedThreshold::Bytes(ByteCount::new(min + more)),
                max_probability,
                weight,
                gentle,
                ecn,
                ..RedConfig::default()
            },
        )
}

fn dual_pi2s() -> impl Strategy<Value = DualPi2Config> {
    let scheduler = prop_oneof![
        (0.01..0.99).prop_map(DualQueueScheduler::Weighted),
        micros(1..50_000).prop_map(DualQueueScheduler::TimeShifted),
    ];
    (
        micros(1..20_000),
        micros(100..20_000),
        0.001..100.0,
        0.0..100.0,
        0.1..5.0,
        micros(1..2_000),
        scheduler,
    )
        .prop_map(
            |(target, tupdate, alpha, beta, k, threshold, scheduler)| DualPi2Config {
                target,
                tupdate,
                alpha,
                beta,
                k,
                l4s_threshold: threshold,
                l4s_range: threshold,
                scheduler,
                ..DualPi2Config::default()
            },
        )
}

fn disciplines() -> impl Strategy<Value = QueueDiscipline> {
    prop_oneof![
        Just(QueueDiscipline::DropTail),
        reds().prop_map(QueueDiscipline::Red),
        codels().prop_map(QueueDiscipline::CoDel),
        (codels(), 64u32..4_000, 1u32..8).prop_map(|(codel, quantum, flows)| {
            QueueDiscipline::FqCoDel(FqCoDelConfig {
                codel,
                quantum,
                flows,
            })
        }),
        dual_pi2s().prop_map(QueueDiscipline::DualPi2),
    ]
}

fn rates() -> impl Strategy<Value = Rate> {
    prop_oneof![
        1 => Just(Rate::Unlimited),
        4 => (100_000u64..50_000_000).prop_map(|bps| Rate::Constant(Bandwidth::from_bps(bps))),
        1 => (0u64..9).prop_map(|seed| {
            Rate::Trace(Trace::synthetic_lte(seed, Duration::from_secs(2)))
        }),
        1 => prop::collection::vec(0u64..20, 1..20).prop_map(|gaps| {
            let mut at = 0;
            let lines = gaps.iter().map(|gap| {
                at += gap;
                format!("{at}\n")
            });
            let text = lines.chain(["500\n".to_owned()]).collect::<String>();
            Rate::Trace(Trace::parse_mahimahi(&text).unwrap())
        }),
    ]
}

prop_compose! {
    fn configs()(
        rate in rates(),
        delay in micros(0..20_000),
        jitter in micros(0..5_000),
        buffer in prop_oneof![
            Just(Buffer::Unlimited),
            (1u64..50_000).prop_map(|n| Buffer::Bytes(ByteCount::new(n))),
            (1u64..30).prop_map(|n| Buffer::Packets(PacketCount::new(n))),
        ],
        loss in (0.0..0.3).prop_map(LossModel::Bernoulli),
        reorder in prop::option::of(0.0..0.2),
        duplicate in 0.0..0.2,
        mtu in prop::option::of(100u32..2000),
    ) -> LinkConfig {
        let mut config = LinkConfig::default()
            .rate(rate)
            .delay(delay)
            .jitter(Jitter::Uniform(jitter))
            .buffer(buffer)
            .loss(loss)
            .duplicate(duplicate);
        config.mtu = mtu;
        config.reorder = reorder.map(|probability| Reorder {
            probability,
            by: ReorderBy::Delay(Duration::from_millis(3)),
        });
        config
    }
}

/// Gap before the packet in microseconds, its length, its flow, its codepoint, and whether all that
/// was announced is polled in time before it.
type Arrivals = Vec<(u64, usize, u64, u8, bool)>;

fn arrivals() -> impl Strategy<Value = Arrivals> {
    let gap = prop_oneof![0u64..2_000, Just(0), 0u64..50_000];
    let arrival = (gap, 1usize..2_500, 0u64..4, 0u8..4, any::<bool>());
    prop::collection::vec(arrival, 1..150)
}

fn sum(tallies: &[Tally]) -> Tally {
    Tally {
        packets: tallies.iter().map(|each| each.packets).sum(),
        bytes: tallies.iter().map(|each| each.bytes).sum(),
    }
}

fn assert_conserved(driver: &Driver) {
    let counters = driver.link.counters();
    assert_eq!(
        sum(&[counters.enqueued, counters.duplicated]),
        sum(&[
            counters.delivered,
            counters.dropped_queue,
            counters.dropped_aqm,
            counters.dropped_random,
            counters.dropped_mtu,
            driver.link.in_transit(),
        ])
    );
    assert_eq!(
        counters.dropped(),
        sum(&[
            counters.dropped_queue,
            counters.dropped_aqm,
            counters.dropped_random,
            counters.dropped_mtu,
        ])
    );
}

/// What arrived, in the order of arrival: when, flow, number, codepoint.
type Log = Vec<(Instant, u64, u64, Ecn)>;

fn run(config: &LinkConfig, seed: u64, arrivals: &Arrivals, lazy: bool) -> (Log, Counters) {
    let mut driver = Driver::new(config.clone(), seed);
    let mut now = support::T0;
    for &(gap, len, flow, ecn, in_time) in arrivals {
        now += Duration::from_micros(gap);
        if lazy && !in_time {
            // Polls only when there is a packet to send.
            driver.send_unpolled(now, flow, len, Ecn::from_bits(ecn));
        } else {
            driver.send(now, flow, len, Ecn::from_bits(ecn));
        }
        assert_conserved(&driver);
        let stats = driver.link.queue_stats(now);
        assert!(stats.bytes <= stats.max_bytes && stats.packets <= stats.max_packets);
        assert!(stats.mean_bytes <= stats.max_bytes.get() as f64);
        assert!(stats.delay.mean <= stats.delay.max && stats.delay.p99 <= stats.delay.max);
        assert_eq!(stats.bytes, driver.link.queue_len());
        match config.buffer {
            Buffer::Bytes(limit) => assert!(stats.bytes <= limit || stats.packets.get() == 1),
            Buffer::Packets(limit) => assert!(stats.packets <= limit),
            _ => {}
        }
    }
    driver.advance(Instant::FAR_FUTURE);
    assert_conserved(&driver);
    assert_eq!(driver.link.in_transit(), Tally::default());
    assert_eq!(driver.link.next_event(), None);
    let stats = driver.link.queue_stats(Instant::FAR_FUTURE);
    assert_eq!((stats.packets.get(), stats.bytes.get()), (0, 0));
    let counters = *driver.link.counters();
    // Every packet has an outcome, and copies have one more.
    assert_eq!(
        driver.outcomes.len() as u64,
        (counters.enqueued.packets + counters.duplicated.packets).get()
    );
    let arrived = driver.outcomes.iter().filter_map(|each| match each.fate {
        Fate::Arrived(ecn) => Some((each.at, each.probe.flow, each.probe.number, ecn)),
        Fate::Refused(_) | Fate::Dropped(_) => None,
    });
    (arrived.collect(), counters)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_packet_has_one_fate_and_polling_does_not_decide_it(
        config in configs(),
        discipline in disciplines(),
        seed in any::<u64>(),
        arrivals in arrivals(),
    ) {
        let config = config.queue(discipline);
        let (log, counters) = run(&config, seed, &arrivals, false);
        prop_assert_eq!(counters.enqueued.packets.get() as usize, arrivals.len());
        let (again, counters_again) = run(&config, seed, &arrivals, false);
        prop_assert_eq!(counters, counters_again);
        prop_assert_eq!(&log, &again);
        let (lazy, lazy_counters) = run(&config, seed, &arrivals, true);
        prop_assert_eq!(counters, lazy_counters);
        // Lazily polled packets are seen later, but they are the same in the same order.
        let seen = |log: &Log| log.iter().map(|each| (each.1, each.2, each.3)).collect::<Vec<_>>();
        prop_assert_eq!(seen(&log), seen(&lazy));
    }

    /// The two kinds of queue are the same as long as the discipline doesn't interfere.
    #[test]
    fn a_codel_that_never_acts_is_drop_tail(
        config in configs(),
        seed in any::<u64>(),
        arrivals in arrivals(),
    ) {
        let never = CoDelConfig {
            target: Duration::from_secs(24 * 60 * 60),
            ..CoDelConfig::default()
        };
        let codel = config.clone().queue(QueueDiscipline::CoDel(never));
        let (log, counters) = run(&config, seed, &arrivals, false);
        let (codel_log, codel_counters) = run(&codel, seed, &arrivals, false);
        prop_assert_eq!(log, codel_log);
        prop_assert_eq!(counters, codel_counters);
    }
}
