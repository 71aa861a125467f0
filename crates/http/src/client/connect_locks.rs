//! Serialises connection attempts: one at a time per origin and policy. Other requests wait for it
//! and then find the connection open. If it failed, they try together, not one after the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tokio::time::Instant;

use super::origin::Origin;
use super::policy::Policy;

type Key = (Origin, Policy);

/// Locked during an attempt; when the last one that failed has ended.
pub(super) type Gate = tokio::sync::Mutex<Option<Instant>>;

/// The gates in use.
#[derive(Default)]
pub(super) struct ConnectLocks {
    gates: Mutex<HashMap<Key, Weak<Gate>>>,
}

impl ConnectLocks {
    /// The gate of `origin` under `policy`. It is removed when its last user drops it.
    pub(super) fn of(&self, origin: &Origin, policy: Policy) -> Arc<Gate> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (origin.clone(), policy);
        if let Some(gate) = gates.get(&key).and_then(Weak::upgrade) {
            return gate;
        }
        gates.retain(|_, gate| gate.strong_count() > 0);
        let gate = Arc::new(Gate::default());
        gates.insert(key, Arc::downgrade(&gate));
        gate
    }
}
