//! How many copies, and when: the expected recovery latency of a plan of copies under a conditional
//! loss curve.
//!
//! AutoRec's formula F assumes independent losses and even spacing over the detection time. Here the
//! gaps are free, and each copy is lost with the probability that the curve gives for its distance
//! from the one before. With the curve of independent losses and even gaps the two agree.

use std::time::Duration;

use super::correlation::ConditionalLoss;

/// Most copies of a data range in one round.
pub const MAX_COPIES: usize = 10;

/// What a second detection costs beyond its share of the mean latency, in detection times: it is what
/// a viewer notices.
const TAIL_WEIGHT: f64 = 4.0;

/// By how much each gap is longer than the one before.
const GROWTHS: [f64; 4] = [1.0, 1.5, 2.0, 3.0];

/// When the copies of a data range are sent: the gaps from the retransmission to the first, from the first
/// to the second, and so on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Plan {
    gaps: [Duration; MAX_COPIES],
    copies: usize,
    /// Expected recovery latency of a data range whose retransmission was lost.
    pub expected_latency: Duration,
    /// Probability that all copies are lost if the retransmission was.
    pub residual_loss: f64,
}

impl Plan {
    /// Copies in it.
    pub fn copies(&self) -> usize {
        self.copies
    }

    /// What the plan is chosen by, the less the better: the mean latency, and the tail.
    fn score(&self, detection_time: Duration) -> f64 {
        let tail = TAIL_WEIGHT * self.residual_loss * detection_time.as_secs_f64();
        self.expected_latency.as_secs_f64() + tail
    }

    /// The gap before copy `nth`, 0 being the first; `None` if there is no such copy.
    pub fn gap(&self, nth: usize) -> Option<Duration> {
        (nth < self.copies).then(|| self.gaps[nth])
    }
}

/// The plan with the least expected latency for `copies` copies, on a path whose losses are detected
/// after `detection_time`. Gaps are at least `min_gap`, and the copies are all sent within the
/// detection time: later ones would come after plain retransmission.
pub fn plan(
    copies: usize,
    loss: &ConditionalLoss,
    loss_rate: f64,
    detection_time: Duration,
    min_gap: Duration,
) -> Plan {
    let copies = copies.min(MAX_COPIES);
    if copies == 0 {
        let none = [Duration::ZERO; MAX_COPIES];
        return evaluate(none, 0, loss, loss_rate, detection_time);
    }
    // Even spacing is AutoRec's; it is what remains where not even short gaps fit.
    let even = detection_time / (copies as u32 + 1);
    let mut best = evaluate([even; MAX_COPIES], copies, loss, loss_rate, detection_time);
    for first in ConditionalLoss::lags() {
        let first = first.max(min_gap);
        for growth in GROWTHS {
            let Some(gaps) = gaps(copies, first, growth, detection_time) else {
                continue;
            };
            let plan = evaluate(gaps, copies, loss, loss_rate, detection_time);
            if plan.score(detection_time) < best.score(detection_time) {
                best = plan;
            }
        }
    }
    best
}

/// Gaps that start with `first` and are multiplied by `growth` from one to the next; `None` if the
/// copies need more than `within`.
fn gaps(
    copies: usize,
    first: Duration,
    growth: f64,
    within: Duration,
) -> Option<[Duration; MAX_COPIES]> {
    let mut gaps = [Duration::ZERO; MAX_COPIES];
    let (mut gap, mut all) = (first, Duration::ZERO);
    for slot in &mut gaps[..copies] {
        *slot = gap;
        all += gap;
        gap = gap.mul_f64(growth);
    }
    (all <= within).then_some(gaps)
}

fn evaluate(
    gaps: [Duration; MAX_COPIES],
    copies: usize,
    loss: &ConditionalLoss,
    loss_rate: f64,
    detection_time: Duration,
) -> Plan {
    let mut latency = 0.0;
    // Probability that all copies so far were lost.
    let mut reached = 1.0;
    for gap in &gaps[..copies] {
        latency += reached * gap.as_secs_f64();
        reached *= loss.after(*gap);
    }
    let again = detection_time.as_secs_f64() / (1.0 - loss_rate.clamp(0.0, 0.99));
    latency += reached * again;
    Plan {
        gaps,
        copies,
        expected_latency: Duration::from_secs_f64(latency),
        residual_loss: reached,
    }
}
