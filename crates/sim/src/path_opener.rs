//! Opens further paths of a host's connections (RFC 10069), as a client's path management does.

use std::collections::BTreeMap;
use std::time::Duration;

use swiftwater_quic::{Connection, ConnectionHandle, Event, PathAddress};
use swiftwater_units::{Instant, PathId};

/// Time after the end of a path until it is opened again.
pub(crate) const REOPEN_AFTER: Duration = Duration::from_secs(1);

/// Keeps a path open between each of some addresses, in all connections that the host opens.
#[derive(Debug, Default)]
pub(crate) struct PathOpener {
    /// In the order of opening; the first is that of the handshake.
    addresses: Vec<PathAddress>,
    /// By connection, for each address its path, and when the next one may be opened.
    connections: BTreeMap<ConnectionHandle, Vec<Entry>>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    path: Option<PathId>,
    not_before: Instant,
}

impl PathOpener {
    pub(crate) fn new(addresses: Vec<PathAddress>) -> Self {
        Self {
            addresses,
            connections: BTreeMap::new(),
        }
    }

    /// An event of a connection; the time at which [`PathOpener::open`] must be called again, if any.
    pub(crate) fn on_event(
        &mut self,
        now: Instant,
        handle: ConnectionHandle,
        connection: &mut Connection,
        event: &Event,
    ) -> Option<Instant> {
        if self.addresses.is_empty() {
            return None;
        }
        match event {
            Event::PathsAvailable => self.open(now, handle, connection),
            Event::PathAbandoned { path, .. } => {
                let entries = self.connections.get_mut(&handle)?;
                let entry = entries.iter_mut().find(|entry| entry.path == Some(*path))?;
                *entry = Entry {
                    path: None,
                    not_before: now + REOPEN_AFTER,
                };
                return Some(entry.not_before);
            }
            Event::Closed { .. } => {
                self.connections.remove(&handle);
            }
            _ => {}
        }
        None
    }

    /// Opens the paths of a connection that are not open, as far as that is possible now.
    pub(crate) fn open(
        &mut self,
        now: Instant,
        handle: ConnectionHandle,
        connection: &mut Connection,
    ) {
        let entries = self.connections.entry(handle).or_insert_with(|| {
            let first = std::iter::once(Some(PathId::ZERO));
            let paths = first.chain(std::iter::repeat(None));
            let entries = paths.zip(&self.addresses).map(|(path, _)| Entry {
                path,
                not_before: now,
            });
            entries.collect()
        });
        for (entry, address) in entries.iter_mut().zip(&self.addresses) {
            if entry.path.is_none() && entry.not_before <= now {
                // Without a connection ID there is an event once there is one.
                entry.path = connection.open_path(now, *address).ok();
            }
        }
    }
}
