//! HTTP/3 with the h3 crate on quinn, for a comparison of speed and processor time with `swiftwater
//! perf --protocol h3`, with the same paths: `/bytes/N` is answered with N bytes. Both programs
//! therefore also interoperate.
//!
//! quinn is set up as for bulk transfer (`quinn-perf`); h3 sends no reserved values, and gets bodies in
//! blocks that need no copying. The client prints one JSON object.

use std::error::Error;
use std::future::poll_fn;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use clap::{Parser, Subcommand};
use h3::client::SendRequest;
use h3::server::RequestResolver;
use h3_quinn::OpenStreams;
use http::{Request, Response, StatusCode};
use quinn as quic;
use quinn::{ConnectionError, Endpoint, Incoming};
use serde_json::{Value, json};
use swiftwater_interop_peers::cpu::process_time;
use tokio::task::JoinSet;

#[path = "../stack/loopback.rs"]
mod loopback;
#[path = "../stack/tls.rs"]
mod tls;

use loopback::{BLOCK, Tuning, ZEROS};

/// The protocol's name in ALPN.
const ALPN: &[u8] = b"h3";

type Failure = Box<dyn Error + Send + Sync>;

/// Measures h3 on quinn.
#[derive(Debug, Parser)]
struct Arguments {
    #[command(subcommand)]
    role: Role,
}

#[derive(Debug, Subcommand)]
enum Role {
    /// Answer measurements until killed
    Server {
        /// UDP address
        #[arg(long)]
        listen: SocketAddr,
        #[command(flatten)]
        tuning: Tuning,
    },
    /// Measure
    Client {
        /// Address of the server
        server: SocketAddr,
        #[command(flatten)]
        tuning: Tuning,
        #[command(subcommand)]
        load: Load,
    },
}

#[derive(Clone, Copy, Debug, Subcommand)]
enum Load {
    /// One response of many bytes
    Download {
        /// How many
        #[arg(long, default_value_t = 1_000_000_000)]
        bytes: u64,
    },
    /// Many small responses
    Requests {
        /// Bytes of each
        #[arg(long, default_value_t = 1_000)]
        down: u64,
        /// Connections
        #[arg(long, default_value_t = 1)]
        connections: usize,
        /// Requests at any time, on each connection
        #[arg(long, default_value_t = 16)]
        in_flight: usize,
        /// Duration, seconds
        #[arg(long, default_value_t = 5.0)]
        seconds: f64,
    },
}

fn main() -> Result<(), Box<dyn Error>> {
    let role = Arguments::parse().role;
    let (Role::Server { tuning, .. } | Role::Client { tuning, .. }) = &role;
    loopback::runtime(tuning)?.block_on(run(role))
}

async fn run(role: Role) -> Result<(), Box<dyn Error>> {
    match role {
        Role::Server { listen, tuning } => {
            let endpoint = loopback::server(listen, ALPN, tuning)?;
            let address = endpoint.local_addr()?.to_string();
            println!("{}", json!({ "event": "listening", "address": address }));
            while let Some(incoming) = endpoint.accept().await {
                tokio::spawn(report(answer_all(incoming)));
            }
            Ok(())
        }
        Role::Client {
            server,
            tuning,
            load,
        } => {
            let (endpoint, config) = loopback::client(server, ALPN, tuning)?;
            endpoint_client(&endpoint, config, server, load)
                .await
                .map_err(|error| error as Box<dyn Error>)
        }
    }
}

/// Prints the error of a task.
async fn report(task: impl Future<Output = Result<(), Failure>>) {
    if let Err(error) = task.await {
        let error = error.to_string();
        println!("{}", json!({ "event": "failed", "error": error }));
    }
}

/// Answers a client's requests until it closes.
async fn answer_all(incoming: Incoming) -> Result<(), Failure> {
    let connection = incoming.await?;
    let transport = h3_quinn::Connection::new(connection.clone());
    let mut requests = h3::server::builder()
        .send_grease(false)
        .build::<_, Bytes>(transport)
        .await?;
    loop {
        match requests.accept().await {
            Ok(Some(request)) => {
                tokio::spawn(report(answer(request)));
            }
            Ok(None) => return Ok(()),
            Err(error) => {
                return match connection.close_reason() {
                    Some(ConnectionError::ApplicationClosed(_)) => Ok(()),
                    _ => Err(error.into()),
                };
            }
        }
    }
}

async fn answer(request: RequestResolver<h3_quinn::Connection, Bytes>) -> Result<(), Failure> {
    let (request, mut stream) = request.resolve_request().await?;
    while stream.recv_data().await?.is_some() {}
    let wanted = request.uri().path().strip_prefix("/bytes/");
    let Some(wanted) = wanted.and_then(|number| number.parse::<u64>().ok()) else {
        let response = Response::builder().status(StatusCode::NOT_FOUND).body(())?;
        stream.send_response(response).await?;
        return Ok(stream.finish().await?);
    };
    let response = Response::builder()
        .header("content-type", "application/octet-stream")
        .header("content-length", wanted)
        .body(())?;
    stream.send_response(response).await?;
    let mut left = wanted;
    while left > 0 {
        let block = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
        stream
            .send_data(Bytes::from_static(&ZEROS[..block]))
            .await?;
        left -= block as u64;
    }
    Ok(stream.finish().await?)
}

async fn endpoint_client(
    endpoint: &Endpoint,
    config: quinn::ClientConfig,
    server: SocketAddr,
    load: Load,
) -> Result<(), Failure> {
    let count = match load {
        Load::Download { .. } => 1,
        Load::Requests { connections, .. } => connections,
    };
    let mut senders = Vec::new();
    let mut drivers = JoinSet::new();
    for _ in 0..count {
        let connection = endpoint.connect_with(config.clone(), server, "localhost")?;
        let transport = h3_quinn::Connection::new(connection.await?);
        let (mut driver, sender) = h3::client::builder()
            .send_grease(false)
            .build::<_, _, Bytes>(transport)
            .await?;
        drivers.spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
        senders.push(sender);
    }
    let (cpu, start) = (process_time(), Instant::now());
    let (latencies, bytes) = match load {
        Load::Download { bytes } => {
            get(&mut senders[0], server, bytes).await?;
            (vec![start.elapsed()], bytes)
        }
        Load::Requests {
            down,
            in_flight,
            seconds,
            ..
        } => {
            let end = start + Duration::from_secs_f64(seconds);
            let latencies = repeat(&senders, server, down, in_flight, end).await?;
            let bytes = latencies.len() as u64 * down;
            (latencies, bytes)
        }
    };
    let (elapsed, cpu) = (start.elapsed(), process_time().saturating_sub(cpu));
    println!("{}", summary(latencies, bytes, elapsed, cpu));
    endpoint.close(0x100_u32.into(), b"");
    endpoint.wait_idle().await;
    Ok(())
}

/// Keeps requests going on every connection until `end`; returns how long each took.
async fn repeat(
    senders: &[SendRequest<OpenStreams, Bytes>],
    server: SocketAddr,
    down: u64,
    in_flight: usize,
    end: Instant,
) -> Result<Vec<Duration>, Failure> {
    let mut workers = JoinSet::new();
    for sender in senders {
        for _ in 0..in_flight {
            let mut sender = sender.clone();
            workers.spawn(async move {
                let mut latencies = Vec::new();
                while Instant::now() < end {
                    let begun = Instant::now();
                    get(&mut sender, server, down).await?;
                    latencies.push(begun.elapsed());
                }
                Ok::<_, Failure>(latencies)
            });
        }
    }
    let mut all = Vec::new();
    while let Some(latencies) = workers.join_next().await {
        all.append(&mut latencies??);
    }
    Ok(all)
}

/// One request; fails if the response doesn't have the requested length.
async fn get(
    sender: &mut SendRequest<OpenStreams, Bytes>,
    server: SocketAddr,
    down: u64,
) -> Result<(), Failure> {
    let request = Request::get(format!("https://{server}/bytes/{down}")).body(())?;
    let mut stream = sender.send_request(request).await?;
    stream.finish().await?;
    let response = stream.recv_response().await?;
    let mut received = 0;
    while let Some(data) = stream.recv_data().await? {
        received += data.remaining() as u64;
    }
    if response.status() == StatusCode::OK && received == down {
        Ok(())
    } else {
        Err(format!("{}: received {received} bytes of {down}", response.status()).into())
    }
}

fn summary(mut latencies: Vec<Duration>, bytes: u64, elapsed: Duration, cpu: Duration) -> Value {
    latencies.sort_unstable();
    let seconds = elapsed.as_secs_f64();
    let at = |share: f64| {
        let last = latencies.len().saturating_sub(1) as f64;
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an index, rounded"
        )]
        let index = (last * share).round() as usize;
        latencies.get(index).map(|time| time.as_secs_f64() * 1e3)
    };
    json!({
        "protocol": "h3",
        "seconds": seconds,
        "bytes": bytes,
        "goodput_bps": bytes as f64 * 8.0 / seconds,
        "completed": latencies.len(),
        "per_second": latencies.len() as f64 / seconds,
        "latency_ms": { "p50": at(0.5), "p99": at(0.99), "max": at(1.0) },
        "cpu_s": cpu.as_secs_f64(),
    })
}
