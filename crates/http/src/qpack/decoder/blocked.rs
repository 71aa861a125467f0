//! Blocked sections (RFC 9204, section 2.2.1).

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;

use crate::qpack::error::QpackFault;
use crate::qpack::prefix::Prefix;

/// Blocked sections permitted per stream. A caller that stops reading a blocked stream needs one.
const MAX_ON_STREAM: usize = 8;

/// A section whose prefix was read.
#[derive(Debug)]
pub(super) struct Section {
    pub(super) prefix: Prefix,
    /// Its field lines; `None` if it is too large to be kept.
    pub(super) lines: Option<Bytes>,
}

/// The blocked streams and their sections, at least one each.
#[derive(Debug, Default)]
pub(super) struct BlockedSections {
    streams: BTreeMap<u64, VecDeque<Section>>,
}

impl BlockedSections {
    pub(super) fn contains(&self, stream: u64) -> bool {
        self.streams.contains_key(&stream)
    }

    /// Stores a section behind the others of its stream.
    pub(super) fn push(
        &mut self,
        stream: u64,
        mut section: Section,
        max_streams: u64,
    ) -> Result<(), QpackFault> {
        if !self.contains(stream) && self.streams.len() as u64 >= max_streams {
            return Err(QpackFault::TooManyBlocked);
        }
        let sections = self.streams.entry(stream).or_default();
        if sections.len() >= MAX_ON_STREAM {
            return Err(QpackFault::TooManyHeld);
        }
        // A copy, so that the section does not keep a whole receive buffer.
        section.lines = section.lines.map(|lines| Bytes::copy_from_slice(&lines));
        sections.push_back(section);
        Ok(())
    }

    /// A section that `inserted` insertions unblock, of the lowest such stream.
    pub(super) fn pop(&mut self, inserted: u64) -> Option<(u64, Section)> {
        let ready = |sections: &VecDeque<Section>| {
            let first = sections.front();
            first.is_some_and(|section| section.prefix.required <= inserted)
        };
        let mut streams = self.streams.iter();
        let stream = *streams.find(|(_, sections)| ready(sections))?.0;
        let sections = self.streams.get_mut(&stream)?;
        let section = sections.pop_front()?;
        if sections.is_empty() {
            self.streams.remove(&stream);
        }
        Some((stream, section))
    }

    pub(super) fn remove(&mut self, stream: u64) {
        self.streams.remove(&stream);
    }
}
