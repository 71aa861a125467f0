//! One of the compared transports: owns its server, lossy link and viewer.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant as StdInstant};

use swiftwater::link::Counters;
use swiftwater::net::relay::{Relay, RelayConfig};
use swiftwater::units::Instant;
use swiftwater::{CertificateDer, Client, Connection, ConnectionStats, DevCertificate, Server};
use tokio::task::spawn_blocking;
use tokio::time::{sleep, timeout};

use super::client::watch;
use super::plan::Plan;
use super::recoveries::Recoveries;
use super::server::serve;
use super::viewer::Viewer;
use crate::exit::{Exit, Failure};
use crate::identity::Identity;
use crate::transport::{
    Trust, Tuning, build_failure, client, client_failure, farewell, listen, server,
};

/// Application protocol of the showing.
const ALPN: &[u8] = b"swiftwater-demo-live";

/// Address of servers, relays and clients.
const LOOPBACK: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// Time limit of connection establishment over the emulated link.
const CONNECT: Duration = Duration::from_secs(6);

/// The identity of the servers.
pub struct Credentials {
    identity: Identity,
    trusted: CertificateDer<'static>,
}

impl Credentials {
    /// A new one.
    pub fn generate() -> Result<Self, Failure> {
        let certificate = DevCertificate::generate(["localhost"])
            .map_err(|error| Failure::new(Exit::Certificate, error))?;
        Ok(Self {
            identity: Identity::of(&certificate),
            trusted: certificate.certificate_der(),
        })
    }
}

/// A transport, connected.
pub struct Variant {
    /// Its recovery policy.
    pub recovery: String,
    /// Recovery latencies so far.
    pub recoveries: Recoveries,
    server: Server,
    relay: Relay,
    client: Client,
    sender: Connection,
    receiver: Connection,
    epoch: StdInstant,
    begun: OnceLock<StdInstant>,
    viewer: Mutex<Viewer>,
    failure: Mutex<Option<Failure>>,
}

impl Variant {
    /// Starts server, relay and client, and connects them.
    pub async fn connect(
        plan: Arc<Plan>,
        credentials: Arc<Credentials>,
        recovery: String,
    ) -> Result<Self, Failure> {
        let recoveries = Recoveries::default();
        let observer = Arc::new(recoveries.clone());
        let tuning = Tuning {
            basics: plan.tuning.clone(),
            recovery: Some(recovery.clone()),
        };
        let server = server(&credentials.identity, &[ALPN], &tuning)
            .transport(|transport| transport.observer = Some(observer));
        let server = listen(&server, LOOPBACK)?;
        let relay = RelayConfig {
            up: plan.links.up.clone(),
            down: plan.links.down.clone(),
            seed: plan.seed,
            ..RelayConfig::new(LOOPBACK, server.local_addr())
        };
        let relay = spawn_blocking(move || Relay::start(relay))
            .await
            .map_err(|error| Failure::new(Exit::Failure, error))?
            .map_err(|error| Failure::new(Exit::Failure, error))?;
        let trust = Trust::Roots(vec![credentials.trusted.clone()]);
        let client = client(&trust, ALPN, &tuning)
            .bind(LOOPBACK)
            .build()
            .map_err(|error| build_failure(&error))?;
        let (receiver, sender) = timeout(CONNECT, both_ends(&client, &relay, &server))
            .await
            .map_err(|_| {
                let seconds = CONNECT.as_secs();
                Failure::new(
                    Exit::Connection,
                    format_args!("no connection within {seconds} s over this link"),
                )
            })??;
        let epoch = StdInstant::now();
        Ok(Self {
            recovery,
            recoveries,
            server,
            relay,
            client,
            sender,
            receiver,
            epoch,
            begun: OnceLock::new(),
            viewer: Mutex::new(Viewer::new(plan.player, Instant::ZERO)),
            failure: Mutex::new(None),
        })
    }

    /// Sends the stream, receives it, and lets the player show the rest. A failure is recorded.
    pub async fn play(&self, plan: &Plan) {
        *lock(&self.viewer) = Viewer::new(plan.player, self.now());
        let sending = serve(&self.sender, &plan.schedule, |start| {
            // The start is reported once.
            let _ = self.begun.set(start);
        });
        let watching = async {
            watch(&self.receiver, &plan.schedule, |frame, intact| {
                let mut viewer = self.viewer();
                // No frame arrives before the stream has started.
                let begun = self
                    .begun
                    .get()
                    .map_or(Instant::ZERO, |at| self.time_of(*at));
                viewer.on_frame(self.now(), begun, frame, intact);
            })
            .await?;
            let mut viewer = self.viewer();
            viewer.on_end(self.now());
            Ok(())
        };
        if let Err(failure) = tokio::try_join!(sending, watching) {
            *lock(&self.failure) = Some(failure);
            return;
        }
        let dry = lock(&self.viewer).dry_at();
        if let Some(dry) = dry {
            sleep(dry.saturating_since(self.now())).await;
        }
    }

    /// The present time on the viewer's clock.
    pub fn now(&self) -> Instant {
        self.time_of(StdInstant::now())
    }

    fn time_of(&self, at: StdInstant) -> Instant {
        Instant::ZERO + at.saturating_duration_since(self.epoch)
    }

    /// The viewer. Locked only briefly: frames wait for it.
    pub fn viewer(&self) -> MutexGuard<'_, Viewer> {
        lock(&self.viewer)
    }

    /// The server's statistics.
    pub fn stats(&self) -> ConnectionStats {
        self.sender.stats()
    }

    /// Counters of the link to the viewer.
    pub fn link(&self) -> Counters {
        self.relay.counters().down
    }

    /// Why it ended early, if it did.
    pub fn failure(&self) -> Option<Failure> {
        lock(&self.failure).clone()
    }

    /// Closes the connection and stops the threads.
    pub async fn close(&self) {
        self.client.endpoint().close(0, b"done");
        farewell(&self.server).await;
    }
}

/// The client's and the server's end of a new connection.
async fn both_ends(
    client: &Client,
    relay: &Relay,
    server: &Server,
) -> Result<(Connection, Connection), Failure> {
    let address = relay.local_addr();
    let connected = client.connect_to(address, "localhost").await;
    let receiver = connected.map_err(|error| client_failure(&error, &address.to_string()))?;
    let sender = server.accept().await;
    let sender = sender.ok_or_else(|| Failure::new(Exit::Failure, "the server has stopped"))?;
    Ok((receiver, sender))
}

/// Takes a lock whose contents are consistent at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
