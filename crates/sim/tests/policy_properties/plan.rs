//! What a case is made of, and how cases are drawn.

use std::sync::Arc;
use std::time::Duration;

use proptest::prelude::*;
use swiftwater_link::{Buffer, Jitter, LinkConfig, LossModel};
use swiftwater_policies::{by_name, names};
use swiftwater_sim::{Direction, Pair, Verdict};
use swiftwater_units::{Bandwidth, PacketCount};

use super::witness::Witness;

/// How packets towards the client get lost; a little is lost the other way, too.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Loss {
    None,
    Bernoulli(f64),
    /// Probability of a burst's beginning, and of its end, per packet.
    Bursts(f64, f64),
    /// The same by steps of 20 ms.
    Spells(f64, f64),
}

impl Loss {
    fn model(self) -> LossModel {
        match self {
            Self::None => LossModel::None,
            Self::Bernoulli(loss) => LossModel::Bernoulli(loss),
            Self::Bursts(p, r) => LossModel::GilbertElliott {
                p,
                r,
                h: 0.0,
                k: 1.0,
            },
            Self::Spells(p, r) => LossModel::GilbertElliottStepped {
                p,
                r,
                h: 0.1,
                k: 0.99,
                step: Duration::from_millis(20),
            },
        }
    }
}

/// The path between the ends.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// One way.
    pub(crate) delay_ms: u64,
    pub(crate) jitter_ms: u64,
    pub(crate) rate_mbps: u64,
    pub(crate) buffer_packets: u64,
}

/// What the server writes.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Traffic {
    /// So many bytes at once.
    Bulk(u64),
    /// A stream for each of `count` frames.
    Frames {
        bytes: u64,
        count: usize,
        pause_ms: u64,
    },
}

/// A case.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) policy: String,
    pub(crate) controller: &'static str,
    pub(crate) seed: u64,
    pub(crate) path: Path,
    pub(crate) loss: Loss,
    /// Nothing passes from then on, for so long, milliseconds.
    pub(crate) outage: Option<(u64, u64)>,
    pub(crate) traffic: Traffic,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            policy: "arq".to_owned(),
            controller: "cubic",
            seed: 1,
            path: Path {
                delay_ms: 20,
                jitter_ms: 0,
                rate_mbps: 10,
                buffer_packets: 100,
            },
            loss: Loss::None,
            outage: None,
            traffic: Traffic::Bulk(100_000),
        }
    }
}

impl Plan {
    /// A connected pair; `witness` watches the server.
    pub(crate) fn build(&self, witness: &Witness) -> Pair {
        let Path {
            delay_ms,
            jitter_ms,
            rate_mbps,
            buffer_packets,
        } = self.path;
        let back = LinkConfig::default()
            .rate(Bandwidth::from_mbps(rate_mbps))
            .delay(Duration::from_millis(delay_ms))
            .jitter(Jitter::Uniform(Duration::from_millis(jitter_ms)))
            .jitter_reorders(true)
            .buffer(Buffer::Packets(PacketCount::new(buffer_packets)));
        let forth = back.clone().loss(self.loss.model());
        let back = back.loss(LossModel::Bernoulli(0.01));
        let policies = witness.policies(by_name(&self.policy).unwrap());
        let controller = swiftwater_congestion::by_name(self.controller).unwrap();
        let observer = Arc::new(witness.clone());
        let mut pair = Pair::builder()
            .seed(self.seed)
            .time_limit(Duration::from_secs(3_600))
            .links(back, forth)
            .both_configs(|config| {
                config.handshake_timeout = Duration::from_secs(300);
                config.max_idle_timeout = Some(Duration::from_secs(600));
            })
            .server_config(move |config| {
                config.policies = policies;
                config.controller = controller;
                config.observer = Some(observer);
            })
            .build()
            .unwrap();
        assert!(pair.connect());
        if let Some((start, length)) = self.outage {
            let start = pair.now() + Duration::from_millis(start);
            let end = start + Duration::from_millis(length);
            for direction in [Direction::ToClient, Direction::ToServer] {
                pair.tap(direction, move |datagram| {
                    let is_out = (start..end).contains(&datagram.now);
                    if is_out { Verdict::Drop } else { Verdict::Pass }
                });
            }
        }
        pair
    }

    /// Sizes, and the milliseconds that follow each.
    pub(crate) fn writes(&self) -> Vec<(u64, u64)> {
        match self.traffic {
            Traffic::Bulk(bytes) => vec![(bytes, 0)],
            Traffic::Frames {
                bytes,
                count,
                pause_ms,
            } => vec![(bytes, pause_ms); count],
        }
    }
}

/// Bursts end with packets, so the longer ones would exceed any time limit: each probe is sent twice as
/// late as the one before.
pub(crate) fn loss() -> impl Strategy<Value = Loss> {
    prop_oneof![
        1 => Just(Loss::None),
        4 => (0.0..0.3_f64).prop_map(Loss::Bernoulli),
        3 => (0.002..0.1_f64, 0.35..0.9_f64).prop_map(|(p, r)| Loss::Bursts(p, r)),
        2 => (0.02..0.3_f64, 0.3..0.9_f64).prop_map(|(p, r)| Loss::Spells(p, r)),
    ]
}

pub(crate) fn path() -> impl Strategy<Value = Path> {
    (
        prop_oneof![0..15_u64, 0..120_u64],
        prop_oneof![3 => Just(0_u64), 1 => 0..30_u64],
        1..40_u64,
        10..200_u64,
    )
        .prop_map(|(delay_ms, jitter_ms, rate_mbps, buffer_packets)| Path {
            delay_ms,
            jitter_ms,
            rate_mbps,
            buffer_packets,
        })
}

fn traffic() -> impl Strategy<Value = Traffic> {
    prop_oneof![
        (1..250_000_u64).prop_map(Traffic::Bulk),
        (1..12_000_u64, 1..60_usize, 1..50_u64).prop_map(|(bytes, count, pause_ms)| {
            Traffic::Frames {
                bytes,
                count,
                pause_ms,
            }
        }),
    ]
}

/// Every system of the catalogue, and some with tolerances that make for many replicas.
fn policy() -> impl Strategy<Value = String> {
    let mut all = names();
    all.extend(
        [
            "autorec:alpha=0ms,beta=1,gamma=1",
            "autorec-paper:alpha=0ms,beta=1,gamma=1",
        ]
        .map(str::to_owned),
    );
    proptest::sample::select(all)
}

fn controller() -> impl Strategy<Value = &'static str> {
    prop_oneof![Just("cubic"), Just("bbr1"), Just("copa")]
}

/// Any case.
pub(crate) fn any() -> impl Strategy<Value = Plan> {
    let outage = prop_oneof![
        3 => Just(None),
        1 => (0..1_500_u64, 1..600_u64).prop_map(Some),
    ];
    (
        policy(),
        controller(),
        proptest::num::u64::ANY,
        path(),
        loss(),
        outage,
        traffic(),
    )
        .prop_map(
            |(policy, controller, seed, path, loss, outage, traffic)| Plan {
                policy,
                controller,
                seed,
                path,
                loss,
                outage,
                traffic,
            },
        )
}
