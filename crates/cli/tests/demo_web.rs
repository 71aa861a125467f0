//! `demo web`: what it reports, with and without a path below IP.

use crate::support::{failed, keys, run, succeeded};
use serde_json::Value;

fn rows(output: &str) -> Vec<Value> {
    let rows = output.lines().map(serde_json::from_str);
    rows.map(|row| row.expect("a line is a JSON object"))
        .collect()
}

/// What every row has.
const KEYS: [&str; 17] = [
    "call_p50_ms",
    "call_p95_ms",
    "call_p99_ms",
    "calls",
    "controller",
    "critical_ms",
    "dropped",
    "failed",
    "first_byte_ms",
    "handshake_ms",
    "loads",
    "page_bytes",
    "page_ms",
    "preset",
    "protocol",
    "way",
    "wire_bytes",
];

/// Checks what a protocol's row says of `loads` loads of the quick page across home broadband.
fn check(row: &Value, loads: u64) {
    assert_eq!(keys(row), KEYS);
    assert_eq!(row["preset"], "home-broadband");
    assert_eq!((&row["loads"], &row["failed"]), (&loads.into(), &0.into()));
    assert_eq!(row["calls"], 10 * loads);
    let at = |key: &str| row[key].as_f64().expect(key);
    // One round trip of QUIC at least, and another one for the HTML.
    assert!(at("handshake_ms") >= 24.0, "{row}");
    assert!(at("first_byte_ms") >= at("handshake_ms") + 24.0, "{row}");
    // HTML, a program, what it names, and the images that those name.
    assert!(at("critical_ms") >= at("first_byte_ms") + 48.0, "{row}");
    assert!(at("page_ms") >= at("first_byte_ms") + 72.0, "{row}");
    assert!(at("call_p50_ms") >= 24.0, "{row}");
    assert!(at("call_p50_ms") <= at("call_p95_ms") && at("call_p95_ms") <= at("call_p99_ms"));
    let page = at("page_bytes");
    assert!(page > 500_000.0, "{row}");
    assert!(
        at("wire_bytes") > page && at("wire_bytes") < 2.0 * page,
        "{row}"
    );
}

#[test]
fn without_a_path_below_ip_there_is_http3() {
    let output = run([
        "demo",
        "web",
        "--quick",
        "--preset",
        "home-broadband",
        "--no-tun",
        "--json",
    ]);
    let rows = rows(&succeeded(&output));
    let [h3, h2] = &rows[..] else {
        panic!("{rows:?}")
    };
    check(h3, 1);
    assert_eq!(
        (&h3["protocol"], &h3["way"]),
        (&"h3".into(), &"udp-relay".into())
    );
    assert_eq!(h3["controller"], "cubic");
    assert_eq!((&h2["protocol"], &h2["loads"]), (&"h2".into(), &0.into()));
    assert_eq!(h2["skipped"], "--no-tun");
    let note = String::from_utf8_lossy(&output.stderr);
    assert!(note.contains("HTTP/2 is left out"), "{note}");
}

/// With a path below IP both protocols are measured; otherwise one, with a message.
#[test]
fn both_protocols_cross_the_same_network() {
    let output = run([
        "demo",
        "web",
        "--quick",
        "--loads",
        "2",
        "--preset",
        "home-broadband",
        "--cc",
        "newreno",
        "--json",
    ]);
    let rows = rows(&succeeded(&output));
    let [h3, h2] = &rows[..] else {
        panic!("{rows:?}")
    };
    check(h3, 2);
    assert_eq!(h3["controller"], "newreno");
    if let Some(why) = h2["skipped"].as_str() {
        println!("skipped: {why}");
        assert!(!why.is_empty());
        assert_eq!(h3["way"], "udp-relay");
        return;
    }
    check(h2, 2);
    assert_eq!((&h3["way"], &h2["way"]), (&"tun".into(), &"tun".into()));
    assert_eq!(h3["page_bytes"], h2["page_bytes"], "the same page");
    // TCP's handshake and that of TLS take a round trip each.
    assert!(h2["handshake_ms"].as_f64().expect("a number") >= 48.0);
    assert!(h2["controller"].is_string());
}

#[test]
fn the_table_names_both_and_says_which_was_faster() {
    let output = succeeded(&run([
        "demo",
        "web",
        "--quick",
        "--preset",
        "home-broadband",
    ]));
    for word in [
        "page",
        "critical",
        "call 50 %",
        "on the wire",
        "home broadband",
        "h3",
        "cubic",
    ] {
        assert!(output.contains(word), "no {word} in: {output}");
    }
    if output.contains("network namespaces") {
        assert!(
            output.contains("over h3") || output.contains("alike"),
            "{output}"
        );
    }
}

#[test]
fn what_cannot_be_shown_is_one_clear_line() {
    let message = failed(&run(["demo", "web", "--loads", "0"]), 2);
    assert!(message.contains("--loads"), "{message}");
    let message = failed(&run(["demo", "web", "--tcp-cc", "nonsense"]), 2);
    assert!(message.contains("'nonsense'"), "{message}");
    let message = failed(&run(["demo", "web", "--no-tun", "--tcp-cc", "cubic"]), 2);
    assert!(message.contains("--tcp-cc"), "{message}");
}
