//! Shares: all eligible paths carry data, equally or in proportion to their rates.

use std::collections::BTreeMap;

use swiftwater_quic::policy::{Demand, PathDecision, PathView, Scheduler};
use swiftwater_tunable::{ParameterValue, tunable};
use swiftwater_units::{ByteCount, Instant, PathId};

use super::{SchedulerFactory, eligible, has_room};

/// What the share of a path is in proportion to.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Weight {
    /// Every path has the same share.
    Equal,
    /// Its estimated rate ([`PathView::estimated_rate`]).
    #[default]
    Rate,
}

impl ParameterValue for Weight {
    fn read(text: &str) -> Option<Self> {
        match text {
            "equal" => Some(Self::Equal),
            "rate" => Some(Self::Rate),
            _ => None,
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Equal => "equal",
            Self::Rate => "rate",
        }
        .to_owned()
    }

    fn accepts() -> String {
        "equal or rate".to_owned()
    }
}

/// Parameters of [`Weighted`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WeightedConfig {
    /// What shares are in proportion to; default the paths' rates.
    pub weight: Weight,
    /// Bytes that follow one another on a path before the choice is made again; default 0: one
    /// datagram.
    pub batch: ByteCount,
}

tunable!(WeightedConfig {
    "weight" => weight, "what the share of a path is in proportion to";
    "batch" => batch, "bytes that follow one another on a path";
});

impl SchedulerFactory for WeightedConfig {
    fn scheduler(&self) -> Box<dyn Scheduler> {
        Box::new(Weighted::new(*self))
    }
}

/// Stride scheduling: each path has a virtual time, which a datagram advances by its size over the
/// path's weight; the eligible path with room whose virtual time is least is next. A path that had no
/// room for a while doesn't catch up.
#[derive(Clone, Debug, Default)]
pub struct Weighted {
    config: WeightedConfig,
    /// Virtual time and weight of each path.
    shares: BTreeMap<PathId, (f64, f64)>,
}

impl Weighted {
    /// No path has sent anything yet.
    pub fn new(config: WeightedConfig) -> Self {
        Self {
            config,
            shares: BTreeMap::new(),
        }
    }

    fn weight(&self, path: &PathView) -> f64 {
        match self.config.weight {
            Weight::Equal => 1.0,
            Weight::Rate => path.estimated_rate().as_mbps_f64().max(0.001),
        }
    }

    fn virtual_time(&self, id: PathId) -> Option<f64> {
        self.shares.get(&id).map(|(time, _)| *time)
    }
}

impl Scheduler for Weighted {
    fn next(&mut self, now: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision {
        self.shares
            .retain(|id, _| paths.iter().any(|path| path.id == *id));
        let ready = || eligible(paths, demand).filter(|path| has_room(path, now));
        // What had no room, or is new, starts from where the others are.
        let start = ready()
            .filter_map(|path| self.virtual_time(path.id))
            .min_by(f64::total_cmp)
            .unwrap_or(0.0);
        let time = |path: &PathView| self.virtual_time(path.id).unwrap_or(start);
        let next = ready().min_by(|a, b| time(a).total_cmp(&time(b)).then(a.id.cmp(&b.id)));
        let Some(next) = next else {
            return PathDecision::Blocked;
        };
        let (id, weight, reached) = (next.id, self.weight(next), time(next));
        self.shares.insert(id, (reached, weight));
        for path in paths.iter().filter(|path| !has_room(path, now)) {
            if let Some((time, _)) = self.shares.get_mut(&path.id) {
                *time = time.max(reached);
            }
        }
        PathDecision::Path {
            id,
            max_bytes: self.config.batch,
        }
    }

    fn on_sent(&mut self, _now: Instant, path: PathId, bytes: ByteCount) {
        if let Some((time, weight)) = self.shares.get_mut(&path) {
            *time += bytes.get() as f64 / *weight;
        }
    }
}
