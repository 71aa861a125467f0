//! `quic:recovery_metrics_updated`: only the values that changed since the path's last event.

use std::time::Duration;

use serde::Serialize;
use swiftwater_units::PathId;

use crate::text::millis;

/// Paths whose last values are stored. Beyond it the oldest is evicted, whose next event is then
/// complete again.
const MAX_PATHS: usize = 16;

/// The state of recovery of a path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Metrics {
    pub(crate) min_rtt: Duration,
    pub(crate) smoothed_rtt: Duration,
    pub(crate) latest_rtt: Duration,
    pub(crate) rtt_variance: Duration,
    pub(crate) pto_count: u32,
    pub(crate) congestion_window: u64,
    pub(crate) bytes_in_flight: u64,
    pub(crate) ssthresh: Option<u64>,
    /// Bits per second.
    pub(crate) pacing_rate: Option<u64>,
}

#[derive(Serialize)]
pub(crate) struct MetricsUpdated {
    #[serde(skip_serializing_if = "Option::is_none")]
    min_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smoothed_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_rtt: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_variance: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pto_count: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_in_flight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ssthresh: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pacing_rate: Option<u64>,
}

/// The last values of each path.
#[derive(Debug, Default)]
pub(crate) struct Memory {
    paths: Vec<(PathId, Metrics)>,
}

impl Memory {
    /// The changed values of `metrics`; `None` if there are none.
    pub(crate) fn update(&mut self, path: PathId, metrics: Metrics) -> Option<MetricsUpdated> {
        let known = self.paths.iter_mut().find(|(known, _)| *known == path);
        let last = known.map(|(_, last)| std::mem::replace(last, metrics));
        if last.is_none() {
            if self.paths.len() == MAX_PATHS {
                self.paths.remove(0);
            }
            self.paths.push((path, metrics));
        }
        if last == Some(metrics) {
            return None;
        }
        let rtt = |of: fn(&Metrics) -> Duration| changed(last, metrics, of).map(millis);
        Some(MetricsUpdated {
            min_rtt: rtt(|metrics| metrics.min_rtt),
            smoothed_rtt: rtt(|metrics| metrics.smoothed_rtt),
            latest_rtt: rtt(|metrics| metrics.latest_rtt),
            rtt_variance: rtt(|metrics| metrics.rtt_variance),
            pto_count: changed(last, metrics, |metrics| metrics.pto_count)
                .map(|count| u16::try_from(count).unwrap_or(u16::MAX)),
            congestion_window: changed(last, metrics, |metrics| metrics.congestion_window),
            bytes_in_flight: changed(last, metrics, |metrics| metrics.bytes_in_flight),
            ssthresh: changed(last, metrics, |metrics| metrics.ssthresh).flatten(),
            pacing_rate: changed(last, metrics, |metrics| metrics.pacing_rate).flatten(),
        })
    }
}

/// A field of `now`, unless `last` has the same.
fn changed<T: PartialEq>(last: Option<Metrics>, now: Metrics, of: fn(&Metrics) -> T) -> Option<T> {
    let value = of(&now);
    (last.is_none_or(|last| of(&last) != value)).then_some(value)
}
