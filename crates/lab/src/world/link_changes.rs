//! Faults of links for a time.

use std::time::Duration;

use rand_core::Rng;
use swiftwater_sim::{LinkId, Network, Verdict};
use swiftwater_units::Instant;

use crate::scenario::{LinkChange, LinkFault, LinkSpec};

/// Random numbers of flows are numbered from 0 on, those of faults from here on.
const FIRST_STREAM: u64 = 1 << 32;

/// Applies a change, the `number`th of the run, to a link with the `spec`, forwards and backwards.
pub(super) fn apply(
    network: &mut Network,
    number: u64,
    change: &LinkChange,
    spec: &LinkSpec,
    links: [LinkId; 2],
) {
    let from = Instant::ZERO + change.from;
    let until = (change.until).map_or(Instant::FAR_FUTURE, |until| Instant::ZERO + until);
    let delays = [spec.forward.delay, spec.backward.delay];
    for (way, (link, delay)) in (0..).zip(links.into_iter().zip(delays)) {
        let Some(mut fault) = Tapped::new(change.fault, way, delay) else {
            continue;
        };
        let mut rng = network.flow_rng(FIRST_STREAM + 2 * number + way);
        network.tap(link, move |datagram| {
            if datagram.now < from || datagram.now >= until {
                return Verdict::Pass;
            }
            fault.judge(|| rng.next_u64())
        });
    }
}

/// A fault in one direction.
#[derive(Clone, Copy, Debug)]
enum Tapped {
    Drop,
    /// Below this random number a datagram is lost.
    Lose(u64),
    Delay(Duration),
}

impl Tapped {
    /// `None` if the direction, 0 forwards or 1 backwards, works.
    fn new(fault: LinkFault, way: u64, delay: Duration) -> Option<Self> {
        match (fault, way) {
            (LinkFault::Cut, _) | (LinkFault::CutForward, 0) | (LinkFault::CutBackward, 1) => {
                Some(Self::Drop)
            }
            (LinkFault::CutForward | LinkFault::CutBackward, _) => None,
            (LinkFault::Loss(share), _) => Some(Self::Lose((share * u64::MAX as f64) as u64)),
            (LinkFault::Delay(factor), _) => Some(Self::Delay(delay.mul_f64(factor - 1.0))),
        }
    }

    fn judge(&mut self, random: impl FnOnce() -> u64) -> Verdict {
        match *self {
            Self::Drop => Verdict::Drop,
            Self::Lose(below) if random() < below => Verdict::Drop,
            Self::Lose(_) => Verdict::Pass,
            Self::Delay(by) => Verdict::Delay(by),
        }
    }
}
