//! Parameters, arms, features, the rank-sum test, stored states, networks that share a block.

use std::time::Duration;

use swiftwater_select::{
    Agenda, Arm, Config, ConfigError, Feature, Measured, Models, NetworkId, OriginHash, PARAMETERS,
    ParameterError, Parameters, RequestDescription, Sample, Selector, SnapshotError, Strategy,
    Traffic, Transport, Warm, Window, p_greater,
};
use swiftwater_units::Instant;

fn selector(strategy: Strategy) -> Selector {
    let config = Config::new(vec![Arm::h2(), Arm::h3()], strategy);
    Selector::new(config, Models::none(), 1).unwrap()
}

#[test]
fn defaults_are_in_range_and_the_ends_of_ranges_are_checked() {
    Parameters::default().check().unwrap();
    for info in PARAMETERS {
        let mut parameters = Parameters::default();
        let default = parameters.get(info.name).unwrap();
        assert!((default - info.default).abs() < 1e-9, "{}", info.name);
        for wrong in [info.min - 1.0, info.max * 2.0, f64::NAN, f64::INFINITY] {
            let error = parameters.set(info.name, wrong).unwrap_err();
            assert!(
                matches!(error, ParameterError::Range { .. }),
                "{}",
                info.name
            );
        }
        parameters.set(info.name, info.max).unwrap();
        assert!((parameters.get(info.name).unwrap() - info.max).abs() < 1e-6 * info.max);
    }
    let unknown = Parameters::default().set("luck", 1.0);
    assert_eq!(unknown, Err(ParameterError::Unknown("luck".to_owned())));
}

#[test]
fn parameters_that_contradict_each_other_are_refused() {
    let mut config = Config::new(vec![Arm::h2(), Arm::h3()], Strategy::wise());
    config.parameters.block_max = Duration::from_secs(1);
    let error = Selector::new(config, Models::none(), 1).err();
    let expected = ParameterError::Order("block_first", "block_max");
    assert_eq!(error, Some(ConfigError::Parameter(expected)));
}

#[test]
fn arms_are_named_by_version_controller_and_recovery() {
    let arm: Arm = "h3:bbr1+autorec".parse().unwrap();
    assert_eq!(
        (arm.controller(), arm.recovery()),
        (Some("bbr1"), Some("autorec"))
    );
    assert_eq!(arm.transport(), Transport::Quic);
    let arm: Arm = "h3+autorec".parse().unwrap();
    assert_eq!((arm.controller(), arm.recovery()), (None, Some("autorec")));
    assert_eq!("h1".parse::<Arm>().unwrap().transport(), Transport::Tcp);
    for wrong in [
        "", "h4", "h3:", "h3+", "h2:bbr1", "h3:BBR", "quic", "h3 ", "h3:a+b+",
    ] {
        assert!(wrong.parse::<Arm>().is_err(), "{wrong}");
    }
}

#[test]
fn strategies_are_named() {
    for name in ["wise", "wise1", "plus", "race", "h2", "h3:bbr1"] {
        assert_eq!(name.parse::<Strategy>().unwrap().to_string(), name);
    }
    assert!("best".parse::<Strategy>().is_err());
}

#[test]
fn a_selector_needs_arms_that_differ() {
    let made = |arms: Vec<Arm>, strategy| {
        Selector::new(Config::new(arms, strategy), Models::none(), 1).err()
    };
    assert_eq!(made(vec![], Strategy::Race), Some(ConfigError::Arms(0)));
    let twice = made(vec![Arm::h2(), Arm::h2()], Strategy::Race);
    assert_eq!(twice, Some(ConfigError::Twice(Arm::h2())));
    let fixed = made(vec![Arm::h2()], Strategy::Fixed(Arm::h3()));
    assert_eq!(fixed, Some(ConfigError::NotListed(Arm::h3())));
}

fn measured(first_byte: u64, completion: u64, bytes: u64) -> Measured {
    Measured {
        first_byte: Duration::from_millis(first_byte),
        completion: Duration::from_millis(completion),
        waited: Duration::ZERO,
        bytes,
        rtt: Some(Duration::from_millis(40)),
        traffic: Some(Traffic {
            sent: 1000,
            retransmitted: 30,
        }),
    }
}

#[test]
fn features_follow_their_definitions() {
    let parameters = Parameters::default();
    let mut window = Window::default();
    assert!(window.features().is_none());
    window.push(
        Sample::new(Instant::ZERO, &measured(100, 200, 5000)),
        &parameters,
    );
    let mut last = measured(50, 100, 20_000);
    last.rtt = Some(Duration::from_millis(60));
    last.traffic = None;
    window.push(Sample::new(Instant::from_millis(10), &last), &parameters);
    let features = window.features().unwrap();
    let expected = [
        (Feature::RetranRate, 0.03),
        (Feature::TtfbAvg, 75.0),
        (Feature::RttAvg, 50.0),
        (Feature::Ttfb, 50.0),
        (Feature::RespRecG, 400.0),
        (Feature::TtfbRate, 50.0 / 75.0),
        (Feature::ReqCmplG, 200.0),
    ];
    for (feature, value) in expected {
        assert!((features.get(feature) - value).abs() < 1e-3, "{feature}");
    }
}

#[test]
fn receivers_estimate_what_was_sent_again() {
    let pair = |traffic: Traffic| (traffic.sent, traffic.retransmitted);
    assert_eq!(
        pair(Traffic::of_segments(100_000, 100, 3)),
        (100_000, 3_000)
    );
    // Counts of requests at the same time, and of a request without an answer.
    assert_eq!(pair(Traffic::of_segments(1_000, 2, 5)), (1_000, 1_000));
    assert_eq!(pair(Traffic::of_segments(0, 0, 0)), (0, 0));
    assert_eq!(pair(Traffic::of_packets(200, 7)), (200, 7));
    assert_eq!(pair(Traffic::of_packets(2, 7)), (2, 2));
    let rate = |all: &[Traffic]| {
        let mut window = Window::default();
        for traffic in all {
            let mut sample = measured(50, 100, 1000);
            sample.traffic = Some(*traffic);
            window.push(Sample::new(Instant::ZERO, &sample), &Parameters::default());
        }
        window.retransmission_rate()
    };
    assert_eq!(rate(&[Traffic::of_packets(0, 0)]), None);
    let three = [(30, 1), (0, 0), (10, 1)].map(|(all, lost)| Traffic::of_packets(all, lost));
    assert_eq!(rate(&three), Some(0.05));
}

#[test]
fn what_was_not_measured_is_missing() {
    let mut nothing = measured(100, 100, 5000);
    (nothing.rtt, nothing.traffic) = (None, None);
    let mut window = Window::default();
    window.push(Sample::new(Instant::ZERO, &nothing), &Parameters::default());
    let features = window.features().unwrap();
    for feature in [Feature::RetranRate, Feature::RttAvg, Feature::RespRecG] {
        assert!(features.get(feature).is_nan(), "{feature}");
    }
}

#[test]
fn windows_forget_by_age_and_number() {
    let parameters = Parameters::default();
    let mut window = Window::default();
    for number in 0..200 {
        let sample = Sample::new(Instant::from_millis(number), &measured(1, 2, 3));
        window.push(sample, &parameters);
    }
    assert_eq!(window.len(), 50);
    let late = Sample::new(Instant::from_millis(10_190), &measured(1, 2, 3));
    window.push(late, &parameters);
    // The ten youngest of the others are not older than ten seconds.
    assert_eq!(window.len(), 11);
}

/// p values of the two directions.
const GREATER: f64 = 0.018_189_290_186_065_58;
const LESS: f64 = 0.987_890_749_104_037_3;

#[test]
fn the_rank_sum_test_agrees_with_published_values() {
    // SciPy 1.17.1: mannwhitneyu(after, before, alternative="greater", method="asymptotic").
    let before = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
    let after = [4.0, 5.0, 6.0, 7.0, 8.0, 9.0];
    let p = p_greater(&before, &after);
    assert!((p - GREATER).abs() < 1e-9, "{p}");
    let p = p_greater(&after, &before);
    assert!((p - LESS).abs() < 1e-9, "{p}");
    assert!(p_greater(&[], &after) > 0.999);
    assert!(p_greater(&[1.0; 5], &[1.0; 5]) > 0.999);
}

#[test]
fn a_block_at_two_origins_is_one_of_the_network() {
    let mut selector = selector(Strategy::wise());
    let (here, there) = (NetworkId(1), NetworkId(2));
    let origins = [1, 2, 3].map(OriginHash);
    let now = Instant::ZERO;
    selector.on_quic_blocked(now, here, origins[0]);
    assert!(selector.is_quic_blocked(now, here, origins[0]));
    assert!(!selector.is_quic_blocked(now, here, origins[2]));
    selector.on_quic_blocked(now, here, origins[1]);
    assert!(selector.is_quic_blocked(now, here, origins[2]));
    assert!(!selector.is_quic_blocked(now, there, origins[2]));
    selector.on_connection(now, here, origins[2], &Arm::h3());
    assert!(!selector.is_quic_blocked(now, here, origins[2]));
}

#[test]
fn blocks_last_five_minutes_and_double_up_to_two_days() {
    let mut selector = selector(Strategy::wise());
    let (network, origin) = (NetworkId(1), OriginHash(1));
    let mut now = Instant::ZERO;
    let mut length = Duration::from_secs(300);
    for _ in 0..12 {
        selector.on_quic_blocked(now, network, origin);
        // A failure of the same time counts once.
        selector.on_quic_blocked(now, network, origin);
        let before = now + length.mul_f64(0.999);
        assert!(selector.is_quic_blocked(before, network, origin));
        now += length;
        assert!(!selector.is_quic_blocked(now, network, origin));
        length = (length * 2).min(Duration::from_secs(172_800));
    }
    assert_eq!(length, Duration::from_secs(172_800));
}

#[test]
fn a_stored_state_carries_blocks_over_restarts() {
    let (network, origin) = (NetworkId(1), OriginHash(1));
    let mut before = selector(Strategy::wise());
    before.on_quic_blocked(Instant::ZERO, network, origin);
    let clock = Duration::from_secs(1_700_000_000);
    let text = before.snapshot(Instant::ZERO, clock);
    assert!(!text.contains("example"));
    // A minute later, in a process whose time begins anew.
    let mut after = selector(Strategy::wise());
    let later = clock + Duration::from_secs(60);
    after.restore(Instant::ZERO, later, &text).unwrap();
    let still = Instant::from_millis(239_000);
    assert!(after.is_quic_blocked(still, network, origin));
    assert!(!after.is_quic_blocked(Instant::from_millis(241_000), network, origin));
}

#[test]
fn foreign_states_are_refused_and_change_nothing() {
    let mut selector = selector(Strategy::wise());
    let mut restore = |text: &str| {
        let error = selector.restore(Instant::ZERO, Duration::ZERO, text);
        assert_eq!(selector.remembered().0, 0);
        error.unwrap_err()
    };
    assert!(matches!(restore("not JSON"), SnapshotError::Json(_)));
    assert!(matches!(restore("{\"a\":1}"), SnapshotError::Foreign(_)));
    let newer = r#"{"format":"swiftwater-select","version":2}"#;
    assert!(matches!(restore(newer), SnapshotError::Version(2)));
    let short = r#"{"format":"swiftwater-select","version":1}"#;
    assert!(matches!(restore(short), SnapshotError::Json(_)));
}

#[test]
fn the_loser_of_a_switch_stays_warm_for_a_while() {
    let mut selector = selector(Strategy::Race);
    let (network, origin) = (NetworkId(1), OriginHash(1));
    let now = Instant::ZERO;
    selector.on_connection(now, network, origin, &Arm::h3());
    selector.on_quic_blocked(now, network, origin);
    selector.decide(now, &RequestDescription::new(network, origin));
    assert_eq!(selector.warm(now, network, origin, &Arm::h2()), Warm::InUse);
    let quic = selector.warm(now, network, origin, &Arm::h3());
    assert_eq!(quic, Warm::For(Duration::from_secs(30)));
    let later = Instant::from_millis(31_000);
    let quic = selector.warm(later, network, origin, &Arm::h3());
    assert_eq!(quic, Warm::For(Duration::ZERO));
}

/// A number as the page writes it, without zeros at its end.
fn written(number: f64) -> String {
    format!("{number}")
}

#[test]
fn the_page_lists_every_parameter_with_its_default_and_range() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/select.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rows: Vec<&str> = page.lines().filter(|it| it.starts_with("| `")).collect();
    for info in PARAMETERS {
        let name = format!("| `{}` | ", info.name);
        let row = rows.iter().find_map(|row| row.strip_prefix(&name));
        let row = row.unwrap_or_else(|| panic!("{} is missing", info.name));
        let cells: Vec<&str> = row.split(" | ").collect();
        let unit = if info.unit == "s" { " s" } else { "" };
        assert_eq!(
            cells[0],
            format!("{}{unit}", written(info.default)),
            "{name}"
        );
        let range = format!("{} to {}", written(info.min), written(info.max));
        assert_eq!(cells[1], range, "{name}");
        assert!(cells[2].starts_with(info.about), "{name}");
    }
}

#[test]
fn an_agenda_gives_what_is_due_in_the_order_of_time() {
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    let mut agenda = Agenda::default();
    for (key, seconds) in [('a', 3), ('b', 1), ('c', 2), ('d', 1)] {
        agenda.set(key, Some(at(seconds)));
    }
    agenda.set('b', Some(at(4)));
    agenda.set('c', None);
    assert_eq!((agenda.len(), agenda.next()), (3, Some(at(1))));
    assert_eq!(agenda.take_due(at(0)), None);
    assert_eq!(agenda.take_due(at(3)), Some('d'));
    assert_eq!(agenda.take_due(at(3)), Some('a'));
    assert_eq!(agenda.take_due(at(3)), None);
    agenda.retain(|key| *key != 'b');
    assert!(agenda.is_empty() && agenda.next().is_none());
}
