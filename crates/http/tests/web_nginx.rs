//! The file service against nginx, on the same directory: conditional requests, ranges, paths.
//!
//! Answers are compared by status, by the fields that clients act on, and by content. Where the two
//! differ on purpose, the table of cases says so, with both answers and the reason.

#![cfg(unix)]

use std::fs;
use std::net::{SocketAddr, TcpListener as StdListener};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request};
use http_body_util::{BodyExt, Empty};
use hyper_util::rt::TokioIo;
use swiftwater_http::web::files::FileOptions;
use tempfile::TempDir;
use tokio::net::TcpStream;

use crate::site::{AFTER, BEFORE, MODIFIED, service, site, write};

/// What is compared of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    status: u16,
    length: Option<String>,
    range: Option<String>,
    modified: Option<String>,
    /// The path that a redirect leads to.
    location: Option<String>,
    /// The content of successful answers; pages of errors are each server's own.
    content: Option<Vec<u8>>,
    tagged: bool,
}

/// Ends nginx with the test.
struct Nginx(Child);

impl Drop for Nginx {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// nginx in the foreground at a free port; none if there is no such program.
async fn nginx(root: &Path, scratch: &Path) -> Option<(Nginx, SocketAddr)> {
    let installed = Command::new("nginx")
        .arg("-v")
        .stderr(Stdio::null())
        .status();
    if installed.is_err() {
        println!("skipped: there is no nginx to compare with");
        return None;
    }
    let address = StdListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let dir = scratch.display();
    let config = format!(
        "daemon off; master_process off; pid {dir}/pid; error_log {dir}/errors;
        events {{ worker_connections 64; }}
        http {{
            access_log off; default_type application/octet-stream;
            types {{ text/html html; text/plain txt; text/css css; }}
            client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
            fastcgi_temp_path {dir}/fastcgi; uwsgi_temp_path {dir}/uwsgi;
            scgi_temp_path {dir}/scgi;
            server {{ listen {address}; root {}; disable_symlinks on from=$document_root; }}
        }}",
        root.display()
    );
    let path = scratch.join("nginx.conf");
    fs::write(&path, config).unwrap();
    let child = Command::new("nginx")
        .arg("-p")
        .arg(scratch)
        .arg("-e")
        .arg(scratch.join("errors"))
        .arg("-c")
        .arg(&path)
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut nginx = Nginx(child);
    for _ in 0..1000 {
        if TcpStream::connect(address).await.is_ok() {
            return Some((nginx, address));
        }
        if let Some(status) = nginx.0.try_wait().unwrap() {
            let errors = fs::read_to_string(scratch.join("errors")).unwrap_or_default();
            panic!("nginx ended with {status}: {errors}");
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nginx does not listen");
}

fn request(method: &Method, path: &str, headers: &[(&str, String)]) -> Request<Empty<Bytes>> {
    let mut request = Request::builder()
        .method(method)
        .uri(path)
        .header("host", "localhost");
    for (name, value) in headers {
        request = request.header(*name, value);
    }
    request.body(Empty::new()).unwrap()
}

async fn ask_nginx(
    address: SocketAddr,
    method: &Method,
    path: &str,
    headers: &[(&str, String)],
) -> (Seen, Option<String>) {
    let stream = TcpStream::connect(address).await.unwrap();
    let (mut client, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    let response = client
        .send_request(request(method, path, headers))
        .await
        .unwrap();
    seen(response).await
}

async fn ask_ours(
    root: &TempDir,
    method: &Method,
    path: &str,
    headers: &[(&str, String)],
) -> (Seen, Option<String>) {
    use tower::ServiceExt;
    let service = service(root, FileOptions::default());
    let response = service.oneshot(request(method, path, headers)).await;
    seen(response.unwrap()).await
}

/// What is compared, and the entity tag.
async fn seen<B>(response: http::Response<B>) -> (Seen, Option<String>)
where
    B: http_body::Body<Data = Bytes, Error: std::fmt::Debug>,
{
    let (head, body) = response.into_parts();
    let content = body.collect().await.unwrap().to_bytes().to_vec();
    let field = |name: &str| {
        let value = head.headers.get(name)?;
        Some(value.to_str().unwrap().to_owned())
    };
    let success = head.status.is_success();
    let parts = field("content-type").is_some_and(|value| value.starts_with("multipart/"));
    let seen = Seen {
        status: head.status.as_u16(),
        // Boundaries differ in length.
        length: field("content-length").filter(|_| success && !parts),
        range: field("content-range"),
        modified: field("last-modified").filter(|_| success),
        location: field("location").map(|uri| uri.parse::<http::Uri>().unwrap().path().to_owned()),
        content: success.then(|| {
            if parts {
                contents(&head, &content)
            } else {
                content
            }
        }),
        tagged: head.headers.contains_key("etag") && success,
    };
    (seen, field("etag"))
}

/// The content of multipart/byteranges, without what each server words in its own way: what is left
/// are the ranges and the bytes.
fn contents(head: &http::response::Parts, body: &[u8]) -> Vec<u8> {
    let content_type = head.headers["content-type"].to_str().unwrap();
    let boundary = content_type.split_once("boundary=").unwrap().1;
    let text = format!("\r\n{}", std::str::from_utf8(body).unwrap());
    let mut shown = Vec::new();
    for part in text.split(&format!("\r\n--{boundary}")) {
        if let Some((head, content)) = part.split_once("\r\n\r\n") {
            let range = head.lines().find(|line| line.starts_with("Content-Range"));
            shown.extend_from_slice(range.unwrap().as_bytes());
            shown.extend_from_slice(content.as_bytes());
        }
    }
    shown
}

/// Comparison of the two in one case.
enum Expect {
    Same,
    /// They differ on purpose: our status, nginx's, and why.
    Differ(u16, u16, &'static str),
}

use Expect::{Differ, Same};

type Case<'a> = (&'a str, &'a str, &'a [(&'a str, &'a str)], Expect);

/// `TAG` represents the server's own entity tag.
#[rustfmt::skip]
const CASES: &[Case<'_>] = &[
    // Paths.
    ("GET", "/long.txt", &[], Same),
    ("HEAD", "/long.txt", &[], Same),
    ("GET", "/empty.bin", &[], Same),
    ("GET", "/missing", &[], Same),
    ("GET", "/long.txt/", &[], Same),
    ("GET", "/with%20index/", &[], Same),
    ("GET", "/with%20index", &[], Same),
    ("GET", "/dir", &[], Same),
    ("GET", "/dir/", &[], Same),
    ("GET", "//dir//inner.css", &[], Same),
    ("GET", "/./dir/./inner.css", &[], Same),
    ("GET", "/caf%C3%A9%20100%25.txt", &[], Same),
    ("GET", "/outside", &[], Same),
    ("POST", "/long.txt", &[], Same),
    ("GET", "/../long.txt", &[], Same),
    ("GET", "/dir/../long.txt", &[],
        Differ(400, 200, "clients resolve dot segments; those that do not have something in mind")),
    ("GET", "/dir%2Finner.css", &[],
        Differ(400, 200, "an escaped slash is no separator (RFC 3986, section 2.2)")),
    ("GET", "/.secret", &[], Differ(404, 200, "hidden files are not served by default")),
    // Conditions.
    ("GET", "/long.txt", &[("if-none-match", "TAG")], Same),
    ("GET", "/long.txt", &[("if-none-match", "W/TAG")], Same),
    ("GET", "/long.txt", &[("if-none-match", "\"a\", TAG")], Same),
    ("GET", "/long.txt", &[("if-none-match", "*")], Same),
    ("GET", "/long.txt", &[("if-none-match", "\"a\"")], Same),
    ("HEAD", "/long.txt", &[("if-none-match", "TAG")], Same),
    ("GET", "/long.txt", &[("if-match", "TAG")], Same),
    ("GET", "/long.txt", &[("if-match", "*")], Same),
    ("GET", "/long.txt", &[("if-match", "\"a\"")], Same),
    ("GET", "/long.txt", &[("if-match", "W/TAG")], Same),
    ("GET", "/long.txt", &[("if-modified-since", MODIFIED)], Same),
    ("GET", "/long.txt", &[("if-modified-since", BEFORE)], Same),
    ("GET", "/long.txt", &[("if-modified-since", "tomorrow")], Same),
    ("GET", "/long.txt", &[("if-modified-since", AFTER)],
        Differ(304, 200, "nginx compares for equality by default (RFC 9110, section 13.1.3)")),
    ("GET", "/long.txt", &[("if-unmodified-since", MODIFIED)], Same),
    ("GET", "/long.txt", &[("if-unmodified-since", BEFORE)], Same),
    ("GET", "/long.txt", &[("if-none-match", "\"a\""), ("if-modified-since", MODIFIED)], Same),
    ("GET", "/long.txt", &[("if-none-match", "TAG"), ("if-modified-since", BEFORE)],
        Differ(304, 200, "If-None-Match overrides the date (RFC 9110, section 13.2.2)")),
    ("GET", "/long.txt", &[("if-match", "TAG"), ("if-unmodified-since", BEFORE)],
        Differ(200, 412, "If-Match overrides the date (RFC 9110, section 13.2.2)")),
    // Ranges.
    ("GET", "/long.txt", &[("range", "bytes=0-99")], Same),
    ("GET", "/long.txt", &[("range", "bytes=1990-")], Same),
    ("GET", "/long.txt", &[("range", "bytes=-10")], Same),
    ("GET", "/long.txt", &[("range", "bytes=-5000")], Same),
    ("GET", "/long.txt", &[("range", "bytes=0-5000")], Same),
    ("GET", "/long.txt", &[("range", "bytes=0-")], Same),
    ("GET", "/long.txt", &[("range", "bytes=2000-")], Same),
    ("GET", "/long.txt", &[("range", "bytes=5000-6000")], Same),
    ("GET", "/long.txt", &[("range", "lines=1-2")], Same),
    ("GET", "/empty.bin", &[("range", "bytes=0-")],
        Differ(416, 200, "position 0 lies beyond the end (RFC 9110, section 14.1.2)")),
    ("GET", "/empty.bin", &[("range", "bytes=-5")], Same),
    ("GET", "/long.txt", &[("range", "bytes=0-9,1000-1009")], Same),
    ("GET", "/long.txt", &[("range", "bytes=1000-1009,0-9,-5")], Same),
    ("GET", "/long.txt", &[("range", "bytes=0-9,5000-6000")], Same),
    ("GET", "/long.txt", &[("range", "bytes=0-9"), ("if-range", "TAG")], Same),
    ("GET", "/long.txt", &[("range", "bytes=0-9"), ("if-range", "\"a\"")], Same),
    ("GET", "/long.txt", &[("range", "bytes=0-9"), ("if-range", MODIFIED)], Same),
    ("GET", "/long.txt", &[("range", "bytes=0-9"), ("if-range", BEFORE)], Same),
    ("GET", "/long.txt", &[("range", "bytes=0-9"), ("if-none-match", "TAG")], Same),
    ("GET", "/long.txt", &[("range", "bytes=0-9"), ("if-match", "\"a\"")], Same),
    ("GET", "/long.txt", &[("range", "bytes=0-9,5-14")],
        Differ(206, 206, "overlapping ranges are joined (RFC 9110, section 15.3.7.2)")),
    ("GET", "/long.txt", &[("range", "bytes=9-0")],
        Differ(200, 416, "a malformed field is ignored (RFC 9110, section 14.2)")),
    ("GET", "/long.txt", &[("range", "bytes=a-b")],
        Differ(200, 416, "a malformed field is ignored (RFC 9110, section 14.2)")),
    ("HEAD", "/long.txt", &[("range", "bytes=0-99")],
        Differ(200, 206, "ranges are defined for GET alone (RFC 9110, section 14.2)")),
];

#[tokio::test]
async fn answers_are_those_of_nginx_or_differ_on_purpose() {
    let root = site();
    let outside = TempDir::new().unwrap();
    let scratch = TempDir::new().unwrap();
    let long: Vec<u8> = (0..2000).map(|n| b'a' + (n % 26) as u8).collect();
    write(&root.path().join("long.txt"), &long);
    write(&outside.path().join("file"), b"outside");
    std::os::unix::fs::symlink(outside.path().join("file"), root.path().join("outside")).unwrap();
    let Some((_nginx, address)) = nginx(root.path(), scratch.path()).await else {
        return;
    };
    let theirs = ask_nginx(address, &Method::GET, "/long.txt", &[]).await;
    let ours = ask_ours(&root, &Method::GET, "/long.txt", &[]).await;
    let tags = [ours.1.unwrap(), theirs.1.unwrap()];
    for (method, path, headers, expect) in CASES {
        let method = method.parse().unwrap();
        let fill = |tag: &str| -> Vec<(&str, String)> {
            headers
                .iter()
                .map(|(name, value)| (*name, value.replace("TAG", tag)))
                .collect()
        };
        let (ours, _) = ask_ours(&root, &method, path, &fill(&tags[0])).await;
        let (theirs, _) = ask_nginx(address, &method, path, &fill(&tags[1])).await;
        let case = format!("{method} {path} {headers:?}");
        match expect {
            Same => assert_eq!(ours, theirs, "{case}"),
            Differ(our_status, their_status, why) => {
                assert_ne!(ours, theirs, "{case} differs no more: {why}");
                let statuses = (ours.status, theirs.status);
                assert_eq!(statuses, (*our_status, *their_status), "{case}: {why}");
            }
        }
    }
}
