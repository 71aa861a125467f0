//! Algorithms by name and their parameters by name.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_congestion::blocks::Windowed;
use swiftwater_congestion::{
    ControllerCatalogue, CubicConfig, CubicPlusConfig, HyStartConfig, ParameterError,
    SlowStartExit, Tunable, UnknownEntry, by_name,
};

#[test]
fn a_specification_sets_parameters() {
    let mut config = CubicConfig::default();
    config
        .set_all("beta=0.8, hystart=off,pacing_gain=2")
        .unwrap();
    assert!((config.beta - 0.8).abs() < 1e-12);
    assert_eq!(config.base.hystart, SlowStartExit::Loss);
    assert!((config.base.pacing.avoidance - 2.0).abs() < 1e-12);
    assert!(by_name("Cubic:beta=0.8,hystart=off").is_ok());
    config.set("hystart", "step-back").unwrap();
    assert_eq!(
        config.base.hystart,
        SlowStartExit::HyStartPlusPlus(HyStartConfig {
            step_back: true,
            ..HyStartConfig::rfc9406()
        })
    );
    config.set("hystart", "rfc9406").unwrap();
    let rfc = SlowStartExit::HyStartPlusPlus(HyStartConfig::rfc9406());
    assert_eq!(config.base.hystart, rfc);
    config.set("hystart", "on").unwrap();
    assert_eq!(config.base.hystart, CubicConfig::default().base.hystart);
}

#[test]
fn what_cannot_be_set_is_refused_with_what_could() {
    let mut config = CubicConfig::default();
    let before = config;
    let error = config.set("beta", "1.5").unwrap_err();
    assert_eq!(
        error.to_string(),
        "parameter `beta` can't be `1.5`; it takes a number from 0.1 to 0.95"
    );
    assert!(matches!(
        config.set("gamma", "1"),
        Err(ParameterError::Unknown { known, .. }) if known.contains("fast_convergence")
    ));
    assert!(matches!(
        config.set_all("beta"),
        Err(ParameterError::Form { .. })
    ));
    assert!(config.set("c", "NaN").is_err());
    assert_eq!(config, before);
    assert!(matches!(
        by_name("cubic:beta=x"),
        Err(UnknownEntry::Parameter { name, .. }) if name == "cubic"
    ));
    assert!(matches!(by_name("vegas"), Err(UnknownEntry::Name { .. })));
}

#[test]
fn a_configuration_hands_on_the_parameters_of_one_inside_it() {
    let mut config = CubicPlusConfig::default();
    config.set_all("k_high=4,beta=0.8,prr=on").unwrap();
    assert!((config.k_high - 4.0).abs() < 1e-12);
    assert!((config.cubic.beta - 0.8).abs() < 1e-12);
    assert!(config.cubic.base.prr);
    let names: Vec<_> = config.parameters().iter().map(|p| p.name).collect();
    let inner: Vec<_> = config.cubic.parameters().iter().map(|p| p.name).collect();
    assert!(names.ends_with(&inner) && names.len() > inner.len());
    assert!(matches!(
        config.set("gamma", "1"),
        Err(ParameterError::Unknown { known, .. }) if known == names.join(", ")
    ));
}

#[test]
fn values_outside_their_range_are_refused() {
    for specification in [
        "bbr1:probe_rtt_gain=5",
        "bbr1:initial_window=1",
        "bbr1:expected_bandwidth=0mbit",
        "bbr1-xquic:probe_rtt_interval=0s",
        "bbr2:initial_window=1001",
        "bbr3:probe_rtt_duration=11s",
        "cubic-plus:base_window=10ms",
    ] {
        let error = by_name(specification).unwrap_err().to_string();
        assert!(error.contains(" from "), "{specification}: {error}");
    }
    for specification in ["bbr1:probe_rtt_gain=none", "bbr1:initial_window=32"] {
        assert!(by_name(specification).is_ok(), "{specification}");
    }
}

#[test]
fn every_listed_value_can_be_set_again() {
    for algorithm in ControllerCatalogue::standard().entries() {
        for parameter in algorithm.parameters() {
            let specification = format!(
                "{}:{}={}",
                algorithm.name(),
                parameter.name,
                parameter.value
            );
            assert!(by_name(&specification).is_ok(), "{specification}");
        }
    }
}

#[test]
fn a_catalogue_takes_algorithms_of_its_user() {
    let mut catalogue = ControllerCatalogue::standard();
    let known = catalogue.entries().len();
    let gentle = CubicConfig {
        beta: 0.9,
        ..CubicConfig::default()
    };
    catalogue.add("Gentle", "CUBIC that gives way a little", gentle);
    assert_eq!(catalogue.entries().len(), known + 1);
    assert!(catalogue.get("gentle:c=1").is_ok());
    let names: Vec<_> = catalogue.names().collect();
    assert!(names.is_sorted());
    catalogue.add("gentle", "again", CubicConfig::default());
    assert_eq!(catalogue.entries().len(), known + 1);
}

proptest! {
    #[test]
    fn the_window_has_the_extremum(
        values in proptest::collection::vec((0u64..5, 0u32..100), 1..200),
        length in 1u64..20,
    ) {
        let (mut largest, mut smallest) = (Windowed::largest(), Windowed::smallest());
        let mut seen: Vec<(u64, u32)> = Vec::new();
        let mut position = 0;
        for (step, value) in values {
            position += step;
            largest.enter(position, value);
            smallest.enter(position, value);
            seen.push((position, value));
            let from = position.saturating_sub(length);
            largest.discard_before(from);
            smallest.discard_before(from);
            let inside = seen.iter().filter(|(at, _)| *at >= from).map(|(_, v)| *v);
            prop_assert_eq!(largest.get(), inside.clone().max());
            prop_assert_eq!(smallest.get(), inside.min());
            prop_assert_eq!(largest.newest(), Some((position, value)));
            prop_assert_eq!(smallest.newest(), Some((position, value)));
        }
    }

    #[test]
    fn durations_are_read_as_they_are_written(nanos in 0u64..10_000_000_000_000) {
        use swiftwater_congestion::ParameterValue;
        let duration = Duration::from_nanos(nanos);
        prop_assert_eq!(Duration::read(&duration.write()), Some(duration));
    }
}
