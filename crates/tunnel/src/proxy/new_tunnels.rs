//! How many new tunnels lead to one address in a time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::refusal::Refusal;
use crate::policy::TokenBucket;

/// What may be opened at once, as the time in which it is earned.
const BURST: Duration = Duration::from_secs(1);

/// Addresses that are remembered; those whose tunnels are all earned are forgotten when there are more.
const MOST: usize = 65_536;

/// The tunnels opened lately. Clones share them.
#[derive(Clone, Debug)]
pub(super) struct NewTunnels {
    per_second: Option<NonZeroU64>,
    since: Instant,
    targets: Arc<Mutex<HashMap<IpAddr, TokenBucket>>>,
}

impl NewTunnels {
    /// `per_second` to each address; `None` for no limit.
    pub(super) fn new(per_second: Option<NonZeroU64>) -> Self {
        Self {
            per_second,
            since: Instant::now(),
            targets: Arc::default(),
        }
    }

    /// Counts a new tunnel to `target`, or refuses it.
    pub(super) fn open(&self, target: IpAddr) -> Result<(), Refusal> {
        let Some(per_second) = self.per_second else {
            return Ok(());
        };
        let at = self.since.elapsed();
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if targets.len() >= MOST {
            targets.retain(|_, bucket| !bucket.is_full(at));
        }
        if targets.len() >= MOST && !targets.contains_key(&target) {
            return Err(Refusal::Full);
        }
        let bucket = targets.entry(target);
        let bucket = bucket.or_insert_with(|| TokenBucket::new(per_second, BURST));
        if !bucket.admits(1, at) {
            return Err(Refusal::BusyTarget);
        }
        bucket.take(1, at);
        Ok(())
    }
}
