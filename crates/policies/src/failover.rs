//! Fail-over: what is in flight on a path that went down is sent again on the others at once.
//!
//! Without it, each range on a failed path waits for its own probe timeout, and those back off. Copies
//! leave before everything else, on any path but the one that is down. A range with a copy in flight
//! already gets no further one.

use swiftwater_quic::policy::{
    Hints, Occasion, OutstandingRange, PathChoice, PathView, Rank, Reinjection, Reinjector,
};
use swiftwater_tunable::tunable;
use swiftwater_units::Instant;

use crate::reinjector_factory::ReinjectorFactory;

/// Parameters of [`Failover`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FailoverConfig {
    /// Copies of a range beyond which there are no more, 1 to 10; default 1.
    pub max_copies: u32,
}

impl Default for FailoverConfig {
    fn default() -> Self {
        Self { max_copies: 1 }
    }
}

tunable!(FailoverConfig {
    "max-copies" => max_copies in 1_u32..=10, "most copies of a range";
});

impl ReinjectorFactory for FailoverConfig {
    fn reinjector(&self) -> Box<dyn Reinjector> {
        Box::new(Failover(*self))
    }
}

/// See the module's documentation.
#[derive(Clone, Copy, Debug)]
pub struct Failover(pub FailoverConfig);

impl Reinjector for Failover {
    fn can_use_spare_room(&self) -> bool {
        false
    }

    fn is_asked_on(&self, occasion: Occasion) -> bool {
        matches!(occasion, Occasion::PathDown(_))
    }

    fn reinject(
        &mut self,
        _now: Instant,
        occasion: Occasion,
        outstanding: &mut dyn Iterator<Item = OutstandingRange>,
        paths: &[PathView],
        _hints: &Hints,
        out: &mut Vec<Reinjection>,
    ) {
        let Occasion::PathDown(down) = occasion else {
            return;
        };
        let is_other = |path: &PathView| path.id != down && path.is_usable();
        if !paths.iter().any(is_other) {
            return;
        }
        out.extend(
            outstanding
                .filter(|range| range.path == down && range.copies < self.0.max_copies)
                .map(|range| {
                    range
                        .reinjection()
                        .target(PathChoice::Not(down))
                        .rank(Rank::First)
                }),
        );
    }
}
