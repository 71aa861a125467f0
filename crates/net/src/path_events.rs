//! What happens to the paths of a connection, for applications that manage them.

use std::io;

use swiftwater_quic::policy::PathStatus;
use swiftwater_quic::wire::ErrorCode;
use swiftwater_quic::{PathAddress, PathStats};
use swiftwater_units::PathId;
use tokio::sync::broadcast::{self, Receiver, Sender, error::RecvError};

/// Events kept for a reader that falls behind.
const CAPACITY: usize = 64;

/// Ended paths whose statistics are kept; the oldest are dropped first.
const MAX_ENDED: usize = 64;

/// Something happened to a path of a connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum PathEvent {
    /// Another path can be opened now ([`Connection::open_path`](crate::Connection::open_path)); on clients.
    Available,
    /// A path is validated and carries data.
    Opened {
        /// The path.
        path: PathId,
        /// Its addresses.
        address: PathAddress,
    },
    /// A path ends; the connection goes on on the others.
    Abandoned {
        /// The path.
        path: PathId,
        /// Why (draft-ietf-quic-multipath-21, section 6).
        error: ErrorCode,
        /// The peer abandoned it.
        by_peer: bool,
    },
    /// The peer announced another status of a path.
    StatusChanged {
        /// The path.
        path: PathId,
        /// The peer's advice.
        status: PathStatus,
    },
    /// The system refused to send on a path: its interface is down, its address gone, or no route left. With
    /// another path that works, what was in flight leaves there. The path stays open, and may work again.
    Unreachable {
        /// The path.
        path: PathId,
        /// The system's error.
        kind: io::ErrorKind,
    },
}

/// The events of the paths of a connection from the moment of the call of
/// [`Connection::path_events`](crate::Connection::path_events) on.
#[derive(Debug)]
pub struct PathEvents {
    events: Receiver<PathEvent>,
}

impl PathEvents {
    /// Waits for the next event; `None` once the connection is over. A reader that falls more than 64 events
    /// behind misses the oldest ones: [`Connection::paths`](crate::Connection::paths) shows what is so now.
    ///
    /// The future may be dropped at any time without losing events.
    pub async fn next(&mut self) -> Option<PathEvent> {
        loop {
            match self.events.recv().await {
                Ok(event) => return Some(event),
                Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }
}

/// What is kept of the paths of a connection beside the paths themselves.
#[derive(Debug, Default)]
pub(crate) struct PathRecord {
    /// `None` while nobody listens, and after the end.
    events: Option<Sender<PathEvent>>,
    ended: Vec<PathStats>,
}

impl PathRecord {
    /// A reader of the events from now on.
    pub(crate) fn subscribe(&mut self) -> PathEvents {
        let sender = (self.events).get_or_insert_with(|| broadcast::channel(CAPACITY).0);
        PathEvents {
            events: sender.subscribe(),
        }
    }

    pub(crate) fn report(&self, event: PathEvent) {
        if let Some(events) = &self.events {
            // Without a reader it is of no interest.
            let _ = events.send(event);
        }
    }

    /// Keeps the last statistics of a path that ends.
    pub(crate) fn keep(&mut self, path: PathStats) {
        if self.ended.len() >= MAX_ENDED {
            self.ended.remove(0);
        }
        self.ended.push(path);
    }

    pub(crate) fn ended(&self) -> &[PathStats] {
        &self.ended
    }

    /// The connection is over: readers have seen the last event.
    pub(crate) fn close(&mut self) {
        self.events = None;
    }
}
