//! Sections that refer to the dynamic table and are not acknowledged (RFC 9204, sections 2.1.2 and 2.2.2).

use std::collections::{BTreeMap, VecDeque};

/// Record of an unacknowledged section.
#[derive(Debug)]
pub(super) struct Section {
    /// Its Required Insert Count, above 0.
    pub(super) required: u64,
    /// Absolute indices of the entries that it refers to, one for each reference.
    pub(super) references: Vec<u64>,
}

#[derive(Debug, Default)]
pub(super) struct Unacknowledged {
    streams: BTreeMap<u64, VecDeque<Section>>,
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
        self.streams.entry(stream).or_default().push_back(section);
    }

    /// Removes the earliest section of a stream.
    pub(super) fn acknowledge(&mut self, stream: u64) -> Option<Section> {
        let sections = self.streams.get_mut(&stream)?;
        let section = sections.pop_front()?;
        if sections.is_empty() {
            self.streams.remove(&stream);
        }
        self.references -= section.references.len();
        Some(section)
    }

    /// Removes all sections of a stream.
    pub(super) fn remove(&mut self, stream: u64) -> VecDeque<Section> {
        self.at_risk.remove(&stream);
        let sections = self.streams.remove(&stream).unwrap_or_default();
        self.references -= sections.iter().map(|s| s.references.len()).sum::<usize>();
        sections
    }

    /// The Known Received Count reached this value.
    pub(super) fn on_known(&mut self, known: u64) {
        self.at_risk.retain(|_, required| *required > known);
    }
}
