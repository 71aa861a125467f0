//! Time series of a showing: samples at a fixed interval.

use swiftwater_media::player::PlayerState;

use super::row::milliseconds;
use super::variant::Variant;

/// Samples over which loss is averaged: two seconds.
const WINDOW: usize = 20;

/// One sample of a variant. Counters count from the start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Seconds since the viewer's request.
    pub at: f64,
    /// Play time in the buffer.
    pub buffer_ms: f64,
    /// State of the player; `None` before the first frame.
    pub state: Option<PlayerState>,
    /// Replicas per lost data range that the policy permits.
    pub level: u32,
    /// Packets sent on the link to the viewer, and those that it lost.
    pub packets: (u64, u64),
}

impl Sample {
    /// The present state of a variant.
    pub fn of(variant: &Variant) -> Self {
        let level = variant.stats().reinjector.redundancy_level;
        let link = variant.link();
        let viewer = variant.viewer();
        // Read under the lock, so that the time is not before the last frame.
        let now = variant.now();
        Self {
            at: now.saturating_since(viewer.asked()).as_secs_f64(),
            buffer_ms: milliseconds(viewer.buffered(now)),
            state: viewer.state(now),
            level,
            packets: (link.enqueued.packets.get(), link.dropped().packets.get()),
        }
    }
}

/// The link's loss in percent over the two seconds before each sample, with the sample's time;
/// intervals without packets have no point.
pub fn loss(samples: &[Sample]) -> Vec<(f64, f64)> {
    let mut points = Vec::with_capacity(samples.len());
    for (n, sample) in samples.iter().enumerate() {
        let before = n.checked_sub(WINDOW).map_or((0, 0), |n| samples[n].packets);
        let sent = sample.packets.0 - before.0;
        let lost = sample.packets.1 - before.1;
        if sent > 0 {
            points.push((sample.at, 100.0 * lost as f64 / sent as f64));
        }
    }
    points
}
