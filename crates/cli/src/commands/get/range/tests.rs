use http::HeaderMap;

use super::*;

fn headers(lines: &[(&'static str, &str)]) -> HeaderMap {
    let pairs = lines.iter();
    pairs
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect::<Vec<(http::HeaderName, http::HeaderValue)>>()
        .into_iter()
        .collect()
}

fn version(validator: &str, length: Option<u64>) -> Record {
    Record {
        url: "https://h:443/x".to_owned(),
        validator: validator.to_owned(),
        length,
    }
}

#[test]
fn only_strong_validators_make_a_version() {
    const OLD: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const MINUTE_LATER: &str = "Sun, 06 Nov 1994 08:50:37 GMT";
    const SECOND_LATER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
    for (lines, expected) in [
        (
            &[("etag", "\"a\""), ("content-length", "7")][..],
            Some("\"a\""),
        ),
        (&[("etag", "W/\"a\"")], None),
        (&[("etag", "\"")], None),
        (
            &[
                ("etag", "W/\"a\""),
                ("last-modified", OLD),
                ("date", MINUTE_LATER),
            ],
            Some(OLD),
        ),
        (&[("last-modified", OLD), ("date", SECOND_LATER)], None),
        (&[("last-modified", MINUTE_LATER), ("date", OLD)], None),
        (&[("last-modified", OLD)], None),
        (
            &[("last-modified", "yesterday"), ("date", MINUTE_LATER)],
            None,
        ),
        (&[], None),
    ] {
        let found = record("u", &headers(lines));
        assert_eq!(
            found.map(|it| it.validator).as_deref(),
            expected,
            "{lines:?}"
        );
    }
    let found = record("u", &headers(&[("etag", "\"a\""), ("content-length", "7")]));
    assert_eq!(found.unwrap().length, Some(7));
}

#[test]
fn a_rest_must_follow_what_is_there() {
    let was = version("\"a\"", Some(10));
    let check = |value: &str, more: &[(&'static str, &str)]| {
        let mut lines = vec![("content-range", value)];
        lines.extend(more);
        rest(&headers(&lines), 4, &was)
    };
    assert_eq!(check("bytes 4-9/10", &[]), Some(Rest { total: Some(10) }));
    assert_eq!(check("bytes 4-9/*", &[]), Some(Rest { total: Some(10) }));
    assert!(check("bytes 4-9/10", &[("etag", "\"a\"")]).is_some());
    for wrong in [
        "bytes 3-9/10",
        "bytes 5-9/10",
        "bytes 4-10/10",
        "bytes 4-3/10",
        "bytes 4-9/11",
        "bytes 4-9",
        "lines 4-9/10",
        "bytes 4-/10",
        "",
    ] {
        assert_eq!(check(wrong, &[]), None, "{wrong}");
    }
    assert_eq!(check("bytes 4-9/10", &[("etag", "\"b\"")]), None);
    assert_eq!(check("bytes 4-9/10", &[("etag", "W/\"a\"")]), None);
    assert_eq!(check("bytes 4-9/10", &[("content-encoding", "gzip")]), None);
    assert_eq!(rest(&HeaderMap::new(), 4, &was), None);
}

#[test]
fn all_is_there_only_if_the_server_says_so() {
    let range = |value: &str| headers(&[("content-range", value)]);
    let whole = version("\"a\"", Some(10));
    assert!(is_all(&range("bytes */10"), 10, &whole));
    assert!(!is_all(&range("bytes */11"), 10, &whole));
    assert!(!is_all(
        &range("bytes */10"),
        10,
        &version("\"a\"", Some(11))
    ));
    assert!(is_all(&range("bytes */10"), 10, &version("\"a\"", None)));
    assert!(!is_all(&range("bytes *"), 10, &whole));
    assert!(!is_all(&HeaderMap::new(), 10, &whole));
}

proptest::proptest! {
    /// Whatever a server sends, only the bytes that follow are accepted.
    #[test]
    fn ranges_are_read_or_refused(
        text in "(bytes )?[0-9*/ -]{0,30}",
        offset in 0..20_u64,
    ) {
        let was = version("\"a\"", None);
        if let Some(rest) = rest(&headers(&[("content-range", &text)]), offset, &was) {
            let first = text.strip_prefix("bytes ").and_then(|range| range.split('-').next());
            let first = first.and_then(|first| first.trim().parse().ok());
            proptest::prop_assert_eq!(first, Some(offset));
            proptest::prop_assert!(rest.total.is_none_or(|total| total > offset));
        }
    }

    #[test]
    fn written_ranges_are_read(offset in 0..1_u64 << 40, more in 1..1_u64 << 40) {
        let was = version("\"a\"", None);
        let total = offset + more;
        let text = format!("bytes {offset}-{}/{total}", total - 1);
        let found = rest(&headers(&[("content-range", &text)]), offset, &was);
        proptest::prop_assert_eq!(found, Some(Rest { total: Some(total) }));
    }
}
