//! Which paths may carry data at all: the rules that all schedulers but `first-path` and `backup` share.
//!
//! A path that is being closed carries nothing, one that is being validated only while no other is active. A
//! path of the class [`PathClass::Low`] carries data only while no other is better, a [`PathClass::Silent`] one
//! only while all are silent. A standby path, one that
//! either end announced as backup, carries data only while no available path is usable (draft-ietf-quic-multipath-21,
//! section 3.3); what counts as usable is a parameter.
//!
//! Nothing shows that an idle path has failed, and its round-trip time stays what it was. What an end that mostly receives
//! has to send (requests, limits of flow control) must not wait there for a probe timeout: an idle path that has been
//! silent for some round trips while another worked carries data only if the others have no room for all that waits. Of
//! more, its part is worth the risk, and what is lost there leaves again on another.

use std::time::Duration;

use swiftwater_quic::policy::{Demand, PathPhase, PathView};
use swiftwater_tunable::{ParameterValue, tunable};
use swiftwater_units::{ByteCount, Instant, PathId};

use super::classes::{PathClass, PathClassConfig, PathClasses};
use super::has_room;

/// Least round-trip time that silence is measured in.
const LEAST_SILENCE: Duration = Duration::from_millis(20);

/// From when on a standby path carries data beside, or instead of, available ones.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum StandbyUse {
    /// While every available path is of the class [`PathClass::Low`] or worse: a slow path is usable.
    #[default]
    Low,
    /// While every available path is of a worse class than the standby path: HIGH before MID.
    Class,
    /// As soon as all available paths of its class or a better one have no room, as XQUIC's `minrtt` does.
    Room,
}

impl ParameterValue for StandbyUse {
    fn read(text: &str) -> Option<Self> {
        match text {
            "low" => Some(Self::Low),
            "class" => Some(Self::Class),
            "room" => Some(Self::Room),
            _ => None,
        }
    }

    fn write(&self) -> String {
        match self {
            Self::Low => "low",
            Self::Class => "class",
            Self::Room => "room",
        }
        .to_owned()
    }

    fn accepts() -> String {
        "low, class or room".to_owned()
    }
}

/// Parameters of the rules on which paths may carry data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EligibilityConfig {
    /// When standby paths carry data; default [`StandbyUse::Low`].
    pub standby: StandbyUse,
    /// Round trips without a sign that an idle path works, while another does, after which it carries data only if the
    /// others have no room for all that waits; above 0, or none: it may at any time. Default 2.
    pub silence: Option<f64>,
    /// Thresholds of the classes.
    pub classes: PathClassConfig,
}

impl Default for EligibilityConfig {
    fn default() -> Self {
        Self {
            standby: StandbyUse::default(),
            silence: Some(2.0),
            classes: PathClassConfig::default(),
        }
    }
}

tunable!(EligibilityConfig {
    "standby" => standby, "when a standby path carries data: all others low, of a worse class, without room";
    "silence" => silence, "round trips of silence after which an idle path carries data only if the others have no room for all";
    ..classes;
});

/// What is found about a path for one decision.
#[derive(Clone, Copy, Debug)]
struct Grade {
    class: PathClass,
    /// See [`rung`]; `None` if the path can't be used.
    rung: Option<u8>,
}

/// The eligible paths of a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct Eligibility {
    standby: StandbyUse,
    silence: Option<f64>,
    classes: PathClasses,
    /// Of the last views; reused for each decision.
    grades: Vec<Grade>,
}

impl Eligibility {
    pub(crate) fn new(config: EligibilityConfig) -> Self {
        Self {
            standby: config.standby,
            silence: config.silence,
            classes: PathClasses::new(config.classes),
            grades: Vec::new(),
        }
    }

    /// A datagram left on a path.
    pub(crate) fn on_sent(&mut self, now: Instant, path: PathId) {
        self.classes.on_sent(now, path);
    }

    /// The paths that may carry some of the demand, with their classes, by identifier.
    pub(crate) fn paths<'a>(
        &'a mut self,
        now: Instant,
        paths: &'a [PathView],
        demand: &Demand<'_>,
    ) -> impl Iterator<Item = (PathClass, &'a PathView)> + Clone {
        let best = self.grade(now, paths, demand);
        let eligible = paths.iter().zip(&self.grades);
        eligible
            .filter(move |(_, grade)| best.is_some() && grade.rung == best)
            .map(|(path, grade)| (grade.class, path))
    }

    /// Grades all paths; returns the first rung that any of them is on.
    fn grade(&mut self, now: Instant, paths: &[PathView], demand: &Demand<'_>) -> Option<u8> {
        self.classes.observe(now, paths);
        self.grades.clear();
        let mut best_available = None;
        for path in paths {
            let class = self.classes.class(now, path);
            self.grades.push(Grade { class, rung: None });
            if path.is_usable() && !path.is_backup() && demand.suits(path.id) {
                let best = best_available.get_or_insert(class);
                *best = class.min(*best);
            }
        }
        let mut first = None;
        for (path, grade) in paths.iter().zip(&mut self.grades) {
            if demand.suits(path.id) {
                grade.rung = rung(grade.class, path, self.standby, best_available);
                first = [first, grade.rung].into_iter().flatten().min();
            }
        }
        if let Some(silence) = self.silence {
            self.exclude_silent(now, paths, demand.bytes(), first, silence);
        }
        first
    }

    /// Excludes idle paths of rung `first` that have been silent, if the others there have room for what waits.
    fn exclude_silent(
        &mut self,
        now: Instant,
        paths: &[PathView],
        waiting: ByteCount,
        first: Option<u8>,
        silence: f64,
    ) {
        let newest = paths.iter().filter_map(|path| path.last_confirmed).max();
        let is_silent = |path: &PathView| {
            let times = path.last_confirmed.zip(newest);
            let idle = times.map(|(last, newest)| newest.saturating_since(last));
            let limit = silence * path.smoothed_rtt.max(LEAST_SILENCE).as_secs_f64();
            path.bytes_in_flight.is_zero() && idle.is_some_and(|idle| idle.as_secs_f64() > limit)
        };
        let graded = paths.iter().zip(&self.grades);
        let others = graded
            .filter(|(path, grade)| grade.rung == first && has_room(path, now) && !is_silent(path));
        let room = others
            .map(|(path, _)| path.window_room().get())
            .sum::<u64>();
        let suffices = room >= waiting.get().max(1);
        for (path, grade) in paths.iter().zip(&mut self.grades) {
            if suffices && is_silent(path) && grade.rung == first {
                grade.rung = None;
            }
        }
    }
}

/// Where a path stands, smaller first: paths of the first rung that any is on are eligible. `None` if it
/// can't be used.
fn rung(
    class: PathClass,
    path: &PathView,
    standby: StandbyUse,
    best_available: Option<PathClass>,
) -> Option<u8> {
    let of_standby = u8::from(path.is_backup());
    match (path.phase, class) {
        (PathPhase::Active, PathClass::Silent) => Some(4 + of_standby),
        (PathPhase::Active, PathClass::Low) => Some(2 + of_standby),
        (PathPhase::Active, _) if !path.is_backup() => Some(0),
        (PathPhase::Active, _) => Some(match standby {
            StandbyUse::Room => 0,
            StandbyUse::Class if best_available.is_none_or(|best| best > class) => 0,
            _ => 1,
        }),
        (PathPhase::Validating, class) => Some(if class < PathClass::Low { 6 } else { 7 }),
        _ => None,
    }
}
