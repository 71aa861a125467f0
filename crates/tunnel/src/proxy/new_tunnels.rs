//! How many new tunnels lead to one address in a time.

use std::collections::HashMap;
use std::net::IpAddr;
use std::num::NonZeroU64;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::refusal::Refusal;
use crate::policy::{TokenBucket, embedded};

/// What may be opened at once, as the time in which it is earned.
const BURST: Duration = Duration::from_secs(1);

/// Addresses that are remembered; those whose tunnels are all earned are forgotten when there are more.
const MOST: usize = 65_536;

/// The tunnels opened lately.
#[derive(Debug)]
pub(super) struct NewTunnels {
    since: Instant,
    targets: Mutex<HashMap<IpAddr, TokenBucket>>,
}

impl Default for NewTunnels {
    fn default() -> Self {
        Self {
            since: Instant::now(),
            targets: Mutex::default(),
        }
    }
}

impl NewTunnels {
    /// Counts a new tunnel to `target`, of which there may be `per_second` to each address (`None` for no limit), or
    /// refuses it. An address of IPv6 that stands for one of IPv4 is the same target.
    pub(super) fn open(
        &self,
        target: IpAddr,
        per_second: Option<NonZeroU64>,
    ) -> Result<(), Refusal> {
        let Some(per_second) = per_second else {
            return Ok(());
        };
        let target = embedded(target);
        let at = self.since.elapsed();
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if targets.len() >= MOST {
            targets.retain(|_, bucket| !bucket.is_full(at));
        }
        if targets.len() >= MOST && !targets.contains_key(&target) {
            return Err(Refusal::Full);
        }
        let bucket = targets.entry(target);
        let new = TokenBucket::new(per_second, BURST);
        let bucket = bucket.or_insert(new);
        if bucket.per_second() != per_second {
            *bucket = new;
        }
        if !bucket.admits(1, at) {
            return Err(Refusal::BusyTarget);
        }
        bucket.take(1, at);
        Ok(())
    }
}
