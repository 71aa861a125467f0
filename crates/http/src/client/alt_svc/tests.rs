use proptest::prelude::*;

use super::*;

const HOUR: Duration = Duration::from_secs(3600);

fn own(port: u16) -> Alternative {
    Alternative { host: None, port }
}

fn http3(alternative: Alternative, seconds: u64) -> Advert {
    let age = Duration::from_secs(seconds);
    Advert::Http3(Some((alternative, age)))
}

#[test]
fn values_are_read_as_the_grammar_has_them() {
    let host = |host: &str, port| Alternative {
        host: Some(host.into()),
        port,
    };
    let day = 24 * 3600;
    for (value, expected) in [
        ("clear", Some(Advert::Clear)),
        ("h3=\":443\"", Some(http3(own(443), day))),
        ("h3=\":443\"; ma=3600", Some(http3(own(443), 3600))),
        (
            "h3=\":443\";ma=\"60\" ; persist=1",
            Some(http3(own(443), 60)),
        ),
        (
            " h3 = \"Alt.Example:8443\" ",
            Some(http3(host("alt.example", 8443), day)),
        ),
        (
            "h3=\"[2001:db8::1]:8443\"",
            Some(http3(host("2001:db8::1", 8443), day)),
        ),
        (
            "h3-29=\":1\", h3=\":2\", h3=\":3\"",
            Some(http3(own(2), day)),
        ),
        (
            "h2=\"a,b;c:1\"; x=\"\\\",\", h3=\":9\"",
            Some(http3(own(9), day)),
        ),
        ("h2=\":443\"", Some(Advert::Http3(None))),
        ("H3=\":443\"", Some(Advert::Http3(None))),
        ("h3=:443", None),
        ("h3=\"443\"", None),
        ("h3=\":0\"", None),
        ("h3=\":65536\"", None),
        ("h3=\":443\"; ma=soon", None),
        ("nonsense", None),
    ] {
        assert_eq!(parse(value), expected, "{value}");
    }
}

fn headers(fields: &[(&'static str, &str)]) -> HeaderMap {
    let field = |(name, value): &(&'static str, &str)| {
        (
            name.parse::<http::HeaderName>().unwrap(),
            value.parse().unwrap(),
        )
    };
    fields.iter().map(field).collect()
}

fn origin(name: &str) -> Origin {
    Origin::of(&format!("https://{name}/").parse().unwrap()).unwrap()
}

#[test]
fn the_cache_follows_freshness_age_and_clear() {
    let (mut cache, a, now) = (AltSvcCache::default(), origin("a"), Instant::now());
    cache.update(
        &a,
        &headers(&[("alt-svc", "h3=\":1\"; ma=3600"), ("age", "600")]),
        now,
    );
    let end = now + HOUR - Duration::from_secs(600);
    assert_eq!(cache.get(&a, || end - Duration::from_secs(1)), Some(own(1)));
    assert_eq!(cache.get(&a, || end), None);
    assert_eq!(cache.get(&origin("b"), || now), None);

    // Without the field, or with a malformed one, the cache stays as it is.
    cache.update(&a, &headers(&[("alt-svc", "?")]), now);
    cache.update(&a, &HeaderMap::new(), now);
    assert_eq!(cache.get(&a, || now), Some(own(1)));
    cache.update(&a, &headers(&[("alt-svc", "h3=\":2\"")]), now);
    assert_eq!(cache.get(&a, || now), Some(own(2)));
    for last in ["clear", "h2=\":1\"", "h3=\":1\"; ma=0"] {
        cache.update(&a, &headers(&[("alt-svc", "h3=\":2\"")]), now);
        cache.update(&a, &headers(&[("alt-svc", last)]), now);
        assert_eq!(cache.get(&a, || now), None, "{last}");
    }
}

#[test]
fn the_cache_is_bounded() {
    let (mut cache, now) = (AltSvcCache::default(), Instant::now());
    for nth in 0..2 * ORIGINS {
        let value = format!("h3=\":1\"; ma={}", nth + 1);
        cache.update(
            &origin(&format!("h{nth}")),
            &headers(&[("alt-svc", &value)]),
            now,
        );
    }
    assert_eq!(cache.origins.len(), ORIGINS);
    let last = origin(&format!("h{}", 2 * ORIGINS - 1));
    assert_eq!(cache.get(&last, || now), Some(own(1)));
}

proptest! {
    #[test]
    fn no_value_is_too_strange(value in "\\PC{0,60}") {
        let _ = parse(&value);
    }

    #[test]
    fn what_was_written_is_read(port in 1_u16.., age in 0..1_000_000_u64, before in "[a-z0-9]{1,8}") {
        prop_assume!(before != "h3");
        let value = format!("{before}=\"x,;\\\"y:1\";ma=5,h3=\":{port}\";ma={age}");
        prop_assert_eq!(parse(&value), Some(http3(own(port), age)));
    }
}
