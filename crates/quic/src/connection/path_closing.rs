//! When a path ends while the connection goes on on others (draft-ietf-quic-multipath-21, section 3.4).

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::ErrorCode;

use crate::error::{AbandonPathError, TransportError};
use crate::path::PathState;
use crate::policy::PathPhase;
use crate::space::SpaceId;

use super::Connection;

impl Connection {
    /// Abandons a path: nothing is sent on it any more, and what was in flight there leaves on other paths
    /// unless it is acknowledged within a probe timeout.
    ///
    /// # Errors
    ///
    /// See [`AbandonPathError`]: the last path ends with the connection.
    pub fn abandon_path(&mut self, now: Instant, path: PathId) -> Result<(), AbandonPathError> {
        if self.multipath.is_none() {
            return Err(AbandonPathError::NotNegotiated);
        }
        if !self.paths.open().any(|open| open.id == path) {
            return Err(AbandonPathError::NotOpen(path));
        }
        if self.paths.open().count() < 2 {
            return Err(AbandonPathError::Last(path));
        }
        self.start_closing(now, path, ErrorCode::APPLICATION_ABANDON_PATH, false);
        Ok(())
    }

    /// A path failed. The connection goes on if there is another one, and until its idle timeout if the path
    /// is a new one; false if it ends.
    pub(super) fn abandon_failed_path(&mut self, now: Instant, path: PathId) -> bool {
        let has_other = self.paths.open().any(|other| other.id != path);
        if self.multipath.is_some() && has_other {
            self.start_closing(now, path, ErrorCode::PATH_UNSTABLE_OR_POOR, false);
            return true;
        }
        match self.paths.get_mut(path) {
            Some(path) if path.phase == PathPhase::Validating => {
                let pto = self.identity.config.initial_rtt * 3;
                path.network.validation.start(pto);
                true
            }
            _ => false,
        }
    }

    /// A PATH_ABANDON frame arrived. It is answered with another one.
    pub(super) fn on_path_abandoned(&mut self, now: Instant, id: PathId, error: ErrorCode) {
        if self.path_management(now).abandon_unopened(id, error) {
            return;
        }
        let Some(path) = self.paths.get(id) else {
            return;
        };
        if path.is_closing() {
            return self.path_management(now).on_abandonment_answered(id);
        }
        if self.paths.open().count() < 2 {
            let reason = "the peer abandoned the last path";
            return self.fail(now, TransportError::new(ErrorCode::NO_VIABLE_PATH, reason));
        }
        self.start_closing(now, id, error, true);
        self.path_management(now).on_abandonment_answered(id);
    }

    /// Begins the end of an open path that is not the last one.
    fn start_closing(&mut self, now: Instant, id: PathId, error: ErrorCode, by_peer: bool) {
        self.path_management(now).start_closing(id, error, by_peer);
        self.announce_path_changes(now);
    }

    /// Acts on the steps of the end of paths that are due.
    pub(super) fn on_closing_timeouts(&mut self, now: Instant) {
        while let Some(multipath) = &mut self.multipath
            && let Some(id) = multipath.records.due(now)
        {
            let closing = &mut multipath.records.of(id).closing;
            let losses_are_due = (closing.as_mut()).and_then(|closing| closing.losses_at.take());
            let (mut fates, buffers) = self.fates(now);
            fates.replay_all_as_lost(SpaceId::Data(id), &mut buffers.loss);
            if losses_are_due.is_none() {
                self.path_management(now).forget_path(id);
            }
        }
    }

    /// Abandons paths on which probes went unanswered for long while others work. What is received there
    /// does not count: a path may work in one direction only.
    pub(super) fn abandon_silent_paths(&mut self, now: Instant) {
        while let Some((at, id)) = self.next_abandonment()
            && at <= now
        {
            if !self.abandon_failed_path(now, id) {
                return;
            }
        }
    }

    /// The path that is abandoned next unless a probe is answered, and when.
    pub(super) fn next_abandonment(&self) -> Option<(Instant, PathId)> {
        if self.paths.is_single() {
            return None;
        }
        let period = self.identity.config.multipath?.abandon_after;
        let works = |path: &PathState| path.carries_data() && path.recovery.pto_count() == 0;
        if !self.paths.open().any(works) {
            return None;
        }
        let records = &self.multipath.as_deref()?.records;
        let is_silent =
            |path: &&PathState| path.phase == PathPhase::Active && path.recovery.pto_count() > 0;
        let silent = self.paths.open().filter(is_silent);
        silent
            .filter_map(|path| Some((records.get(path.id)?.first_pto? + period, path.id)))
            .min()
    }
}
