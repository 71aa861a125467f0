//! `--migrate-after`: a download that moves to another local address on its way.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use swiftwater::{Connection, Endpoint};
use thiserror::Error;
use tokio::sync::Notify;

use crate::size::parse_size;

/// When a connection is to move, and where to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MigrateAfter {
    /// Bytes of files received before it moves.
    pub bytes: u64,
    /// Where to.
    pub to: Destination,
}

/// A local address to move to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Destination {
    /// Another port of the address in use.
    Port,
    /// This address, with any port.
    Ip(IpAddr),
    /// This address and port.
    Address(SocketAddr),
}

/// Text that says nothing about when and where to move.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("'{0}' doesn't say when to move and where to: write 1MB, 1MB,port or 1MB,192.0.2.7")]
pub struct MigrateAfterError(String);

impl FromStr for MigrateAfter {
    type Err = MigrateAfterError;

    fn from_str(text: &str) -> Result<Self, MigrateAfterError> {
        let fail = || MigrateAfterError(text.chars().take(60).collect());
        let (bytes, to) = text.split_once(',').unwrap_or((text, "port"));
        let bytes = parse_size(bytes).map_err(|_| fail())?;
        let to = match to.trim() {
            "port" => Destination::Port,
            to => to
                .parse()
                .map(Destination::Ip)
                .or_else(|_| to.parse().map(Destination::Address))
                .map_err(|_| fail())?,
        };
        Ok(Self { bytes, to })
    }
}

impl Destination {
    /// What to bind for an endpoint that is at `present` now.
    fn bind(self, present: SocketAddr) -> SocketAddr {
        match self {
            Self::Port => SocketAddr::new(present.ip(), 0),
            Self::Ip(ip) => SocketAddr::new(ip, 0),
            Self::Address(address) => address,
        }
    }
}

/// Counts what arrives on a connection, and tells when it is enough to move.
#[derive(Debug)]
pub(crate) struct Odometer {
    received: AtomicU64,
    limit: u64,
    reached: Notify,
}

impl Odometer {
    pub(crate) fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self {
            received: AtomicU64::new(0),
            limit,
            reached: Notify::new(),
        })
    }

    /// True once it was enough to move.
    pub(crate) fn has_reached(&self) -> bool {
        self.received.load(Ordering::Relaxed) >= self.limit
    }

    /// Bytes of a file arrived.
    pub(crate) fn advance(&self, bytes: u64) {
        if self.received.fetch_add(bytes, Ordering::Relaxed) + bytes >= self.limit {
            self.reached.notify_one();
        }
    }
}

/// Moves `connection` once `odometer` says so, and returns what happened, in words; an error says why it
/// stays. Downloads go on either way.
pub(crate) async fn migrate(
    endpoint: Endpoint,
    connection: Connection,
    odometer: Arc<Odometer>,
    to: Destination,
) -> Result<String, String> {
    odometer.reached.notified().await;
    let address = to.bind(endpoint.local_addr());
    let socket = endpoint
        .add_socket(address)
        .map_err(|error| format!("the connection did not migrate to {address}: {error}"))?;
    let moved = connection.migrate(socket).await;
    let path =
        moved.map_err(|error| format!("the connection did not migrate to {address}: {error}"))?;
    let local = endpoint.socket_addr(path.local.socket).unwrap_or(address);
    Ok(format!("the connection migrated to {local}"))
}
