//! Files over one network, one after the other.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use swiftwater::net::relay::{Relay, RelayConfig};
use swiftwater::{CertificateDer, Client, Connection, Server};
use swiftwater_http::web::files::{FileOptions, FileService};
use tokio::sync::{mpsc, watch};
use tokio::task::{JoinHandle, JoinSet, spawn_blocking};
use tokio::time::timeout;

use super::files::{Files, Source};
use super::presets::Preset;
use super::row::FileRow;
use crate::digest::sha256_file;
use crate::exit::{Exit, Failure};
use crate::hq;
use crate::hq::client::fetch;
use crate::hq::service::serve_connection;
use crate::identity::Identity;
use crate::part_file::PartFile;
use crate::perf::report::retransmitted_share;
use crate::progress::{Bar, Progress};
use crate::transport::{
    Trust, Tuning, build_failure, client, client_failure, farewell, listen, server,
};

/// A transfer that takes longer than this has failed. Far more than any needs: it only ends a
/// transfer that hangs.
const TOO_LONG: Duration = Duration::from_secs(120);

/// Address of servers, relays and clients.
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// State shared by all networks.
#[derive(Debug)]
pub(super) struct TransferSetup {
    pub(super) files: Files,
    pub(super) identity: Identity,
    pub(super) trusted: CertificateDer<'static>,
    pub(super) tuning: Tuning,
    pub(super) seed: u64,
    pub(super) progress: Progress,
}

/// Transfers all files across one network and sends results to `rows`. Errors become rows.
pub(super) async fn run(stage: Arc<TransferSetup>, preset: Preset, rows: mpsc::Sender<FileRow>) {
    let set = Set::build(&stage, preset).await;
    for (order, source) in stage.files.sources().iter().enumerate() {
        let mut row = empty_row(preset, source, order);
        let result = match &set {
            Ok(set) => timeout(TOO_LONG, set.transfer(&stage, source, &mut row)).await,
            Err(failure) => Ok(Err(failure.clone())),
        };
        match result {
            Ok(Ok(())) => {}
            Ok(Err(failure)) => row.error = Some(failure.to_string()),
            Err(_) => row.error = Some(format!("not finished after {} s", TOO_LONG.as_secs())),
        }
        // The receiver is only gone if the program is ending.
        let _ = rows.send(row).await;
    }
    if let Ok(set) = set {
        set.close().await;
    }
}

/// Server, relay and client of one network.
struct Set {
    preset: Preset,
    server: Server,
    serving: JoinHandle<()>,
    relay: Relay,
    client: Client,
    /// The server's ends of the connections, in the order of acceptance.
    accepted: tokio::sync::Mutex<mpsc::UnboundedReceiver<Connection>>,
}

impl Set {
    async fn build(stage: &TransferSetup, preset: Preset) -> Result<Self, Failure> {
        let files = FileService::new(stage.files.site(), FileOptions::default())
            .map_err(|error| Failure::new(Exit::LocalFile, error))?;
        let server = listen(
            &server(&stage.identity, &[hq::ALPN], &stage.tuning),
            LOOPBACK,
        )?;
        let (accepting, accepted) = mpsc::unbounded_channel();
        let serving = tokio::spawn(serve(server.clone(), files, accepting));
        let links = preset.links(stage.seed);
        let relay = RelayConfig {
            up: links.up,
            down: links.down,
            seed: stage.seed,
            ..RelayConfig::new(LOOPBACK, server.local_addr())
        };
        let relay = spawn_blocking(move || Relay::start(relay))
            .await
            .map_err(|error| Failure::new(Exit::Failure, error))?
            .map_err(|error| Failure::new(Exit::Failure, error))?;
        let client = client(
            &Trust::Roots(vec![stage.trusted.clone()]),
            hq::ALPN,
            &stage.tuning,
        )
        .bind(LOOPBACK)
        .build()
        .map_err(|error| build_failure(&error))?;
        let accepted = tokio::sync::Mutex::new(accepted);
        Ok(Self {
            preset,
            server,
            serving,
            relay,
            client,
            accepted,
        })
    }

    /// Transfers one file over a new connection and fills in the row.
    async fn transfer(
        &self,
        stage: &TransferSetup,
        source: &Source,
        row: &mut FileRow,
    ) -> Result<(), Failure> {
        let bar = stage.progress.transfer(
            &format!("{} {}", self.preset, source.name),
            Some(source.bytes),
        );
        bar.say("connecting");
        let start = Instant::now();
        let connection = self.connect().await?;
        row.handshake_ms = Some(milliseconds(start.elapsed()));
        bar.say("");
        let arrived = stage.files.arrivals(self.preset.slug())?.join(source.name);
        let path = format!("/{}", source.name);
        let part = PartFile::create(&arrived, true)?;
        let fetched = fetch(&connection, &path, part, |bytes| {
            bar.advance(bytes);
        })
        .await;
        self.server_side(row, fetched.is_ok()).await;
        let fetched = fetched?;
        let elapsed = fetched.last_byte.saturating_duration_since(start);
        row.first_byte_ms = Some(milliseconds(
            fetched.first_byte.saturating_duration_since(start),
        ));
        row.completion_ms = Some(milliseconds(elapsed));
        row.goodput_bps = Some(crate::table::bits_per_second(fetched.bytes, elapsed));
        connection.close(0, b"done");
        row.sha256_ok = verified(&arrived, source, &bar).await?;
        if row.sha256_ok {
            Ok(())
        } else {
            Err(Failure::new(
                Exit::Differs,
                "what arrived differs from what was sent",
            ))
        }
    }

    async fn connect(&self) -> Result<Connection, Failure> {
        let relay = self.relay.local_addr();
        let connected = self.client.connect_to(relay, "localhost").await;
        connected.map_err(|error| client_failure(&error, &relay.to_string()))
    }

    /// Statistics of the sender, which has no connection if it failed.
    async fn server_side(&self, row: &mut FileRow, surely_accepted: bool) {
        let mut accepted = self.accepted.lock().await;
        let connection = if surely_accepted {
            accepted.recv().await
        } else {
            accepted.try_recv().ok()
        };
        if let Some(connection) = connection {
            let stats = connection.stats();
            row.retransmitted_share = Some(retransmitted_share(&stats));
            row.srtt_ms = stats
                .paths
                .first()
                .map(|path| milliseconds(path.smoothed_rtt));
        }
    }

    async fn close(self) {
        self.client.endpoint().close(0, b"done");
        farewell(&self.server).await;
        self.serving.abort();
        // Joins the relay's threads.
        let _ = spawn_blocking(move || self.relay.stop()).await;
    }
}

/// Serves every connection, and passes it on for its statistics.
async fn serve(server: Server, files: FileService, accepted: mpsc::UnboundedSender<Connection>) {
    // Never drained: the demo ends when all files were transferred.
    let (_drain, draining) = watch::channel(false);
    let mut connections = JoinSet::new();
    while let Some(connection) = server.accept().await {
        let _ = accepted.send(connection.clone());
        let files = files.clone();
        connections.spawn(serve_connection(
            connection,
            files,
            draining.clone(),
            TOO_LONG,
        ));
    }
}

/// Compares the file on disk with the original.
async fn verified(path: &Path, source: &Source, bar: &Bar) -> Result<bool, Failure> {
    bar.say("verifying");
    let (path, expected) = (path.to_owned(), source.sha256);
    let actual = spawn_blocking(move || sha256_file(&path)).await;
    let actual = actual.map_err(|error| Failure::new(Exit::Failure, error))??;
    Ok(actual == expected)
}

fn empty_row(preset: Preset, source: &Source, order: usize) -> FileRow {
    FileRow {
        preset,
        file: source.name,
        bytes: source.bytes,
        sha256_ok: false,
        handshake_ms: None,
        first_byte_ms: None,
        completion_ms: None,
        goodput_bps: None,
        retransmitted_share: None,
        srtt_ms: None,
        error: None,
        order,
    }
}

fn milliseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}
