//! What routes do beside files and one upstream: redirections, fields of responses, several upstreams; and HTTP without
//! TLS.

#![cfg(unix)]

use crate::operated;

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};

use swiftwater::DevCertificate;

use crate::https::{Answer, Ask, https};
use operated::Operated;

const CERTIFICATE: &str = "[[certificate]]\ncert = \"0.pem\"\nkey = \"0.key\"\n";

fn certificate() -> DevCertificate {
    DevCertificate::generate(["localhost"]).unwrap()
}

/// The answer to a request for `host`.
fn ask(server: &Operated, trusted: &DevCertificate, path: &str) -> Answer {
    https(&Ask::new(server.port, trusted, path)).unwrap()
}

/// The value of a field, in lower case.
fn field(head: &str, name: &str) -> Option<String> {
    let mut lines = head.lines().skip(1);
    let value = lines.find_map(|line| line.strip_prefix(&format!("{name}: ")));
    value.map(str::to_owned)
}

/// Answers each request with its name.
fn upstream(name: &'static str) -> SocketAddr {
    operated::upstream(move |_| (format!("server: {name}"), name.to_owned()))
}

/// An address where nothing listens.
fn closed() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap()
}

#[test]
fn routes_redirect() {
    let certificate = certificate();
    let config = format!(
        "{CERTIFICATE}[[site]]\n[[site.route]]\nredirect = \"https://new.example{{path}}\"\n\
         [[site.route]]\npath = \"/old\"\nredirect = \"/new{{path}}\"\nstatus = 302\n\
         [[site.route]]\npath = \"/files\"\ndirectory = \"files\"\n"
    );
    let server = Operated::start(&config, &[("files/a", "text")], &[&certificate]);
    let of = |path: &str| {
        let answer = ask(&server, &certificate, path);
        (answer.status, field(&answer.head, "location"))
    };
    let to = |target: &str| Some(target.to_owned());
    assert_eq!(of("/a/b?c"), (308, to("https://new.example/a/b?c")));
    assert_eq!(of("/old/a?b=c"), (302, to("/new/a?b=c")));
    assert_eq!(of("/old"), (302, to("/new/")));
    assert_eq!(
        of("//evil.example/x"),
        (308, to("https://new.example/evil.example/x"))
    );
    assert_eq!(of("/files/a"), (200, None));
}

#[test]
fn sites_and_routes_set_fields() {
    let certificate = certificate();
    let upstream = upstream("first");
    let config = format!(
        "{CERTIFICATE}[[site]]\nheaders = {{ Strict-Transport-Security = \"max-age=60\", X-Frame-Options = \"DENY\" }}\n\
         [[site.route]]\ndirectory = \"files\"\nheaders = {{ X-Frame-Options = \"SAMEORIGIN\" }}\n\
         [[site.route]]\npath = \"/api\"\nupstream = \"http://{upstream}\"\nheaders = {{ Server = \"\" }}\n"
    );
    let server = Operated::start(&config, &[("files/a", "text")], &[&certificate]);
    let of = |path: &str, name: &str| field(&ask(&server, &certificate, path).head, name);
    // The last one is answered by no route.
    for path in ["/a", "/missing", "/api", "/api%2fx"] {
        let age = of(path, "strict-transport-security");
        assert_eq!(age.as_deref(), Some("max-age=60"), "{path}");
    }
    assert_eq!(of("/a", "x-frame-options").as_deref(), Some("sameorigin"));
    assert_eq!(of("/api", "x-frame-options").as_deref(), Some("deny"));
    assert_eq!(of("/api", "server"), None);
}

#[test]
fn an_upstream_that_is_down_is_left_out() {
    let certificate = certificate();
    let (down, first, second) = (closed(), upstream("first"), upstream("second"));
    let config = format!(
        "{CERTIFICATE}[[site]]\n[[site.route]]\n\
         upstream = [\"http://{down}\", \"http://{first}\", \"http://{second}\"]\n\
         health_path = \"/health\"\nhealth_interval = \"50ms\"\n"
    );
    let server = Operated::start(&config, &[], &[&certificate]);
    let mut served = std::collections::BTreeSet::new();
    for _ in 0..12 {
        let answer = ask(&server, &certificate, "/");
        assert_eq!(answer.status, 200);
        served.insert(String::from_utf8(answer.body).unwrap());
    }
    assert_eq!(Vec::from_iter(served), ["first", "second"]);
}

#[test]
fn plain_http_is_redirected_to_https() {
    let certificate = certificate();
    let config = format!(
        "{CERTIFICATE}[http]\nlisten = \"127.0.0.1:0\"\n[log]\naccess = \"access.log\"\nformat = \"combined\"\n\
         [[site]]\n[[site.route]]\ndirectory = \"files\"\n"
    );
    let mut server = Operated::start(&config, &[("files/a", "text")], &[&certificate]);
    let event = server.event("redirections");
    let mut socket = TcpStream::connect(event["address"].as_str().unwrap()).unwrap();
    let request = "GET /a?b HTTP/1.1\r\nhost: site.example:80\r\nuser-agent: \"me\"\r\nconnection: close\r\n\r\n";
    socket.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    socket.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 308 "), "{answer}");
    let target = format!("location: https://site.example:{}/a?b\r\n", server.port);
    assert!(answer.contains(&target), "{answer}");
    let home = server.stop();
    let log = fs::read_to_string(home.path().join("access.log")).unwrap();
    let line = log.lines().next().unwrap();
    assert!(line.contains("\"GET /a HTTP/1.1\" 308 "), "{line}");
    assert!(line.ends_with(" \"-\" \"\\x22me\\x22\""), "{line}");
}
