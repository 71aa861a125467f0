//! Requests of `hq-interop`.

use proptest::prelude::*;
use swiftwater_cli::hq::{MAX_REQUEST, Refusal, RequestError, parse_request, request};

#[test]
fn line_ends() {
    for (input, finished) in [
        (&b"GET /a/b.txt\r\n"[..], false),
        (b"GET /a/b.txt\n", false),
        (b"GET /a/b.txt\r\n", true),
        (b"GET /a/b.txt\r\nanything", false),
        (b"GET /a/b.txt\r", true),
        (b"GET /a/b.txt", true),
    ] {
        assert_eq!(
            parse_request(input, finished),
            Ok(Some("/a/b.txt")),
            "{input:?}"
        );
    }
}

#[test]
fn more_is_awaited_until_the_line_is_complete() {
    for input in [&b""[..], b"G", b"GET", b"GET /a", b"GET /a\r"] {
        assert_eq!(parse_request(input, false), Ok(None), "{input:?}");
    }
}

#[test]
fn malformed_requests() {
    for input in [
        &b"POST /a\r\n"[..],
        b"get /a\r\n",
        b"\r\n",
        b"GET\r\n",
        b"GET/a\r\n",
    ] {
        assert_eq!(
            parse_request(input, false),
            Err(RequestError::NotGet),
            "{input:?}"
        );
    }
    for input in [
        &b"GET \r\n"[..],
        b"GET a\r\n",
        b"GET  /a\r\n",
        b"GET /a b\r\n",
        b"GET /a HTTP/1.1\r\n",
        b"GET /\xff\r\n",
        b"GET /a\0\r\n",
        b"GET /a\r\r\n",
        b"GET https://h/a\r\n",
    ] {
        assert_eq!(
            parse_request(input, false),
            Err(RequestError::BadPath),
            "{input:?}"
        );
    }
    assert_eq!(parse_request(b"", true), Err(RequestError::NotGet));
}

#[test]
fn endless_lines_are_cut_off() {
    let mut line = b"GET /".to_vec();
    line.resize(MAX_REQUEST - 1, b'a');
    assert_eq!(parse_request(&line, false), Ok(None));
    line.push(b'a');
    assert_eq!(parse_request(&line, false), Err(RequestError::TooLong));
    assert_eq!(parse_request(&line, true), Err(RequestError::TooLong));
    line.push(b'\n');
    assert_eq!(parse_request(&line, false), Err(RequestError::TooLong));
}

#[test]
fn refusals_have_codes_of_their_own() {
    for code in [400, 403, 404, 500, 503] {
        assert_eq!(Refusal::from_code(code).map(Refusal::code), Some(code));
    }
    assert_eq!(Refusal::from_code(0), None);
}

proptest! {
    #[test]
    fn nothing_panics(input in prop::collection::vec(any::<u8>(), 0..100), finished: bool) {
        let _ = parse_request(&input, finished);
    }

    #[test]
    fn what_is_written_is_read(path in "/[!-~]{0,60}") {
        let line = request(&path);
        prop_assert_eq!(parse_request(&line, false), Ok(Some(path.as_str())));
        // However it is fragmented, the first part alone is never accepted as a whole request.
        for end in 0..line.len() {
            prop_assert_eq!(parse_request(&line[..end], false), Ok(None));
        }
    }

    #[test]
    fn a_path_is_always_absolute_and_plain(input in "GET [\\PC\r\t]{0,20}\n") {
        if let Ok(Some(path)) = parse_request(input.as_bytes(), false) {
            prop_assert!(path.starts_with('/'));
            prop_assert!(!path.chars().any(|c| c.is_control() || c.is_whitespace()));
        }
    }
}
