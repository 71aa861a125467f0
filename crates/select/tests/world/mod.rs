//! A network of arithmetic: completion times by arm, with noise, in virtual time; a driver that sends
//! requests over it as a client would, hedges included.

#![allow(
    dead_code,
    clippy::unwrap_used,
    reason = "each test file uses its part; a test may fail"
)]

use std::collections::BTreeMap;
use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use swiftwater_select::{
    Arm, Config, Decision, Failure, Measured, Models, NetworkId, OriginHash, Outcome,
    RequestDescription, RequestId, Selector, Strategy, Traffic,
};
use swiftwater_units::Instant;

pub(crate) const NETWORK: NetworkId = NetworkId(7);

pub(crate) fn origin() -> OriginHash {
    OriginHash::of("https://example.com:443")
}

pub(crate) fn selector(strategy: Strategy) -> Selector {
    Selector::new(
        Config::new(vec![Arm::h2(), Arm::h3()], strategy),
        Models::none(),
        1,
    )
    .unwrap()
}

/// How requests fare.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Conditions {
    /// Mean completion time over TCP and over QUIC, ms; `None` if nothing comes through.
    pub(crate) tcp: f64,
    pub(crate) quic: Option<f64>,
    /// Relative deviation.
    pub(crate) noise: f64,
    /// By how much of its own mean a request takes longer for each one in flight on the same arm.
    pub(crate) wait: f64,
}

impl Conditions {
    pub(crate) fn new(tcp: f64, quic: f64) -> Self {
        Self {
            tcp,
            quic: Some(quic),
            noise: 0.1,
            wait: 0.0,
        }
    }

    pub(crate) fn blocked(tcp: f64) -> Self {
        Self {
            tcp,
            quic: None,
            noise: 0.1,
            wait: 0.0,
        }
    }
}

/// A request and what becomes of it.
struct Flying {
    decision: Decision,
    outcome: Outcome,
    begun: Instant,
}

/// A request that is over.
#[derive(Clone, Debug)]
pub(crate) struct Done {
    pub(crate) decision: Decision,
    pub(crate) answered_by: Arm,
    pub(crate) begun: Instant,
    pub(crate) completion: Duration,
    pub(crate) failed: bool,
}

/// The driver.
pub(crate) struct World {
    pub(crate) selector: Selector,
    pub(crate) now: Instant,
    pub(crate) conditions: Conditions,
    pub(crate) network: NetworkId,
    /// How long each request waits for its connection, which its completion time does not include.
    pub(crate) waited: Duration,
    random: ChaCha8Rng,
    flying: BTreeMap<(Instant, RequestId), Flying>,
    pub(crate) done: Vec<Done>,
}

impl World {
    pub(crate) fn new(selector: Selector, conditions: Conditions, seed: u64) -> Self {
        Self {
            selector,
            now: Instant::ZERO,
            conditions,
            network: NETWORK,
            waited: Duration::ZERO,
            random: ChaCha8Rng::seed_from_u64(seed),
            flying: BTreeMap::new(),
            done: Vec::new(),
        }
    }

    fn millis(&mut self, mean: f64) -> Duration {
        // The sum of four uniform values: deviation 1 after scaling.
        let mut uniform = || f64::from(self.random.next_u32()) / f64::from(u32::MAX) - 0.5;
        let spread = (0..4).map(|_| uniform()).sum::<f64>() / (4.0_f64 / 12.0).sqrt();
        let millis = mean * (1.0 + self.conditions.noise * spread).max(0.1);
        Duration::from_secs_f64(millis / 1e3)
    }

    fn measured(&self, completion: Duration) -> Measured {
        Measured {
            first_byte: completion.mul_f64(0.7),
            completion,
            waited: self.waited,
            bytes: 20_000,
            rtt: Some(completion.mul_f64(0.3)),
            traffic: Some(Traffic {
                sent: 20_000,
                retransmitted: 0,
            }),
        }
    }

    /// Sends a request now.
    pub(crate) fn send(&mut self, replay_safe: bool) -> Decision {
        let mut request = RequestDescription::new(self.network, origin());
        request.replay_safe = replay_safe;
        let decision = self.selector.decide(self.now, &request);
        let is_quic = decision.arm == Arm::h3();
        let mean = if is_quic {
            self.conditions.quic
        } else {
            Some(self.conditions.tcp)
        };
        let others = self.flying.values();
        let others = others.filter(|it| it.outcome.arm == decision.arm).count();
        let mean = mean.map(|mean| mean * (1.0 + self.conditions.wait * others as f64));
        let (end, outcome) = match (mean, &decision.hedge) {
            (Some(mean), _) => {
                let completion = self.millis(mean);
                let result = Ok(self.measured(completion));
                let arm = decision.arm.clone();
                (self.now + completion, Outcome::new(arm, result))
            }
            (None, Some(hedge)) => {
                let completion = self.millis(self.conditions.tcp);
                let result = Ok(self.measured(completion));
                let arm = hedge.arm.clone();
                // Nothing arrives where QUIC is blocked.
                let wait = hedge.without_packet.min(hedge.without_response);
                let end = self.now + wait + completion;
                let silent = true;
                (
                    end,
                    Outcome {
                        arm,
                        result,
                        silent,
                        hedged: true,
                    },
                )
            }
            (None, None) => {
                let result = Err(Failure::TooSlow);
                let arm = decision.arm.clone();
                let silent = true;
                (
                    self.now + Duration::from_secs(5),
                    Outcome {
                        arm,
                        result,
                        silent,
                        hedged: false,
                    },
                )
            }
        };
        let flying = Flying {
            decision: decision.clone(),
            outcome,
            begun: self.now,
        };
        self.flying.insert((end, decision.id), flying);
        decision
    }

    /// Lets time pass until `end`.
    pub(crate) fn run_until(&mut self, end: Instant) {
        loop {
            let response = self.flying.first_key_value().map(|(key, _)| key.0);
            let timeout = self.selector.next_timeout().map(|at| at.max(self.now));
            let next = response.into_iter().chain(timeout).min();
            let Some(next) = next.filter(|next| *next <= end) else {
                self.now = end;
                return;
            };
            self.now = next;
            if response == Some(next) {
                self.finish_first();
            } else {
                self.selector.on_timeout(next);
            }
        }
    }

    fn finish_first(&mut self) {
        let ((_, id), flying) = self.flying.pop_first().unwrap();
        self.selector.on_outcome(self.now, id, &flying.outcome);
        self.done.push(Done {
            decision: flying.decision,
            answered_by: flying.outcome.arm,
            begun: flying.begun,
            completion: self.now.saturating_since(flying.begun),
            failed: flying.outcome.result.is_err(),
        });
    }

    /// Clicks for so long: bursts of 13 requests, 5 ms apart, every two seconds.
    pub(crate) fn browse(&mut self, length: Duration) {
        let end = self.now + length;
        while self.now < end {
            let click = self.now;
            for _ in 0..13 {
                self.send(true);
                self.run_until(self.now + Duration::from_millis(5));
            }
            self.run_until(click + Duration::from_secs(2));
        }
    }

    pub(crate) fn mean_ms(&self, since: Instant) -> f64 {
        let recent = self.done.iter().filter(|done| done.begun >= since);
        let times: Vec<f64> = recent.map(|it| it.completion.as_secs_f64() * 1e3).collect();
        times.iter().sum::<f64>() / times.len() as f64
    }

    pub(crate) fn current(&self) -> Arm {
        self.selector.current(self.network, origin()).unwrap()
    }
}
