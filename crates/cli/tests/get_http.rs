//! `get` over HTTP: protocols, what is sent, what is shown, and how it ends.

use crate::support;

use std::fs;
use std::process::{Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use http::{Response, request};
use serde_json::Value;
use swiftwater_http::web::body::Body;

use crate::origin::Origin;
use support::{Site, failed, keys, names, run, succeeded};

fn data(size: usize) -> Vec<u8> {
    (0..size).map(|nth| (nth * 7 % 253) as u8).collect()
}

fn rows(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    let lines = text.lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn each_protocol_brings_the_files_and_says_why() {
    let large = data(700_000);
    let site = Site::start(&[("small", b"x"), ("a/large", &large)]);
    for (flag, protocol, why) in [
        ("auto", "h3", "HTTP/3 connected first"),
        ("h3", "h3", "policy"),
        ("prefer-h3", "h3", "HTTP/3 connected first"),
        ("tcp", "h2", "policy"),
        ("http1.1", "http/1.1", "policy"),
    ] {
        let output = site
            .get_http(&["/small", "/a/large"])
            .args(["--protocol", flag, "--force", "--json"])
            .output()
            .unwrap();
        succeeded(&output);
        assert_eq!(names(&site.path("out")), ["large", "small"]);
        assert!(fs::read(site.path("out/large")).unwrap() == large);
        let rows = rows(&output);
        let (total, each) = rows.split_last().unwrap();
        for row in each {
            assert_eq!(row["protocol"], protocol, "{row}");
            assert!(row["why"].as_str().unwrap().contains(why), "{row}");
            let is_counted = protocol != "h3" && cfg!(target_os = "linux");
            assert_eq!(row["out_of_order"].is_number(), is_counted, "{row}");
            let is_seen = protocol == "h3" && row["bytes"] == 700_000;
            assert!(row["missing"].is_number() || !is_seen, "{row}");
            assert!(row["missing"].is_null() || protocol == "h3", "{row}");
        }
        assert_eq!(
            (&total["files"], &total["bytes"]),
            (&2.into(), &700_001.into())
        );
        let connections = total["connections"].as_u64().unwrap();
        // HTTP/1.1 carries one request at a time.
        assert!(connections >= 1 && (connections == 1 || flag == "http1.1"));
    }
}

#[test]
fn json_has_times_in_order() {
    let site = Site::start(&[("x", &data(50_000)), ("y", b"y")]);
    // One after the other: the second finds the connection standing.
    let output = site
        .get_http(&["/x", "/y"])
        .args(["--protocol", "h3", "-j", "1", "--json"])
        .output()
        .unwrap();
    succeeded(&output);
    let rows = rows(&output);
    let [one, two, total] = &rows[..] else {
        panic!("{rows:?}")
    };
    assert_eq!(
        keys(one),
        [
            "bytes",
            "continued_at",
            "discarded_bytes",
            "early_data",
            "error",
            "file",
            "further_tries",
            "goodput_bps",
            "led_to",
            "missing",
            "out_of_order",
            "paths",
            "protocol",
            "retransmitted",
            "reused",
            "rtt_ms",
            "seconds",
            "selection",
            "status",
            "timings_ms",
            "url",
            "why",
        ]
    );
    assert_eq!(
        keys(&one["timings_ms"]),
        [
            "connect",
            "dns",
            "first_byte",
            "handshake",
            "request_sent",
            "total"
        ]
    );
    let time = |row: &Value, name: &str| row["timings_ms"][name].as_f64().unwrap();
    for row in [one, two] {
        assert_eq!(row["status"], 200);
        assert!(time(row, "request_sent") <= time(row, "first_byte"));
        assert!(time(row, "first_byte") <= time(row, "total"));
        assert!(row["rtt_ms"].as_f64().unwrap() > 0.0);
    }
    assert_eq!(
        (&one["reused"], &two["reused"]),
        (&false.into(), &true.into())
    );
    assert!(time(one, "handshake") <= time(one, "request_sent"));
    // QUIC has one handshake; an open connection has none.
    assert!(one["timings_ms"]["connect"].is_null());
    assert!(two["timings_ms"]["handshake"].is_null());
    assert_eq!(total["connections"], 1);
    assert_eq!(
        keys(total),
        [
            "bytes",
            "connections",
            "failed",
            "files",
            "goodput_bps",
            "seconds"
        ]
    );
}

#[test]
fn what_servers_refuse_is_a_status_and_no_file() {
    let site = Site::start(&[("here", b"here")]);
    for protocol in ["h3", "tcp", "http1.1"] {
        let output = site
            .get_http(&["/here", "/gone"])
            .args(["--protocol", protocol, "--force", "--json"])
            .output()
            .unwrap();
        let message = failed(&output, 13);
        assert!(
            message.contains("/gone") && message.contains("404 Not Found"),
            "{message}"
        );
        assert_eq!(names(&site.path("out")), ["here"]);
        let rows = rows(&output);
        let row = rows.iter().find(|row| row["status"] == 404).unwrap();
        assert!(row["file"].is_null() && row["error"].is_string());
    }
    let mut told = site.ask(&["/gone"]);
    told.args(["-o", "-", "--fail-with-body"]);
    let output = told.output().unwrap();
    failed(&output, 13);
    assert!(String::from_utf8_lossy(&output.stdout).contains("404"));
}

#[test]
fn content_goes_where_it_is_sent() {
    let site = Site::start(&[("x", b"content"), ("d/y", b"other")]);
    // One address and a path that is no directory: a file of that name.
    let out = |name: &str| site.path(name).to_str().unwrap().to_owned();
    let get = |paths: &[&str], to: &str| {
        let output = site.ask(paths).args(["-o", to]).output().unwrap();
        succeeded(&output)
    };
    assert!(get(&["/x"], &out("named")).contains("HTTP/3"));
    assert_eq!(fs::read(site.path("named")).unwrap(), b"content");
    get(&["/x"], &out("new/"));
    assert_eq!(names(&site.path("new")), ["x"]);
    get(&["/d/y"], &out("new"));
    assert_eq!(names(&site.path("new")), ["x", "y"]);
    get(&["/x", "/d/y"], &out("many"));
    assert_eq!(names(&site.path("many")), ["x", "y"]);
    assert_eq!(get(&["/x"], "-"), "content");
    // In the order of the addresses, whole.
    assert_eq!(get(&["/x", "/d/y", "/x"], "-"), "contentothercontent");
    if cfg!(unix) {
        assert!(get(&["/x"], "/dev/null").contains("/dev/null"));
    }
    // Without -o, into the present directory.
    let mut here = site.ask(&["/x"]);
    here.current_dir(site.path("many")).arg("--force");
    succeeded(&here.output().unwrap());
    assert_eq!(names(&site.path("many")), ["x", "y"]);
    let exists = site.ask(&["/x"]).args(["-o", &out("named")]).output();
    assert!(failed(&exists.unwrap(), 7).contains("--force"));
}

/// Returns the received data.
fn mirror(head: &request::Parts, content: Bytes) -> Response<Body> {
    let mut response = Response::builder().header("x-method", head.method.as_str());
    for (field, to) in [
        ("content-type", "x-type"),
        ("content-length", "x-length"),
        ("x-own", "x-own"),
        ("user-agent", "x-agent"),
    ] {
        for value in head.headers.get_all(field) {
            response = response.header(to, value);
        }
    }
    response.body(Body::full(content)).unwrap()
}

#[test]
fn what_is_sent_arrives_over_each_protocol() {
    let origin = Origin::start(mirror);
    let large = data(900_000);
    fs::write(origin.path("upload"), &large).unwrap();
    for protocol in ["h3", "tcp", "http1.1"] {
        let ask = |flags: &[&str]| {
            let mut get = origin.get("/echo", &["--protocol", protocol, "-i"]);
            let output = get.args(flags).output().unwrap();
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
            let end = output.stdout.windows(2).position(|two| two == b"\n\n");
            let (head, content) = output.stdout.split_at(end.unwrap() + 2);
            let head = String::from_utf8(head.to_vec()).unwrap();
            (head, content.to_vec())
        };
        let (head, content) = ask(&["-d", "a=1&b=ü"]);
        assert!(head.contains("x-method: POST\n"), "{head}");
        assert!(head.contains("x-type: application/x-www-form-urlencoded\n"));
        assert!(head.contains("x-length: 8\n"), "{head}");
        assert!(head.contains("x-agent: swiftwater/"), "{head}");
        assert_eq!(content, "a=1&b=ü".as_bytes());

        let (head, content) = ask(&["-d", "@upload", "-X", "PUT"]);
        assert!(head.contains("x-method: PUT\n"));
        assert!(head.contains("x-type: application/octet-stream\n"));
        assert!(head.contains("x-length: 900000\n"), "{head}");
        assert!(content == large);

        let (head, _) = ask(&["-o", "-", "-H", "X-Own: 1", "-H", "x-own:2", "-X", "DELETE"]);
        assert!(head.contains("x-method: DELETE\n"));
        assert!(head.contains("x-own: 1\nx-own: 2\n"), "{head}");
        let (head, _) = ask(&["-d", "{}", "-H", "content-type: application/json"]);
        assert!(head.contains("x-type: application/json\n"), "{head}");

        let mut get = origin.get("/echo", &["--protocol", protocol, "-d", "@-"]);
        let input = fs::File::open(origin.path("upload")).unwrap();
        assert!(get.stdin(input).output().unwrap().stdout == large);

        // A directory can be opened, but not read.
        let get = origin
            .get("/echo", &["--protocol", protocol, "-d", "@."])
            .output();
        assert!(failed(&get.unwrap(), 7).contains("cannot read"));
    }
}

#[test]
fn heads_alone() {
    let site = Site::start(&[("x", b"content")]);
    for protocol in ["h3", "tcp", "http1.1"] {
        let output = site
            .ask(&["/x"])
            .args(["-I", "--protocol", protocol])
            .output();
        let head = succeeded(&output.unwrap());
        assert!(head.starts_with("HTTP/"), "{head}");
        assert!(head.contains(" 200 OK\n") && head.contains("content-length: 7\n"));
        assert!(!head.contains("content\n"));
    }
}

#[test]
fn verbose_shows_both_sides_but_no_credentials() {
    let site = Site::start(&[("x", b"content")]);
    let mut get = site.ask(&["/x"]);
    get.args(["-v", "-o", "-", "--protocol", "h3"]);
    get.args(["-H", "authorization: Bearer secret", "-H", "x-own: shown"]);
    let output = get.output().unwrap();
    assert_eq!(succeeded(&output), "content");
    let log = stderr(&output);
    for line in [
        "> GET https://127.0.0.1",
        "> x-own: shown",
        "> authorization: (not shown)",
        "* HTTP/3 on a new connection: because of --protocol h3",
        "< HTTP/3 200 OK",
        "< content-length: 7",
    ] {
        assert!(log.contains(line), "{line} is not in {log}");
    }
    assert!(!log.contains("secret"), "{log}");
}

#[test]
fn redirects_are_followed_only_if_asked() {
    let other = Origin::start(|head, _| {
        let carries = head.headers.contains_key("authorization");
        Response::new(Body::full(format!("credentials: {carries}")))
    });
    let elsewhere = other.url("/there");
    let answer = move |head: &request::Parts, content: Bytes| {
        let (status, to) = match head.uri.path() {
            "/a/302" => (302, "../b?q"),
            "/307" => (307, "/b"),
            "/303" => (303, "/b"),
            "/loop" => (302, "/loop"),
            "/away" => (302, elsewhere.as_str()),
            "/down" => (302, "http://127.0.0.1:1/x"),
            _ => return mirror(head, content),
        };
        let response = Response::builder().status(status).header("location", to);
        response.body(Body::empty()).unwrap()
    };
    let origin = Origin::start(answer);
    let ask = |path: &str, flags: &[&str]| origin.get(path, flags).output().unwrap();

    let message = failed(&ask("/a/302", &["-o", "f"]), 13);
    assert!(
        message.contains("302 Found") && message.contains("../b?q") && message.contains("-L"),
        "{message}"
    );
    assert!(!origin.path("f").exists());
    let row = &rows(&ask("/a/302", &["-o", "f", "-L", "--json"]))[0];
    assert_eq!(row["status"], 200);
    assert!(row["led_to"].as_str().unwrap().ends_with("/b?q"), "{row}");

    for (path, method, content) in [
        ("/a/302", "GET", ""),
        ("/303", "GET", ""),
        ("/307", "POST", "text"),
    ] {
        let head = succeeded(&ask(path, &["-L", "-i", "-d", "text"]));
        assert!(head.contains(&format!("x-method: {method}\n")), "{head}");
        assert!(head.ends_with(&format!("\n\n{content}")), "{head}");
    }
    let credentials = ["-L", "-o", "-", "--insecure", "-H", "authorization: x"];
    let mut away = support::swiftwater();
    away.arg("get").arg(origin.url("/away")).args(credentials);
    assert_eq!(succeeded(&away.output().unwrap()), "credentials: false");

    assert!(failed(&ask("/loop", &["-L", "-o", "g"]), 13).contains("more than 10"));
    assert!(failed(&ask("/down", &["-L", "-o", "g"]), 13).contains("not encrypted"));
    let mut get = origin.get("/307", &["-L", "-d", "@-"]);
    let message = failed(&get.stdin(Stdio::null()).output().unwrap(), 13);
    assert!(message.contains("standard input"), "{message}");
}

#[test]
fn busy_servers_are_asked_again_as_often_as_configured() {
    let asked = AtomicU32::new(0);
    let origin = Origin::start(move |head, content| {
        if asked.fetch_add(1, Ordering::SeqCst) % 3 < 2 {
            let response = Response::builder().status(503).header("retry-after", "0");
            return response.body(Body::empty()).unwrap();
        }
        mirror(head, content)
    });
    let ask = |flags: &[&str]| origin.get("/x", flags).output().unwrap();
    let output = ask(&["--retry", "2", "--json"]);
    succeeded(&output);
    assert_eq!(rows(&output)[0]["further_tries"], 2);
    let message = failed(&ask(&["--retry", "1", "--force"]), 13);
    assert!(message.contains("503"), "{message}");
    // What may not be repeated isn't; this is the third answer, and the next a refusal.
    succeeded(&ask(&["-d", "x", "--retry", "9"]));
    failed(&ask(&["-d", "x", "--retry", "9"]), 13);
}

#[test]
fn compressed_content_is_restored() {
    let text = "the same again and again, ".repeat(20_000);
    let mut site = Site::start(&[("x.txt", text.as_bytes())]);
    for protocol in ["h3", "tcp"] {
        let mut get = site.get_http(&["/x.txt"]);
        get.args(["--compressed", "--force", "--protocol", protocol]);
        succeeded(&get.output().unwrap());
        assert!(fs::read(site.path("out/x.txt")).unwrap() == text.as_bytes());
        let mut line = site.server.next();
        while line["event"] != "served" {
            line = site.server.next();
        }
        let sent = line["bytes"].as_u64().unwrap();
        assert!(sent > 0 && sent < text.len() as u64 / 10, "{line}");
    }
}

#[test]
fn what_takes_too_long_is_aborted() {
    let large = data(2_000_000);
    let site = Site::start(&[("large", &large)]);
    let mut get = site.get_http(&["/large"]);
    get.args(["--limit-rate", "1mbit", "--max-time", "700ms"]);
    let message = failed(&get.output().unwrap(), 14);
    assert!(message.contains("--max-time"), "{message}");
    assert!(!site.path("out/large").exists());
}

#[test]
fn early_data_carry_the_second_connections_request() {
    let site = Site::start(&[("a", b"a"), ("b", b"b")]);
    let output = site
        .get_http(&["/a", "/b"])
        .args(["--zero-rtt", "--protocol", "h3", "--json"])
        .output()
        .unwrap();
    succeeded(&output);
    let rows = rows(&output);
    assert_eq!(rows[0]["early_data"], false);
    assert_eq!(rows[1]["early_data"], true, "{}", rows[1]);
    assert_eq!(rows[2]["connections"], 2);
}

#[test]
fn a_download_over_http3_may_move_to_another_port() {
    let large = data(1_000_000);
    let site = Site::start(&[("large", &large)]);
    let mut get = site.get_http(&["/large"]);
    get.args(["--protocol", "h3", "--limit-rate", "20mbit", "-v"]);
    let output = get.args(["--migrate-after", "200kB"]).output().unwrap();
    succeeded(&output);
    let log = stderr(&output);
    assert!(log.contains("the connection migrated"), "{log}");
    assert!(fs::read(site.path("out/large")).unwrap() == large);
}

#[test]
fn nobody_answers() {
    // Drops everything, as a firewall does; the TCP port is unbound.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let url = format!("https://{}/x", silent.local_addr().unwrap());
    let get = ["get", &url, "--insecure", "-o", "-", "--connect-timeout"];
    let ask = |protocol: &str| {
        let mut command = support::swiftwater();
        let command = command.args(get).args(["200ms", "--protocol", protocol]);
        failed(&command.output().unwrap(), 4)
    };
    assert!(ask("h3").contains("UDP is blocked"));
    let both = ask("auto");
    assert!(
        both.contains("over QUIC") && both.contains("over TCP"),
        "{both}"
    );
    assert!(ask("tcp").contains("refused"));
}

#[test]
fn tcp_takes_over_where_quic_is_not_spoken() {
    let site = Site::start(&[("x", b"x")]);
    // The same names and ports, but UDP leads nowhere.
    let silent = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut get = support::swiftwater();
    let address = silent.local_addr().unwrap();
    let tcp = std::net::TcpListener::bind(address).unwrap();
    let to = ("127.0.0.1", site.port);
    std::thread::spawn(move || forward(&tcp, to));
    get.arg("get").arg(format!("https://{address}/x"));
    get.arg("--ca").arg(site.certificate());
    get.arg("-o").arg(site.path("out/"));
    let output = get.arg("--json").output().unwrap();
    succeeded(&output);
    let row = &rows(&output)[0];
    assert_eq!(row["protocol"], "h2");
    assert_eq!(row["why"], "TCP connected before QUIC did");
}

/// Passes connections on.
fn forward(from: &std::net::TcpListener, to: (&str, u16)) {
    for near in from.incoming() {
        let (Ok(near), Ok(far)) = (near, std::net::TcpStream::connect(to)) else {
            return;
        };
        for (mut one, mut other) in [(&near, &far), (&far, &near)]
            .map(|(one, other)| (one.try_clone().unwrap(), other.try_clone().unwrap()))
        {
            std::thread::spawn(move || std::io::copy(&mut one, &mut other));
        }
    }
}

#[test]
fn flags_that_mean_nothing_together() {
    for (line, words) in [
        ("https://h/x -C --force", "--force"),
        ("https://h/x -C -o -", "--continue"),
        ("https://h/x -C -d x", "--continue"),
        ("https://h/x -C -H range:bytes=0-1", "--continue"),
        ("https://h/x -o - --json", "standard output"),
        ("https://h/x -I -d x", "--head"),
        ("https://h/x -H nocolon", "Name: value"),
        ("https://h/x -H host:other", "can't be set"),
        ("https://h/x -X CONNECT", "CONNECT"),
        ("https://h/", "-o FILE"),
        ("https://h/x -o no/such/..", "neither file nor directory"),
        ("https://h/x --protocol hq -L", "--location"),
        ("https://h/x --protocol hq -C", "--continue"),
        ("https://h/x --protocol spdy", "prefer-h3"),
        ("https://h/x --retry 1000", "100"),
    ] {
        let mut get = support::swiftwater();
        let output = get.arg("get").args(line.split(' ')).output().unwrap();
        let message = failed(&output, 2);
        assert!(message.contains(words), "{line}: {message}");
    }
    let missing = run(["get", "https://127.0.0.1:9/x", "-d", "@/no/such/file"]);
    assert!(failed(&missing, 7).contains("/no/such/file"));
}

#[test]
fn plain_http_is_spoken() {
    let site = Site::start(&[("x", b"content")]);
    let upstream = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = upstream.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = upstream.accept().unwrap();
        let mut request = [0; 1000];
        let length = stream.read(&mut request).unwrap();
        stream
            .write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nplain")
            .unwrap();
        String::from_utf8_lossy(&request[..length]).into_owned()
    });
    let url = format!("http://{address}/x");
    let to = site.path("plain");
    succeeded(&run(["get", &url, "-o", to.to_str().unwrap()]));
    assert_eq!(fs::read(to).unwrap(), b"plain");
    let request = server.join().unwrap();
    assert!(request.starts_with("GET /x HTTP/1.1\r\n"), "{request}");
}
