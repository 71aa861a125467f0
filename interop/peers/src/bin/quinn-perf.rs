//! Bulk transfer on quinn, for a comparison of speed and processor time with `swiftwater perf`.
//!
//! The protocol is that of `swiftwater perf` (ALPN `perf`): on a stream, the client sends the number
//! of requested bytes (8 bytes, big-endian), then any number of bytes, then the end; the server
//! answers with the requested number. Both programs therefore also interoperate.
//!
//! Set up to be quinn at its best on loopback: GSO and GRO, large socket buffers and windows, a fixed
//! packet size without search, chunks handed over without copying. Each side prints one JSON object
//! for a transfer.

use std::error::Error;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use bytes::Bytes;
use clap::{Parser, Subcommand, ValueEnum};
use quinn as quic;
use quinn::{Connection, ConnectionError, Endpoint, RecvStream, SendStream, VarInt};
use serde_json::{Value, json};
use swiftwater_interop_peers::cpu::process_time;

#[path = "../stack/loopback.rs"]
mod loopback;
#[path = "../stack/tls.rs"]
mod tls;

use loopback::{BLOCK, Tuning, ZEROS};

/// The protocol's name in ALPN.
const ALPN: &[u8] = b"perf";

/// Most received chunks read from a stream at once.
const CHUNKS: usize = 64;

/// Measures quinn.
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
    /// Measure one transfer
    Client {
        /// Address of the server
        server: SocketAddr,
        /// Which way the bytes go
        direction: Direction,
        /// How many
        #[arg(long, default_value_t = 1_000_000_000)]
        bytes: u64,
        #[command(flatten)]
        tuning: Tuning,
    },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
enum Direction {
    /// From client to server
    Upload,
    /// From server to client
    Download,
}

fn main() -> Result<(), Box<dyn Error>> {
    let role = Arguments::parse().role;
    let (Role::Server { tuning, .. } | Role::Client { tuning, .. }) = &role;
    loopback::runtime(tuning)?.block_on(run(role))
}

async fn run(role: Role) -> Result<(), Box<dyn Error>> {
    match role {
        Role::Server { listen, tuning } => serve(&loopback::server(listen, ALPN, tuning)?).await,
        Role::Client {
            server,
            direction,
            bytes,
            tuning,
        } => {
            let (endpoint, config) = loopback::client(server, ALPN, tuning)?;
            let connection = endpoint.connect_with(config, server, "localhost")?.await?;
            let report = measure(&connection, direction, bytes).await?;
            connection.close(VarInt::from_u32(0), b"");
            endpoint.wait_idle().await;
            println!("{report}");
            Ok(())
        }
    }
}

async fn serve(endpoint: &Endpoint) -> Result<(), Box<dyn Error>> {
    println!(
        "{}",
        json!({ "event": "listening", "address": endpoint.local_addr()?.to_string() })
    );
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            if let Err(error) = answer_all(incoming.await).await {
                println!(
                    "{}",
                    json!({ "event": "failed", "error": error.to_string() })
                );
            }
        });
    }
    Ok(())
}

/// Answers a client's requests until it closes.
async fn answer_all(connection: Result<Connection, ConnectionError>) -> Result<(), Box<dyn Error>> {
    let connection = connection?;
    loop {
        let (send, receive) = match connection.accept_bi().await {
            Err(ConnectionError::ApplicationClosed(_)) => return Ok(()),
            accepted => accepted?,
        };
        let cpu = process_time();
        let (received, sent) = answer(send, receive).await?;
        let cpu = process_time().saturating_sub(cpu);
        let mut report = summary(received.max(sent), cpu, &connection);
        report["event"] = json!("served");
        println!("{report}");
    }
}

async fn answer(
    mut send: SendStream,
    mut receive: RecvStream,
) -> Result<(u64, u64), Box<dyn Error>> {
    let mut wanted = [0; 8];
    receive.read_exact(&mut wanted).await?;
    let wanted = u64::from_be_bytes(wanted);
    let received = drain(&mut receive).await?;
    supply(&mut send, wanted).await?;
    // Until the client has everything, so that the processor time is complete.
    send.stopped().await?;
    Ok((received, wanted))
}

/// Moves `bytes` in `direction` and reports.
async fn measure(
    connection: &Connection,
    direction: Direction,
    bytes: u64,
) -> Result<Value, Box<dyn Error>> {
    let (up, down) = match direction {
        Direction::Upload => (bytes, 0),
        Direction::Download => (0, bytes),
    };
    let (cpu, start) = (process_time(), Instant::now());
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&down.to_be_bytes()).await?;
    supply(&mut send, up).await?;
    let received = drain(&mut receive).await?;
    let (elapsed, cpu) = (start.elapsed(), process_time().saturating_sub(cpu));
    if received != down {
        return Err(format!("received {received} bytes of {down}").into());
    }
    let mut report = summary(bytes, cpu, connection);
    report["seconds"] = json!(elapsed.as_secs_f64());
    report["goodput_bps"] = json!(bytes as f64 * 8.0 / elapsed.as_secs_f64());
    Ok(report)
}

/// Sends `bytes` zeros and the end of the stream.
async fn supply(send: &mut SendStream, bytes: u64) -> Result<(), Box<dyn Error>> {
    let mut left = bytes;
    while left > 0 {
        let block = usize::try_from(left).unwrap_or(BLOCK).min(BLOCK);
        send.write_chunk(Bytes::from_static(&ZEROS[..block]))
            .await?;
        left -= block as u64;
    }
    send.finish()?;
    Ok(())
}

/// Reads to the end and counts.
async fn drain(receive: &mut RecvStream) -> Result<u64, Box<dyn Error>> {
    let mut chunks: [Bytes; CHUNKS] = std::array::from_fn(|_| Bytes::new());
    let mut bytes = 0;
    while let Some(count) = receive.read_chunks(&mut chunks).await? {
        bytes += chunks[..count]
            .iter()
            .map(|chunk| chunk.len() as u64)
            .sum::<u64>();
    }
    Ok(bytes)
}

fn summary(bytes: u64, cpu: Duration, connection: &Connection) -> Value {
    let path = connection.stats().path;
    json!({
        "bytes": bytes,
        "cpu_s": cpu.as_secs_f64(),
        "cpu_s_per_gb": cpu.as_secs_f64() / (bytes as f64 / 1e9),
        "mtu": path.current_mtu,
        "sent_packets": path.sent_packets,
        "lost_packets": path.lost_packets,
        "rtt_ms": path.rtt.as_secs_f64() * 1e3,
    })
}
