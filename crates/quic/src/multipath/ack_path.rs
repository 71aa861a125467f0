//! The path that carries the acknowledgements of all paths.
//!
//! The round-trip time of a path includes the way back of its acknowledgements, so that they stay on one
//! path (draft-ietf-quic-multipath-21, section 5.3): the one with the least round-trip time, which opens
//! windows soonest. Another takes its place if it is a good deal faster for some time, or at once if the
//! path falls silent while others receive, or answers no probe. Silence is no more than a suspicion: a path
//! that has nothing to carry is silent too. Once something arrives on such a path again, it carries its own
//! acknowledgements, so that they don't take longer than the peer's probe timeout; those of a slower path return to
//! the faster one when neither has been silent for some time.

use std::time::Duration;

use swiftwater_units::{Instant, PathId};

use crate::path::{PathSet, PathState};

/// Another path is preferred if its round-trip time is at most this share of that of the path in use.
const PREFERRED_SHARE: f64 = 0.8;
/// Round trips of the path in use for which another must stay preferred.
const PREFERRED_ROUNDS: u32 = 3;

/// Round trips of a slower path that was suspected for which neither path must be silent, before its
/// acknowledgements take the faster one again: with pauses they would change paths, and the round-trip time with them.
const RETURN_ROUNDS: u32 = 8;

/// Shortest time that counts as silence.
const MIN_SILENCE: Duration = Duration::from_millis(20);

/// A path that is faster than the one in use.
#[derive(Clone, Copy, Debug)]
struct Rival {
    path: PathId,
    since: Instant,
}

/// A path that was left for its silence, and for nothing else.
#[derive(Clone, Copy, Debug)]
struct Suspect {
    path: PathId,
    /// Since when it and the path in use have received without silence.
    heard: Option<Instant>,
}

/// Which path carries acknowledgements.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AckPath {
    path: PathId,
    rival: Option<Rival>,
    suspect: Option<Suspect>,
}

impl AckPath {
    /// The path.
    pub(crate) fn get(&self) -> PathId {
        self.path
    }

    /// Another path that carries its own acknowledgements.
    pub(crate) fn exception(&self) -> Option<PathId> {
        let heard = self.suspect.filter(|suspect| suspect.heard.is_some());
        heard.map(|suspect| suspect.path)
    }

    /// Looks whether the path is still the best. Returns a path on which an ack-eliciting packet must be sent:
    /// whether acknowledgements arrive there is only known from answers.
    pub(crate) fn choose(&mut self, now: Instant, paths: &PathSet) -> Option<PathId> {
        if paths.is_single() {
            self.take(paths.primary().id);
            return None;
        }
        let newest = paths.open().filter_map(|path| path.last_received).max();
        let is_able = |path: &PathState| {
            path.carries_data() && path.recovery.pto_count() == 0 && !paths.is_blocked(path)
        };
        let is_eligible = |path: &PathState| is_able(path) && !is_silent(path, newest);
        let is_suspect_able = |suspect: &Suspect| paths.get(suspect.path).is_some_and(is_able);
        self.suspect = self.suspect.filter(is_suspect_able);
        let rtt = |path: &PathState| path.recovery.rtt().smoothed;
        // A backup carries nothing while another path works.
        let order = |path: &PathState| (path.is_backup(), rtt(path), path.id);
        let best = (paths.open().filter(|path| is_eligible(path))).min_by_key(|path| order(path));
        let Some(best) = best else {
            // The one that received last may work at least in one direction.
            let latest = paths.open().max_by_key(|path| path.last_received);
            self.path = latest.map_or(paths.primary().id, |path| path.id);
            return None;
        };
        let current = paths.get(self.path).filter(|path| is_eligible(path));
        let Some(current) = current else {
            let silent = paths.get(self.path).filter(|path| is_able(path));
            let suspect = silent.map(|path| Suspect {
                path: path.id,
                heard: None,
            });
            self.take(best.id);
            self.suspect = suspect;
            return Some(best.id);
        };
        if let Some(suspect) = &mut self.suspect
            && let Some(path) = paths.get(suspect.path)
        {
            match suspect.heard {
                None if is_eligible(path) => {
                    suspect.heard = Some(now);
                    return Some(suspect.path);
                }
                // A silence: both have pauses.
                Some(_) if !is_eligible(path) => suspect.heard = Some(now),
                Some(since)
                    if rtt(current) < rtt(path)
                        && now.saturating_since(since) >= rtt(path) * RETURN_ROUNDS =>
                {
                    self.suspect = None;
                }
                _ => {}
            }
        }
        let is_faster = rtt(best) < rtt(current).mul_f64(PREFERRED_SHARE);
        let is_preferred = is_faster || (current.is_backup() && !best.is_backup());
        if best.id == current.id || !is_preferred {
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
        self.suspect = None;
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
