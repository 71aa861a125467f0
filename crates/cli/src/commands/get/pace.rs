//! `--limit-rate` over TCP: content is read no faster than that, and flow control does the rest. (Over
//! QUIC, the transport itself asks for no more.)

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use swiftwater::units::Bandwidth;
use tokio::time::{Instant, sleep_until};

/// What no wait exceeds: a block at one bit per second takes less.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

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
        let free = servers
            .entry(server)
            .or_insert_with(|| Arc::new(Mutex::new(Instant::now())));
        Pace {
            rate: self.rate,
            free: Arc::clone(free),
        }
    }
}

/// What downloads from one server share.
#[derive(Clone, Debug)]
pub(super) struct Pace {
    rate: Bandwidth,
    /// When the next bytes may be read.
    free: Arc<Mutex<Instant>>,
}

impl Pace {
    /// Waits as long as `bytes` take.
    pub(super) async fn spend(&self, bytes: usize) {
        let bits = bytes as f64 * 8.0;
        let takes = Duration::try_from_secs_f64(bits / self.rate.as_bps().max(1) as f64);
        let until = {
            let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
            *free = (*free).max(Instant::now()) + takes.unwrap_or(LONGEST);
            *free
        };
        sleep_until(until).await;
    }
}
