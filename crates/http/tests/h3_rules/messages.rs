//! Malformed messages: H3_MESSAGE_ERROR on their stream, and nothing else happens (RFC 9114, sections
//! 4.1.2, 4.2 and 4.3).

use swiftwater_http::h3::frame::FrameType;
use swiftwater_http::h3::{Code, Config};
use swiftwater_units::Side::{Client, Server};
use swiftwater_units::{Dir, StreamId};

use crate::support;
use crate::support::peer::{Duel, frame, get, headers};

type Fields<'a> = Vec<(&'a str, &'a str)>;

const BASE: [(&str, &str); 4] = [
    (":method", "GET"),
    (":scheme", "https"),
    (":authority", "example.org"),
    (":path", "/"),
];

/// A good request with more fields.
fn with<'a>(more: &[(&'a str, &'a str)]) -> Fields<'a> {
    let mut fields = BASE.to_vec();
    fields.extend_from_slice(more);
    fields
}

/// A good request without one of its pseudo-headers.
fn without(name: &str) -> Fields<'static> {
    let mut fields = BASE.to_vec();
    fields.retain(|(each, _)| *each != name);
    fields
}

/// A good request whose pseudo-header has another value.
fn having<'a>(name: &str, value: &'a str) -> Fields<'a> {
    let change = |(each, old)| (each, if each == name { value } else { old });
    BASE.map(change).to_vec()
}

fn malformed_requests() -> Vec<Fields<'static>> {
    vec![
        without(":method"),
        without(":scheme"),
        without(":authority"),
        without(":path"),
        having(":method", "G T"),
        having(":method", ""),
        having(":scheme", ""),
        having(":scheme", "ht tp"),
        having(":authority", "user@example.org"),
        having(":authority", "exa mple"),
        having(":authority", ""),
        having(":path", ""),
        having(":path", "index.html"),
        having(":path", "*"),
        having(":path", "/a b"),
        having(":path", "/a#b"),
        with(&[(":method", "GET")]),
        with(&[(":path", "/")]),
        with(&[(":status", "200")]),
        with(&[(":unknown", "x")]),
        with(&[(":protocol", "websocket")]),
        vec![("x", "y"), BASE[0], BASE[1], BASE[2], BASE[3]],
        vec![BASE[0], BASE[1], ("x", "y"), BASE[2], BASE[3]],
        with(&[("Upper", "x")]),
        with(&[("", "x")]),
        with(&[("a b", "x")]),
        with(&[("a:b", "x")]),
        with(&[("x", "a\nb")]),
        with(&[("x", "a\rb")]),
        with(&[("x", "a\0b")]),
        with(&[("x", " a")]),
        with(&[("x", "a\t")]),
        with(&[("connection", "close")]),
        with(&[("keep-alive", "1")]),
        with(&[("proxy-connection", "close")]),
        with(&[("transfer-encoding", "chunked")]),
        with(&[("upgrade", "h2c")]),
        with(&[("te", "gzip")]),
        with(&[("te", "trailers, gzip")]),
        with(&[("content-length", "x")]),
        with(&[("content-length", "")]),
        with(&[("content-length", "-1")]),
        with(&[("content-length", "+1")]),
        with(&[("content-length", "1,2")]),
        with(&[("content-length", "1"), ("content-length", "2")]),
        with(&[("content-length", "99999999999999999999999")]),
        with(&[("host", "other.example")]),
        with(&[("host", "")]),
        [without(":authority"), vec![("host", "")]].concat(),
        with(&[("host", "example.org"), ("host", "example.org")]),
        // CONNECT has an authority with a port, and nothing else.
        vec![(":method", "CONNECT")],
        vec![(":method", "CONNECT"), (":authority", "example.org")],
        vec![
            (":method", "CONNECT"),
            BASE[1],
            (":authority", "example.org:443"),
        ],
        vec![
            (":method", "CONNECT"),
            (":authority", "example.org:443"),
            BASE[3],
        ],
        // Extended CONNECT has it all.
        vec![(":method", "CONNECT"), BASE[2], (":protocol", "websocket")],
        vec![
            (":method", "CONNECT"),
            BASE[1],
            BASE[2],
            BASE[3],
            (":protocol", "web socket"),
        ],
    ]
}

#[test]
fn malformed_requests_are_reset() {
    let mut duel = Duel::ready(Server, Config::default());
    for fields in malformed_requests() {
        let id = duel.bidi(&headers(&fields), false);
        assert_eq!(duel.reset_with(id), Code::MESSAGE_ERROR, "{fields:?}");
        assert_eq!(duel.stopped_with(id), Code::MESSAGE_ERROR, "{fields:?}");
        assert!(!duel.world.server.messages.contains_key(&id), "{fields:?}");
    }
    duel.survives();
    let expected = malformed_requests().len() as u64;
    assert_eq!(duel.world.server.engine.stats().malformed, expected);
    // The next one is served.
    let id = duel.bidi(&get(), true);
    assert!(duel.run(|duel| duel.world.server.messages.contains_key(&id)));
}

#[test]
fn unusual_requests_that_are_well_formed_are_taken() {
    let asterisk = {
        let mut fields = having(":path", "*");
        fields[0].1 = "OPTIONS";
        fields
    };
    let host_only = {
        let mut fields = without(":authority");
        fields.push(("host", "example.org"));
        fields
    };
    let table: Vec<(Fields<'_>, &str)> = vec![
        (having(":method", "BREW"), "https://example.org/"),
        (having(":scheme", "coap"), "coap://example.org/"),
        (
            having(":path", "/a?b=c&d=%20"),
            "https://example.org/a?b=c&d=%20",
        ),
        (asterisk, "https://example.org*"),
        (host_only, "https://example.org/"),
        (with(&[("host", "example.org")]), "https://example.org/"),
        (with(&[("te", "trailers")]), "https://example.org/"),
        (with(&[("x", ""), ("y", "\u{e9}")]), "https://example.org/"),
        (
            with(&[("content-length", "0"), ("content-length", "0")]),
            "https://example.org/",
        ),
        (
            vec![(":method", "CONNECT"), (":authority", "example.org:443")],
            "example.org:443",
        ),
    ];
    let mut duel = Duel::ready(Server, Config::default());
    for (fields, uri) in table {
        let id = duel.bidi(&headers(&fields), true);
        let came = duel.run(|duel| duel.world.server.messages.contains_key(&id));
        assert!(came, "{fields:?}");
        let message = &duel.world.server.messages[&id];
        let request = message.request.as_ref().unwrap();
        assert_eq!(request.uri.to_string(), uri, "{fields:?}");
        assert!(message.complete);
    }
}

#[test]
fn cookies_are_one_field() {
    let mut duel = Duel::ready(Server, Config::default());
    let fields = with(&[("cookie", "a=1"), ("x", "y"), ("cookie", "b=2")]);
    let id = duel.bidi(&headers(&fields), true);
    assert!(duel.run(|duel| duel.world.server.messages.contains_key(&id)));
    let request = duel.world.server.messages[&id].request.as_ref().unwrap();
    assert_eq!(request.headers["cookie"], "a=1; b=2");
    assert_eq!(request.headers.get_all("cookie").iter().count(), 1);
}

/// The content that follows a head, whether the stream ends, and the error.
#[test]
fn content_is_as_long_as_it_says() {
    let five = || headers(&with(&[("content-length", "5")]));
    let data = |bytes: &[u8]| frame(FrameType::Data, bytes);
    let trailers = headers(&[("x", "y")]);
    let table = [
        (five(), Code::MESSAGE_ERROR),
        ([five(), data(b"1234")].concat(), Code::MESSAGE_ERROR),
        (
            [five(), data(b"123"), data(b"456")].concat(),
            Code::MESSAGE_ERROR,
        ),
        (
            [five(), data(b"1234"), trailers].concat(),
            Code::MESSAGE_ERROR,
        ),
        (
            [get(), headers(&[(":path", "/")])].concat(),
            Code::MESSAGE_ERROR,
        ),
        (
            [get(), headers(&[("Upper", "x")])].concat(),
            Code::MESSAGE_ERROR,
        ),
        (
            [get(), headers(&[("connection", "close")])].concat(),
            Code::MESSAGE_ERROR,
        ),
        (Vec::new(), Code::REQUEST_INCOMPLETE),
        (
            frame(FrameType::Unknown(0x21), b"x"),
            Code::REQUEST_INCOMPLETE,
        ),
    ];
    let mut duel = Duel::ready(Server, Config::default());
    for (bytes, code) in table {
        let id = duel.bidi(&bytes, true);
        assert_eq!(duel.reset_with(id), code, "{bytes:x?}");
    }
    let id = duel.bidi(&[five(), data(b"123"), data(b"45")].concat(), true);
    assert!(duel.run(|duel| {
        let message = duel.world.server.messages.get(&id);
        message.is_some_and(|message| message.complete)
    }));
    assert_eq!(duel.world.server.messages[&id].body, b"12345");
    duel.survives();
}

/// A client's request, answered with `bytes`.
fn answered(method: &str, bytes: &[u8]) -> (Duel, StreamId) {
    let mut duel = Duel::ready(Client, Config::default());
    let id = duel.world.request(&support::head(method, "/", &[]), None);
    assert!(duel.run(|duel| duel.quic().accept(Dir::Bi).is_some()));
    duel.write(id, bytes);
    let _ = duel.quic().send_stream(id).finish();
    (duel, id)
}

#[test]
fn malformed_responses_are_cancelled() {
    let data = |bytes: &[u8]| frame(FrameType::Data, bytes);
    let ok = |more: &[(&str, &str)]| headers(&[&[(":status", "200")], more].concat());
    let table = [
        ("GET", headers(&[("x", "y")])),
        ("GET", headers(&[(":status", "20")])),
        ("GET", headers(&[(":status", "abc")])),
        ("GET", headers(&[(":status", "101")])),
        ("GET", ok(&[(":status", "200")])),
        ("GET", ok(&[(":path", "/")])),
        ("GET", headers(&[("x", "y"), (":status", "200")])),
        ("GET", ok(&[("connection", "close")])),
        ("GET", ok(&[("Upper", "x")])),
        ("GET", ok(&[("x", "a\nb")])),
        ("GET", [ok(&[]), ok(&[])].concat()),
        ("GET", headers(&[(":status", "103")])),
        ("GET", Vec::new()),
        ("GET", ok(&[("content-length", "3")])),
        (
            "GET",
            [ok(&[("content-length", "3")]), data(b"1234")].concat(),
        ),
        ("HEAD", [ok(&[]), data(b"1")].concat()),
        ("GET", [headers(&[(":status", "204")]), data(b"1")].concat()),
        ("GET", [headers(&[(":status", "304")]), data(b"1")].concat()),
    ];
    for (method, bytes) in table {
        let (mut duel, id) = answered(method, &bytes);
        let over = duel.run(|duel| {
            let message = duel.world.client.messages.get(&id);
            message.is_some_and(|message| message.reset.is_some())
        });
        assert!(over, "{bytes:x?}");
        let reset = duel.world.client.messages[&id].reset;
        assert_eq!(reset, Some((Code::MESSAGE_ERROR, false)), "{bytes:x?}");
        duel.survives();
    }
}

#[test]
fn responses_without_content_may_say_how_long_it_would_be() {
    let long = headers(&[(":status", "200"), ("content-length", "1000")]);
    let unchanged = headers(&[(":status", "304"), ("content-length", "1000")]);
    for (method, bytes) in [("HEAD", long), ("GET", unchanged)] {
        let (mut duel, id) = answered(method, &bytes);
        assert!(duel.run(|duel| {
            let message = duel.world.client.messages.get(&id);
            message.is_some_and(|message| message.complete)
        }));
        assert_eq!(duel.world.client.messages[&id].reset, None);
    }
}
