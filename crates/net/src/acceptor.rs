//! Accepts the connections of one worker, on its own thread.

use std::fmt;
use std::sync::Arc;

use tokio::runtime::Handle as Runtime;

use crate::connection::Connection;
use crate::endpoint_shared::EndpointShared;

/// Accepts the connections of one worker. From [`Endpoint::acceptors`](crate::Endpoint::acceptors).
///
/// Doesn't keep the endpoint: with its last handle, what waits here ends.
pub struct Acceptor {
    worker: Arc<EndpointShared>,
}

impl Acceptor {
    pub(crate) fn new(worker: Arc<EndpointShared>) -> Self {
        Self { worker }
    }

    /// Waits for an incoming connection of this worker, as [`Endpoint::accept`](crate::Endpoint::accept) does;
    /// `None` once the endpoint is closed or its last handle is dropped.
    pub async fn accept(&self) -> Option<Connection> {
        loop {
            let ticket = self.worker.incoming.notified();
            {
                let mut state = self.worker.lock();
                if let Some(connection) = state.accept.pop_front() {
                    return Some(connection);
                }
                if state.accepts_no_more() {
                    return None;
                }
            }
            ticket.await;
        }
    }

    /// The runtime of the worker, and of its [connections](Connection::runtime).
    pub fn runtime(&self) -> Runtime {
        self.worker.runtime.clone()
    }
}

impl fmt::Debug for Acceptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Acceptor").finish_non_exhaustive()
    }
}
