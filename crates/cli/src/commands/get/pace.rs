//! `--limit-rate` over TCP: content is read no faster than that, and flow control does the rest. (Over
//! QUIC, the transport itself asks for no more.)

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use swiftwater::units::Bandwidth;
use tokio::time::{Instant, sleep_until};

/// What no wait exceeds: a block at one bit per second takes less.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// Time that may be made up for. Timers have a resolution of a millisecond and fire late on a busy
/// machine, and blocks that come by HTTP/2 take less than that: what a wait was too long, the next ones
/// must be shorter, or the rate is missed by a multiple.
const CREDIT: Duration = Duration::from_millis(100);

/// One rate for each server.
#[derive(Debug)]
pub(super) struct Paces {
    rate: Bandwidth,
    servers: Mutex<BTreeMap<String, Pace>>,
}

impl Paces {
    pub(super) fn new(rate: Bandwidth) -> Self {
        Self {
            rate,
            servers: Mutex::default(),
        }
    }

    /// The pace of the server at `host:port`.
    pub(super) fn of(&self, server: String) -> Pace {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Pace {
            account: Arc::new(Mutex::new(Account::new(self.rate, Instant::now()))),
        };
        servers.entry(server).or_insert_with(new).clone()
    }
}

/// What downloads from one server share.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    account: Arc<Mutex<Account>>,
}

impl Pace {
    /// Waits as long as `bytes` take, less what earlier waits took too long.
    pub(super) async fn spend(&self, bytes: usize) {
        let now = Instant::now();
        let until = {
            let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
            account.spend(bytes, now)
        };
        if until > now {
            sleep_until(until).await;
        }
    }
}

/// Time spent at a rate. It reads no clock.
#[derive(Debug)]
struct Account {
    rate: Bandwidth,
    /// When everything that was read so far would have come at exactly the rate; at most [`CREDIT`] ago when
    /// it counts.
    paid_until: Instant,
}

impl Account {
    fn new(rate: Bandwidth, now: Instant) -> Self {
        Self {
            rate,
            paid_until: now,
        }
    }

    /// When to go on after `bytes` that were read at `now`.
    fn spend(&mut self, bytes: usize, now: Instant) -> Instant {
        let bits = bytes as f64 * 8.0;
        let takes = Duration::try_from_secs_f64(bits / self.rate.as_bps().max(1) as f64);
        let earliest = now.checked_sub(CREDIT).unwrap_or(now);
        let takes = takes.unwrap_or(LONGEST).min(LONGEST);
        self.paid_until = self.paid_until.max(earliest) + takes;
        self.paid_until
    }
}

#[cfg(test)]
mod tests;
