//! The capacity of a link over a time interval.

use std::time::Duration;

use swiftwater_link::{LinkConfig, Rate, Trace};

/// Bytes that the link could carry from `from` to `to` (since the start of the run); `None` if its
/// rate is unlimited or unknown.
pub(super) fn bytes(link: &LinkConfig, from: Duration, to: Duration) -> Option<f64> {
    match &link.rate {
        Rate::Unlimited => None,
        Rate::Constant(rate) => {
            Some(rate.as_bps() as f64 / 8.0 * to.saturating_sub(from).as_secs_f64())
        }
        Rate::Trace(trace) => {
            let until = |time| carried(trace, time);
            let offset = link.trace_offset;
            Some(until(to + offset)? - until(from + offset)?)
        }
    }
}

/// Bytes that a trace, which repeats, permits in its first `time`. For packet opportunities, whose
/// times are unknown here, by their mean rate.
fn carried(trace: &Trace, time: Duration) -> Option<f64> {
    let mean = trace.mean_rate()?.as_bps() as f64 / 8.0;
    let period = trace.period();
    if period.is_zero() {
        return Some(mean * time.as_secs_f64());
    }
    let rounds = (time.as_nanos() / period.as_nanos()) as u32;
    let rest = time.saturating_sub(period * rounds);
    let mut bytes = mean * (period * rounds).as_secs_f64();
    let mut samples = trace.samples().peekable();
    if samples.peek().is_none() {
        return Some(bytes + mean * rest.as_secs_f64());
    }
    while let Some(sample) = samples.next().filter(|sample| sample.at < rest) {
        let until = samples.peek().map_or(period, |next| next.at).min(rest);
        let rate = sample.rate?.as_bps() as f64 / 8.0;
        bytes += rate * until.saturating_sub(sample.at).as_secs_f64();
    }
    Some(bytes)
}
