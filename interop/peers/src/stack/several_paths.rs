//! Several paths in a connection, with noq.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use noq_proto::HashedConnectionIdGenerator;
use swiftwater_interop_program::paths::{Action, Operation, PathArguments};
use tokio::task::JoinSet;
use tokio::time::sleep;
use tokio_stream::StreamExt;

use crate::quic::{
    Connection, ConnectionIdGenerator, EndpointConfig, FourTuple, PathError, PathEvent, PathId,
    PathStatus, TransportConfig,
};

/// How often an amount of data, or whether a path can be opened, is looked up.
const POLL: Duration = Duration::from_millis(2);

/// Between attempts to open a path that the server does not permit yet.
const PAUSE: Duration = Duration::from_millis(20);

/// A path on which nothing is received for so long is abandoned.
const PATH_IDLE: Duration = Duration::from_secs(3);

/// A path on which nothing is sent for so long gets a PING.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// The arguments, carried out.
#[derive(Args, Clone, Debug)]
pub(crate) struct Paths {
    #[command(flatten)]
    arguments: PathArguments,
}

impl Paths {
    /// Connection IDs that are replaced, if that was asked for.
    pub(crate) fn configure_endpoint(&self, endpoint: &mut EndpointConfig) {
        if let Some(lifetime) = self.arguments.cid_lifetime {
            endpoint.cid_generator(Arc::new(move || -> Box<dyn ConnectionIdGenerator> {
                let mut generator = HashedConnectionIdGenerator::new();
                generator.set_lifetime(lifetime);
                Box::new(generator)
            }));
        }
    }

    /// How many paths there may be.
    pub(crate) fn configure_transport(&self, transport: &mut TransportConfig) {
        if let Some(paths) = self.arguments.max_paths {
            transport
                .max_concurrent_multipath_paths(paths)
                .default_path_max_idle_timeout(Some(PATH_IDLE))
                .default_path_keep_alive_interval(Some(KEEP_ALIVE));
        }
    }

    /// Prints what happens to the paths of a connection, opens those that are to be, and does what is to be
    /// done to them, until the result is dropped.
    pub(crate) fn attend(&self, connection: &Connection) -> JoinSet<()> {
        let mut tasks = JoinSet::new();
        if self.arguments.max_paths.is_some() {
            tasks.spawn(report(connection.clone()));
            tasks.spawn(open_all(connection.clone(), self.arguments.path.clone()));
            let operations = self.arguments.path_operation.clone();
            tasks.spawn(operate(connection.clone(), operations));
            if self.arguments.probe_paths {
                tasks.spawn(probe(connection.clone()));
            }
        }
        tasks
    }
}

/// The peer's advice about a path is followed: noq leaves that to the application.
async fn report(connection: Connection) {
    let mut events = connection.path_events();
    while let Some(Ok(event)) = events.next().await {
        println!("path event: {event:?}");
        if let PathEvent::RemoteStatus { id, status, .. } = event
            && let Some(path) = connection.path(id)
            && path.status() != Ok(status)
        {
            let _ = path.set_status(status);
        }
    }
}

async fn open_all(connection: Connection, addresses: Vec<IpAddr>) {
    if addresses.is_empty() || connection.handshake_confirmed().await.is_err() {
        return;
    }
    let first = connection.path(PathId::ZERO);
    let Some(Ok(server)) = first.map(|path| path.remote_address()) else {
        return;
    };
    for address in addresses {
        let to = FourTuple::new(server, Some(address));
        loop {
            match connection.open_path(to, PathStatus::Available).await {
                Ok(path) => {
                    println!("path {} from {address} is open", path.id());
                    break;
                }
                Err(PathError::MaxPathIdReached | PathError::RemoteCidsExhausted) => {
                    sleep(PAUSE).await;
                }
                Err(error) => {
                    println!("no path from {address}: {error}");
                    break;
                }
            }
        }
    }
}

/// Looks for paths with these identifiers.
const PROBED: std::ops::Range<u32> = 0..8;

/// Between two PINGs on a path.
const PROBE_INTERVAL: Duration = Duration::from_millis(100);

async fn probe(connection: Connection) {
    loop {
        for path in PROBED.filter_map(|id| connection.path(PathId::from(id))) {
            // It may have ended meanwhile.
            let _ = path.ping();
        }
        sleep(PROBE_INTERVAL).await;
    }
}

async fn operate(connection: Connection, operations: Vec<Operation>) {
    for operation in operations {
        let path = loop {
            let stats = connection.stats();
            let moved = stats.udp_tx.bytes + stats.udp_rx.bytes;
            let path = connection.path(PathId::from(operation.path));
            if let Some(path) = path.filter(|_| moved >= operation.after) {
                break path;
            }
            sleep(POLL).await;
        };
        let done = match operation.action {
            Action::Abandon => path.close().map_err(|error| error.to_string()),
            Action::Backup => status(&path, PathStatus::Backup),
            Action::Available => status(&path, PathStatus::Available),
        };
        println!("path operation: {operation:?}: {done:?}");
    }
}

fn status(path: &crate::quic::Path, status: PathStatus) -> Result<(), String> {
    let set = path.set_status(status);
    set.map(drop).map_err(|error| error.to_string())
}
