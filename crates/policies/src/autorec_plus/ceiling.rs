//! No more than AutoRec: a pool of bytes that AutoRec's own decisions fill.
//!
//! AutoRec's redundancy adapter runs along, with the same tolerances on the same measurements. Each
//! time that it would grant a lost datum K replicas, the pool gets their bytes; copies are paid from
//! it. So the cost is AutoRec's at most, while what was saved on one datum may go to another.

use std::time::Duration;

use swiftwater_quic::policy::{Datum, PacketOutcome, PathView};
use swiftwater_units::Instant;

use super::config::AutoRecPlusConfig;
use crate::autorec::{AutoRecConfig, RedundancyAdapter, Tolerances};

/// AutoRec doesn't get to send all replicas that it grants: some data are recovered before. This
/// much of them goes into the pool.
const SENT_SHARE: f64 = 0.97;

/// Most copies of a datum that are saved up.
const MOST_SAVED: f64 = 64.0;

/// Weight of a lost datum in the mean level.
const LEVEL_GAIN: f64 = 1.0 / 32.0;

/// See the module's documentation.
#[derive(Debug)]
pub(super) struct Ceiling {
    config: AutoRecConfig,
    adapter: RedundancyAdapter,
    pool: f64,
    mean_level: Option<f64>,
}

fn shadow(config: &AutoRecPlusConfig) -> AutoRecConfig {
    AutoRecConfig {
        tolerances: Tolerances {
            alpha: config.alpha,
            beta: config.beta,
            gamma: config.gamma,
        },
        max_level: config.max_level,
        ..AutoRecConfig::paper()
    }
}

impl Ceiling {
    pub(super) fn new(config: &AutoRecPlusConfig) -> Self {
        let config = shadow(config);
        Self {
            adapter: RedundancyAdapter::new(&config),
            config,
            pool: 0.0,
            mean_level: None,
        }
    }

    /// The tolerances have changed.
    pub(super) fn apply(&mut self, config: &AutoRecPlusConfig) {
        self.config = shadow(config);
        self.adapter.apply(&self.config);
    }

    pub(super) fn on_outcomes(
        &mut self,
        now: Instant,
        outcomes: &[PacketOutcome],
        path: &PathView,
    ) {
        self.adapter
            .on_outcomes(now, outcomes, path.smoothed_rtt, &self.config);
    }

    /// A datum was retransmitted for the first time.
    pub(super) fn on_first_retransmission(&mut self, datum: Datum, detection_time: Duration) {
        self.adapter.on_detection(detection_time);
        let level = f64::from(self.adapter.decision().level);
        let len = f64::from(datum.len);
        self.pool = (self.pool + SENT_SHARE * level * len).min(MOST_SAVED * len.max(1200.0));
        self.mean_level = Some(match self.mean_level {
            None => level,
            Some(mean) => mean + LEVEL_GAIN * (level - mean),
        });
    }

    /// Copies per lost datum that AutoRec grants on average, rounded up.
    pub(super) fn level(&self) -> usize {
        let mean = self
            .mean_level
            .unwrap_or(0.0)
            .max(f64::from(self.adapter.decision().level));
        libm::ceil(mean - 0.01).max(0.0) as usize
    }

    /// Bytes in the pool, those that were granted and didn't leave yet taken off.
    pub(super) fn room(&self, pending: u64) -> u64 {
        (self.pool as u64).saturating_sub(pending)
    }

    pub(super) fn on_replica(&mut self, bytes: u64) {
        self.pool = (self.pool - bytes as f64).max(0.0);
    }
}
