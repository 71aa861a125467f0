//! A downloader on s2n-quic over `hq-interop`. Prints one JSON object about its connections.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Parser;
use s2n_quic::client::{Client, Connect};
use s2n_quic::connection::{Handle, StreamAcceptor};
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls;
use swiftwater_interop_program::arguments::{
    ClientArguments, IDLE, TICKET_WAIT, local_address, refuse,
};
use swiftwater_interop_program::hq::{self, Url};
use swiftwater_interop_program::report::Report;
use swiftwater_interop_program::tls;
use tokio::task::JoinSet;

/// A closed connection's last packet leaves within this time.
const FAREWELL: Duration = Duration::from_millis(100);

type TaskError = Box<dyn Error + Send + Sync>;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    arguments: ClientArguments,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Command::parse().arguments;
    let lacking = [
        ("has no 0-RTT", arguments.zero_rtt),
        ("doesn't migrate as a client", arguments.migrate),
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
    let server = arguments.urls[0].clone();
    let address = server.address()?;
    let crypto = tls::client(Some(&arguments.ca), hq::ALPN, arguments.suite, false)?;
    let client = Client::builder()
        .with_tls(rustls::Client::from(crypto))?
        .with_io(local_address(address))?
        .with_limits(
            Limits::new()
                .with_max_idle_timeout(IDLE)?
                .with_max_handshake_duration(IDLE)?,
        )?
        .start()?;
    let start = Instant::now();
    let mut report = Report::default();
    for (number, round) in arguments.rounds().into_iter().enumerate() {
        let begun = Instant::now();
        let connect = Connect::new(address).with_server_name(server.host.as_str());
        let connection = client.connect(connect).await?;
        report.handshake = begun.elapsed();
        // Kept, because the connection closes without it.
        let (handle, _acceptor): (Handle, StreamAcceptor) = connection.split();
        let done = download_all(&handle, &round.urls, &arguments.out, &mut report).await;
        done.map_err(|error| error as Box<dyn Error>)?;
        report.elapsed = start.elapsed();
        if arguments.resume && number == 0 {
            tokio::time::sleep(TICKET_WAIT).await;
        }
        handle.close(0_u32.into());
        tokio::time::sleep(FAREWELL).await;
    }
    println!("{report}");
    Ok(())
}

async fn download_all(
    handle: &Handle,
    urls: &[Url],
    out: &Path,
    report: &mut Report,
) -> Result<(), TaskError> {
    let mut running = JoinSet::new();
    for url in urls.iter().cloned() {
        let (handle, out) = (handle.clone(), out.to_owned());
        running.spawn(async move {
            let done = download(handle, &url, out).await;
            done.map_err(|error| format!("{}: {error}", url.path))
        });
    }
    while let Some(done) = running.join_next().await {
        report.bytes += done??;
        report.files += 1;
    }
    Ok(())
}

/// Gets one file; returns its size.
async fn download(mut handle: Handle, url: &Url, out: PathBuf) -> Result<u64, TaskError> {
    let mut stream = handle.open_bidirectional_stream().await?;
    stream.send(format!("GET {}\r\n", url.path).into()).await?;
    stream.finish()?;
    let mut content = Vec::new();
    while let Some(piece) = stream.receive().await? {
        content.extend_from_slice(&piece);
    }
    tokio::fs::write(out.join(url.file_name()), &content).await?;
    Ok(content.len() as u64)
}
