//! The decision problem of Hairpin and its table of solutions, by value iteration.
//!
//! A state is (l, n): l rounds of transmission left before the deadline, n packets of the frame
//! still missing. The action is m, the repair packets sent with the n. If no more than m of the n +
//! m packets are lost, the frame is complete; else those of the n that were lost remain for the
//! next round. A frame that is still incomplete after its last round costs 1, a repair packet costs
//! λ/S for a frame of S packets.

use std::sync::OnceLock;

use thiserror::Error;

/// Most missing packets in a state of the table.
pub const MAX_MISSING: usize = 55;
/// Most rounds in a state of the table.
pub const MAX_ROUNDS: usize = 15;
/// The table's frame sizes are multiples of this many packets.
const SIZE_STEP: usize = 5;
const SIZES: usize = MAX_MISSING / SIZE_STEP;
/// The table's loss rates: 0 to 50 % in steps of 1 %.
const LOSS_RATES: usize = 51;

/// The candidate numbers of repair packets for `n` packets: `n` times 0, 5 %, 10 % ... 95 %, 1, 2,
/// 3, 4 and 5, rounded to the nearest, each number once, rising.
pub fn candidates(n: usize) -> Vec<usize> {
    let parts = (0..20).map(|step| (n * step + 10) / 20);
    let mut all: Vec<usize> = parts.chain((1..=5).map(|factor| n * factor)).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// The best actions for one loss rate and frame size.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// `repairs[l - 1][n - 1]` for l rounds left and n packets missing.
    pub repairs: Vec<Vec<u16>>,
    /// The value of the same states: minus (probability of a miss + λ * repair packets / S).
    pub values: Vec<Vec<f64>>,
}

/// Solves the problem for packets lost independently with probability `loss` (0 to 1), frames of
/// `size` packets (at least 1) and the weight `lambda` of cost, for up to `rounds` rounds and
/// `missing` packets. Of equally good actions, the cheapest.
pub fn solve(loss: f64, size: usize, lambda: f64, rounds: usize, missing: usize) -> Solution {
    let transitions: Vec<_> = (1..=missing).map(|n| Transitions::new(n, loss)).collect();
    let price = lambda / size.max(1) as f64;
    let mut solution = Solution {
        repairs: Vec::with_capacity(rounds),
        values: Vec::with_capacity(rounds),
    };
    let mut after: Vec<f64> = vec![-1.0; missing];
    for _ in 0..rounds {
        let best: Vec<(u16, f64)> = transitions.iter().map(|t| t.best(&after, price)).collect();
        after = best.iter().map(|&(_, value)| value).collect();
        let repairs = best.iter().map(|&(repairs, _)| repairs).collect();
        solution.repairs.push(repairs);
        solution.values.push(after.clone());
    }
    solution
}

/// Transition probabilities of n packets, for each action.
struct Transitions {
    /// The action and the probabilities that 1, 2 ... n packets remain after it.
    actions: Vec<(u16, Vec<f64>)>,
}

impl Transitions {
    fn new(n: usize, loss: f64) -> Self {
        let data = binomial(n, loss);
        let actions = candidates(n).into_iter().map(|m| {
            let at_least = tail(&binomial(m, loss));
            // n' packets remain if they are lost and, with them, more packets than m in all: at
            // least m + 1 - n' repair packets.
            let remain = |left: usize| {
                let repairs = (m + 1).saturating_sub(left);
                data[left] * at_least.get(repairs).copied().unwrap_or(0.0)
            };
            (m as u16, (1..=n).map(remain).collect())
        });
        Self {
            actions: actions.collect(),
        }
    }

    fn best(&self, after: &[f64], price: f64) -> (u16, f64) {
        let mut best = (0, f64::NEG_INFINITY);
        for (repairs, remain) in &self.actions {
            let expected: f64 = remain.iter().zip(after).map(|(p, v)| p * v).sum();
            let value = expected - price * f64::from(*repairs);
            if value > best.1 {
                best = (*repairs, value);
            }
        }
        best
    }
}

/// Probabilities of 0, 1 ... n successes in n trials. Multiplication and addition only, so that
/// every platform gets the same bits.
fn binomial(n: usize, p: f64) -> Vec<f64> {
    let mut row = vec![1.0];
    for trial in 0..n {
        row.push(0.0);
        for k in (0..=trial).rev() {
            row[k + 1] += row[k] * p;
            row[k] *= 1.0 - p;
        }
    }
    row
}

/// `tail[k]` = probability of at least k.
fn tail(row: &[f64]) -> Vec<f64> {
    let mut tail = row.to_vec();
    for k in (0..tail.len().saturating_sub(1)).rev() {
        tail[k] += tail[k + 1];
    }
    tail
}

/// The weight of cost is not a positive number.
#[derive(Clone, Copy, Debug, Error, PartialEq)]
#[error("lambda is {0}; it must be a positive number, such as 1e-4")]
pub struct InvalidLambda(pub f64);

/// Solutions for all loss rates and frame sizes at one λ, each computed on first use. Intended to
/// be shared, in an `Arc`, by all sessions of a process; solutions do not depend on when they are
/// computed.
#[derive(Debug)]
pub struct HairpinTable {
    lambda: f64,
    solutions: Vec<OnceLock<Vec<Vec<u16>>>>,
}

impl HairpinTable {
    /// A table for the weight `lambda` of cost; the paper has 1e-1 (LC), 1e-4 (standard), 1e-7 (HC).
    pub fn new(lambda: f64) -> Result<Self, InvalidLambda> {
        if !(lambda.is_finite() && lambda > 0.0) {
            return Err(InvalidLambda(lambda));
        }
        let solutions = (0..LOSS_RATES * SIZES).map(|_| OnceLock::new()).collect();
        Ok(Self { lambda, solutions })
    }

    /// The weight of cost.
    pub fn lambda(&self) -> f64 {
        self.lambda
    }

    /// How many repair packets to send with `missing` packets of a frame of `size` when `rounds`
    /// rounds are left and packets are lost with probability `loss`.
    ///
    /// The loss rate is rounded to whole percents and cut at 50, the size is rounded up to the next
    /// multiple of 5, rounds count from 1 to 15. Beyond 55 packets (the paper's grid ends there)
    /// the solution for 55 is scaled up.
    pub fn repairs(&self, loss: f64, size: usize, rounds: usize, missing: usize) -> usize {
        if missing == 0 {
            return 0;
        }
        // The cast saturates and maps NaN to zero.
        let percent = ((loss * 100.0).round() as usize).min(LOSS_RATES - 1);
        let row = size.clamp(1, MAX_MISSING).div_ceil(SIZE_STEP);
        let cell = &self.solutions[percent * SIZES + row - 1];
        let repairs = cell.get_or_init(|| {
            let loss = percent as f64 / 100.0;
            solve(loss, row * SIZE_STEP, self.lambda, MAX_ROUNDS, MAX_MISSING).repairs
        });
        let known = missing.min(MAX_MISSING);
        let of_known = usize::from(repairs[rounds.clamp(1, MAX_ROUNDS) - 1][known - 1]);
        (of_known * missing).div_ceil(known)
    }
}
