//! Serialises connection attempts: one at a time per origin and policy. Other requests wait for it
//! and then find the connection open.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::origin::Origin;
use super::policy::Policy;

type Key = (Origin, Policy);

/// The gates in use.
#[derive(Default)]
pub(super) struct ConnectLocks {
    gates: Mutex<HashMap<Key, Weak<tokio::sync::Mutex<()>>>>,
}

impl ConnectLocks {
    /// The gate of `origin` under `policy`. It is removed when its last user drops it.
    pub(super) fn of(&self, origin: &Origin, policy: Policy) -> Arc<tokio::sync::Mutex<()>> {
        let mut gates = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        let key = (origin.clone(), policy);
        if let Some(gate) = gates.get(&key).and_then(Weak::upgrade) {
            return gate;
        }
        gates.retain(|_, gate| gate.strong_count() > 0);
        let gate = Arc::new(tokio::sync::Mutex::new(()));
        gates.insert(key, Arc::downgrade(&gate));
        gate
    }
}
