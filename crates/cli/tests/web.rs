//! `serve` as a web server, seen by an HTTP/3 client.

use std::net::TcpStream;

use http::{Request, StatusCode};
use http_body_util::BodyExt;
use swiftwater::Client;
use swiftwater_cli::identity::read_certificates;
use swiftwater_http::h3::Config;
use swiftwater_http::udp::{ALPN_HTTP3, SendRequest};
use swiftwater_http::web::body::Body;

use crate::support::{Running, Site, failed, run, swiftwater};

/// A connection to the server at `port`, whose certificate is in `site`'s state.
async fn connect(site: &Site, port: u16) -> SendRequest {
    let client = Client::builder()
        .alpn([ALPN_HTTP3])
        .trust_only(read_certificates(&site.certificate()).unwrap())
        .build()
        .unwrap();
    let connection = client.connect(&format!("127.0.0.1:{port}")).await.unwrap();
    SendRequest::new(connection, Config::default())
}

async fn get(client: &SendRequest, path: &str, range: Option<&str>) -> (StatusCode, Vec<u8>) {
    let mut request = Request::get(format!("https://127.0.0.1{path}"));
    if let Some(range) = range {
        request = request.header("range", range);
    }
    let response = client.send(request.body(Body::empty()).unwrap()).await;
    let (head, body) = response.unwrap().into_parts();
    let content = body.collect().await.unwrap().to_bytes();
    (head.status, content.to_vec())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_are_served_over_http3() {
    let large: Vec<u8> = (0..300_000_u32).map(|nth| (nth / 7) as u8).collect();
    let mut site = Site::start(&[("index.html", b"<p>hello"), ("a/large", &large)]);
    let client = connect(&site, site.port).await;
    assert_eq!(
        get(&client, "/", None).await,
        (StatusCode::OK, b"<p>hello".to_vec())
    );
    assert!(get(&client, "/a/large", None).await == (StatusCode::OK, large.clone()));
    let part = get(&client, "/a/large", Some("bytes=1000-1999")).await;
    assert!(part == (StatusCode::PARTIAL_CONTENT, large[1000..2000].to_vec()));
    let (status, _) = get(&client, "/../secret", None).await;
    assert!(status.is_client_error(), "{status}");
    // Each request has its line; those over HTTP/3 have a status.
    let line = site.server.next();
    assert_eq!(
        (&line["event"], &line["protocol"]),
        (&"served".into(), &"h3".into())
    );
    assert_eq!((&line["path"], &line["status"]), (&"/".into(), &200.into()));
    assert_eq!(line["bytes"], 8);
    // HTTP/2 and HTTP/1.1 are on TCP.
    assert!(TcpStream::connect(("127.0.0.1", site.port)).is_ok());
    client.close();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_upstream_that_is_gone_is_reported() {
    let site = Site::start(&[("file", b"1")]);
    // Nobody listens there: a port that was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let mut command = swiftwater();
    command
        .args(["serve", "--upstream", &upstream, "--no-tcp"])
        .args(["--listen", "127.0.0.1:0", "--json", "--state-dir"])
        .arg(site.path("state"));
    let server = Running::start(command);
    let address: std::net::SocketAddr = server.first["address"].as_str().unwrap().parse().unwrap();
    let client = connect(&site, address.port()).await;
    let (status, _) = get(&client, "/", None).await;
    assert_eq!(status, StatusCode::BAD_GATEWAY);
    assert!(TcpStream::connect(address).is_err());
    client.close();
}

#[test]
fn what_cannot_be_served_is_one_clear_line() {
    let message = failed(&run(["serve", "--upstream", "ftp://x/"]), 2);
    assert!(message.contains("http://"), "{message}");
    let message = failed(&run(["serve", "/nonexistent-directory"]), 7);
    assert!(message.contains("/nonexistent-directory"), "{message}");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let home = tempfile::TempDir::new().unwrap();
    let (site, state) = (home.path().to_str().unwrap(), home.path().join("state"));
    let state = state.to_str().unwrap();
    let arguments = ["serve", site, "--listen", &address, "--state-dir", state];
    let message = failed(&run(arguments), 9);
    assert!(
        message.contains("TCP") && message.contains("--no-tcp"),
        "{message}"
    );
}
