//! Policies by name, with parameters.

use std::time::Duration;

use swiftwater_policies::{
    AutoRecConfig, CongestionGuardConfig, ReinjectorCatalogue, UnknownEntry, by_name, names,
    parameters, reinjector_by_name,
};
use swiftwater_tunable::{ParameterError, Tunable};

#[test]
fn the_systems_are_there_in_order() {
    let names = names();
    assert!(names.is_sorted());
    for wanted in [
        "arq",
        "art",
        "autorec",
        "autorec-paper",
        "plain",
        "single-path",
    ] {
        assert!(names.iter().any(|name| name == wanted), "{wanted}");
    }
}

#[test]
fn every_parameter_takes_the_value_that_it_shows() {
    for entry in ReinjectorCatalogue::standard().entries() {
        assert!(!entry.about().is_empty());
        for parameter in entry.parameters() {
            let setting = format!("{}={}", parameter.name, parameter.value);
            let same = parameters(&format!("{}:{setting}", entry.name())).unwrap();
            assert_eq!(same, entry.parameters(), "{} {setting}", entry.name());
            assert!(!parameter.about.is_empty() && !parameter.accepts.is_empty());
        }
    }
}

#[test]
fn parameters_arrive() {
    let set = parameters("AutoRec-Paper: alpha=50ms, beta=0.2, min-gap=auto, level=7").unwrap();
    let value = |name: &str| {
        let found = set.iter().find(|parameter| parameter.name == name);
        found.unwrap().value.clone()
    };
    assert_eq!(value("alpha"), "50ms");
    assert_eq!(value("beta"), "0.2");
    assert_eq!(value("min-gap"), "auto");
    assert_eq!(value("level"), "7");
    let policy = reinjector_by_name("autorec:level=7").unwrap();
    assert_eq!(policy.report().redundancy_level, 7);
    assert!(reinjector_by_name("arq").unwrap().is_inert());
    assert!(!by_name("art").unwrap().reinjector().is_inert());
}

#[test]
fn the_paper_differs_from_the_default_where_it_says_so() {
    let differing: Vec<_> = AutoRecConfig::paper()
        .parameters()
        .into_iter()
        .zip(AutoRecConfig::default().parameters())
        .filter(|(paper, default)| paper.value != default.value)
        .map(|(paper, _)| paper.name)
        .collect();
    assert_eq!(
        differing,
        ["min-gap", "loss-memory", "subtract-spurious", "guard"]
    );
}

#[test]
fn profiles_have_their_tolerances() {
    let of = |config: AutoRecConfig| {
        let tolerances = config.tolerances;
        (tolerances.alpha, tolerances.beta, tolerances.gamma)
    };
    assert_eq!(
        of(AutoRecConfig::paper()),
        (Duration::from_millis(30), 0.3, 0.2)
    );
    assert_eq!(
        of(AutoRecConfig::live()),
        (Duration::from_millis(200), 0.5, 0.5)
    );
    assert_eq!(of(AutoRecConfig::rtc()), (Duration::ZERO, 0.2, 0.2));
    assert_eq!(of(AutoRecConfig::rtc_lc()), (Duration::ZERO, 0.05, 0.05));
    assert_eq!(of(AutoRecConfig::rtc_hc()), (Duration::ZERO, 0.5, 0.5));
}

#[test]
fn live_is_autorec_with_other_tolerances_and_a_copy_while_data_wait() {
    let set = "alpha=200ms,beta=0.5,gamma=0.5,guard-backlog-copies=1";
    assert_eq!(
        parameters(&format!("autorec:{set}")).unwrap(),
        parameters("autorec-live").unwrap()
    );
    for other in [AutoRecConfig::default(), AutoRecConfig::rtc()] {
        assert_eq!(other.guard, CongestionGuardConfig::default());
    }
    let default = CongestionGuardConfig::default();
    assert_eq!(default.backlog_copies, 0);
}

#[test]
fn mistakes_are_named() {
    let error = by_name("autorek").unwrap_err();
    assert!(matches!(error, UnknownEntry::Name { .. }));
    let text = error.to_string();
    assert!(
        text.contains("autorek") && text.contains("autorec-paper"),
        "{text}"
    );

    let parameter = |specification: &str| match by_name(specification) {
        Err(UnknownEntry::Parameter { error, .. }) => error,
        other => panic!("{other:?}"),
    };
    assert!(matches!(
        parameter("autorec:alfa=1ms"),
        ParameterError::Unknown { .. }
    ));
    assert!(matches!(
        parameter("autorec:beta=-1"),
        ParameterError::Value { .. }
    ));
    assert!(matches!(
        parameter("autorec:max-level=21"),
        ParameterError::Value { .. }
    ));
    assert!(matches!(
        parameter("autorec:watch=all"),
        ParameterError::Value { .. }
    ));
    assert!(matches!(
        parameter("autorec:min-gap=-1ms"),
        ParameterError::Value { .. }
    ));
    assert!(matches!(
        parameter("autorec:alpha"),
        ParameterError::Form { .. }
    ));
    assert!(matches!(
        parameter("arq:alpha=1ms"),
        ParameterError::Unknown { .. }
    ));
}

#[test]
fn a_reinjector_of_the_application_joins_the_catalogue() {
    let mut catalogue = ReinjectorCatalogue::standard();
    let cautious = AutoRecConfig {
        max_level: 1,
        ..AutoRecConfig::default()
    };
    catalogue.add("Cautious", "at most one replica", cautious);
    let set = catalogue.parameters("cautious:alpha=0ms").unwrap();
    assert!(set.iter().any(|p| p.name == "max-level" && p.value == "1"));
    assert!(catalogue.get("cautious").is_ok() && by_name("cautious").is_err());
    catalogue.add("cautious", "replaced", AutoRecConfig::default());
    assert_eq!(
        catalogue.names().filter(|name| *name == "cautious").count(),
        1
    );
}
