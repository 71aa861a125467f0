//! Serialises connection attempts: one at a time per origin and policy. Other requests wait for it
//! and then find the connection open. If it took long and failed, they try together, not one after the other.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use tokio::time::Instant;

use super::origin::Origin;
use super::policy::Policy;

type Key = (Origin, Policy);

/// How long an attempt that fails may take for the next one to wait for it.
const SLOW: Duration = Duration::from_millis(100);

/// Locked during an attempt; the last one, if it failed.
pub(super) type Gate = tokio::sync::Mutex<Option<FailedAttempt>>;

/// An attempt that failed.
#[derive(Clone, Copy, Debug)]
pub(super) struct FailedAttempt {
    pub(super) began: Instant,
    pub(super) ended: Instant,
}

impl FailedAttempt {
    /// Whether a request that has waited `since` then tries beside others: it has waited for this one, which took long.
    pub(super) fn excuses(&self, since: Instant) -> bool {
        self.ended > since && self.ended - self.began >= SLOW
    }
}

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
