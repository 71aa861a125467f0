//! Clients that request much from a server over HTTP/3 and read little of it, to measure the cost for the
//! server.
//!
//! `cargo run --release -p swiftwater --example slow_readers serve DIR` prints its address; `...
//! --example slow_readers HOST:PORT /PATH CONNECTIONS STREAMS SECONDS` asks it, or any other server.

#![allow(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::time::Duration;

use http_body_util::{BodyExt, Empty};
use swiftwater::http::h3;
use swiftwater::http::udp::{ALPN_HTTP3, SendRequest};
use swiftwater::http::web::files::{FileOptions, FileService};
use swiftwater::{Client, DevCertificate, Server};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [address, path, numbers @ ..] = &*arguments else {
        return Err("serve DIR, or HOST:PORT /PATH CONNECTIONS STREAMS SECONDS".into());
    };
    if address == "serve" {
        return serve(path).await;
    }
    let numbers: Result<Vec<u64>, _> = numbers.iter().map(|number| number.parse()).collect();
    let &[connections, streams, seconds] = &*numbers? else {
        return Err("three numbers after the path".into());
    };
    let client = Client::builder()
        .alpn([ALPN_HTTP3])
        .dangerous_accept_any_certificate()
        .build()?;
    let until = Instant::now() + Duration::from_secs(seconds);
    let mut readers = JoinSet::new();
    for _ in 0..connections {
        let connection = client.connect(address).await?;
        let requests = SendRequest::new(connection, h3::Config::default());
        for _ in 0..streams {
            let (requests, uri) = (requests.clone(), format!("https://{address}{path}"));
            readers.spawn(async move { read_little(&requests, &uri, until).await });
        }
    }
    let (mut whole, mut broken) = (0, 0);
    while let Some(outcome) = readers.join_next().await {
        if outcome?.is_ok() {
            whole += 1;
        } else {
            broken += 1;
        }
    }
    println!("{whole} requests stayed, {broken} were ended");
    Ok(())
}

/// Serves a directory.
async fn serve(directory: &str) -> Result<(), Box<dyn Error>> {
    let certificate = DevCertificate::generate(["localhost"])?;
    let server = Server::builder()
        .dev_certificate(&certificate)
        .bind_web("127.0.0.1:0".parse()?)?;
    println!("{}", server.local_addr());
    let files = FileService::new(directory, FileOptions::default())?;
    server.serve(files).await?;
    Ok(())
}

/// Takes a piece of the response each second.
async fn read_little(
    requests: &SendRequest,
    uri: &str,
    until: Instant,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    let request = http::Request::get(uri).body(Empty::new())?;
    let mut body = requests.send(request).await?.into_body();
    while Instant::now() < until {
        if let Some(frame) = body.frame().await {
            frame?;
        }
        sleep(Duration::from_secs(1)).await;
    }
    Ok(())
}
