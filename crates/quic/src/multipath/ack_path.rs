//! The path that carries the acknowledgements of all paths.
//!
//! The round-trip time of a path includes the way back of its acknowledgements, so that they stay on one
//! path (draft-ietf-quic-multipath-21, section 5.3): the one with the least round-trip time, which opens
//! windows soonest. Another takes its place if it is a good deal faster for some time, or at once if the
//! path falls silent while others receive, or answers no probe.

use std::time::Duration;

use swiftwater_units::{Instant, PathId};

use crate::path::{PathSet, PathState};

/// Another path is preferred if its round-trip time is at most this share of that of the path in use.
const PREFERRED_SHARE: f64 = 0.8;
/// Round trips of the path in use for which another must stay preferred.
const PREFERRED_ROUNDS: u32 = 3;

/// Shortest time that counts as silence.
const MIN_SILENCE: Duration = Duration::from_millis(20);

/// A path that is faster than the one in use.
#[derive(Clone, Copy, Debug)]
struct Rival {
    path: PathId,
    since: Instant,
}

/// Which path carries acknowledgements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckPath {
    path: PathId,
    rival: Option<Rival>,
}

impl AckPath {
    /// The path.
    pub(crate) fn get(&self) -> PathId {
        self.path
    }

    /// Looks whether the path is still the best. Returns a path on which an ack-eliciting packet must be sent:
    /// whether acknowledgements arrive there is only known from answers.
    pub(crate) fn choose(&mut self, now: Instant, paths: &PathSet) -> Option<PathId> {
        if paths.is_single() {
            self.path = paths.primary().id;
            self.rival = None;
            return None;
        }
        let newest = paths.open().filter_map(|path| path.last_received).max();
        let is_eligible = |path: &PathState| {
            path.carries_data()
                && path.recovery.pto_count() == 0
                && !is_silent(path, newest)
                && !paths.is_blocked(path)
        };
        let rtt = |path: &PathState| path.recovery.rtt().smoothed;
        let best =
            (paths.open().filter(|path| is_eligible(path))).min_by_key(|path| (rtt(path), path.id));
        let Some(best) = best else {
            // The one that received last may work at least in one direction.
            let latest = paths.open().max_by_key(|path| path.last_received);
            self.path = latest.map_or(paths.primary().id, |path| path.id);
            return None;
        };
        let current = paths.get(self.path).filter(|path| is_eligible(path));
        let Some(current) = current else {
            self.take(best.id);
            return Some(best.id);
        };
        if best.id == current.id || rtt(best) >= rtt(current).mul_f64(PREFERRED_SHARE) {
            self.rival = None;
            return None;
        }
        match self.rival {
            Some(rival) if rival.path == best.id => {
                if now.saturating_since(rival.since) >= rtt(current) * PREFERRED_ROUNDS {
                    self.take(best.id);
                }
                None
            }
            _ => {
                self.rival = Some(Rival {
                    path: best.id,
                    since: now,
                });
                Some(best.id)
            }
        }
    }

    fn take(&mut self, path: PathId) {
        self.path = path;
        self.rival = None;
    }
}

/// True if nothing has come on the path for half a round trip while another path received at `newest`: in
/// less than a probe timeout, so that acknowledgements arrive before the peer's windows are used up.
fn is_silent(path: &PathState, newest: Option<Instant>) -> bool {
    let longest = (path.recovery.rtt().smoothed / 2).max(MIN_SILENCE);
    match (newest, path.last_received) {
        (Some(newest), Some(last)) => newest.saturating_since(last) > longest,
        (Some(_), None) => true,
        (None, _) => false,
    }
}
