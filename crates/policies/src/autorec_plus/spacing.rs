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

    /// The gap before copy `nth`, 0 being the first; `None` if there is no such copy.
    pub fn gap(&self, nth: usize) -> Option<Duration> {
        (nth < self.copies).then(|| self.gaps[nth])
    }
}

/// What copies are planned for.
#[derive(Clone, Copy, Debug)]
pub struct Spacing<'a> {
    /// Conditional loss of the path.
    pub loss: &'a ConditionalLoss,
    /// Share of packets that it loses, 0 to 1.
    pub loss_rate: f64,
    /// Time from a transmission to the detection of its loss.
    pub detection_time: Duration,
    /// Least gap.
    pub min_gap: Duration,
    /// What a second detection costs beyond its share of the mean latency, in detection times.
    pub tail_weight: f64,
}

/// Rounding of expected latencies, seconds: no plan is passed over for as little.
const ROUNDING: f64 = 1e-8;

impl Spacing<'_> {
    /// The plan of `copies` copies with the least expected latency, the weight of second detections
    /// included. Gaps are at least `min_gap`, and the copies are all sent within the detection time:
    /// later ones would come after plain retransmission.
    pub fn plan(&self, copies: usize) -> Plan {
        let copies = copies.min(MAX_COPIES);
        // Even spacing is AutoRec's; it is what remains where not even short gaps fit.
        let even = self.detection_time / (copies as u32 + 1);
        let mut gaps = [Duration::ZERO; MAX_COPIES];
        gaps[..copies].fill(even);
        let mut best = self.evaluate(gaps, copies);
        let mut least = self.score(&best);
        if copies == 0 {
            return best;
        }
        for first in ConditionalLoss::lags() {
            let first = first.max(self.min_gap);
            if first.as_secs_f64() > least + ROUNDING || first * copies as u32 > self.detection_time
            {
                // Nor would a longer one do.
                break;
            }
            for growth in GROWTHS {
                let Some(gaps) = growing(copies, first, growth, self.detection_time) else {
                    break;
                };
                let plan = self.evaluate(gaps, copies);
                let score = self.score(&plan);
                if score < least {
                    (best, least) = (plan, score);
                }
                if copies == 1 {
                    break;
                }
            }
        }
        best
    }

    /// What a plan is chosen by, the less the better, in seconds: the mean latency, and the tail.
    fn score(&self, plan: &Plan) -> f64 {
        let tail = self.tail_weight * plan.residual_loss * self.detection_time.as_secs_f64();
        plan.expected_latency.as_secs_f64() + tail
    }

    fn evaluate(&self, gaps: [Duration; MAX_COPIES], copies: usize) -> Plan {
        let mut latency = 0.0;
        // Probability that all copies so far were lost.
        let mut reached = 1.0;
        for gap in &gaps[..copies] {
            latency += reached * gap.as_secs_f64();
            reached *= self.loss.after(*gap);
        }
        let again = self.detection_time.as_secs_f64() / (1.0 - self.loss_rate.clamp(0.0, 0.99));
        latency += reached * again;
        Plan {
            gaps,
            copies,
            expected_latency: Duration::from_secs_f64(latency),
            residual_loss: reached,
        }
    }
}

/// Gaps that start with `first` and are multiplied by `growth` from one to the next; `None` if the
/// copies need more than `within`.
fn growing(
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
        if all > within {
            return None;
        }
        gap = gap.mul_f64(growth);
    }
    Some(gaps)
}
