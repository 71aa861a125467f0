//! What `get` guards against: secrets that go astray, files that aren't its own, content without end; and what
//! it says of what it throws away or can't do.

#![cfg(unix)]

use std::fs;
use std::process::Output;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use http::{Response, request};
use serde_json::{Value, json};
use swiftwater_http::web::body::Body;

use crate::origin::{Broken, Origin};
use crate::support::{Site, failed, names, succeeded, swiftwater};

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Answers with the names of the request's fields.
fn fields(head: &request::Parts, _: Bytes) -> Response<Body> {
    let names: Vec<&str> = head.headers.keys().map(http::HeaderName::as_str).collect();
    Response::new(Body::full(names.join(" ")))
}

#[test]
fn fields_of_ones_own_do_not_go_to_another_origin() {
    let other = Origin::start(fields);
    let elsewhere = other.url("/there");
    let origin = Origin::start(move |_, _| {
        let response = Response::builder()
            .status(302)
            .header("location", &elsewhere);
        response.body(Body::empty()).unwrap()
    });
    let ask = |flags: &[&str]| {
        let mut get = swiftwater();
        get.arg("get")
            .arg(origin.url("/"))
            .args(["-o", "-", "--insecure"]);
        get.args(["-H", "X-Api-Key: secret", "-H", "Cookie: a=b"]);
        get.args([
            "-H",
            "Referer: https://intern.example/",
            "-H",
            "If-None-Match: \"x\"",
        ]);
        get.args(["-H", "Accept: text/html", "-H", "Accept: text/plain"]);
        succeeded(&get.args(flags).output().unwrap())
    };
    let arrived = ask(&["-L"]);
    for name in ["x-api-key", "cookie", "referer"] {
        assert!(!arrived.contains(name), "{arrived}");
    }
    for name in ["accept", "if-none-match", "user-agent"] {
        assert!(arrived.contains(name), "{arrived}");
    }
    let arrived = ask(&["--location-trusted"]);
    for name in ["x-api-key", "cookie", "referer"] {
        assert!(arrived.contains(name), "{arrived}");
    }
}

#[test]
fn verbose_hides_every_secret() {
    let origin = Origin::start(|head, content| {
        let mut response = fields(head, content);
        for cookie in ["one=secret1; Secure", "two=secret2"] {
            response
                .headers_mut()
                .append("set-cookie", cookie.parse().unwrap());
        }
        response
    });
    for protocol in ["h3", "tcp"] {
        let mut get = origin.get("/", &["-v", "-o", "-", "--protocol", protocol]);
        get.args(["-H", "Cookie: a=secret3", "-H", "Cookie: b=secret4"]);
        get.args(["-H", "Proxy-Authorization: secret5"]);
        let output = get.output().unwrap();
        succeeded(&output);
        let log = stderr(&output);
        assert!(!log.contains("secret"), "{log}");
        assert!(log.contains("> cookie: (not shown)"), "{log}");
        assert!(log.contains("< set-cookie: (not shown)"), "{log}");
        let because = format!("because of --protocol {protocol}");
        assert!(log.contains(&because), "{log}");
        // Nothing but lines of this one form.
        let is_ours = |line: &str| ["> ", "< ", "* "].iter().any(|mark| line.starts_with(mark));
        assert!(log.lines().all(is_ours), "{log}");
    }
}

#[test]
fn a_part_that_is_a_hard_link_is_left_alone() {
    let site = Site::start(&[("x", b"new content")]);
    fs::create_dir(site.path("out")).unwrap();
    fs::write(site.path("precious"), b"precious").unwrap();
    fs::hard_link(site.path("precious"), site.path("out/.x.part")).unwrap();
    let message = failed(&site.get_http(&["/x"]).output().unwrap(), 7);
    assert!(message.contains("hard link"), "{message}");
    assert_eq!(fs::read(site.path("precious")).unwrap(), b"precious");
}

#[test]
fn content_beyond_a_limit_is_aborted() {
    let site = Site::start(&[("zeros.txt", &vec![b'0'; 3_000_000]), ("small", b"x")]);
    for flags in [
        &["--max-filesize", "2MB"][..],
        &["--max-filesize", "2MB", "--compressed"],
    ] {
        for protocol in ["h3", "tcp"] {
            let mut get = site.get_http(&["/zeros.txt"]);
            get.args(flags).args(["--protocol", protocol]);
            let message = failed(&get.output().unwrap(), 1);
            assert!(message.contains("more than 2.0 MB of content"), "{message}");
            assert_eq!(names(&site.path("out")), [""; 0]);
        }
    }
    let mut get = site.get_http(&["/zeros.txt", "/small"]);
    get.args(["--max-filesize", "3MB", "--compressed"]);
    succeeded(&get.output().unwrap());
    assert_eq!(
        fs::metadata(site.path("out/zeros.txt")).unwrap().len(),
        3_000_000
    );
}

#[test]
fn what_is_thrown_away_is_reported() {
    let site = Site::start(&[("x", b"content")]);
    let head = succeeded(&site.ask(&["/x"]).arg("-I").output().unwrap());
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: "));
    fs::create_dir(site.path("out")).unwrap();
    let record = json!({ "url": site.url("/x"), "validator": tag, "length": 7 });
    let leave = || {
        fs::write(site.path("out/.x.part"), "cont").unwrap();
        fs::write(site.path("out/.x.part.json"), record.to_string()).unwrap();
    };
    leave();
    let output = site.get_http(&["/x"]).output().unwrap();
    succeeded(&output);
    let log = stderr(&output);
    assert!(
        log.contains("4 B of an earlier download") && log.contains("-C continues"),
        "{log}"
    );
    fs::remove_file(site.path("out/x")).unwrap();
    leave();
    let output = site.get_http(&["/x"]).arg("-C").output().unwrap();
    succeeded(&output);
    assert_eq!(stderr(&output), "");
    assert_eq!(fs::read(site.path("out/x")).unwrap(), b"content");
}

#[test]
fn a_file_that_changed_on_the_way_is_reported_and_counted_once() {
    const LENGTH: usize = 600_000;
    for json in [false, true] {
        let asked = AtomicU32::new(0);
        let home = std::sync::Arc::new(std::sync::OnceLock::new());
        let place = std::sync::Arc::clone(&home);
        let origin = Origin::start(move |_, _| {
            let nth = asked.fetch_add(1, Ordering::SeqCst);
            let (tag, body) = if nth == 0 {
                let place: &std::path::PathBuf = place.get().unwrap();
                let half = Bytes::from(vec![1; LENGTH / 2]);
                ("\"1\"", Body::new(Broken::new(half, place.join(".x.part"))))
            } else {
                ("\"2\"", Body::full(vec![2; LENGTH]))
            };
            let response = Response::builder().header("etag", tag);
            response
                .header("content-length", LENGTH)
                .body(body)
                .unwrap()
        });
        home.set(origin.path("")).unwrap();
        let output = origin
            .get("/x", if json { &["--json"] } else { &[] })
            .output()
            .unwrap();
        let text = succeeded(&output);
        assert!(fs::read(origin.path("x")).unwrap() == vec![2; LENGTH]);
        let log = stderr(&output);
        assert!(log.contains("the file has changed on the server"), "{log}");
        if json {
            let row: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
            let discarded = row["discarded_bytes"].as_u64().unwrap();
            assert!(discarded > 0 && discarded <= LENGTH as u64 / 2, "{row}");
            assert_eq!(row["bytes"], LENGTH as u64 + discarded, "{row}");
        } else {
            assert!(text.contains("x: 600.0 kB in"), "{text}");
            assert!(text.contains("fetched again"), "{text}");
        }
    }
}

#[test]
fn a_migration_that_fails_is_always_reported() {
    let site = Site::start(&[("large", &vec![3; 1_000_000])]);
    for protocol in ["h3", "hq"] {
        let mut get = site.get_http(&["/large"]);
        get.args(["--protocol", protocol, "--limit-rate", "20mbit", "--force"]);
        // An address for documentation (RFC 5737), which no host has.
        let output = get.args(["--migrate-after", "200kB,192.0.2.7"]).output();
        let output = output.unwrap();
        succeeded(&output);
        let log = stderr(&output);
        assert!(
            log.starts_with("warning: the connection did not migrate to 192.0.2.7"),
            "{log}"
        );
    }
}

#[test]
fn nothing_has_no_rate() {
    let site = Site::start(&[("empty", b"")]);
    let text = succeeded(&site.get_http(&["/empty"]).output().unwrap());
    assert!(text.contains("0 B in") && !text.contains("bit/s"), "{text}");
}
