//! Several paths in one connection over real sockets (draft-ietf-quic-multipath-21).

#![cfg(target_os = "linux")]

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::loopback::{LOOPBACK, NAME, configs, echo, endpoint_config, guard, noise};
use swiftwater_net::quic::policy::{
    Demand, PathDecision, PathPreference, PathStatus, PathView, PolicyFactory, Scheduler,
};
use swiftwater_net::quic::{
    AbandonPathError, ClientConfig, MultipathConfig, OpenPathError, PathStats, SocketId,
    TransportConfig,
};
use swiftwater_net::relay::{Relay, RelayConfig};
use swiftwater_net::{Connection, Endpoint, EndpointOptions, PathEvent, PathEvents, SocketFaults};
use swiftwater_units::{ByteCount, Instant, PathId};

const SECOND: PathId = PathId::new(1);

/// Every path that has room, in turn, backups only where there is nothing else.
#[derive(Debug, Default)]
struct Turns {
    last: Option<PathId>,
}

impl Scheduler for Turns {
    fn next(&mut self, now: Instant, paths: &[PathView], _: &Demand<'_>) -> PathDecision {
        let has_regular = paths
            .iter()
            .any(|path| path.is_usable() && !path.is_backup());
        let ready: Vec<_> = (paths.iter())
            .filter(|path| path.is_ready(now) && !(has_regular && path.is_backup()))
            .map(|path| path.id)
            .collect();
        let next = ready.iter().find(|id| Some(**id) > self.last);
        let Some(&id) = next.or(ready.first()) else {
            return PathDecision::Blocked;
        };
        self.last = Some(id);
        PathDecision::Path {
            id,
            max_bytes: ByteCount::new(10_000),
        }
    }
}

#[derive(Debug)]
struct InTurn;

impl PolicyFactory for InTurn {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(Turns::default())
    }
}

fn transport() -> TransportConfig {
    TransportConfig {
        initial_rtt: Duration::from_millis(50),
        multipath: Some(MultipathConfig::default()),
        policies: Arc::new(InTurn),
        ..TransportConfig::default()
    }
}

/// What a socket does with what is sent through it.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// It takes nothing.
    Blocks,
    /// It takes no datagrams of more bytes.
    TakesUpTo(usize),
}

/// Faults of sockets, by their local address.
#[derive(Debug, Default)]
struct Faults(Mutex<BTreeMap<SocketAddr, Fault>>);

impl Faults {
    fn set(&self, local: SocketAddr, fault: Option<Fault>) {
        let mut all = self.0.lock().unwrap();
        match fault {
            Some(fault) => all.insert(local, fault),
            None => all.remove(&local),
        };
    }
}

impl SocketFaults for Faults {
    fn on_send(&self, _: usize, _: usize) -> Option<io::Error> {
        None
    }

    fn on_send_from(&self, local: SocketAddr, _: usize, size: usize) -> Option<io::Error> {
        match self.0.lock().unwrap().get(&local)? {
            Fault::Blocks => Some(io::ErrorKind::WouldBlock.into()),
            Fault::TakesUpTo(most) => {
                (size > *most).then(|| io::Error::from_raw_os_error(libc::EMSGSIZE))
            }
        }
    }

    fn on_receive(&self) -> Option<io::Error> {
        None
    }
}

/// An echoing server and a client's connection to it.
struct Peers {
    server: Endpoint,
    client: Endpoint,
    config: ClientConfig,
    faults: Arc<Faults>,
    connection: Connection,
}

impl Peers {
    async fn new() -> Self {
        Self::with(LOOPBACK, LOOPBACK, transport(), 1).await
    }

    async fn with(server: &str, client: &str, transport: TransportConfig, workers: usize) -> Self {
        let (server, config) = echo_server(server, transport, workers);
        let faults = Arc::new(Faults::default());
        let mut options = EndpointOptions::new(endpoint_config(2), [2; 32]);
        options.faults = Some(faults.clone());
        let client = Endpoint::bind(client.parse().unwrap(), options).unwrap();
        let connection = connect(&client, &config, server.local_addr()).await;
        Self {
            server,
            client,
            config,
            faults,
            connection,
        }
    }

    /// Opens a path from `local` and waits until it carries data.
    async fn open(&self, local: &str) -> (SocketId, PathId) {
        let socket = self.client.add_socket(local.parse().unwrap()).unwrap();
        (socket, open(&self.connection, socket, None).await)
    }
}

fn echo_server(
    address: &str,
    transport: TransportConfig,
    workers: usize,
) -> (Endpoint, ClientConfig) {
    let (server_config, config) = configs(transport);
    let options = EndpointOptions::new(endpoint_config(1), [1; 32]).server(server_config);
    let server = Endpoint::bind(address.parse().unwrap(), options.workers(workers)).unwrap();
    let accepting = server.clone();
    tokio::spawn(async move {
        while let Some(connection) = accepting.accept().await {
            tokio::spawn(echo(connection));
        }
    });
    (server, config)
}

async fn connect(client: &Endpoint, config: &ClientConfig, server: SocketAddr) -> Connection {
    let connection = client.connect(config, server, NAME).unwrap().await.unwrap();
    connection.handshake_confirmed().await.unwrap();
    connection
}

async fn open(connection: &Connection, socket: SocketId, remote: Option<SocketAddr>) -> PathId {
    let mut events = connection.path_events();
    let id = loop {
        match connection.open_path(socket, remote) {
            Err(OpenPathError::NoConnectionId) => wait(&mut events, is_available).await,
            opened => break opened.unwrap(),
        }
    };
    wait(
        &mut events,
        |event| matches!(event, PathEvent::Opened { path, .. } if *path == id),
    )
    .await;
    id
}

async fn wait(events: &mut PathEvents, is_it: impl Fn(&PathEvent) -> bool) {
    while !is_it(&events.next().await.expect("the connection is open")) {}
}

fn is_available(event: &PathEvent) -> bool {
    *event == PathEvent::Available
}

async fn transfer(connection: &Connection, len: usize) {
    let data = noise(len, len as u64);
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let writing = async {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
    };
    let reading = async { recv.read_to_end(len).await.unwrap() };
    let ((), read) = tokio::join!(writing, reading);
    assert!(read == data, "{} of {len} bytes", read.len());
}

/// Transfers until a path has received so many bytes.
async fn transfer_until_received(connection: &Connection, id: PathId, bytes: u64) {
    while stats(connection, id).received_bytes.get() < bytes {
        transfer(connection, 1_000_000).await;
    }
}

fn stats(connection: &Connection, id: PathId) -> PathStats {
    let paths = connection.paths();
    paths.into_iter().find(|path| path.id == id).unwrap()
}

#[tokio::test]
async fn two_addresses_carry_data_in_both_directions() {
    guard(async {
        let peers = Peers::new().await;
        let (_, id) = peers.open("127.0.0.2:0").await;
        assert_eq!(id, SECOND);
        for id in [PathId::ZERO, SECOND] {
            transfer_until_received(&peers.connection, id, 1_000_000).await;
            while stats(&peers.connection, id).sent_bytes.get() < 1_000_000 {
                transfer(&peers.connection, 1_000_000).await;
            }
        }
        let (local, remote) = peers.connection.path_addresses(SECOND).unwrap();
        assert_eq!(local.ip().to_string(), "127.0.0.2");
        assert_eq!(remote, peers.server.local_addr());
    })
    .await;
}

#[tokio::test]
async fn paths_of_both_families_lead_to_one_server() {
    guard(async {
        let (server, config) = echo_server("[::]:0", transport(), 1);
        let client = Endpoint::client(LOOPBACK.parse().unwrap(), endpoint_config(2), [2; 32]);
        let client = client.unwrap();
        let over_v4 = SocketAddr::from(([127, 0, 0, 1], server.local_addr().port()));
        let over_v6: SocketAddr = format!("[::1]:{}", server.local_addr().port())
            .parse()
            .unwrap();
        let connection = connect(&client, &config, over_v4).await;
        let v6 = client.add_socket("[::1]:0".parse().unwrap()).unwrap();
        assert_eq!(
            connection.open_path(v6, None),
            Err(OpenPathError::AddressFamilies)
        );
        open(&connection, v6, Some(over_v6)).await;
        transfer_until_received(&connection, SECOND, 500_000).await;
    })
    .await;
}

#[tokio::test]
async fn a_server_is_reached_at_several_addresses() {
    guard(async {
        let peers = Peers::new().await;
        let there = peers.server.add_socket("127.0.0.3:0".parse().unwrap());
        let there = peers.server.socket_addr(there.unwrap()).unwrap();
        let socket = peers.client.add_socket("127.0.0.2:0".parse().unwrap());
        open(&peers.connection, socket.unwrap(), Some(there)).await;
        transfer_until_received(&peers.connection, SECOND, 500_000).await;
        let (_, remote) = peers.connection.path_addresses(SECOND).unwrap();
        assert_eq!(remote, there);
    })
    .await;
}

#[tokio::test]
async fn a_blocked_socket_stops_its_path_and_no_other() {
    guard(async {
        for blocks_first in [true, false] {
            let peers = Peers::new().await;
            peers.open("127.0.0.2:0").await;
            let blocked = if blocks_first { PathId::ZERO } else { SECOND };
            let (local, _) = peers.connection.path_addresses(blocked).unwrap();
            transfer(&peers.connection, 100_000).await;
            peers.faults.set(local, Some(Fault::Blocks));
            let errors = peers.client.stats().send_errors;
            let before = stats(&peers.connection, blocked).sent_bytes.get();
            transfer(&peers.connection, 2_000_000).await;
            let during = stats(&peers.connection, blocked).sent_bytes.get();
            // One batch waits at the socket; nothing more was given to it, or dropped.
            assert!(during - before < 70_000, "{} bytes", during - before);
            assert_eq!(peers.client.stats().send_errors, errors);
            peers.faults.set(local, None);
            // The path takes its share again once a probe is answered.
            let sent = || stats(&peers.connection, blocked).sent_bytes.get();
            while sent() - during < 100_000 {
                transfer(&peers.connection, 2_000_000).await;
            }
        }
    })
    .await;
}

/// Nothing passes a relay that is dropped.
#[tokio::test]
async fn a_transfer_survives_the_loss_of_either_path() {
    guard(async {
        for cuts_first in [true, false] {
            let (server, config) = echo_server(LOOPBACK, quick(), 1);
            let direct = server.local_addr();
            let relay = RelayConfig::new(LOOPBACK.parse().unwrap(), direct);
            let relay = Relay::start(relay).unwrap();
            let relayed = relay.local_addr();
            let (first, second) = if cuts_first {
                (relayed, direct)
            } else {
                (direct, relayed)
            };
            let client = Endpoint::client(LOOPBACK.parse().unwrap(), endpoint_config(2), [2; 32]);
            let client = client.unwrap();
            let connection = connect(&client, &config, first).await;
            let socket = client.add_socket("127.0.0.2:0".parse().unwrap()).unwrap();
            open(&connection, socket, Some(second)).await;
            let cut = if cuts_first { PathId::ZERO } else { SECOND };
            let mut events = connection.path_events();
            let start = || {
                let connection = connection.clone();
                tokio::spawn(async move { transfer(&connection, 8_000_000).await })
            };
            let mut moving = start();
            while stats(&connection, cut).sent_bytes.get() < 200_000 {
                // The direct path may carry nearly all of one transfer.
                if moving.is_finished() {
                    moving = start();
                }
                tokio::task::yield_now().await;
            }
            drop(relay);
            moving.await.unwrap();
            // It is abandoned in the end, its statistics remain, and the other one goes on.
            let is_cut = |path: &PathStats| path.id == cut;
            while !connection.ended_paths().iter().any(is_cut) {
                transfer(&connection, 10_000).await;
            }
            wait(
                &mut events,
                |event| matches!(event, PathEvent::Abandoned { path, .. } if *path == cut),
            )
            .await;
            transfer(&connection, 1_000_000).await;
        }
    })
    .await;
}

/// Silent paths are abandoned sooner.
fn quick() -> TransportConfig {
    TransportConfig {
        multipath: Some(MultipathConfig {
            abandon_after: Duration::from_millis(500),
            ..MultipathConfig::default()
        }),
        ..transport()
    }
}

#[tokio::test]
async fn what_an_interface_refuses_concerns_its_path_alone() {
    guard(async {
        let peers = Peers::new().await;
        let (socket, _) = peers.open("127.0.0.2:0").await;
        let local = peers.client.socket_addr(socket).unwrap();
        peers.faults.set(local, Some(Fault::TakesUpTo(1250)));
        for _ in 0..10 {
            transfer(&peers.connection, 1_000_000).await;
        }
        assert_eq!(
            stats(&peers.connection, PathId::ZERO).max_datagram_size,
            1472
        );
        let size = stats(&peers.connection, SECOND).max_datagram_size;
        assert!((1200..=1250).contains(&size), "{size} bytes");
    })
    .await;
}

/// The system spreads datagrams over the workers by addresses; connection IDs bring them to the right one.
#[tokio::test]
async fn all_paths_of_a_connection_reach_one_worker() {
    guard(async {
        let peers = Peers::with(LOOPBACK, LOOPBACK, transport(), 4).await;
        let mut connections = Vec::new();
        for nth in 2..=9 {
            let connection = connect(&peers.client, &peers.config, peers.server.local_addr()).await;
            let local = format!("127.0.0.{nth}:0").parse().unwrap();
            let socket = peers.client.add_socket(local).unwrap();
            open(&connection, socket, None).await;
            transfer_until_received(&connection, SECOND, 50_000).await;
            connections.push(connection);
        }
        let stats = peers.server.stats();
        // Each of eight paths has three chances of four to reach another worker.
        assert!(stats.handed_over > 0, "{stats:?}");
        assert_eq!(stats.connections, 9);
    })
    .await;
}

#[tokio::test]
async fn a_backup_path_carries_no_data_while_the_other_works() {
    guard(async {
        let peers = Peers::new().await;
        let (_, id) = peers.open("127.0.0.2:0").await;
        let backup = PathPreference {
            status: PathStatus::Backup,
            ..PathPreference::default()
        };
        assert!(peers.connection.set_path_preference(id, backup));
        // The server has the status once it has answered what was sent after it.
        transfer(&peers.connection, 1000).await;
        let before = stats(&peers.connection, id);
        transfer(&peers.connection, 2_000_000).await;
        let after = stats(&peers.connection, id);
        let received = after.received_bytes.get() - before.received_bytes.get();
        let sent = after.sent_bytes.get() - before.sent_bytes.get();
        assert!(
            sent < 100_000 && received < 100_000,
            "{sent} and {received}"
        );
        assert!(!peers.connection.set_path_preference(PathId::new(7), backup));
    })
    .await;
}

#[tokio::test]
async fn paths_that_cannot_be_opened_or_abandoned_are_refused() {
    guard(async {
        let peers = Peers::new().await;
        let connection = &peers.connection;
        let unknown = connection.open_path(SocketId(77), None);
        assert_eq!(unknown, Err(OpenPathError::NoSuchSocket));
        let last = connection.abandon_path(PathId::ZERO);
        assert_eq!(last, Err(AbandonPathError::Last(PathId::ZERO)));
        let (_, id) = peers.open("127.0.0.2:0").await;
        let mut events = connection.path_events();
        connection.abandon_path(PathId::ZERO).unwrap();
        assert_eq!(connection.open_paths(), [id]);
        transfer(connection, 100_000).await;
        let (_, next) = peers.open("127.0.0.4:0").await;
        assert_eq!(next, PathId::new(2));
        connection.close(0, b"");
        while events.next().await.is_some() {}
        assert!(connection.path_events().next().await.is_none());
    })
    .await;
}
