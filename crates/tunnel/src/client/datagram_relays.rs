//! The tunnels for UDP behind one local socket, each of which serves what has its key: a peer, or a target.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::Arc;

use bytes::Bytes;
use tokio::sync::mpsc::{self, error::TrySendError};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::REFUSED_FOR;
use super::datagram_relay::{DatagramRelay, ForwardCounters, NoTunnel, WAITING};

/// Tunnels by their keys. All end when this is dropped.
pub(super) struct DatagramRelays<K> {
    relays: HashMap<K, Relay>,
    running: JoinSet<(K, Result<(), NoTunnel>)>,
    limit: usize,
    counters: Arc<ForwardCounters>,
}

/// What a key has.
enum Relay {
    /// A tunnel, or one that is being opened.
    Running(mpsc::Sender<Bytes>),
    /// There was none at this time; until a while later none is asked for.
    Refused(Instant),
}

impl<K: Clone + Eq + Hash + Send + 'static> DatagramRelays<K> {
    /// None yet, and `limit` at once; datagrams for further ones are dropped.
    pub(super) fn new(limit: usize, counters: Arc<ForwardCounters>) -> Self {
        Self {
            relays: HashMap::new(),
            running: JoinSet::new(),
            limit,
            counters,
        }
    }

    /// Passes a payload on to the tunnel of `key`; without one, `begin` makes one of the payloads that it is to carry.
    /// After a refusal payloads are dropped for a second.
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
        if self.relays.len() >= self.limit {
            // Refusals take the place of no tunnel.
            self.relays
                .retain(|_, relay| matches!(relay, Relay::Running(_)));
        }
        if self.relays.len() >= self.limit && !self.relays.contains_key(key) {
            self.counters.on_drop();
            return;
        }
        let (to_tunnel, payloads) = mpsc::channel(WAITING);
        // It has room for one.
        let _ = to_tunnel.try_send(payload);
        self.relays.insert(key.clone(), Relay::Running(to_tunnel));
        let (relay, key) = (begin(payloads), key.clone());
        self.running.spawn(async move { (key, relay.run().await) });
    }

    /// Returns the payload if there is no tunnel of `key`, and may be one.
    fn pass_to_existing(&self, key: &K, payload: Bytes) -> Option<Bytes> {
        let to_tunnel = match self.relays.get(key) {
            Some(Relay::Running(to_tunnel)) => to_tunnel,
            Some(refused) if !refused.is_forgotten() => {
                self.counters.on_drop();
                return None;
            }
            _ => return Some(payload),
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
        if let Ok((key, outcome)) = self.running.join_next().await?
            && (self.relays.get(&key)).is_some_and(Relay::has_ended)
        {
            match outcome {
                Ok(()) => self.relays.remove(&key),
                Err(NoTunnel) => self.relays.insert(key, Relay::Refused(Instant::now())),
            };
        }
        Some(())
    }
}

impl Relay {
    fn has_ended(&self) -> bool {
        matches!(self, Self::Running(to_tunnel) if to_tunnel.is_closed())
    }

    /// Whether a refusal is too old to count.
    fn is_forgotten(&self) -> bool {
        matches!(self, Self::Refused(at) if at.elapsed() >= REFUSED_FOR)
    }
}
