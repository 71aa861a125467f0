//! What replicas cost against new data, over the last seconds.

use std::collections::VecDeque;

use swiftwater_units::{ByteCount, Instant};

/// Seconds that are looked back on.
const WINDOW: u64 = 10;

#[derive(Clone, Copy, Debug, Default)]
struct Second {
    number: u64,
    new: u64,
    replicas: u64,
}

/// Bytes of new data and of replicas in a sliding window of 10 s, kept by the second.
#[derive(Clone, Debug, Default)]
pub struct Spending {
    seconds: VecDeque<Second>,
    new: u64,
    replicas: u64,
}

impl Spending {
    /// New data left.
    pub fn on_new(&mut self, now: Instant, size: ByteCount) {
        self.present(now).new += size.get();
        self.new += size.get();
    }

    /// A replica left.
    pub fn on_replica(&mut self, now: Instant, size: ByteCount) {
        self.present(now).replicas += size.get();
        self.replicas += size.get();
    }

    /// Replica bytes per byte of new data, as of the last event; `None` without new data.
    pub fn cost(&self) -> Option<f64> {
        (self.new > 0).then(|| self.replicas as f64 / self.new as f64)
    }

    fn present(&mut self, now: Instant) -> &mut Second {
        let number = now.saturating_since(Instant::ZERO).as_secs();
        while let Some(oldest) = self.seconds.front().copied()
            && oldest.number + WINDOW <= number
        {
            self.seconds.pop_front();
            self.new -= oldest.new;
            self.replicas -= oldest.replicas;
        }
        if self.seconds.back().is_none_or(|last| last.number < number) {
            self.seconds.push_back(Second {
                number,
                ..Second::default()
            });
        }
        let last = self.seconds.len() - 1;
        &mut self.seconds[last]
    }
}
