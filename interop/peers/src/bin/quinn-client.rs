//! A downloader on quinn over `hq-interop`. Prints one JSON object about the connection.

use std::error::Error;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Parser;
use quinn::{ClientConfig, Connection, Endpoint, IdleTimeout, TransportConfig, VarInt};
use serde_json::json;
use swiftwater_interop_peers::hq::{self, Url};
use swiftwater_interop_peers::tls::{self, Suite};
use tokio::task::JoinSet;

/// Bytes after which a client that was told to updates its keys.
const KEY_UPDATE_AFTER: u64 = 100_000;

/// Downloads files over one connection, all of them at the same time.
#[derive(Debug, Parser)]
struct Arguments {
    /// What to get; all from the same server.
    #[arg(required = true)]
    urls: Vec<Url>,
    /// Where to put the files.
    #[arg(long)]
    out: PathBuf,
    /// Trusted certificates, PEM.
    #[arg(long)]
    ca: PathBuf,
    /// Update keys each time a file has brought this much (100 kB).
    #[arg(long)]
    key_update: bool,
    /// Version of the first packets, for example 0xff00001d.
    #[arg(long, value_parser = version)]
    quic_version: Option<u32>,
    /// Cipher suite.
    #[arg(long, value_enum, default_value_t)]
    suite: Suite,
}

fn version(text: &str) -> Result<u32, std::num::ParseIntError> {
    u32::from_str_radix(text.trim_start_matches("0x"), 16)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Arguments::parse();
    let server = &arguments.urls[0];
    let address = server.address()?;
    let local = match address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let endpoint = Endpoint::client(local)?;
    let start = Instant::now();
    let connection = endpoint
        .connect_with(configuration(&arguments)?, address, &server.host)?
        .await?;
    let handshake = start.elapsed();
    let (bytes, key_updates) = download_all(&connection, &arguments).await?;
    let elapsed = start.elapsed();
    let path = connection.stats().path;
    connection.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
    let report = json!({
        "files": arguments.urls.len(),
        "bytes": bytes,
        "handshake_ms": handshake.as_secs_f64() * 1e3,
        "seconds": elapsed.as_secs_f64(),
        "rtt_ms": path.rtt.as_secs_f64() * 1e3,
        "lost_packets": path.lost_packets,
        "key_updates": key_updates,
    });
    println!("{report}");
    Ok(())
}

fn configuration(arguments: &Arguments) -> Result<ClientConfig, Box<dyn Error>> {
    let crypto = tls::client(Some(&arguments.ca), hq::ALPN, arguments.suite)?;
    let mut config = ClientConfig::new(crypto);
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IdleTimeout::try_from(Duration::from_secs(10))?));
    config.transport_config(Arc::new(transport));
    if let Some(version) = arguments.quic_version {
        config.version(version);
    }
    Ok(config)
}

/// Bytes received and key updates asked for.
async fn download_all(
    connection: &Connection,
    arguments: &Arguments,
) -> Result<(u64, u64), Box<dyn Error>> {
    let mut downloads = JoinSet::new();
    for url in arguments.urls.clone() {
        let target = arguments.out.join(url.file_name());
        let (connection, key_update) = (connection.clone(), arguments.key_update);
        downloads.spawn(async move {
            let done = download(&connection, &url.path, &target, key_update).await;
            done.map_err(|error| format!("{}: {error}", url.path))
        });
    }
    let mut sum = (0, 0);
    while let Some(done) = downloads.join_next().await {
        let (bytes, updates) = done??;
        sum = (sum.0 + bytes, sum.1 + updates);
    }
    Ok(sum)
}

async fn download(
    connection: &Connection,
    path: &str,
    target: &Path,
    key_update: bool,
) -> Result<(u64, u64), Box<dyn Error + Send + Sync>> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(format!("GET {path}\r\n").as_bytes()).await?;
    send.finish()?;
    let mut content = Vec::new();
    let mut updates = 0;
    while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
        let before = content.len() as u64;
        content.extend_from_slice(&chunk.bytes);
        if key_update && before / KEY_UPDATE_AFTER != content.len() as u64 / KEY_UPDATE_AFTER {
            connection.force_key_update();
            updates += 1;
        }
    }
    tokio::fs::write(target, &content).await?;
    Ok((content.len() as u64, updates))
}
