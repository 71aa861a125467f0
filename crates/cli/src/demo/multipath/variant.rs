//! One strategy at one job: its server, networks and client.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant as StdInstant};

use swiftwater::paths::{LocalEnd, PathManager, PathPolicy, PathRule};
use swiftwater::policies::tolerated_silence;
use swiftwater::units::Instant;
use swiftwater::{
    CertificateDer, Client, Connection, DevCertificate, MultipathConfig, PathEvent, Server,
};
use tokio::time::{MissedTickBehavior, interval, sleep_until, timeout};

use super::content::Content;
use super::networks::{NetworkName, Networks};
use super::plan::{Job, Plan, Strategy};
use super::receipt::Receipt;
use crate::exit::{Exit, Failure};
use crate::identity::Identity;
use crate::stats::{PathRow, path_rows};
use crate::transport::{
    Trust, Tuning, build_failure, client, client_failure, farewell, listen, server,
};

/// Application protocol of the demo.
const ALPN: &[u8] = b"swiftwater-demo-multipath";

/// What the client sends to get the content.
const REQUEST: &[u8] = b"send\n";

/// Time limits: connection establishment, the second path.
const CONNECT: Duration = Duration::from_secs(6);
const SECOND_PATH: Duration = Duration::from_secs(2);

/// Interval at which the client looks for silence.
const WATCH: Duration = Duration::from_millis(20);

/// Recovery with several paths, unless another is given.
const RECOVERY: &str = "failover";

/// The identity of the servers.
pub(super) struct Credentials {
    pub(super) identity: Identity,
    pub(super) trusted: CertificateDer<'static>,
}

impl Credentials {
    pub(super) fn generate() -> Result<Self, Failure> {
        let certificate = DevCertificate::generate(["localhost", "127.0.0.1"])
            .map_err(|error| Failure::new(Exit::Certificate, error))?;
        Ok(Self {
            identity: Identity::of(&certificate),
            trusted: certificate.certificate_der(),
        })
    }
}

/// A strategy at a job, connected.
pub(super) struct Variant {
    pub(super) strategy: Strategy,
    pub(super) job: Job,
    /// Index of the job in the plan.
    place: usize,
    pub(super) networks: Networks,
    server: Server,
    client: Client,
    sender: Connection,
    receiver: Connection,
    _paths: Option<PathManager>,
    receipt: Mutex<Receipt>,
    failure: Mutex<Option<Failure>>,
}

impl Variant {
    pub(super) async fn connect(
        plan: Arc<Plan>,
        credentials: Arc<Credentials>,
        strategy: Strategy,
        place: usize,
    ) -> Result<Self, Failure> {
        let (job, content) = &plan.jobs[place];
        let tuning = tuning(&plan, strategy);
        let mut server = server(&credentials.identity, &[ALPN], &tuning);
        let trust = Trust::Roots(vec![credentials.trusted.clone()]);
        let wifi = SocketAddr::new(NetworkName::Wifi.interface(), 0);
        let mut client = client(&trust, ALPN, &tuning).bind(wifi);
        if strategy == Strategy::Multipath {
            let config = MultipathConfig::default;
            server = server.multipath(config()).scheduler(&plan.scheduler);
            client = client.multipath(config()).scheduler(&plan.scheduler);
        }
        let server = listen(&server, SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0))?;
        let networks = Networks::start(server.local_addr(), plan.seed).await?;
        let client = client.build().map_err(|error| build_failure(&error))?;
        let connecting = both_ends(&client, &server, networks.server());
        let connected = timeout(CONNECT, connecting).await;
        let (receiver, sender) = connected.map_err(|_| {
            let seconds = CONNECT.as_secs();
            let text = format_args!("no connection within {seconds} s");
            Failure::new(Exit::Connection, text)
        })??;
        let paths = match strategy {
            Strategy::Multipath => Some(second_path(&client, &receiver).await?),
            _ => None,
        };
        Ok(Self {
            strategy,
            job: *job,
            place,
            networks,
            server,
            client,
            sender,
            receiver,
            _paths: paths,
            receipt: Mutex::new(Receipt::new(content, plan.player)),
            failure: Mutex::new(None),
        })
    }

    /// Does the job, from `start` on. A failure is recorded.
    pub(super) async fn run(&self, plan: &Plan, start: StdInstant) {
        let (_, content) = &plan.jobs[self.place];
        sleep_until(start.into()).await;
        let work = async {
            let sending = send(&self.sender, content, start);
            let receiving = self.receive(content, start);
            tokio::try_join!(sending, receiving).map(|_| ())
        };
        let incident = async {
            self.networks.suffer(&plan.incident, start).await?;
            std::future::pending().await
        };
        let outcome = tokio::select! {
            outcome = work => outcome,
            failed = incident => failed,
            failed = self.watch(start), if self.strategy == Strategy::Migration => failed,
        };
        if let Err(failure) = outcome {
            *lock(&self.failure) = Some(failure);
        }
    }

    async fn receive(&self, content: &Content, start: StdInstant) -> Result<(), Failure> {
        let lost = |error: &dyn std::fmt::Display| {
            Failure::new(Exit::Connection, format_args!("the client's end: {error}"))
        };
        let opened = self.receiver.open_bi().await;
        let (mut send, mut recv) = opened.map_err(|error| lost(&error))?;
        send.write_all(REQUEST)
            .await
            .map_err(|error| lost(&error))?;
        send.finish().map_err(|error| lost(&error))?;
        loop {
            let chunk = recv.read_chunk(64 << 10).await;
            let chunk = chunk.map_err(|error| lost(&error))?;
            let mut receipt = self.receipt();
            let Some(bytes) = chunk else {
                receipt.on_end(since(start));
                return Ok(());
            };
            receipt.on_bytes(since(start), &bytes, content);
        }
    }

    /// Migrates to the other network whenever there is silence for too long.
    async fn watch(&self, start: StdInstant) -> Result<(), Failure> {
        let endpoint = self.client.endpoint();
        let mut ticks = interval(WATCH);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut network = NetworkName::Wifi;
        let mut moved = Instant::ZERO;
        loop {
            ticks.tick().await;
            let progress = self.receipt().last_progress();
            let stats = self.receiver.stats();
            let (Some(progress), Some(path)) = (progress, stats.paths.first()) else {
                continue;
            };
            let silence = since(start).saturating_since(progress.max(moved));
            if self.receipt().completed().is_some() || silence < tolerated_silence(path) {
                continue;
            }
            network = match network {
                NetworkName::Wifi => NetworkName::Lte,
                NetworkName::Lte => NetworkName::Wifi,
            };
            let socket = endpoint.add_socket(SocketAddr::new(network.interface(), 0));
            let socket = socket.map_err(|error| Failure::new(Exit::Failure, error))?;
            // If the other network does not answer either, the first one is tried again.
            let _ = timeout(SECOND_PATH, self.receiver.migrate(socket)).await;
            moved = since(start);
        }
    }

    /// Locked only briefly: what arrives waits for it.
    pub(super) fn receipt(&self) -> MutexGuard<'_, Receipt> {
        lock(&self.receipt)
    }

    /// The server's statistics of its paths.
    pub(super) fn paths(&self) -> Vec<PathRow> {
        path_rows(&self.sender)
    }

    pub(super) fn failure(&self) -> Option<Failure> {
        lock(&self.failure).clone()
    }

    pub(super) fn content<'a>(&self, plan: &'a Plan) -> &'a Content {
        &plan.jobs[self.place].1
    }

    pub(super) async fn close(self) {
        self.client.endpoint().close(0, b"done");
        farewell(&self.server).await;
        self.networks.stop().await;
    }
}

/// The present time, since `start`.
pub(super) fn since(start: StdInstant) -> Instant {
    Instant::ZERO + start.elapsed()
}

fn tuning(plan: &Plan, strategy: Strategy) -> Tuning {
    let mut tuning = plan.tuning.clone();
    if strategy == Strategy::Multipath {
        tuning.recovery.get_or_insert_with(|| RECOVERY.to_owned());
    }
    tuning
}

/// The client's and the server's end of a new connection.
async fn both_ends(
    client: &Client,
    server: &Server,
    address: SocketAddr,
) -> Result<(Connection, Connection), Failure> {
    let connected = client.connect_to(address, "localhost").await;
    let receiver = connected.map_err(|error| client_failure(&error, &address.to_string()))?;
    let sender = server.accept().await;
    let sender = sender.ok_or_else(|| Failure::new(Exit::Failure, "the server has stopped"))?;
    Ok((receiver, sender))
}

/// Keeps a path open from each interface; returns when the second one carries data.
async fn second_path(client: &Client, connection: &Connection) -> Result<PathManager, Failure> {
    let rules =
        NetworkName::ALL.map(|network| PathRule::new(LocalEnd::Address(network.interface())));
    let mut events = connection.path_events();
    let policy = PathPolicy::new(rules);
    let paths = PathManager::start(client.endpoint(), connection, policy, []);
    let opened = async {
        while let Some(event) = events.next().await {
            if matches!(event, PathEvent::Opened { .. }) {
                return true;
            }
        }
        false
    };
    if timeout(SECOND_PATH, opened).await == Ok(true) {
        return Ok(paths);
    }
    let address = NetworkName::Lte.interface();
    let text = format_args!(
        "no second path from {address}: systems other than Linux and Windows have that address only if it is \
         added to the loopback interface"
    );
    Err(Failure::new(Exit::Connection, text))
}

/// Waits for the request and sends the content: at once, or its frames at their times after `start`.
async fn send(
    connection: &Connection,
    content: &Content,
    start: StdInstant,
) -> Result<(), Failure> {
    let lost = |error: &dyn std::fmt::Display| {
        Failure::new(Exit::Connection, format_args!("the server's end: {error}"))
    };
    let accepted = connection.accept_bi().await;
    let (mut send, mut recv) = accepted.map_err(|error| lost(&error))?;
    let request = recv.read_to_end(REQUEST.len()).await;
    if request.map_err(|error| lost(&error))? != REQUEST {
        return Err(lost(&"an unknown request"));
    }
    let mut rest = content.bytes();
    for frame in content.frames() {
        sleep_until((start + frame.at).into()).await;
        let (now, later) = rest.split_at(rest.len().min(frame.size as usize));
        send.write_all(now).await.map_err(|error| lost(&error))?;
        rest = later;
    }
    send.write_all(rest).await.map_err(|error| lost(&error))?;
    send.finish().map_err(|error| lost(&error))?;
    // The client reports whether everything arrived; this is only for the statistics.
    let _ = timeout(Duration::from_secs(1), send.stopped()).await;
    Ok(())
}

/// Takes a lock whose contents are consistent at any time.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
