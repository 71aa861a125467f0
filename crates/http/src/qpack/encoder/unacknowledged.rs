//! Sections that refer to the dynamic table and are not acknowledged (RFC 9204, sections 2.1.2 and 2.2.2).

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, VecDeque};

use rustc_hash::FxHashMap;

/// Record of an unacknowledged section.
#[derive(Debug)]
pub(super) struct Section {
    /// Its Required Insert Count, above 0.
    pub(super) required: u64,
    /// Absolute indices of the entries that it refers to, one for each reference.
    pub(super) references: Vec<u64>,
}

/// The unacknowledged sections of a stream. Most have one: a head without trailers.
#[derive(Debug)]
struct Sections {
    first: Section,
    later: VecDeque<Section>,
}

#[derive(Debug, Default)]
pub(super) struct Unacknowledged {
    streams: FxHashMap<u64, Sections>,
    references: usize,
    /// Streams that may be blocked at the peer, with the insert count that unblocks each.
    at_risk: BTreeMap<u64, u64>,
}

impl Unacknowledged {
    /// References that may be added under a limit of `max`.
    pub(super) const fn room(&self, max: usize) -> usize {
        max.saturating_sub(self.references)
    }

    /// Whether a stream may be blocked already.
    pub(super) fn at_risk(&self, stream: u64) -> bool {
        self.at_risk.contains_key(&stream)
    }

    /// Whether a stream may become blocked under a limit of `max` streams.
    pub(super) fn may_risk(&self, stream: u64, max: u64) -> bool {
        self.at_risk(stream) || (self.at_risk.len() as u64) < max
    }

    /// Adds a section, given the Known Received Count.
    pub(super) fn add(&mut self, stream: u64, section: Section, known: u64) {
        self.references += section.references.len();
        if section.required > known {
            let required = self.at_risk.entry(stream).or_default();
            *required = section.required.max(*required);
        }
        match self.streams.entry(stream) {
            Entry::Occupied(mut sections) => sections.get_mut().later.push_back(section),
            Entry::Vacant(vacant) => {
                let later = VecDeque::new();
                vacant.insert(Sections {
                    first: section,
                    later,
                });
            }
        }
    }

    /// Removes the earliest section of a stream.
    pub(super) fn acknowledge(&mut self, stream: u64) -> Option<Section> {
        let Entry::Occupied(mut sections) = self.streams.entry(stream) else {
            return None;
        };
        let section = match sections.get_mut().later.pop_front() {
            Some(next) => std::mem::replace(&mut sections.get_mut().first, next),
            None => sections.remove().first,
        };
        self.references -= section.references.len();
        Some(section)
    }

    /// Removes all sections of a stream.
    pub(super) fn remove(&mut self, stream: u64) -> VecDeque<Section> {
        self.at_risk.remove(&stream);
        let Some(Sections { first, mut later }) = self.streams.remove(&stream) else {
            return VecDeque::new();
        };
        later.push_front(first);
        let sections = later;
        self.references -= sections.iter().map(|s| s.references.len()).sum::<usize>();
        sections
    }

    /// The Known Received Count reached this value.
    pub(super) fn on_known(&mut self, known: u64) {
        self.at_risk.retain(|_, required| *required > known);
    }
}
