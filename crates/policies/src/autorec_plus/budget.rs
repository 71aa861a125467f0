//! The hard budget: never more than a share of what is sent for the first time, in any window of ten
//! seconds.

use std::collections::VecDeque;
use std::time::Duration;

use swiftwater_units::Instant;

/// The window in which the share is kept.
const WINDOW: Duration = Duration::from_secs(10);

/// Granularity of the accounts.
const BUCKET: Duration = Duration::from_millis(250);

#[derive(Clone, Copy, Debug)]
struct Bucket {
    start: Instant,
    new_bytes: u64,
    replica_bytes: u64,
}

/// Accounts of the last ten seconds. Costs O(1) per event and at most 41 entries.
#[derive(Debug, Default)]
pub struct Budget {
    buckets: VecDeque<Bucket>,
    new_bytes: u64,
    replica_bytes: u64,
}

impl Budget {
    /// Nothing sent yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// `bytes` left for the first time.
    pub fn on_new_data(&mut self, now: Instant, bytes: u64) {
        self.new_bytes += bytes;
        self.bucket(now).new_bytes += bytes;
    }

    /// A copy of `bytes` left.
    pub fn on_replica(&mut self, now: Instant, bytes: u64) {
        self.replica_bytes += bytes;
        self.bucket(now).replica_bytes += bytes;
    }

    /// Bytes of copies that may leave now under a share of `share`, `pending` bytes of copies that
    /// were granted and didn't leave yet taken off.
    pub fn room(&mut self, now: Instant, share: f64, pending: u64) -> u64 {
        self.expire(now);
        let granted = (share * self.new_bytes as f64) as u64;
        granted.saturating_sub(self.replica_bytes + pending)
    }

    /// Share of `share` that is used up, 0 to 1 or a little more if the rate just fell.
    pub fn used(&self, share: f64) -> f64 {
        let granted = share * self.new_bytes as f64;
        if granted > 0.0 {
            self.replica_bytes as f64 / granted
        } else {
            0.0
        }
    }

    fn bucket(&mut self, now: Instant) -> &mut Bucket {
        self.expire(now);
        let is_current = |bucket: &Bucket| now.saturating_since(bucket.start) < BUCKET;
        if !self.buckets.back().is_some_and(is_current) {
            self.buckets.push_back(Bucket {
                start: now,
                new_bytes: 0,
                replica_bytes: 0,
            });
        }
        let last = self.buckets.len() - 1;
        &mut self.buckets[last]
    }

    fn expire(&mut self, now: Instant) {
        while let Some(first) = self.buckets.front()
            && now.saturating_since(first.start) >= WINDOW
        {
            self.new_bytes -= first.new_bytes;
            self.replica_bytes -= first.replica_bytes;
            self.buckets.pop_front();
        }
    }
}
