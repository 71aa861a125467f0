//! The Opportunistic Linked Increases Algorithm (draft-khalili-mptcp-congestion-control-05, section 3;
//! Khalili et al., *MPTCP is not Pareto-optimal*, CoNEXT 2012).
//!
//! For each ACK on path `r` the window changes by
//! `((w_r / rtt_r^2) / (sum(w_p / rtt_p))^2 + alpha_r / w_r) * MSS_r * acked`. Over Reno's increase,
//! `MSS_r * acked / w_r`, that is `(w_r / rtt_r)^2 / (sum(w_p / rtt_p))^2 + alpha_r`.
//!
//! `alpha` moves window to the *collected* paths: those that are best, but haven't the largest window.
//! With `n` paths it is `1 / (n * |collected|)` on each of these, `-1 / (n * |largest|)` on each path
//! with the largest window, and 0 on the others, or on all if no path is collected. A path is best if
//! `l_p / rtt_p^2` is the largest, where `l_p` is the larger of the bytes acknowledged since the last
//! loss and those between the last two: the square of what a flow in congestion avoidance gets at a
//! loss rate of `1 / l_p`, and the measure of the authors' implementation.

use super::CoupledPath;

impl CoupledPath {
    /// `l_p / rtt_p^2`.
    fn quality(&self) -> f64 {
        let distance = self.since_event.max(self.between_events);
        distance.get() as f64 / (self.rtt * self.rtt)
    }
}

/// True if `value` is the largest, up to rounding.
fn is_largest(value: f64, largest: f64) -> bool {
    value >= largest * (1.0 - 1e-9)
}

/// The growth of path `of` among the `paths` in use, over that of a single path: -1 to 2.
pub(super) fn scale<'a, I>(of: &CoupledPath, paths: impl Fn() -> I) -> f64
where
    I: Iterator<Item = &'a CoupledPath>,
{
    let rate: f64 = paths().map(|path| path.window / path.rtt).sum();
    let share = of.window / of.rtt / rate;
    share * share + alpha(of, paths)
}

fn alpha<'a, I>(of: &CoupledPath, paths: impl Fn() -> I) -> f64
where
    I: Iterator<Item = &'a CoupledPath>,
{
    let largest = paths().map(|path| path.window).fold(0.0, f64::max);
    let best = paths().map(CoupledPath::quality).fold(0.0, f64::max);
    let has_largest = |path: &CoupledPath| is_largest(path.window, largest);
    let is_collected = |path: &CoupledPath| !has_largest(path) && is_largest(path.quality(), best);
    let count = |which: &dyn Fn(&CoupledPath) -> bool| paths().filter(|path| which(path)).count();
    let collected = count(&is_collected);
    let all = paths().count();
    if collected == 0 {
        0.0
    } else if is_collected(of) {
        1.0 / (all * collected) as f64
    } else if has_largest(of) {
        -1.0 / (all * count(&has_largest)) as f64
    } else {
        0.0
    }
}
