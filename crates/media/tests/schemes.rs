//! Schemes by name.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_media::protection::hairpin::WINDOW;
use swiftwater_media::protection::tambur::TamburParity;
use swiftwater_media::protection::webrtc::WebRtcVariant;
use swiftwater_media::protection::{Protector, Scheme, SchemeTables, UnknownPolicy};
use swiftwater_quic::policy::{NoReinjection, Reinjector};

#[test]
fn names_are_read_and_written() {
    let known = [
        ("rtx", Scheme::Rtx),
        ("webrtc14", Scheme::WebRtc(WebRtcVariant::Year14)),
        ("webrtc-now", Scheme::WebRtc(WebRtcVariant::Now)),
        (
            "hairpin:lambda=1e-4",
            Scheme::Hairpin {
                lambda: 1e-4,
                window: WINDOW,
            },
        ),
        (
            "hairpin:lambda=1e-4,window=1000000000ns",
            Scheme::Hairpin {
                lambda: 1e-4,
                window: Duration::from_secs(1),
            },
        ),
        (
            "tambur:ratio=0.25",
            Scheme::Tambur(TamburParity::Ratio(0.25)),
        ),
        ("tambur:one", Scheme::Tambur(TamburParity::OnePacket)),
        (
            "autorec:alpha=0ms",
            Scheme::Policy("autorec:alpha=0ms".to_owned()),
        ),
    ];
    for (text, scheme) in known {
        assert_eq!(text.parse::<Scheme>().as_ref(), Ok(&scheme), "{text}");
        assert_eq!(scheme.to_string(), text);
    }
}

#[test]
fn mistakes_say_what_would_be_right() {
    for (text, expected) in [
        ("hairpin", "hairpin:lambda=1e-4"),
        ("hairpin:lambda=0", "positive lambda"),
        ("hairpin:lambda=nan", "hairpin:lambda=1e-4"),
        ("tambur:ratio=1.5", "at most 1"),
        ("tambur:two", "tambur:one"),
        ("rtx:fast", "no settings"),
        ("", "write rtx"),
    ] {
        let error = text.parse::<Scheme>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text}: {error}");
    }
}

#[test]
fn other_names_go_to_the_resolver() {
    let tables = SchemeTables::new();
    let resolve = |name: &str| -> Option<Box<dyn Reinjector>> {
        (name == "nothing:a=1").then(|| Box::new(NoReinjection) as Box<dyn Reinjector>)
    };
    let known = "nothing:a=1".parse().unwrap();
    let protector = Protector::new(&known, &tables, &resolve).unwrap();
    assert!(matches!(protector, Protector::Reinject(_)));
    let unknown = "something".parse().unwrap();
    let error = Protector::new(&unknown, &tables, &resolve).unwrap_err();
    assert_eq!(error, UnknownPolicy::Name("something".to_owned()));
}

#[test]
fn tables_are_shared() {
    let tables = SchemeTables::new();
    let first = tables.hairpin(1e-4).unwrap();
    assert!(std::sync::Arc::ptr_eq(
        &first,
        &tables.hairpin(1e-4).unwrap()
    ));
    assert!(!std::sync::Arc::ptr_eq(
        &first,
        &tables.hairpin(1e-1).unwrap()
    ));
}

proptest! {
    #[test]
    fn whatever_is_read_is_written_so_that_it_is_read_again(text in "[a-z:=.,0-9-]{0,24}") {
        if let Ok(scheme) = text.parse::<Scheme>() {
            prop_assert_eq!(scheme.to_string().parse::<Scheme>(), Ok(scheme));
        }
    }

    #[test]
    fn numbers_keep_their_value(lambda in 1e-12_f64..10.0, ratio in 0.001_f64..=1.0) {
        for scheme in [Scheme::Hairpin { lambda, window: WINDOW }, Scheme::Tambur(TamburParity::Ratio(ratio))] {
            prop_assert_eq!(scheme.to_string().parse::<Scheme>(), Ok(scheme));
        }
    }
}
