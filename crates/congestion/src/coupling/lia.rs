//! The Linked Increases Algorithm (RFC 6356, section 3).
//!
//! For each ACK on path `i` the window grows by
//! `min(alpha * acked * MSS_i / cwnd_total, acked * MSS_i / cwnd_i)` with
//! `alpha = cwnd_total * max(cwnd_p / rtt_p^2) / (sum(cwnd_p / rtt_p))^2`. Over Reno's increase, which
//! is the second term, that is `min(1, cwnd_i * max(cwnd_p / rtt_p^2) / (sum(cwnd_p / rtt_p))^2)`.

use super::CoupledPath;

/// The growth of path `of` among the `paths` in use, over that of a single path: above 0, at most 1.
pub(super) fn scale<'a, I>(of: &CoupledPath, paths: impl Fn() -> I) -> f64
where
    I: Iterator<Item = &'a CoupledPath>,
{
    let best = paths()
        .map(|path| path.window / (path.rtt * path.rtt))
        .fold(0.0, f64::max);
    let rate: f64 = paths().map(|path| path.window / path.rtt).sum();
    (of.window * best / (rate * rate)).min(1.0)
}
