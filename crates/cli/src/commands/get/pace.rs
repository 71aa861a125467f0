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
    servers: Mutex<BTreeMap<String, Arc<Mutex<Instant>>>>,
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
        let paid_until = servers
            .entry(server)
            .or_insert_with(|| Arc::new(Mutex::new(Instant::now())));
        Pace {
            rate: self.rate,
            paid_until: Arc::clone(paid_until),
        }
    }
}

/// What downloads from one server share.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    rate: Bandwidth,
    /// When everything that was read so far would have come at exactly the rate; at most [`CREDIT`] ago.
    paid_until: Arc<Mutex<Instant>>,
}

impl Pace {
    /// Waits as long as `bytes` take, less what earlier waits took too long.
    pub(super) async fn spend(&self, bytes: usize) {
        let bits = bytes as f64 * 8.0;
        let takes = Duration::try_from_secs_f64(bits / self.rate.as_bps().max(1) as f64);
        let now = Instant::now();
        let until = {
            let mut paid_until = self
                .paid_until
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            let earliest = now.checked_sub(CREDIT).unwrap_or(now);
            *paid_until = (*paid_until).max(earliest) + takes.unwrap_or(LONGEST).min(LONGEST);
            *paid_until
        };
        if until > now {
            sleep_until(until).await;
        }
    }
}

#[cfg(test)]
mod tests;
