//! Queue disciplines as users write them.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_link::{
    CoDelConfig, DualPi2Config, DualQueueScheduler, FqCoDelConfig, QueueDiscipline, RedConfig,
    RedThreshold,
};
use swiftwater_units::{ByteCount, PacketCount};

#[test]
fn names_alone_mean_the_defaults() {
    for (text, discipline) in [
        ("droptail", QueueDiscipline::DropTail),
        ("red", QueueDiscipline::Red(RedConfig::default())),
        ("codel", QueueDiscipline::CoDel(CoDelConfig::default())),
        (
            "fq-codel",
            QueueDiscipline::FqCoDel(FqCoDelConfig::default()),
        ),
        (
            "dualpi2",
            QueueDiscipline::DualPi2(DualPi2Config::default()),
        ),
    ] {
        assert_eq!(text.parse(), Ok(discipline), "{text}");
        assert_eq!(discipline.to_string(), text);
        assert_eq!(discipline.validate(), Ok(()));
    }
    assert_eq!(
        " FQ_CoDel ".parse::<QueueDiscipline>().unwrap().to_string(),
        "fq-codel"
    );
}

#[test]
fn parameters_come_after_a_colon() {
    let codel = CoDelConfig {
        target: Duration::from_millis(10),
        ecn: false,
        ..CoDelConfig::default()
    };
    let red = RedConfig {
        min: RedThreshold::Packets(PacketCount::new(30)),
        max: RedThreshold::Share(0.9),
        max_probability: 0.02,
        gentle: false,
        ..RedConfig::default()
    };
    let fq_codel = FqCoDelConfig {
        codel,
        quantum: 300,
        flows: 64,
    };
    let dual_pi2 = DualPi2Config {
        target: Duration::from_millis(20),
        l4s_threshold: Duration::from_micros(500),
        l4s_range: Duration::ZERO,
        scheduler: DualQueueScheduler::TimeShifted(Duration::from_millis(30)),
        ..DualPi2Config::default()
    };
    for (text, discipline) in [
        ("codel:target=10ms,ecn=off", QueueDiscipline::CoDel(codel)),
        (
            "codel: target = 0.01s , ecn=off",
            QueueDiscipline::CoDel(codel),
        ),
        (
            "red:min=30p,max=90%,p=2%,gentle=off",
            QueueDiscipline::Red(red),
        ),
        (
            "red:min=30p,max=0.9,p=0.02,gentle=off",
            QueueDiscipline::Red(red),
        ),
        (
            "fq-codel:target=10ms,ecn=off,quantum=300,flows=64",
            QueueDiscipline::FqCoDel(fq_codel),
        ),
        (
            "dualpi2:target=20ms,l4s_threshold=500us,l4s_range=0,tshift=30ms",
            QueueDiscipline::DualPi2(dual_pi2),
        ),
    ] {
        assert_eq!(text.parse(), Ok(discipline), "{text}");
    }
}

#[test]
fn errors_name_what_there_is() {
    for (text, part) in [
        ("", "write droptail"),
        ("sfq", "dualpi2"),
        ("droptail:limit=3", "write droptail"),
        ("codel:", "target="),
        ("codel:5ms", "target="),
        ("codel:target=5", "target="),
        ("codel:quantum=3", "parameters of codel"),
        ("codel:ecn=yes", "on or off"),
        ("fq-codel:flows=-1", "flows="),
        ("red:min=1bdp", "share of the buffer"),
        ("red:p=2", "p="),
        ("dualpi2:k=two", "k="),
        ("dualpi2:target=15ms,", "tupdate="),
    ] {
        let error = text.parse::<QueueDiscipline>().unwrap_err().to_string();
        assert!(
            error.contains(part) && error.contains(&format!("'{text}'")),
            "{error}"
        );
    }
}

#[test]
fn what_is_out_of_range_is_named() {
    for (text, part) in [
        ("codel:target=0", "codel: target"),
        ("codel:interval=2000min", "at most a day"),
        ("fq-codel:quantum=1", "64 to"),
        ("fq-codel:flows=0", "1 to 65536"),
        ("fq-codel:interval=0", "fq-codel: interval"),
        ("red:p=0", "red: p is 0"),
        ("red:weight=0", "weight"),
        ("red:packet=0", "packet"),
        ("red:min=0%", "min"),
        ("dualpi2:tupdate=1us", "100us"),
        ("dualpi2:alpha=0", "alpha"),
        ("dualpi2:beta=2000", "beta"),
        ("dualpi2:k=0", "k is 0"),
        ("dualpi2:classic_share=100%", "classic_share"),
        ("dualpi2:l4s_threshold=100us", "twice l4s_threshold"),
        ("dualpi2:tshift=0", "tshift"),
    ] {
        let discipline: QueueDiscipline = text.parse().unwrap();
        let error = discipline.validate().unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
}

fn times() -> impl Strategy<Value = Duration> {
    // Below 2^53 ns, which are exact; a day is less.
    prop_oneof![
        (0u64..1_000).prop_map(Duration::from_millis),
        (0u64..86_400_000_000_000).prop_map(Duration::from_nanos),
    ]
}

fn thresholds() -> impl Strategy<Value = RedThreshold> {
    prop_oneof![
        (0u64..1 << 40).prop_map(|n| RedThreshold::Bytes(ByteCount::new(n))),
        (0u64..1 << 40).prop_map(|n| RedThreshold::Packets(PacketCount::new(n))),
        (0.0..10.0).prop_map(RedThreshold::Share),
        (0u32..10).prop_map(|n| RedThreshold::Share(f64::from(n))),
    ]
}

prop_compose! {
    fn codels()(
        target in times(),
        interval in times(),
        mtu in 0u64..1 << 32,
        ecn in any::<bool>(),
    ) -> CoDelConfig {
        CoDelConfig { target, interval, mtu: ByteCount::new(mtu), ecn }
    }
}

prop_compose! {
    fn reds()(
        min in thresholds(),
        max in thresholds(),
        max_probability in 0.0..=1.0,
        weight in 0.0..=1.0,
        gentle in any::<bool>(),
        ecn in any::<bool>(),
        packet in 0u64..1 << 32,
    ) -> RedConfig {
        let packet = ByteCount::new(packet);
        RedConfig { min, max, max_probability, weight, gentle, ecn, packet }
    }
}

prop_compose! {
    fn dual_pi2s()(
        target in times(),
        tupdate in times(),
        gains in (0.0..1e3, 0.0..1e3, 0.0..1e3),
        l4s_threshold in times(),
        l4s_range in times(),
        l4s_min in 0u64..1_000,
        scheduler in prop_oneof![
            (0.0..=1.0).prop_map(DualQueueScheduler::Weighted),
            times().prop_map(DualQueueScheduler::TimeShifted),
        ],
    ) -> DualPi2Config {
        let (alpha, beta, k) = gains;
        let l4s_min = PacketCount::new(l4s_min);
        DualPi2Config { target, tupdate, alpha, beta, k, l4s_threshold, l4s_range, l4s_min, scheduler }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_written_is_read_again(
        discipline in prop_oneof![
            reds().prop_map(QueueDiscipline::Red),
            codels().prop_map(QueueDiscipline::CoDel),
            (codels(), any::<u32>(), any::<u32>()).prop_map(|(codel, quantum, flows)| {
                QueueDiscipline::FqCoDel(FqCoDelConfig { codel, quantum, flows })
            }),
            dual_pi2s().prop_map(QueueDiscipline::DualPi2),
        ],
    ) {
        let text = discipline.to_string();
        prop_assert_eq!(text.parse(), Ok(discipline), "{}", text);
    }

    #[test]
    fn no_text_makes_the_parser_panic(
        name in "(red|codel|fq-codel|dualpi2)?",
        rest in "[:=,.%a-z0-9_ -]{0,40}",
    ) {
        let _ = format!("{name}{rest}").parse::<QueueDiscipline>();
        let _ = format!("{name}:{rest}").parse::<QueueDiscipline>();
    }
}
