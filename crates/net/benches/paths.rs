//! A download over loopback on one path and on two, from 127.0.0.1 and 127.0.0.2: processor time per byte.
//! Server and client have a thread each.
//!
//! ```text
//! cargo bench -p swiftwater-net --bench paths -- [GIGABYTES]
//! ```
//!
//! `single`: without multipath. `one` and `two`: with it, and a scheduler that takes the paths by turns, a
//! full batch each. Processor time is what the system counts for the threads (Linux).

#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a benchmark"
)]

#[path = "../tests/loopback/mod.rs"]
mod loopback;

use std::net::SocketAddr;
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use loopback::{LOOPBACK, NAME, configs, endpoint_config};
use swiftwater_net::quic::policy::{Demand, PathDecision, PathView, PolicyFactory, Scheduler};
use swiftwater_net::quic::{ClientConfig, MultipathConfig, OpenPathError, TransportConfig};
use swiftwater_net::{Connection, Endpoint, EndpointOptions, PathEvent};
use swiftwater_units::{ByteCount, Instant, PathId};
use tokio::sync::oneshot;

fn main() {
    let gigabytes = std::env::args().find_map(|word| word.parse().ok());
    let bytes = (gigabytes.unwrap_or(1.0_f64) * 1e9) as u64;
    for (name, multipath, paths) in [("single", false, 1), ("one", true, 1), ("two", true, 2)] {
        measure(name, multipath, paths, bytes);
    }
}

/// Every path that has room, in turn.
#[derive(Debug, Default)]
struct Turns {
    last: Option<PathId>,
}

impl Scheduler for Turns {
    fn next(&mut self, now: Instant, paths: &[PathView], _: &Demand<'_>) -> PathDecision {
        let mut ready = paths.iter().filter(|path| path.is_ready(now));
        let later = ready.clone().find(|path| Some(path.id) > self.last);
        let Some(path) = later.or_else(|| ready.next()) else {
            return PathDecision::Blocked;
        };
        self.last = Some(path.id);
        PathDecision::Path {
            id: path.id,
            max_bytes: ByteCount::MAX,
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

fn transport(multipath: bool) -> TransportConfig {
    let mut config = TransportConfig::default();
    if multipath {
        config.multipath = Some(MultipathConfig::default());
        config.policies = Arc::new(InTurn);
    }
    config
}

fn measure(name: &str, multipath: bool, paths: u8, bytes: u64) {
    let (server_config, config) = configs(transport(multipath));
    let (bound, address) = mpsc::channel();
    let (stop, stopped) = oneshot::channel::<()>();
    let server = thread::spawn(move || {
        block_on(async {
            let options = EndpointOptions::new(endpoint_config(1), [1; 32]).server(server_config);
            let server = Endpoint::bind(LOOPBACK.parse().unwrap(), options).unwrap();
            bound.send(server.local_addr()).unwrap();
            let connection = server.accept().await.unwrap();
            tokio::spawn(send(connection, bytes));
            let _ = stopped.await;
            (thread_time(), server.stats().sends)
        })
    });
    let address = address.recv().unwrap();
    let (cpu, took, received) = block_on(receive(config, address, paths));
    drop(stop);
    let (server_cpu, sends) = server.join().unwrap();
    let each = |cpu: Duration| cpu.as_secs_f64() * 1e9 / bytes as f64;
    println!(
        "{name}: {:.2} Gbit/s, client {:.3} and server {:.3} s of processor time per GB, {:.0} sends per MB, by path {received:?} MB",
        bytes as f64 * 8e-9 / took.as_secs_f64(),
        each(cpu),
        each(server_cpu),
        sends as f64 * 1e6 / bytes as f64,
    );
}

/// Sends once the client has asked for it.
async fn send(connection: Connection, bytes: u64) {
    let chunk = vec![7; 1 << 20];
    let (mut send, mut recv) = connection.accept_bi().await.unwrap();
    recv.read_to_end(16).await.unwrap();
    let mut left = bytes;
    while left > 0 {
        let part = left.min(chunk.len() as u64) as usize;
        send.write_all(&chunk[..part]).await.unwrap();
        left -= part as u64;
    }
    send.finish().unwrap();
    let _ = send.stopped().await;
}

/// Processor time and duration of the download, and what each path received, MB.
async fn receive(
    config: ClientConfig,
    address: SocketAddr,
    paths: u8,
) -> (Duration, Duration, Vec<u64>) {
    let client = Endpoint::client(LOOPBACK.parse().unwrap(), endpoint_config(2), [2; 32]).unwrap();
    let connection = client
        .connect(&config, address, NAME)
        .unwrap()
        .await
        .unwrap();
    connection.handshake_confirmed().await.unwrap();
    for nth in 2..=paths {
        open(&client, &connection, nth).await;
    }
    let (before, begun) = (thread_time(), std::time::Instant::now());
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    send.finish().unwrap();
    let mut buffer = vec![0; 1 << 20];
    while recv.read(&mut buffer).await.unwrap().is_some() {}
    let (cpu, took) = (thread_time().saturating_sub(before), begun.elapsed());
    let stats = connection.paths();
    let received = stats
        .iter()
        .map(|path| path.received_bytes.get() / 1_000_000);
    (cpu, took, received.collect())
}

/// Opens a path from 127.0.0.`nth`.
async fn open(client: &Endpoint, connection: &Connection, nth: u8) {
    let socket = client
        .add_socket(SocketAddr::from(([127, 0, 0, nth], 0)))
        .unwrap();
    let mut events = connection.path_events();
    while connection.open_path(socket, None) == Err(OpenPathError::NoConnectionId) {
        events.next().await.unwrap();
    }
    while !matches!(events.next().await.unwrap(), PathEvent::Opened { .. }) {}
}

fn block_on<T>(work: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    runtime.enable_all().build().unwrap().block_on(work)
}

/// Processor time of the calling thread; zero where the system doesn't say.
fn thread_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok());
    Duration::from_nanos(nanos.unwrap_or(0))
}
