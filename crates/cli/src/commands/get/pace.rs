//! `--limit-rate` over TCP: content is read no faster than that, and flow control limits the server.
//! (Over QUIC, the transport limits the credit that it grants.)

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use swiftwater::units::Bandwidth;
use tokio::time::{Instant, sleep_until};

/// Longest wait: a block at one bit per second takes less.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// Credit for waits that were too long. Timers have a resolution of a millisecond and fire late on a
/// busy machine, and blocks of HTTP/2 take less than that: the next waits must be shorter by the
/// excess, or the rate is missed by a multiple.
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

/// Account shared by downloads from one server.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    account: Arc<Mutex<Account>>,
}

impl Pace {
    /// Waits for the duration of `bytes`, less the excess of earlier waits.
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

/// Time account of a rate. Without a clock of its own.
#[derive(Debug)]
struct Account {
    rate: Bandwidth,
    /// When everything read so far would have arrived at exactly the rate; at most [`CREDIT`] before the
    /// time of the read.
    paid_until: Instant,
}

impl Account {
    fn new(rate: Bandwidth, now: Instant) -> Self {
        Self {
            rate,
            paid_until: now,
        }
    }

    /// When to continue after `bytes` read at `now`.
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
