//! Observations of loss recovery during a run that can't be derived from totals at its end. Written
//! by observers of a group's senders; `measures/repair.rs` computes measures from them.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use swiftwater_quic::observe::{Observation, Observer, ObserverFactory, Purpose, SentFrame};
use swiftwater_quic::policy::Copied;
use swiftwater_units::{Instant, Side};

use super::measures::{RepairFacts, TimeMeter};

/// Length of the budget's window, seconds.
const WINDOW: usize = 10;

/// Of a group of flows. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct RepairLog {
    /// The end of the warm-up: earlier events are excluded.
    from: Instant,
    /// The end of the connections that sends the data.
    sender: Side,
    observations: Arc<Mutex<RecoveryObservations>>,
}

#[derive(Debug, Default)]
struct RecoveryObservations {
    /// Recovery latencies of data whose first retransmission was lost, weighted by bytes.
    latencies: TimeMeter,
    longest: Option<Duration>,
    /// By connection.
    levels: Vec<Level>,
    /// By seconds since the end of the warm-up.
    seconds: Vec<Second>,
}

/// The redundancy level of a connection over time.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// The present level, and since when; `None` once the connection is closed.
    present: Option<(u32, Instant)>,
    /// Level times seconds, and seconds, of the time before.
    sum: f64,
    time: f64,
}

impl Level {
    /// Extends the present level up to `now`; then it becomes `next`.
    fn change(&mut self, now: Instant, from: Instant, next: Option<u32>) {
        if let Some((level, since)) = self.present {
            let lasted = now.saturating_since(since.max(from)).as_secs_f64();
            self.sum += f64::from(level) * lasted;
            self.time += lasted;
        }
        self.present = next.map(|level| (level, now));
    }
}

/// Stream bytes sent in a second.
#[derive(Clone, Copy, Debug, Default)]
struct Second {
    new: u64,
    replicas: u64,
}

impl RepairLog {
    /// A log of the connections in which `sender` sends the data, from `from` on.
    pub(super) fn new(from: Instant, sender: Side) -> Self {
        Self {
            from,
            sender,
            observations: Arc::default(),
        }
    }

    /// The result for a run that ends at `end`.
    pub(super) fn finish(&self, end: Instant) -> RepairFacts {
        let mut observations = self.observations();
        for level in &mut observations.levels {
            level.change(end, self.from, None);
        }
        let sum: f64 = observations.levels.iter().map(|level| level.sum).sum();
        let time: f64 = observations.levels.iter().map(|level| level.time).sum();
        let whole_seconds = end.saturating_since(self.from).as_secs();
        RepairFacts {
            level_mean: (time > 0.0).then(|| sum / time),
            budget_max: budget_max(&observations.seconds, whole_seconds as usize),
            latencies: std::mem::take(&mut observations.latencies),
            longest: observations.longest,
        }
    }

    fn observations(&self) -> MutexGuard<'_, RecoveryObservations> {
        // No code panics while it holds the lock.
        self.observations
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// The largest share of replica bytes in new bytes over any ten consecutive ones of the `whole`
/// seconds, or over all if there are fewer. Windows without new data don't count.
fn budget_max(seconds: &[Second], whole: usize) -> Option<f64> {
    let mut seconds = seconds.to_vec();
    if whole >= WINDOW {
        seconds.resize(whole, Second::default());
    }
    let share = |window: &[Second]| {
        let new: u64 = window.iter().map(|second| second.new).sum();
        let replicas: u64 = window.iter().map(|second| second.replicas).sum();
        (new > 0).then(|| replicas as f64 / new as f64)
    };
    if seconds.len() < WINDOW {
        return share(&seconds);
    }
    seconds.windows(WINDOW).filter_map(share).reduce(f64::max)
}

impl ObserverFactory for RepairLog {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        (side == self.sender).then(|| -> Box<dyn Observer> {
            let mut observations = self.observations();
            let index = observations.levels.len();
            observations.levels.push(Level {
                present: None,
                sum: 0.0,
                time: 0.0,
            });
            Box::new(RecoveryObserver {
                log: self.clone(),
                index,
                begun: false,
            })
        })
    }
}

/// The observer of one connection.
struct RecoveryObserver {
    log: RepairLog,
    index: usize,
    begun: bool,
}

impl fmt::Debug for RecoveryObserver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Listener").finish_non_exhaustive()
    }
}

impl RecoveryObserver {
    fn change(&self, now: Instant, next: Option<u32>) {
        let from = self.log.from;
        if let Some(level) = self.log.observations().levels.get_mut(self.index) {
            level.change(now, from, next);
        }
    }

    fn on_sent(&self, now: Instant, frames: &[SentFrame]) {
        if now < self.log.from {
            return;
        }
        let index = (now - self.log.from).as_secs() as usize;
        let mut observations = self.log.observations();
        if observations.seconds.len() <= index {
            observations.seconds.resize(index + 1, Second::default());
        }
        let second = &mut observations.seconds[index];
        for frame in frames {
            match *frame {
                SentFrame::Stream {
                    len,
                    purpose: Purpose::New,
                    ..
                } => second.new += u64::from(len),
                SentFrame::Stream {
                    len,
                    purpose: Purpose::Replica,
                    ..
                } => second.replicas += u64::from(len),
                _ => {}
            }
        }
    }
}

impl Observer for RecoveryObserver {
    fn observe(&mut self, now: Instant, observation: &Observation<'_>) {
        if !self.begun {
            self.begun = true;
            self.change(now, Some(0));
        }
        match observation {
            Observation::PacketSent { frames, .. } => self.on_sent(now, frames),
            Observation::DataRecovered {
                range,
                by,
                recovery_latency,
                ..
            } if now >= self.log.from => {
                if matches!(by, Copied::Original | Copied::Retransmission(1)) {
                    return;
                }
                let mut observations = self.log.observations();
                observations
                    .latencies
                    .add_weighed(*recovery_latency, range.len);
                observations.longest = observations.longest.max(Some(*recovery_latency));
            }
            Observation::Redundancy { report } => {
                self.change(now, Some(report.redundancy_level));
            }
            Observation::Closed { .. } => self.change(now, None),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Second, budget_max};

    #[test]
    fn the_largest_budget_is_that_of_ten_seconds() {
        let mut seconds = vec![
            Second {
                new: 100,
                replicas: 10
            };
            30
        ];
        // 1000 new and 190 replicas.
        seconds[12].replicas = 100;
        assert_eq!(budget_max(&seconds, 30), Some(0.19));
        // Replicas in a pause count with the data sent around it.
        seconds[13] = Second {
            new: 0,
            replicas: 81,
        };
        assert_eq!(budget_max(&seconds, 30), Some(0.29));
    }

    #[test]
    fn a_short_run_is_one_window_and_silence_none() {
        let seconds = [
            Second {
                new: 100,
                replicas: 10,
            },
            Second {
                new: 100,
                replicas: 0,
            },
        ];
        assert_eq!(budget_max(&seconds, 5), Some(0.05));
        assert_eq!(budget_max(&[], 5), None);
        assert_eq!(budget_max(&[], 50), None);
        // Seconds of silence at the end are part of the time.
        assert_eq!(budget_max(&seconds, 12), Some(0.05));
    }
}
