//! Data that wait for their next copy, by when it is due.

use std::collections::{BTreeMap, BTreeSet};

use swiftwater_quic::Priority;
use swiftwater_quic::policy::Datum;
use swiftwater_units::Instant;

/// Where a datum stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Entry {
    /// Copies sent in this round.
    pub(super) copies: usize,
    /// Copies granted in this round.
    pub(super) granted: usize,
    /// Retransmissions so far.
    pub(super) round: u32,
    pub(super) priority: Priority,
    pub(super) deadline: Option<Instant>,
    /// When the next copy is due; `None` while one that was asked for hasn't left, and after the last.
    pub(super) due: Option<Instant>,
    /// A copy was asked for and hasn't left.
    pub(super) is_asked: bool,
}

/// All data under repair of a connection. Every change costs O(log n).
#[derive(Debug, Default)]
pub(super) struct Agenda {
    entries: BTreeMap<Datum, Entry>,
    due: BTreeSet<(Instant, Datum)>,
}

impl Agenda {
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn get(&self, datum: &Datum) -> Option<&Entry> {
        self.entries.get(datum)
    }

    /// Puts `entry` in the place of what was known of `datum`.
    pub(super) fn set(&mut self, datum: Datum, entry: Entry) {
        self.remove(&datum);
        if let Some(due) = entry.due {
            self.due.insert((due, datum));
        }
        self.entries.insert(datum, entry);
    }

    pub(super) fn remove(&mut self, datum: &Datum) -> Option<Entry> {
        let entry = self.entries.remove(datum)?;
        if let Some(due) = entry.due {
            self.due.remove(&(due, *datum));
        }
        Some(entry)
    }

    /// When the first copy is due.
    pub(super) fn first_due(&self) -> Option<Instant> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Data whose copy is due by `now`, the longest due first.
    pub(super) fn due_by(&self, now: Instant) -> impl Iterator<Item = (Datum, &Entry)> {
        self.due
            .iter()
            .take_while(move |(at, _)| *at <= now)
            .filter_map(|(_, datum)| Some((*datum, self.entries.get(datum)?)))
    }
}
