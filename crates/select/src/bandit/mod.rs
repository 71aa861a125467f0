//! `select+`: a contextual bandit that learns online which arm is quicker, without a trained model.
//!
//! - Each arm has a `Belief` of the level of its log completion times. Size of the response and requests
//!   in flight are taken out by a shared regression. Observations lose weight with time.
//! - What happens to the network happens to all arms: when the arm in use becomes slower, the others'
//!   levels move along, and only the uncertainty of the *difference* grows with time.
//! - A CUSUM test finds changes. After one, beliefs are replaced by what was compared under similar
//!   conditions on this network before (`memory`), or doubted where there is nothing.
//! - Probes must pay for themselves: an arm is probed by a burst of requests if the expected gain over the next requests, should
//!   the burst show that it is quicker, exceeds the expected loss of those in the burst (knowledge gradient). A token bucket
//!   bounds the share of probes. Among several worthwhile arms, Thompson sampling chooses.
//! - The first requests on a connection pay for the start of its congestion window, and count little.
//! - An arm is taken over once it is quicker with enough probability.

mod belief;
mod memory;
mod regression;

use rand_core::Rng;
use swiftwater_units::Instant;

use crate::parameters::Parameters;
use crate::rank_sum::upper_tail;
use belief::Belief;
use memory::{ChangeTest, Context};
use regression::{Covariates, Regression};

pub(crate) use memory::Comparisons;

/// What happened to a request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Observation {
    /// Position of the arm.
    pub(crate) arm: usize,
    /// Completion time, ms; for failures how long they took at least.
    pub(crate) completion: f64,
    /// Bytes of content; `None` after a failure.
    pub(crate) bytes: Option<f64>,
    /// Requests in flight to the origin when it was sent.
    pub(crate) in_flight: u32,
    /// Round-trip time of the connection, ms.
    pub(crate) rtt: Option<f64>,
    /// It is one of the first on its connection, and waited for the handshake.
    pub(crate) is_first: bool,
}

/// Share of its weight that a request keeps if it is one of the first on its connection: it pays for the start of the
/// congestion window, as later ones don't.
const FIRST: f64 = 0.05;

/// Weight of a request that was sent while others were in flight: what happens to one of them happens to all.
const CROWDED: f64 = 0.3;

/// Most probes in flight over an arm that has not answered yet.
const UNPROVEN: u32 = 2;

impl Observation {
    fn weight(&self) -> f64 {
        let alone = if self.in_flight == 0 { 1.0 } else { CROWDED };
        if self.is_first { FIRST * alone } else { alone }
    }
}

/// Requests that follow one another closely, such as those of a click. All of them go over one arm: alone beside
/// others, a request has a share of the link that its arm would not have if it carried all of them.
#[derive(Clone, Copy, Debug)]
struct Burst {
    /// The arm that it probes, if any, and the probability that it is quicker.
    probes: Option<(usize, f64)>,
    requests: u32,
}

/// What to do with the next request.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Advice {
    /// Stay with the arm in use, which is the quickest with this probability.
    Stay(f64),
    /// Take another arm from now on.
    Switch(usize, f64),
    /// Send this request over another arm.
    Probe(usize, f64),
    /// Send this request over another arm, on which it waits for fewer others.
    Spread(usize, f64),
}

/// The difference between the arm in use and another one.
#[derive(Clone, Copy, Debug)]
struct Advantage {
    arm: usize,
    /// Expected log of how much quicker the other one is.
    mean: f64,
    deviation: f64,
    /// Standard deviation of the mean after a burst of probes, expected before it.
    expected_change: f64,
}

impl Advantage {
    fn probability_above(&self, bound: f64) -> f64 {
        upper_tail((bound - self.mean) / self.deviation)
    }

    /// What is expected of a burst of probes: what each later request gains by what they show, E[max(M, 0)] for the mean M
    /// after the burst (knowledge gradient), and what each probe loses, E[max(-D, 0)]. Where much is known already, a burst
    /// moves the mean little, and gains nothing.
    fn gain_and_loss(&self) -> (f64, f64) {
        let gain = self.expected_excess(self.expected_change);
        let loss = self.expected_excess(self.deviation) - self.mean;
        (gain, loss)
    }

    /// E[max(X, 0)] of a normal X with the mean of the difference and this deviation.
    fn expected_excess(&self, deviation: f64) -> f64 {
        let u = self.mean / deviation;
        let density = (-u * u / 2.0).exp() / (2.0 * std::f64::consts::PI).sqrt();
        deviation * density + self.mean * upper_tail(-u)
    }
}

/// How things stand when a request is to be sent.
pub(crate) struct Situation<'a> {
    /// Whether an arm may be used, by position.
    pub(crate) usable: &'a dyn Fn(usize) -> bool,
    /// Requests that this one would wait for, about, by arm.
    pub(crate) ahead: &'a [u32],
    /// It may be sent over another arm than the one in use.
    pub(crate) is_free: bool,
    /// No other request is in flight.
    pub(crate) is_alone: bool,
}

impl Situation<'_> {
    /// The covariates of the load of an arm.
    fn load(&self, arm: usize) -> Covariates {
        Covariates::load(f64::from(self.ahead[arm]))
    }
}

/// The beliefs for one origin on one network.
#[derive(Clone, Debug)]
pub(crate) struct Bandit {
    beliefs: Vec<Belief>,
    regression: Regression,
    change: ChangeTest,
    rtt: Option<f64>,
    tokens: f64,
    /// Probes in flight, by arm.
    probing: Vec<u32>,
    burst: Option<Burst>,
}

impl Bandit {
    /// A bandit over so many arms that knows nothing.
    pub(crate) fn new(arms: usize, parameters: &Parameters) -> Self {
        Self {
            beliefs: vec![Belief::default(); arms],
            regression: Regression::default(),
            change: ChangeTest::default(),
            rtt: None,
            tokens: parameters.plus_probe_burst,
            probing: vec![0; arms],
            burst: None,
        }
    }

    /// What to do with a request at `now`, while the arm `current` is in use.
    pub(crate) fn advise(
        &mut self,
        now: Instant,
        current: usize,
        situation: &Situation<'_>,
        random: &mut impl Rng,
        parameters: &Parameters,
    ) -> Advice {
        self.age(now, current, parameters);
        self.tokens = (self.tokens + parameters.plus_probe_rate).min(parameters.plus_probe_burst);
        let mut others =
            (0..self.beliefs.len()).filter(|arm| *arm != current && (situation.usable)(*arm));
        let mut advantages = Vec::with_capacity(self.beliefs.len());
        advantages.extend(
            others
                .by_ref()
                .map(|arm| self.advantage(current, arm, parameters)),
        );
        let margin = -(1.0 - parameters.tie).ln();
        let best = advantages
            .iter()
            .filter(|advantage| self.beliefs[advantage.arm].is_known())
            .max_by(|a, b| a.mean.total_cmp(&b.mean));
        if let Some(best) = best {
            let probability = best.probability_above(0.0);
            if best.mean > margin && probability >= parameters.plus_confidence {
                self.change = ChangeTest::default();
                self.burst = None;
                return Advice::Switch(best.arm, probability);
            }
        }
        if situation.is_free {
            let is_over =
                |burst: &mut Burst| situation.is_alone || burst.requests >= parameters.plus_burst;
            self.burst.take_if(is_over);
            if self.burst.is_none() {
                let probes = self.probe(current, &advantages, random, parameters);
                self.burst = Some(Burst {
                    probes,
                    requests: 0,
                });
            }
            if let Some(burst) = &mut self.burst {
                burst.requests += 1;
                if let Some((arm, probability)) = burst.probes
                    && arm != current
                    && (situation.usable)(arm)
                    && (self.beliefs[arm].is_known() || self.probing[arm] < UNPROVEN)
                {
                    self.tokens -= 1.0;
                    self.probing[arm] += 1;
                    return Advice::Probe(arm, probability);
                }
            }
        }
        if situation.is_free
            && let Some(other) = self.less_loaded(current, &advantages, situation, parameters)
        {
            return Advice::Spread(other.arm, other.probability_above(0.0));
        }
        let best = advantages.iter().map(|it| it.probability_above(0.0));
        Advice::Stay(1.0 - best.fold(0.0, f64::max))
    }

    /// The arm on which a request is expected to be complete earliest, because it waits for fewer others there than on the
    /// one in use.
    fn less_loaded(
        &self,
        current: usize,
        advantages: &[Advantage],
        situation: &Situation<'_>,
        parameters: &Parameters,
    ) -> Option<Advantage> {
        if !self.beliefs[current].is_known() {
            return None;
        }
        let mine = situation.load(current);
        let gain = |other: &Advantage| {
            let apart = mine.minus(situation.load(other.arm));
            other.mean + self.regression.effect(apart)
        };
        let waits_less = |other: &&Advantage| {
            let ahead = situation.ahead;
            self.beliefs[other.arm].is_known() && ahead[other.arm] < ahead[current]
        };
        let others = advantages.iter().filter(waits_less);
        let best = others.max_by(|a, b| gain(a).total_cmp(&gain(b)))?;
        let least = -(1.0 - parameters.plus_spread).ln();
        (gain(best) > least).then_some(*best)
    }

    fn probe(
        &mut self,
        current: usize,
        advantages: &[Advantage],
        random: &mut impl Rng,
        parameters: &Parameters,
    ) -> Option<(usize, f64)> {
        // Without knowledge of the arm in use there is nothing to compare with.
        if self.tokens < 1.0 || !self.beliefs[current].is_known() {
            return None;
        }
        let burst = f64::from(parameters.plus_burst);
        let pays = |advantage: &&Advantage| {
            let (gain, loss) = advantage.gain_and_loss();
            let unsure = advantage.deviation > parameters.tie;
            let waits = self.probing[advantage.arm] >= 2;
            unsure && !waits && gain * parameters.plus_horizon > loss * burst
        };
        let draw = |advantage: &Advantage| {
            let draw = advantage.mean + advantage.deviation * normal(random);
            (draw, *advantage)
        };
        let worthwhile: Vec<_> = advantages.iter().filter(pays).map(draw).collect();
        let (_, chosen) = worthwhile.into_iter().max_by(|a, b| a.0.total_cmp(&b.0))?;
        Some((chosen.arm, chosen.probability_above(0.0)))
    }

    /// A probe over `arm` ended, whatever its outcome.
    pub(crate) fn probe_ended(&mut self, arm: usize) {
        self.probing[arm] = self.probing[arm].saturating_sub(1);
    }

    fn age(&mut self, now: Instant, current: usize, parameters: &Parameters) {
        for (arm, belief) in self.beliefs.iter_mut().enumerate() {
            belief.age(now, arm == current, parameters);
        }
    }

    fn advantage(&self, current: usize, other: usize, parameters: &Parameters) -> Advantage {
        let (mine, its) = (&self.beliefs[current], &self.beliefs[other]);
        let uncertainty = mine.uncertainty() + its.uncertainty();
        let burst = f64::from(parameters.plus_burst) * CROWDED;
        let mean = if mine.is_known() && its.is_known() {
            let apart = its.means().minus(mine.means());
            let level = its.level() - self.regression.effect(apart);
            let risk = parameters.plus_risk * (its.variance() - mine.variance());
            mine.level() - level - risk
        } else {
            0.0
        };
        Advantage {
            arm: other,
            mean,
            deviation: uncertainty.sqrt().max(1e-6),
            expected_change: its.expected_change(burst).max(1e-6),
        }
    }

    fn context(&self, current: usize) -> Context {
        let belief = &self.beliefs[current];
        // The level at the origin of the covariates, which all origins have in common.
        let level = belief.level() - self.regression.effect(belief.means());
        [self.rtt.unwrap_or(1.0).max(0.1).ln(), level]
    }

    /// Takes a request in. True if it shows that the network changed.
    pub(crate) fn observe(
        &mut self,
        now: Instant,
        current: usize,
        seen: Observation,
        memory: &mut Comparisons,
        parameters: &Parameters,
    ) -> bool {
        self.age(now, current, parameters);
        let y = seen.completion.max(0.01).ln();
        let belief = &self.beliefs[seen.arm];
        let covariates = match seen.bytes {
            Some(bytes) => Covariates::new(bytes, f64::from(seen.in_flight)),
            None => belief.means(),
        };
        let known = belief.is_known();
        let apart = covariates.minus(belief.means());
        let expected = belief.level() + self.regression.effect(apart);
        let deviation = (y - expected) / belief.variance().sqrt();
        if known && !seen.is_first {
            self.regression.add(apart, y - belief.level());
        }
        if let Some(rtt) = seen.rtt {
            self.rtt = Some(self.rtt.map_or(rtt, |before| before + 0.2 * (rtt - before)));
        }
        let settled = self.beliefs[seen.arm].settled();
        let moved = self.beliefs[seen.arm].observe(y, covariates, expected, seen.weight());
        if !seen.is_first {
            self.beliefs[seen.arm].observe_deviation(y - expected);
        }
        if seen.arm != current {
            if !seen.is_first {
                self.compare(current, seen.arm, y, covariates, memory);
            }
            return false;
        }
        if known {
            for (arm, belief) in self.beliefs.iter_mut().enumerate() {
                if arm != current && belief.is_known() {
                    belief.shift(settled * moved);
                }
            }
        }
        // What it waited for is no sign of another network.
        let changed =
            known && !seen.is_first && self.change.observe(deviation, parameters.plus_change);
        if changed {
            // The mean has not followed yet.
            self.rtt = seen.rtt.or(self.rtt);
            self.start_anew(now, current, (y, covariates), memory, parameters);
        }
        changed
    }

    fn compare(
        &mut self,
        current: usize,
        other: usize,
        y: f64,
        covariates: Covariates,
        memory: &mut Comparisons,
    ) {
        let mine = &self.beliefs[current];
        if mine.is_known() {
            let apart = covariates.minus(mine.means());
            let difference = y - (mine.level() + self.regression.effect(apart));
            memory.add(current, other, self.context(current), difference);
        }
    }

    fn start_anew(
        &mut self,
        now: Instant,
        current: usize,
        last: (f64, Covariates),
        memory: &Comparisons,
        parameters: &Parameters,
    ) {
        self.beliefs[current].doubt(true);
        let (y, covariates) = last;
        let expected = self.beliefs[current].level()
            + self
                .regression
                .effect(covariates.minus(self.beliefs[current].means()));
        self.beliefs[current].observe(y, covariates, expected, 1.0);
        let context = self.context(current);
        let (level, means) = {
            let mine = &self.beliefs[current];
            (mine.level(), mine.means())
        };
        for arm in (0..self.beliefs.len()).filter(|arm| *arm != current) {
            match memory.recall(current, arm, context) {
                Some(known) => {
                    let weight = known.weight.min(4.0);
                    let belief = &mut self.beliefs[arm];
                    belief.recall(level + known.difference, means, weight, now);
                }
                None => self.beliefs[arm].doubt(false),
            }
        }
        // Probes are worth most now.
        self.tokens = (self.tokens + 2.0).min(parameters.plus_probe_burst);
    }
}

/// A standard normal value: the sum of twelve uniform ones is close enough to choose among arms.
fn normal(random: &mut impl Rng) -> f64 {
    let uniform = |random: &mut dyn Rng| f64::from(random.next_u32()) / f64::from(u32::MAX);
    (0..12).map(|_| uniform(random)).sum::<f64>() - 6.0
}
