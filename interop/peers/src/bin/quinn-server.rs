//! A file server on quinn over `hq-interop`.

use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use clap::Parser;
use quinn::{
    Connection, ConnectionError, Endpoint, EndpointConfig, Incoming, RecvStream, SendStream, VarInt,
};
use swiftwater_interop_peers::hq;
use swiftwater_interop_peers::tls::{self, Suite};

/// Bytes after which a server that was told to updates its keys.
const KEY_UPDATE_AFTER: u64 = 100_000;

/// Bytes written to a stream at once.
const BLOCK: usize = 64 * 1024;

/// Serves the files of a directory.
#[derive(Debug, Parser)]
struct Arguments {
    /// Directory with the files.
    #[arg(long)]
    dir: PathBuf,
    /// UDP address.
    #[arg(long)]
    listen: SocketAddr,
    /// Certificate chain, PEM.
    #[arg(long)]
    cert: PathBuf,
    /// Private key, PEM.
    #[arg(long)]
    key: PathBuf,
    /// Validate each client's address with a Retry packet.
    #[arg(long)]
    retry: bool,
    /// Update keys each time this much was sent (100 kB).
    #[arg(long)]
    key_update: bool,
    /// Speak no version but this, for example 0xff00001d.
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
    let identity = tls::read_identity(&arguments.cert, &arguments.key)?;
    let crypto = tls::server(identity, hq::ALPN, arguments.suite)?;
    let mut endpoint_config = EndpointConfig::default();
    if let Some(version) = arguments.quic_version {
        endpoint_config.supported_versions(vec![version]);
    }
    let endpoint = Endpoint::new(
        endpoint_config,
        Some(quinn::ServerConfig::with_crypto(crypto)),
        UdpSocket::bind(arguments.listen)?,
        Arc::new(quinn::TokioRuntime),
    )?;
    println!("listening on {}", endpoint.local_addr()?);
    let root: Arc<Path> = arguments.dir.into();
    while let Some(incoming) = endpoint.accept().await {
        if arguments.retry && !incoming.remote_address_validated() && incoming.may_retry() {
            incoming.retry()?;
            continue;
        }
        let root = Arc::clone(&root);
        tokio::spawn(async move {
            match serve(incoming, root, arguments.key_update).await {
                Ok(code) => println!("connection ended: {:#x}", code.into_inner()),
                Err(error) => println!("connection failed: {error}"),
            }
        });
    }
    Ok(())
}

/// Answers a client's requests and returns the code with which it closed.
async fn serve(
    incoming: Incoming,
    root: Arc<Path>,
    key_update: bool,
) -> Result<VarInt, ConnectionError> {
    let connection = incoming.await?;
    println!("connection from {}", connection.remote_address());
    let until_update = key_update.then(|| Arc::new(AtomicU64::new(0)));
    loop {
        let (send, receive) = match connection.accept_bi().await {
            Err(ConnectionError::ApplicationClosed(close)) => return Ok(close.error_code),
            accepted => accepted?,
        };
        let (root, connection) = (Arc::clone(&root), connection.clone());
        let until_update = until_update.clone();
        tokio::spawn(async move {
            let rekey = until_update.as_deref().map(|sent| (&connection, sent));
            if let Err(error) = answer(send, receive, &root, rekey).await {
                println!("request failed: {error}");
            }
        });
    }
}

/// Answers one request. `rekey` counts the connection's bytes if its keys are to be updated.
async fn answer(
    mut send: SendStream,
    mut receive: RecvStream,
    root: &Path,
    rekey: Option<(&Connection, &AtomicU64)>,
) -> Result<(), Box<dyn Error>> {
    let request = receive.read_to_end(hq::MAX_REQUEST).await?;
    println!("request {}", String::from_utf8_lossy(&request).trim_end());
    let content = match hq::requested_file(root, &request) {
        Some(path) => tokio::fs::read(path).await.ok(),
        None => None,
    };
    let Some(content) = content else {
        send.reset(VarInt::from_u32(hq::NOT_FOUND))?;
        return Ok(());
    };
    for block in content.chunks(BLOCK) {
        send.write_all(block).await?;
        if let Some((connection, sent)) = rekey {
            let before = sent.fetch_add(block.len() as u64, Ordering::Relaxed);
            let after = before + block.len() as u64;
            if before / KEY_UPDATE_AFTER != after / KEY_UPDATE_AFTER {
                connection.force_key_update();
                println!("key update after {after} bytes");
            }
        }
    }
    send.finish()?;
    Ok(())
}
