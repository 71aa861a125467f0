//! What is recorded of paths beside their state: the status frames of both ends (draft-ietf-quic-multipath-21,
//! section 3.3), and how far the end of a path has come.
//!
//! The peer may announce a status before the path is open.

use swiftwater_units::{Instant, PathId};

use crate::idle_memory::IdleMemory;
use crate::policy::PathStatus;

use super::Closing;

/// The record of one path.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PathRecord {
    id: PathId,
    /// Of this end's last status frame; 0 before the first.
    local_sequence: u64,
    /// Of the newest status frame of the peer.
    peer_sequence: Option<u64>,
    /// What that frame said.
    pub(crate) peer_status: PathStatus,
    /// When the first probe timeout since the last acknowledgement expired.
    pub(crate) first_pto: Option<Instant>,
    /// The path is being closed.
    pub(crate) closing: Option<Closing>,
}

impl PathRecord {
    fn new(id: PathId) -> Self {
        Self {
            id,
            local_sequence: 0,
            peer_sequence: None,
            peer_status: PathStatus::default(),
            first_pto: None,
            closing: None,
        }
    }

    /// The sequence number of this end's next status frame.
    pub(crate) fn next_sequence(&mut self) -> u64 {
        self.local_sequence += 1;
        self.local_sequence
    }

    /// A status frame of the peer came; true if it is the newest and changes the status.
    pub(crate) fn on_status(&mut self, sequence: u64, status: PathStatus) -> bool {
        if self.peer_sequence.is_some_and(|newest| sequence <= newest) {
            return false;
        }
        self.peer_sequence = Some(sequence);
        std::mem::replace(&mut self.peer_status, status) != status
    }
}

/// The records of the paths that have one.
#[derive(Debug, Default)]
pub(crate) struct PathRecords(Vec<PathRecord>);

impl PathRecords {
    /// The record of path `id`, if there is one.
    pub(crate) fn get(&self, id: PathId) -> Option<&PathRecord> {
        self.0.iter().find(|record| record.id == id)
    }

    /// The record of path `id`, begun now if there is none.
    pub(crate) fn of(&mut self, id: PathId) -> &mut PathRecord {
        let known = self.0.iter().position(|record| record.id == id);
        let at = known.unwrap_or_else(|| {
            self.0.push(PathRecord::new(id));
            self.0.len() - 1
        });
        &mut self.0[at]
    }

    /// The path is forgotten.
    pub(crate) fn remove(&mut self, id: PathId) {
        self.0.retain(|record| record.id != id);
    }

    /// When the next step of a path's end is due.
    pub(crate) fn next_closing_step(&self) -> Option<Instant> {
        let closing = self.0.iter().filter_map(|record| record.closing);
        closing.filter_map(|closing| closing.next_step()).min()
    }

    /// The path whose next step is due at `now`.
    pub(crate) fn due(&self, now: Instant) -> Option<PathId> {
        let is_due = |closing: Closing| closing.next_step().is_some_and(|at| at <= now);
        let due = self
            .0
            .iter()
            .find(|record| record.closing.is_some_and(is_due));
        due.map(|record| record.id)
    }
}

impl IdleMemory for PathRecords {
    fn release_idle_memory(&mut self) {
        let Self(records) = self;
        records.shrink_to_fit();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_newest_status_counts() {
        let mut records = PathRecords::default();
        let record = records.of(PathId::new(1));
        assert!(record.on_status(3, PathStatus::Backup));
        assert!(!record.on_status(2, PathStatus::Available));
        assert!(!record.on_status(3, PathStatus::Available));
        assert_eq!(record.peer_status, PathStatus::Backup);
        assert!(!record.on_status(4, PathStatus::Backup));
        assert!(record.on_status(9, PathStatus::Available));
        assert_eq!((record.next_sequence(), record.next_sequence()), (1, 2));
    }
}
