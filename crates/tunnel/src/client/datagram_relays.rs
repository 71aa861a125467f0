//! The tunnels for UDP behind one local socket, each of which serves what has its key: a peer, or a target.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::task::JoinSet;

use super::datagram_relay::{DatagramRelay, ForwardCounters, WAITING};

/// Tunnels by their keys. All end when this is dropped.
pub(super) struct DatagramRelays<K> {
    to_tunnels: HashMap<K, mpsc::Sender<Bytes>>,
    running: JoinSet<K>,
    limit: usize,
    counters: Arc<ForwardCounters>,
}

impl<K: Clone + Eq + Hash + Send + 'static> DatagramRelays<K> {
    /// None yet, and `limit` at once; datagrams for further ones are dropped.
    pub(super) fn new(limit: usize, counters: Arc<ForwardCounters>) -> Self {
        Self {
            to_tunnels: HashMap::new(),
            running: JoinSet::new(),
            limit,
            counters,
        }
    }

    /// Passes a payload on to the tunnel of `key`; without one, `begin` makes one of the payloads that it is to carry.
    pub(super) fn pass_on<W>(
        &mut self,
        key: &K,
        payload: Bytes,
        begin: impl FnOnce(mpsc::Receiver<Bytes>) -> DatagramRelay<W>,
    ) where
        W: Fn(Bytes) -> Bytes + Send + Sync + 'static,
    {
        let Some(payload) = self.pass_to_existing(key, payload) else {
            return;
        };
        if self.to_tunnels.len() >= self.limit {
            self.counters.on_drop();
            return;
        }
        let (to_tunnel, payloads) = mpsc::channel(WAITING);
        // It has room for one.
        let _ = to_tunnel.try_send(payload);
        self.to_tunnels.insert(key.clone(), to_tunnel);
        let (relay, key) = (begin(payloads), key.clone());
        self.running.spawn(async move {
            relay.run().await;
            key
        });
    }

    /// Returns the payload if there is no tunnel of `key`.
    fn pass_to_existing(&self, key: &K, payload: Bytes) -> Option<Bytes> {
        let Some(to_tunnel) = self.to_tunnels.get(key) else {
            return Some(payload);
        };
        match to_tunnel.try_send(payload) {
            Ok(()) => None,
            Err(TrySendError::Full(_)) => {
                self.counters.on_drop();
                None
            }
            // It has ended at this moment.
            Err(TrySendError::Closed(payload)) => Some(payload),
        }
    }

    /// Waits until a tunnel ends, and forgets it; `None` if there is none. Dropping the future loses nothing.
    pub(super) async fn next_ended(&mut self) -> Option<()> {
        // Unless its key has another one since.
        if let Ok(key) = self.running.join_next().await?
            && (self.to_tunnels.get(&key)).is_some_and(mpsc::Sender::is_closed)
        {
            self.to_tunnels.remove(&key);
        }
        Some(())
    }
}
