//! Requests files over HTTP/3 and measures how long each takes: what `h2load` does for the other versions of HTTP, for
//! `benches/web/run`.
//!
//! Every connection requests the paths of a list in their order, again from the start after the last; each starts at
//! another place, at equal distances. All answers must have status 200, and their content the expected length in total.

#![forbid(unsafe_code)]

use std::fs;
use std::future::ready;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use clap::Parser;
use http::{StatusCode, Uri};
use http_body_util::BodyExt;
use job::{CONNECTION_WINDOW, Failure, Latencies, SERVER_NAME, STREAM_WINDOW, events, tls};
use swiftwater::http::client::{Policy, Resolved, Resolver, Resolving};
use swiftwater::{CipherSuite, Client, HttpClient};
use tokio::runtime::Builder;
use tokio::task::JoinSet;

/// Requests files over HTTP/3.
#[derive(Debug, Parser)]
struct Arguments {
    /// Address of the server
    #[arg(long)]
    connect: SocketAddr,
    /// Certificate to trust, PEM
    #[arg(long)]
    ca: PathBuf,
    /// File with the paths to request, a line each
    #[arg(long)]
    paths: PathBuf,
    /// Requests in total, the same number on each connection
    #[arg(long)]
    requests: u64,
    /// Bytes of content that all answers have together
    #[arg(long)]
    bytes: u64,
    /// Connections
    #[arg(long, default_value_t = 1)]
    connections: u64,
    /// Requests at any time on each connection
    #[arg(long, default_value_t = 1)]
    in_flight: u64,
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::parse();
    let runtime = Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(run(&arguments))
}

async fn run(arguments: &Arguments) -> Result<(), Failure> {
    let uris: Arc<[Uri]> = uris(arguments)?.into();
    let each = arguments.requests / arguments.connections;
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for connection in 0..arguments.connections {
        let client = client(arguments)?;
        let first = connection * uris.len() as u64 / arguments.connections;
        let next = Arc::new(AtomicU64::new(first));
        let end = first + each;
        for _ in 0..arguments.in_flight {
            let (client, uris, next) = (client.clone(), Arc::clone(&uris), Arc::clone(&next));
            tasks.spawn(request_all(client, uris, next, end));
        }
    }
    let mut latencies = Latencies::default();
    let mut received = 0;
    while let Some(done) = tasks.join_next().await {
        let (some, bytes) = done??;
        latencies.merge(&some);
        received += bytes;
    }
    let took = start.elapsed();
    if received != arguments.bytes {
        let expected = arguments.bytes;
        return Err(format!("received {received} bytes, expected were {expected}").into());
    }
    events::requests_done(latencies, took);
    Ok(())
}

fn uris(arguments: &Arguments) -> Result<Vec<Uri>, Failure> {
    let origin = format!("https://{SERVER_NAME}:{}", arguments.connect.port());
    let paths = fs::read_to_string(&arguments.paths)?;
    let uris = paths.lines().map(|path| format!("{origin}{path}").parse());
    Ok(uris.collect::<Result<_, _>>()?)
}

/// A client of its own has a connection of its own.
fn client(arguments: &Arguments) -> Result<HttpClient, Failure> {
    let local = if arguments.connect.is_ipv4() {
        "0.0.0.0:0"
    } else {
        "[::]:0"
    };
    let (stream, connection) = (u64::from(STREAM_WINDOW), u64::from(CONNECTION_WINDOW));
    let builder = Client::builder()
        .bind(local.parse()?)
        .trust_only(tls::certificates(&arguments.ca)?)
        .sessions(None)
        .cipher_suites(&[CipherSuite::Aes128Gcm])
        .transport(|transport| {
            transport.stream_receive_window = stream.into();
            transport.max_stream_receive_window = stream.into();
            transport.receive_window = connection.into();
            transport.max_receive_window = connection.into();
        })
        .http()?
        .policy(Policy::Http3Only)
        .resolver(Fixed(arguments.connect.ip()));
    Ok(builder.build()?)
}

/// Requests the files that follow on this connection, up to number `end`; returns how long they took, and the bytes of
/// content.
async fn request_all(
    client: HttpClient,
    uris: Arc<[Uri]>,
    next: Arc<AtomicU64>,
    end: u64,
) -> Result<(Latencies, u64), Failure> {
    let mut latencies = Latencies::default();
    let mut received = 0;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= end {
            return Ok((latencies, received));
        }
        let begun = Instant::now();
        let uri = uris[number as usize % uris.len()].clone();
        let response = client.get(uri).await?;
        if response.status() != StatusCode::OK {
            return Err(format!("the answer is {}", response.status()).into());
        }
        let mut body = response.into_body();
        while let Some(frame) = body.frame().await {
            received += frame?.data_ref().map_or(0, |data| data.len() as u64);
        }
        latencies.record(begun.elapsed());
    }
}

/// Has every name at one address.
#[derive(Debug)]
struct Fixed(IpAddr);

impl Resolver for Fixed {
    fn resolve<'a>(&'a self, _: &'a str, _: u16) -> Resolving<'a> {
        let resolved = Resolved {
            addresses: vec![self.0],
            https: None,
        };
        Box::pin(ready(Ok(resolved)))
    }
}
