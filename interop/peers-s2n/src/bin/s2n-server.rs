//! A file server on s2n-quic over `hq-interop`.

use std::error::Error;
use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use clap::Parser;
use s2n_quic::application;
use s2n_quic::connection::{Connection, Error as ConnectionError};
use s2n_quic::provider::endpoint_limits::{ConnectionAttempt, Limiter, Outcome};
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls;
use s2n_quic::stream::BidirectionalStream;
use swiftwater_interop_program::arguments::{IDLE, ServerArguments, refuse};
use swiftwater_interop_program::{hq, tls};

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    arguments: ServerArguments,
}

/// Whether each client must prove its address first.
struct Doorman {
    retry: bool,
}

impl Limiter for Doorman {
    fn on_connection_attempt(&mut self, _: &ConnectionAttempt) -> Outcome {
        if self.retry {
            Outcome::retry()
        } else {
            Outcome::allow()
        }
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Command::parse().arguments;
    let lacking = [
        ("has no 0-RTT", arguments.zero_rtt),
        (
            "updates keys at the end of their use only",
            arguments.key_update,
        ),
        (
            "leaves no choice of version",
            arguments.quic_version.is_some(),
        ),
        ("has no version 2", arguments.v2),
    ];
    refuse("s2n-quic", &lacking);
    let identity = tls::read_identity(&arguments.cert, &arguments.key)?;
    let crypto = tls::server(identity, hq::ALPN, arguments.suite, false)?;
    let doorman = Doorman {
        retry: arguments.retry,
    };
    let mut server = s2n_quic::Server::builder()
        .with_tls(rustls::Server::from(crypto))?
        .with_io(arguments.listen)?
        .with_limits(
            Limits::new()
                .with_max_idle_timeout(IDLE)?
                .with_max_handshake_duration(IDLE)?,
        )?
        .with_endpoint_limits(doorman)?
        .start()?;
    println!("listening on {}", server.local_addr()?);
    let root: Arc<Path> = arguments.dir.into();
    while let Some(connection) = server.accept().await {
        tokio::spawn(serve(connection, Arc::clone(&root)));
    }
    Ok(())
}

/// Answers a client's requests until it closes.
async fn serve(mut connection: Connection, root: Arc<Path>) {
    println!("connection");
    loop {
        match connection.accept_bidirectional_stream().await {
            Ok(Some(stream)) => {
                let root = Arc::clone(&root);
                tokio::spawn(async move {
                    if let Err(error) = answer(stream, &root).await {
                        println!("request failed: {error}");
                    }
                });
            }
            Ok(None) | Err(ConnectionError::Closed { .. }) => {
                println!("connection ended: 0x0");
                return;
            }
            Err(ConnectionError::Application { error, .. }) => {
                println!("connection ended: {:#x}", *error);
                return;
            }
            Err(error) => {
                println!("connection failed: {error}");
                return;
            }
        }
    }
}

async fn answer(mut stream: BidirectionalStream, root: &Path) -> Result<(), Box<dyn Error>> {
    let mut request = Vec::new();
    while let Some(piece) = stream.receive().await? {
        request.extend_from_slice(&piece);
        if request.len() > hq::MAX_REQUEST {
            return Err("request too long".into());
        }
    }
    println!("request {}", String::from_utf8_lossy(&request).trim_end());
    let content = match hq::requested_file(root, &request) {
        Some(path) => tokio::fs::read(path).await.ok(),
        None => None,
    };
    let Some(content) = content else {
        stream.reset(application::Error::new(hq::NOT_FOUND.into())?)?;
        return Ok(());
    };
    stream.send(Bytes::from(content)).await?;
    stream.close().await?;
    Ok(())
}
