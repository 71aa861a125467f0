//! Downloads over HTTP that are interrupted and continued: always the bytes of one version.

#![cfg(unix)]

use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Response, request};
use serde_json::{Value, json};
use swiftwater_http::web::body::Body;

use crate::origin::{Broken, Origin, range_begin};
use crate::support::{Site, failed, names, succeeded};

const LARGE: usize = 1_500_000;

fn data(seed: usize) -> Vec<u8> {
    (0..LARGE).map(|nth| (nth * 7 % 253 + seed) as u8).collect()
}

fn row(output: &Output) -> Value {
    let text = String::from_utf8_lossy(&output.stdout);
    serde_json::from_str(text.lines().next().unwrap()).unwrap()
}

/// A slow `get` of the large file, after a large part was received.
fn in_the_middle(site: &Site, protocol: &str) -> Child {
    let mut get = site.get_http(&["/large"]);
    get.args(["--protocol", protocol, "--limit-rate", "4mbit"]);
    let get = get.stdout(Stdio::null()).stderr(Stdio::piped()).spawn();
    let part = site.path("out/.large.part");
    while fs::metadata(&part).map_or(0, |found| found.len()) < 200_000 {
        std::thread::sleep(Duration::from_millis(5));
    }
    get.unwrap()
}

fn carry_on(site: &Site, protocol: &str) -> Output {
    let mut get = site.get_http(&["/large"]);
    get.args(["-C", "--json", "--protocol", protocol]);
    get.output().unwrap()
}

#[test]
fn a_killed_download_is_continued() {
    for protocol in ["h3", "tcp", "http1.1"] {
        let data = data(0);
        let site = Site::start(&[("large", &data)]);
        let mut killed = in_the_middle(&site, protocol);
        killed.kill().unwrap();
        killed.wait().unwrap();
        assert_eq!(
            names(&site.path("out")),
            [".large.part", ".large.part.json"]
        );
        let output = carry_on(&site, protocol);
        succeeded(&output);
        let row = row(&output);
        let before = row["continued_at"].as_u64().unwrap();
        assert!(before >= 200_000, "{row}");
        assert_eq!(row["bytes"].as_u64().unwrap() + before, LARGE as u64);
        assert_eq!(row["status"], 206);
        assert_eq!(names(&site.path("out")), ["large"]);
        assert!(fs::read(site.path("out/large")).unwrap() == data);
    }
}

#[test]
fn another_version_is_fetched_afresh() {
    let site = Site::start(&[("large", &data(0))]);
    let mut killed = in_the_middle(&site, "h3");
    killed.kill().unwrap();
    killed.wait().unwrap();
    // As long as the first, so that only its version differs.
    fs::write(site.path("site/large"), data(1)).unwrap();
    let output = carry_on(&site, "h3");
    succeeded(&output);
    let row = row(&output);
    assert_eq!(
        (&row["status"], &row["continued_at"]),
        (&200.into(), &Value::Null)
    );
    assert!(fs::read(site.path("out/large")).unwrap() == data(1));
    assert_eq!(names(&site.path("out")), ["large"]);
}

#[test]
fn an_interrupted_download_is_kept_and_reported() {
    let site = Site::start(&[("large", &data(0))]);
    let running = in_the_middle(&site, "tcp");
    let pid = running.id().to_string();
    assert!(
        Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let output = running.wait_with_output().unwrap();
    assert!(failed(&output, 130).contains("interrupted"));
    assert_eq!(
        names(&site.path("out")),
        [".large.part", ".large.part.json"]
    );
    succeeded(&carry_on(&site, "h3"));
    assert!(fs::read(site.path("out/large")).unwrap() == data(0));
}

#[test]
fn without_being_told_what_is_there_does_not_count() {
    let site = Site::start(&[("large", &data(0))]);
    let mut killed = in_the_middle(&site, "h3");
    killed.kill().unwrap();
    killed.wait().unwrap();
    let output = site.get_http(&["/large"]).arg("--json").output().unwrap();
    succeeded(&output);
    assert_eq!(row(&output)["bytes"], LARGE);
    assert_eq!(names(&site.path("out")), ["large"]);
    // What has its name is complete.
    let again = carry_on(&site, "h3");
    succeeded(&again);
    assert_eq!(
        (&row(&again)["bytes"], &row(&again)["status"]),
        (&0.into(), &Value::Null)
    );
}

#[test]
fn of_two_downloads_to_one_file_one_wins() {
    let site = Site::start(&[("large", &data(0))]);
    let first = in_the_middle(&site, "h3");
    let second = site.get_http(&["/large"]).output().unwrap();
    assert!(failed(&second, 7).contains("another download"));
    assert_eq!(first.wait_with_output().unwrap().status.code(), Some(0));
    assert_eq!(names(&site.path("out")), ["large"]);
    assert!(fs::read(site.path("out/large")).unwrap() == data(0));
}

#[test]
fn a_part_that_is_complete_only_gets_its_name() {
    let data = data(0);
    let site = Site::start(&[("large", &data)]);
    let head = succeeded(&site.ask(&["/large"]).arg("-I").output().unwrap());
    let tag = head.lines().find_map(|line| line.strip_prefix("etag: "));
    fs::create_dir(site.path("out")).unwrap();
    fs::write(site.path("out/.large.part"), &data).unwrap();
    let record = json!({ "url": site.url("/large"), "validator": tag, "length": LARGE });
    fs::write(site.path("out/.large.part.json"), record.to_string()).unwrap();
    let output = carry_on(&site, "tcp");
    succeeded(&output);
    let row = row(&output);
    assert_eq!((&row["status"], &row["bytes"]), (&416.into(), &0.into()));
    assert_eq!(names(&site.path("out")), ["large"]);
    assert!(fs::read(site.path("out/large")).unwrap() == data);
}

/// The requests received by the server: starts of ranges, with their conditions.
type Asked = Arc<Mutex<Vec<Option<(usize, String)>>>>;

/// A server whose first answers break off; `version` makes entity tag and content of the nth answer.
fn breaking(
    broken: usize,
    version: impl Fn(usize) -> (&'static str, u8) + Send + Sync + 'static,
) -> (Origin, Asked) {
    let asked = Asked::default();
    let log = Arc::clone(&asked);
    let home: Arc<OnceLock<PathBuf>> = Arc::default();
    let place = Arc::clone(&home);
    let answer = move |head: &request::Parts, _: Bytes| {
        let begin = range_begin(head);
        let condition = head.headers.get("if-range");
        let condition = condition
            .map_or("", |value| value.to_str().unwrap())
            .to_owned();
        let nth = {
            let mut log = log.lock().unwrap();
            log.push(begin.map(|begin| (begin, condition)));
            log.len() - 1
        };
        let (tag, fill) = version(nth);
        let content = Bytes::from(vec![fill; LARGE]);
        let rest = content.slice(begin.unwrap_or(0)..);
        let mut response = Response::builder()
            .header("etag", tag)
            .header("content-length", rest.len());
        if let Some(begin) = begin {
            let range = format!("bytes {begin}-{}/{LARGE}", LARGE - 1);
            response = response.status(206).header("content-range", range);
        }
        let body = if nth < broken {
            let part = place.get().expect("it is set").join(".x.part");
            Body::new(Broken::new(rest.slice(..rest.len() / 2), part))
        } else {
            Body::full(rest)
        };
        response.body(body).unwrap()
    };
    let origin = Origin::start(answer);
    home.set(origin.path("")).unwrap();
    (origin, asked)
}

#[test]
fn content_that_breaks_off_is_continued_at_once() {
    for protocol in ["h3", "tcp", "http1.1"] {
        let (origin, asked) = breaking(1, |_| ("\"v1\"", 1));
        let mut get = origin.get("/x", &["--json", "--protocol", protocol]);
        let output = get.output().unwrap();
        succeeded(&output);
        assert_eq!(row(&output)["further_tries"], 1);
        assert!(fs::read(origin.path("x")).unwrap() == vec![1; LARGE]);
        let asked = asked.lock().unwrap();
        let [None, Some((begin, condition))] = &asked[..] else {
            panic!("{protocol}: {asked:?}");
        };
        assert!(*begin > 0 && *begin <= LARGE / 2 && condition == "\"v1\"");
    }
}

#[test]
fn versions_are_never_mixed() {
    // The server changes, and ignores the condition.
    let (origin, asked) = breaking(1, |nth| {
        if nth == 0 {
            ("\"v1\"", 1)
        } else {
            ("\"v2\"", 2)
        }
    });
    succeeded(&origin.get("/x", &[]).output().unwrap());
    assert!(fs::read(origin.path("x")).unwrap() == vec![2; LARGE]);
    let asked = asked.lock().unwrap();
    assert!(matches!(&asked[..], [None, Some(_), None]), "{asked:?}");
}

#[test]
fn what_has_no_strong_version_is_not_continued() {
    let (origin, asked) = breaking(1, |_| ("W/\"v1\"", 1));
    failed(&origin.get("/x", &[]).output().unwrap(), 4);
    assert_eq!(names(origin.home.path()), ["ca.pem"]);
    assert_eq!(asked.lock().unwrap().len(), 1);
}

#[test]
fn patience_ends_and_leaves_something_to_continue() {
    let (origin, asked) = breaking(usize::MAX, |_| ("\"v1\"", 1));
    let get = origin.get("/x", &[]).output().unwrap();
    assert!(failed(&get, 4).contains("-C continues"));
    assert_eq!(
        names(origin.home.path()),
        [".x.part", ".x.part.json", "ca.pem"]
    );
    assert_eq!(asked.lock().unwrap().len(), 6, "five continuations");
}
