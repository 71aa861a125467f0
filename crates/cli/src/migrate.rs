//! `--migrate-after`: connection migration to another local address during a download.

use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use swiftwater::{Connection, Endpoint};
use thiserror::Error;
use tokio::sync::Notify;

use crate::size::parse_size;

/// When a connection is to migrate, and to which address.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MigrateAfter {
    /// Bytes of files received before it migrates.
    pub bytes: u64,
    /// The target address.
    pub to: Destination,
}

/// A local address to migrate to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Destination {
    /// Another port of the address in use.
    Port,
    /// This address, with any port.
    Ip(IpAddr),
    /// This address and port.
    Address(SocketAddr),
}

/// A text that does not state when and where to migrate.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("'{0}' does not state when and where to migrate: write 1MB, 1MB,port or 1MB,192.0.2.7")]
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
    /// The address to bind for an endpoint that is at `present` now.
    fn bind(self, present: SocketAddr) -> SocketAddr {
        match self {
            Self::Port => SocketAddr::new(present.ip(), 0),
            Self::Ip(ip) => SocketAddr::new(ip, 0),
            Self::Address(address) => address,
        }
    }
}

/// Counts received bytes, and reports when the limit is reached.
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

    /// True once the limit was reached.
    pub(crate) fn has_reached(&self) -> bool {
        self.received.load(Ordering::Relaxed) >= self.limit
    }

    /// Adds received bytes of a file.
    pub(crate) fn advance(&self, bytes: u64) {
        if self.received.fetch_add(bytes, Ordering::Relaxed) + bytes >= self.limit {
            self.reached.notify_one();
        }
    }
}

/// Migrates `connection` once `odometer` reports it, and returns a description of the result; an error
/// states why it stays. Downloads continue in either case.
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
