//! Which names are asked for, and when.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, SystemTime};

use proptest::prelude::*;
use rcgen::{CertificateParams, KeyPair};
use swiftwater_acme::{
    AcmeError, Certificate, ExternalAccount, LETS_ENCRYPT, Schedule, Settings, SettingsError,
};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

fn names(names: &[&str]) -> Result<Vec<String>, SettingsError> {
    Settings::new(names, LETS_ENCRYPT, "state").map(|settings| settings.names().to_vec())
}

/// A certificate for `names`, valid for so long from `begin` on.
fn certificate(names: &[&str], begin: SystemTime, lifetime: Duration) -> Certificate {
    let key = KeyPair::generate().unwrap();
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut params = CertificateParams::new(names).unwrap();
    params.not_before = begin.into();
    params.not_after = (begin + lifetime).into();
    let certificate = params.self_signed(&key).unwrap();
    Certificate::from_pem(&certificate.pem(), &key.serialize_pem()).unwrap()
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

#[test]
fn names_are_a_set_in_lower_case() {
    let same = names(&["www.Example.org", "example.org.", "EXAMPLE.ORG"]).unwrap();
    assert_eq!(same, ["example.org", "www.example.org"]);
    assert_eq!(names(&["xn--bcher-kva.example"]).unwrap().len(), 1);
}

#[test]
fn names_that_no_authority_certifies_are_refused() {
    assert_eq!(names(&[]), Err(SettingsError::NoNames));
    let wildcard = Err(SettingsError::Wildcard("*.example.org".to_owned()));
    assert_eq!(names(&["*.example.org"]), wildcard);
    let long = format!("{}.org", "a".repeat(64));
    for bad in [
        "localhost",
        "192.0.2.7",
        "2001:db8::1",
        "a..org",
        "-a.org",
        "a-.org",
        "a b.org",
        "bücher.de",
        "a_b.org",
        "../x.org",
        ".",
        "",
        &long,
    ] {
        assert_eq!(
            names(&[bad]),
            Err(SettingsError::Name(bad.to_owned())),
            "{bad}"
        );
    }
    let many: Vec<String> = (0..101).map(|n| format!("n{n}.example.org")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    assert_eq!(names(&many), Err(SettingsError::TooManyNames));
    assert_eq!(names(&many[..100]).unwrap().len(), 100);
    let plain = Settings::new(["example.org"], "http://authority/dir", "state");
    assert!(matches!(plain, Err(SettingsError::Directory(_))));
}

#[test]
fn keys_are_not_shown() {
    let account = ExternalAccount {
        id: "mine".to_owned(),
        key: b"secret".to_vec(),
    };
    let shown = format!("{account:?}");
    assert!(shown.contains("mine") && !shown.contains("115"), "{shown}");
    let certificate = certificate(&["example.org"], at(0), DAY);
    assert!(!format!("{certificate:?}").contains("PRIVATE"));
}

#[test]
fn a_certificate_says_what_it_is_for() {
    let certificate = certificate(&["www.example.org", "example.org"], at(1_000_000), 90 * DAY);
    assert_eq!(certificate.names(), ["example.org", "www.example.org"]);
    assert_eq!(certificate.not_before(), at(1_000_000));
    assert_eq!(certificate.not_after(), at(1_000_000) + 90 * DAY);
    assert!(certificate.is_valid_at(at(1_000_000)));
    assert!(!certificate.is_valid_at(at(999_999)));
    assert!(!certificate.is_valid_at(certificate.not_after()));
}

#[test]
fn what_is_no_certificate_is_an_error() {
    let good = certificate(&["example.org"], at(0), DAY);
    let other = certificate(&["example.org"], at(0), DAY);
    for (chain, key) in [
        ("", ""),
        (good.chain_pem(), ""),
        ("", good.key_pem()),
        (good.chain_pem(), other.key_pem()),
    ] {
        assert!(Certificate::from_pem(chain, key).is_err());
    }
}

#[test]
fn there_is_nothing_stored_at_first_and_damage_is_an_error() {
    let state = tempfile::tempdir().unwrap();
    let settings = Settings::new(["example.org"], LETS_ENCRYPT, state.path()).unwrap();
    assert_eq!(settings.stored().unwrap(), None);
    std::fs::write(settings.certificate_path(), "damaged").unwrap();
    assert!(matches!(settings.stored(), Err(AcmeError::Unusable(_))));
    let good = certificate(&["example.org"], at(0), DAY);
    let both = format!("{}{}", good.chain_pem(), good.key_pem());
    std::fs::write(settings.certificate_path(), both).unwrap();
    assert_eq!(settings.stored().unwrap().unwrap().names(), ["example.org"]);
    // Of other names and other authorities there is still none.
    let others = Settings::new(["example.org", "a.org"], LETS_ENCRYPT, state.path()).unwrap();
    assert_eq!(others.stored().unwrap(), None);
    let elsewhere = Settings::new(["example.org"], "https://other/dir", state.path()).unwrap();
    assert_eq!(elsewhere.stored().unwrap(), None);
}

#[test]
fn attempts_after_failures_keep_to_five_in_an_hour() {
    let mut schedule = Schedule::NEW;
    let mut after = Duration::ZERO;
    let mut attempts = 1;
    loop {
        after += schedule.on_failure();
        if after > Duration::from_secs(3600) {
            break;
        }
        attempts += 1;
    }
    assert_eq!(attempts, 5);
    for _ in 0..100 {
        assert!(schedule.on_failure() <= Duration::from_secs(6 * 60 * 60));
    }
    schedule.on_success();
    assert_eq!(schedule.on_failure(), Duration::from_secs(120));
}

#[test]
fn a_certificate_is_never_renewed_at_once() {
    let interval =
        |days| Schedule::least_interval(&certificate(&["example.org"], at(0), days * DAY));
    assert_eq!(interval(90), Duration::from_secs(6 * 60 * 60));
    assert_eq!(interval(6), 6 * DAY / 100);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn renewals_are_after_two_thirds_or_in_the_suggested_window(
        begin in 0_u64..4_000_000_000, days in 1_u32..400, window in 0_u64..1_000_000,
    ) {
        let certificate = certificate(&["example.org"], at(begin), days * DAY);
        let renewal = Schedule::renewal(&certificate, None);
        let lifetime = days * DAY;
        prop_assert!(renewal >= at(begin) + lifetime.mul_f64(0.66));
        prop_assert!(renewal <= at(begin) + lifetime.mul_f64(0.71));
        let suggested = (at(begin), at(begin + window));
        let renewal = Schedule::renewal(&certificate, Some(suggested));
        prop_assert!((suggested.0..=suggested.1).contains(&renewal));
        // A window of the whole lifetime, and one after it.
        let latest = at(begin) + lifetime.mul_f64(0.8);
        let renewal = Schedule::renewal(&certificate, Some((at(begin), at(begin) + lifetime)));
        prop_assert!((at(begin)..=latest).contains(&renewal));
        let after = (at(begin) + lifetime, at(begin) + 2 * lifetime);
        prop_assert_eq!(Schedule::renewal(&certificate, Some(after)), latest);
        // A window that ends before it begins.
        let odd = (at(begin), SystemTime::UNIX_EPOCH);
        prop_assert_eq!(Schedule::renewal(&certificate, Some(odd)), at(begin));
    }
}
