//! Splitting data so that all paths finish at the same time.
//!
//! Chorus (MobiCom 2024) splits `S` bytes between a fast and a slow path so that both finish together (Eq. 6):
//! `alpha * S / B_f + RTT_f = (1 - alpha) * S / B_s + RTT_s`, hence (Eq. 7)
//! `alpha = B_f / (B_f + B_s) + B_f * B_s * (RTT_s - RTT_f) / (S * (B_f + B_s))`, clipped to 0..1. For any number
//! of paths that is the finish time `T` for which `sum(B_i * max(T - d_i, 0)) = S`, where `B_i` is the rate of
//! path `i` and `d_i` the delay before its first byte arrives; its share is `B_i * max(T - d_i, 0)`.

/// What a path delivers, and from when on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathCapacity {
    /// Bytes per second, above 0.
    pub rate: f64,
    /// Seconds until the first byte arrives.
    pub delay: f64,
}

impl PathCapacity {
    /// Bytes that arrive until `finish` seconds from now.
    pub fn share(&self, finish: f64) -> f64 {
        self.rate * (finish - self.delay).max(0.0)
    }
}

/// Seconds until `bytes` are delivered if they are split over `paths` so that all finish together, and
/// paths that would finish later carry nothing; `None` without paths. Sorts the paths by delay.
pub fn finish_time(bytes: f64, paths: &mut [PathCapacity]) -> Option<f64> {
    paths.sort_unstable_by(|a, b| a.delay.total_cmp(&b.delay));
    let (mut rate, mut head_start) = (0.0, 0.0);
    let mut finish = None;
    for path in paths {
        if finish.is_some_and(|finish| finish <= path.delay) {
            break;
        }
        rate += path.rate;
        head_start += path.rate * path.delay;
        finish = Some((bytes + head_start) / rate);
    }
    finish
}
