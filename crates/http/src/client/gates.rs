//! One opening of a connection at a time per origin and policy: what comes meanwhile waits, and finds
//! the connection standing.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::origin::Origin;
use super::policy::Policy;

type Key = (Origin, Policy);

/// The gates that somebody holds or waits for.
#[derive(Default)]
pub(super) struct Gates {
    gates: Mutex<HashMap<Key, Weak<tokio::sync::Mutex<()>>>>,
}

impl Gates {
    /// The gate of `origin` under `policy`. It lives as long as somebody has it.
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
