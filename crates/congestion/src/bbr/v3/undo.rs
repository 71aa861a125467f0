//! What comes back if losses turn out to be none (draft-ietf-ccwg-bbr, section 5.5.11).

use swiftwater_units::ByteCount;

use super::bounds::ShortTerm;
use super::state::State;
use crate::sample::EpisodeId;

/// Episodes kept; the transport keeps no more either.
const MAX_SAVED: usize = 8;

/// State when an episode began.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Saved {
    pub(super) episode: EpisodeId,
    pub(super) cwnd: ByteCount,
    pub(super) short_term: ShortTerm,
    pub(super) long_term: Option<ByteCount>,
    /// The probing state that the episode's losses ended.
    pub(super) ended: Option<State>,
}

/// State at the begin of recent episodes, the newest last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Undo {
    saved: Vec<Saved>,
}

impl Undo {
    pub(super) fn save(&mut self, saved: Saved) {
        if self.saved.len() == MAX_SAVED {
            self.saved.remove(0);
        }
        self.saved.push(saved);
    }

    /// The losses of the newest episode ended `state`.
    pub(super) fn note_end_of(&mut self, state: State) {
        if let Some(saved) = self.saved.last_mut() {
            saved.ended = Some(state);
        }
    }

    pub(super) fn take(&mut self, episode: EpisodeId) -> Option<Saved> {
        let at = self.saved.iter().position(|s| s.episode == episode)?;
        Some(self.saved.remove(at))
    }

    pub(super) fn clear(&mut self) {
        self.saved.clear();
    }
}
