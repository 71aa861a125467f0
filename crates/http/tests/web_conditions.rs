//! Conditional requests and ranges of the file service.

use http::header::{CONTENT_LENGTH, CONTENT_RANGE, CONTENT_TYPE, ETAG};
use http::{Method, StatusCode};
use http_body::Body as _;
use proptest::prelude::*;
use swiftwater_http::web::files::{FileOptions, MAX_RANGES, Selection, select};

use crate::site::{
    AFTER, BEFORE, LETTERS, MODIFIED, ask, content, get, header, service, site, write,
};

/// A request with these fields is answered with this status.
type Case<'a> = (&'a [(&'a str, &'a str)], u16);

async fn etag() -> String {
    let response = get("/letters.txt", &[]).await;
    header(&response, &ETAG).to_owned()
}

#[tokio::test]
async fn conditions_follow_the_order_of_the_standard() {
    let tag = etag().await;
    let weak = format!("W/{tag}");
    let list = format!("\"a,b\" , W/\"c\",{tag}");
    let (tag, weak, list) = (tag.as_str(), weak.as_str(), list.as_str());
    let cases: &[Case<'_>] = &[
        (&[("if-none-match", tag)], 304),
        (&[("if-none-match", weak)], 304),
        (&[("if-none-match", list)], 304),
        (&[("if-none-match", "*")], 304),
        (&[("if-none-match", "\"other\"")], 200),
        (&[("if-none-match", "broken")], 200),
        (&[("if-none-match", "\"x\""), ("if-none-match", tag)], 304),
        (
            &[("if-none-match", "\"x\""), ("if-modified-since", AFTER)],
            200,
        ),
        (
            &[("if-none-match", tag), ("if-modified-since", BEFORE)],
            304,
        ),
        (&[("if-modified-since", MODIFIED)], 304),
        (&[("if-modified-since", AFTER)], 304),
        (&[("if-modified-since", BEFORE)], 200),
        (&[("if-modified-since", "yesterday")], 200),
        (&[("if-match", tag)], 200),
        (&[("if-match", "*")], 200),
        (&[("if-match", list)], 200),
        (&[("if-match", weak)], 412),
        (&[("if-match", "\"other\"")], 412),
        (&[("if-match", tag), ("if-unmodified-since", BEFORE)], 200),
        (&[("if-match", tag), ("if-none-match", tag)], 304),
        (&[("if-unmodified-since", MODIFIED)], 200),
        (&[("if-unmodified-since", BEFORE)], 412),
        (&[("if-unmodified-since", "soon")], 200),
        (&[("if-none-match", tag), ("range", "bytes=0-1")], 304),
        (&[("if-match", "\"other\""), ("range", "bytes=0-1")], 412),
    ];
    for (headers, status) in cases {
        let response = get("/letters.txt", headers).await;
        assert_eq!(response.status().as_u16(), *status, "{headers:?}");
        if *status == 304 {
            assert_eq!(header(&response, &ETAG), tag);
            assert!(response.body().is_end_stream());
        }
    }
}

#[tokio::test]
async fn a_range_applies_to_the_state_it_was_meant_for() {
    let tag = etag().await;
    let weak = format!("W/{tag}");
    for (condition, status) in [
        (tag.as_str(), 206),
        (MODIFIED, 206),
        (weak.as_str(), 200),
        ("\"other\"", 200),
        (BEFORE, 200),
        (AFTER, 200),
        ("nonsense", 200),
    ] {
        let headers = [("range", "bytes=0-1"), ("if-range", condition)];
        let response = get("/letters.txt", &headers).await;
        assert_eq!(response.status().as_u16(), status, "{condition}");
    }
}

#[tokio::test]
async fn one_range_is_one_part() {
    let cases = [
        ("bytes=0-0", "a", "bytes 0-0/26"),
        ("bytes=24-", "yz", "bytes 24-25/26"),
        ("bytes=24-99999999999999999999", "yz", "bytes 24-25/26"),
        ("bytes=-2", "yz", "bytes 24-25/26"),
        (
            "bytes=-99999999999999999999",
            "abcdefghijklmnopqrstuvwxyz",
            "bytes 0-25/26",
        ),
        ("BYTES= 1-2 , ", "bc", "bytes 1-2/26"),
        ("bytes=2-3,1-2", "bcd", "bytes 1-3/26"),
        ("bytes=3-4,40-50", "de", "bytes 3-4/26"),
    ];
    for (range, expected, content_range) in cases {
        let response = get("/letters.txt", &[("range", range)]).await;
        assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT, "{range}");
        assert_eq!(header(&response, &CONTENT_RANGE), content_range);
        let length = expected.len().to_string();
        assert_eq!(header(&response, &CONTENT_LENGTH), length);
        assert_eq!(content(response).await, expected, "{range}");
    }
}

#[tokio::test]
async fn ranges_that_say_nothing_are_ignored() {
    for range in [
        "bytes=",
        "bytes",
        "bytes=,",
        "bytes=b-c",
        "bytes=5-2",
        "bytes=1-2,x",
        "lines=1-2",
        "bytes=--1",
        "bytes=+1-2",
    ] {
        let response = get("/letters.txt", &[("range", range)]).await;
        assert_eq!(response.status(), StatusCode::OK, "{range}");
        assert_eq!(content(response).await, LETTERS);
    }
    let many = vec!["0-0"; MAX_RANGES + 1].join(",");
    let many = format!("bytes={many}");
    let response = get("/letters.txt", &[("range", &many)]).await;
    assert_eq!(response.status(), StatusCode::OK);
    let twice = [("range", "bytes=0-1"), ("range", "bytes=2-3")];
    assert_eq!(get("/letters.txt", &twice).await.status(), StatusCode::OK);
    let root = site();
    let service = service(&root, FileOptions::default());
    let head = ask(&service, Method::HEAD, "/letters.txt", &twice[..1]).await;
    assert_eq!(head.status(), StatusCode::OK);
    assert_eq!(header(&head, &CONTENT_LENGTH), "26");
}

#[tokio::test]
async fn ranges_beyond_the_end_are_refused() {
    for (path, range, complete) in [
        ("/letters.txt", "bytes=26-", "bytes */26"),
        ("/letters.txt", "bytes=100-200,300-", "bytes */26"),
        ("/letters.txt", "bytes=-0", "bytes */26"),
        ("/empty.bin", "bytes=0-", "bytes */0"),
    ] {
        let response = get(path, &[("range", range)]).await;
        let status = response.status();
        assert_eq!(status, StatusCode::RANGE_NOT_SATISFIABLE, "{range}");
        assert_eq!(header(&response, &CONTENT_RANGE), complete);
    }
    let suffix = get("/empty.bin", &[("range", "bytes=-5")]).await;
    assert_eq!(suffix.status(), StatusCode::OK);
}

/// The parts of a multipart/byteranges body: the value of `Content-Range` and the content of each.
fn parts(response_type: &str, body: &[u8]) -> Vec<(String, Vec<u8>)> {
    let boundary = response_type
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap();
    let text = format!("\r\n{}", std::str::from_utf8(body).unwrap());
    let mut pieces = text.split(&format!("\r\n--{boundary}")).collect::<Vec<_>>();
    assert_eq!(pieces.remove(0), "");
    assert_eq!(pieces.pop().unwrap(), "--\r\n");
    pieces
        .iter()
        .map(|piece| {
            let (head, content) = piece.split_once("\r\n\r\n").unwrap();
            let range = head
                .lines()
                .find_map(|line| line.strip_prefix("Content-Range: "))
                .unwrap();
            assert!(head.contains("Content-Type: text/plain; charset=utf-8"));
            (range.to_owned(), content.as_bytes().to_vec())
        })
        .collect()
}

#[tokio::test]
async fn several_ranges_come_in_parts() {
    let root = site();
    let long: Vec<u8> = (0..2000).map(|n| b'a' + (n % 26) as u8).collect();
    write(&root.path().join("long.txt"), &long);
    let service = service(&root, FileOptions::default());
    for (range, expected) in [
        ("bytes=1000-1009,0-4", vec![1000..1010, 0..5]),
        ("bytes=0-4,-5,1000-1000", vec![0..5, 1995..2000, 1000..1001]),
        ("bytes=1500-1600,0-4,1-10", vec![0..11, 1500..1601]),
    ] {
        let response = ask(&service, Method::GET, "/long.txt", &[("range", range)]).await;
        assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT);
        assert!(!response.headers().contains_key(CONTENT_RANGE));
        let length: usize = header(&response, &CONTENT_LENGTH).parse().unwrap();
        let response_type = header(&response, &CONTENT_TYPE).to_owned();
        let body = content(response).await;
        assert_eq!(body.len(), length);
        let expected: Vec<(String, Vec<u8>)> = expected
            .into_iter()
            .map(|part| {
                let range = format!("bytes {}-{}/2000", part.start, part.end - 1);
                (range, long[part].to_vec())
            })
            .collect();
        assert_eq!(parts(&response_type, &body), expected, "{range}");
    }
}

proptest! {
    /// For any field value: parts are within the content, none is empty, none overlaps another, and
    /// together they cover exactly the requested ranges, except gaps of joined ranges.
    #[test]
    fn parts_cover_what_was_asked(
        length in 1_u64..5000,
        asked in proptest::collection::vec((0_u64..6000, 0_u64..3000), 1..MAX_RANGES),
    ) {
        let specs: Vec<String> = asked.iter().map(|(at, n)| format!("{at}-{}", at + n)).collect();
        let satisfiable: Vec<_> = asked
            .iter()
            .filter(|(at, _)| *at < length)
            .map(|(at, n)| *at..(at + n + 1).min(length))
            .collect();
        match select(&format!("bytes={}", specs.join(",")), length) {
            Selection::Whole => prop_assert!(false, "well-formed ranges were ignored"),
            Selection::Unsatisfiable => prop_assert!(satisfiable.is_empty()),
            Selection::Parts(mut parts) => {
                prop_assert!(parts.iter().all(|part| part.start < part.end && part.end <= length));
                for asked in &satisfiable {
                    let covered = parts
                        .iter()
                        .any(|part| part.start <= asked.start && asked.end <= part.end);
                    prop_assert!(covered);
                }
                parts.sort_by_key(|part| part.start);
                prop_assert!(parts.windows(2).all(|pair| pair[0].end <= pair[1].start));
                let asked_start = |at| satisfiable.iter().any(|asked| asked.start == at);
                let asked_end = |at| satisfiable.iter().any(|asked| asked.end == at);
                prop_assert!(parts.iter().all(|part| asked_start(part.start) && asked_end(part.end)));
            }
        }
    }

    /// No field can make the parser fail.
    #[test]
    fn any_field_is_read(field in "\\PC{0,60}", length in any::<u64>()) {
        if let Selection::Parts(parts) = select(&format!("bytes={field}"), length) {
            prop_assert!(parts.iter().all(|part| part.start < part.end && part.end <= length));
        }
    }
}
