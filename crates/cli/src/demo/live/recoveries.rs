//! Recovery latencies of a connection, each one recorded: statistics of the transport have only their
//! mean and maximum.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use swiftwater::quic::observe::{Observation, Observer, ObserverFactory};
use swiftwater::quic::policy::Copied;
use swiftwater::units::{Instant, Side};

/// Most latencies recorded; a showing on a link that loses every second packet has a tenth of it.
const MAX_KEPT: usize = 200_000;

/// One data range whose first retransmission was lost.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Recovered {
    /// From its first retransmission to the sending of the copy that arrived first.
    pub latency: Duration,
    /// Its bytes.
    pub bytes: u32,
}

/// Observer of servers' connections; clones share the collected data.
#[derive(Clone, Debug, Default)]
pub struct Recoveries {
    collected: Arc<Mutex<Vec<Recovered>>>,
}

impl Recoveries {
    fn lock(&self) -> MutexGuard<'_, Vec<Recovered>> {
        // Entries are complete even if a thread panicked while it held the lock.
        self.collected
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// All so far, in ascending order.
    pub fn sorted(&self) -> Vec<Recovered> {
        let mut all = self.lock().clone();
        all.sort_unstable();
        all
    }
}

impl ObserverFactory for Recoveries {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        (side == Side::Server).then(|| Box::new(self.clone()) as Box<dyn Observer>)
    }
}

impl Observer for Recoveries {
    fn observe(&mut self, _now: Instant, observation: &Observation<'_>) {
        // The same data as `RepairStats::repeated_bytes`.
        if let Observation::DataRecovered {
            range,
            by: Copied::Replica | Copied::Retransmission(2..),
            recovery_latency,
            ..
        } = observation
        {
            let mut collected = self.lock();
            if collected.len() < MAX_KEPT {
                collected.push(Recovered {
                    latency: *recovery_latency,
                    bytes: range.len,
                });
            }
        }
    }
}

/// The latency that is not exceeded for a share `share` (0 to 1) of the bytes of `sorted`; `None` if
/// there are none.
pub fn quantile(sorted: &[Recovered], share: f64) -> Option<Duration> {
    let total: f64 = sorted.iter().map(|one| f64::from(one.bytes)).sum();
    let mut below = 0.0;
    for one in sorted {
        below += f64::from(one.bytes);
        if below >= share * total {
            return Some(one.latency);
        }
    }
    sorted.last().map(|last| last.latency)
}

/// Mean latency, weighted by bytes.
pub fn mean(sorted: &[Recovered]) -> Option<Duration> {
    let total: f64 = sorted.iter().map(|one| f64::from(one.bytes)).sum();
    let sum: f64 = sorted
        .iter()
        .map(|one| one.latency.as_secs_f64() * f64::from(one.bytes))
        .sum();
    (total > 0.0).then(|| Duration::from_secs_f64(sum / total))
}
