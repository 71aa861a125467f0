//! A downloader over `hq-interop`, for quinn and for noq, which is close enough to share the source.
//! The program names its library `quic`. It prints one JSON object about its connections.

use std::error::Error;
use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use swiftwater_interop_program::arguments::{
    ClientArguments, IDLE, KEY_UPDATE_AFTER, MIGRATE_AFTER, Round, TICKET_WAIT, local_address,
    refuse,
};
use swiftwater_interop_program::hq::{self, Url};
use swiftwater_interop_program::report::Report;
use tokio::task::JoinSet;

use crate::paths::Paths;
use crate::quic::{
    ClientConfig, Connection, Endpoint, EndpointConfig, IdleTimeout, TokioRuntime, TransportConfig,
    VarInt,
};
use crate::tls;

/// Bytes read from a stream at once.
const BLOCK: usize = 64 * 1024;

/// The round trip that a client with early data assumes: about that of the case's link.
const EARLY_RTT: Duration = Duration::from_millis(30);

/// Errors of tasks.
type TaskError = Box<dyn Error + Send + Sync>;

/// Downloads everything.
pub(crate) async fn run(
    stack: &str,
    arguments: ClientArguments,
    paths: Paths,
) -> Result<(), Box<dyn Error>> {
    refuse(stack, &[("has no version 2", arguments.v2)]);
    let server = arguments.urls[0].clone();
    let address = server.address()?;
    let mut endpoint_config = EndpointConfig::default();
    paths.configure_endpoint(&mut endpoint_config);
    let endpoint = Endpoint::new(
        endpoint_config,
        None,
        UdpSocket::bind(local_address(address))?,
        Arc::new(TokioRuntime),
    )?;
    let config = configuration(&arguments, &paths)?;
    let resumes = arguments.resume || arguments.zero_rtt;
    let start = Instant::now();
    let mut report = Report::default();
    for (number, round) in arguments.rounds().into_iter().enumerate() {
        let connecting = endpoint.connect_with(config.clone(), address, &server.host)?;
        let begun = Instant::now();
        let (connection, accepted) = if round.early {
            let (connection, accepted) = connecting
                .into_0rtt()
                .map_err(|_| "there is no session with 0-RTT keys")?;
            (connection, Some(accepted))
        } else {
            (connecting.await?, None)
        };
        report.handshake = begun.elapsed();
        let _paths = paths.attend(&connection);
        let downloads = Downloads::new(&connection, &endpoint, address, &arguments);
        let done = downloads.all(&round, &mut report).await;
        done.map_err(|error| error as Box<dyn Error>)?;
        if let Some(accepted) = accepted {
            report.early_accepted = Some(accepted.await);
        }
        report.elapsed = start.elapsed();
        if resumes && number == 0 {
            tokio::time::sleep(TICKET_WAIT).await;
        }
        connection.close(VarInt::from_u32(0), b"");
    }
    endpoint.wait_idle().await;
    println!("{report}");
    Ok(())
}

fn configuration(
    arguments: &ClientArguments,
    paths: &Paths,
) -> Result<ClientConfig, Box<dyn Error>> {
    let early = arguments.zero_rtt;
    let crypto = tls::client(Some(&arguments.ca), hq::ALPN, arguments.suite, early)?;
    let mut config = ClientConfig::new(crypto);
    let mut transport = TransportConfig::default();
    transport.max_idle_timeout(Some(IdleTimeout::try_from(IDLE)?));
    paths.configure_transport(&mut transport);
    if early {
        // Probes for larger packets would count among the 1-RTT bytes, of which the case allows few. And
        // noq spreads its early packets over the round trip that it assumes, 333 ms by default: most of
        // them would be sent after the handshake.
        transport.mtu_discovery_config(None).initial_rtt(EARLY_RTT);
    }
    config.transport_config(Arc::new(transport));
    if let Some(version) = arguments.quic_version {
        config.version(version);
    }
    Ok(config)
}

/// What the downloads of one connection share.
#[derive(Clone)]
struct Downloads {
    connection: Connection,
    endpoint: Endpoint,
    server: SocketAddr,
    out: PathBuf,
    key_update: bool,
    /// Still to be done.
    migrate: Arc<AtomicBool>,
    received: Arc<AtomicU64>,
}

impl Downloads {
    fn new(
        connection: &Connection,
        endpoint: &Endpoint,
        server: SocketAddr,
        arguments: &ClientArguments,
    ) -> Self {
        Self {
            connection: connection.clone(),
            endpoint: endpoint.clone(),
            server,
            out: arguments.out.clone(),
            key_update: arguments.key_update,
            migrate: Arc::new(AtomicBool::new(arguments.migrate)),
            received: Arc::default(),
        }
    }

    async fn all(&self, round: &Round, report: &mut Report) -> Result<(), TaskError> {
        let mut running = JoinSet::new();
        for url in round.urls.clone() {
            let shared = self.clone();
            running.spawn(async move {
                let done = shared.one(&url).await;
                done.map_err(|error| format!("{}: {error}", url.path))
            });
        }
        while let Some(done) = running.join_next().await {
            let (bytes, updates) = done??;
            report.files += 1;
            report.bytes += bytes;
            report.key_updates += updates;
        }
        Ok(())
    }

    /// Bytes of a file, and the key updates requested meanwhile.
    async fn one(&self, url: &Url) -> Result<(u64, u64), TaskError> {
        let (mut send, mut receive) = self.connection.open_bi().await?;
        let request = format!("GET {}\r\n", url.path);
        send.write_all(request.as_bytes()).await?;
        send.finish()?;
        let mut content = Vec::new();
        let mut block = vec![0; BLOCK];
        let mut updates = 0;
        while let Some(size) = receive.read(&mut block).await? {
            let before = content.len() as u64;
            content.extend_from_slice(&block[..size]);
            self.count(size as u64)?;
            let after = content.len() as u64;
            if self.key_update && before / KEY_UPDATE_AFTER != after / KEY_UPDATE_AFTER {
                self.connection.force_key_update();
                updates += 1;
            }
        }
        tokio::fs::write(self.out.join(url.file_name()), &content).await?;
        Ok((content.len() as u64, updates))
    }

    /// Counts received bytes, and migrates to another port when due. (Not to another IP address: noq
    /// then continues with the old one as the source of its packets.)
    fn count(&self, size: u64) -> Result<(), TaskError> {
        let received = self.received.fetch_add(size, Ordering::Relaxed) + size;
        if received >= MIGRATE_AFTER && self.migrate.swap(false, Ordering::Relaxed) {
            self.endpoint
                .rebind(UdpSocket::bind(local_address(self.server))?)?;
        }
        Ok(())
    }
}
