//! Connection IDs of which none is a prefix of another, so that the one of a short header can be found although the
//! header does not tell its length.

use std::collections::BTreeMap;
use std::ops::Bound;

use swiftwater_wire::{ConnectionId, MAX_CID_LEN, has_short_header};

/// Connection IDs held at most.
const CAPACITY: usize = 1_024;

/// Values by connection ID.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionIdMap<T> {
    /// By the bytes of the ID: their order puts what begins with an ID right behind it.
    entries: BTreeMap<Vec<u8>, T>,
}

impl<T> Default for ConnectionIdMap<T> {
    fn default() -> Self {
        Self {
            entries: BTreeMap::new(),
        }
    }
}

impl<T> ConnectionIdMap<T> {
    /// Adds an ID. False if there is no room, if it is empty, or if it is a prefix of another or another of it.
    pub(crate) fn insert(&mut self, id: &ConnectionId, value: T) -> bool {
        let bytes = id.as_bytes();
        let extends = self.prefix_of(bytes).is_some();
        if id.is_empty() || extends || self.extends(bytes) || self.entries.len() >= CAPACITY {
            return false;
        }
        self.entries.insert(bytes.to_vec(), value);
        true
    }

    /// The ID of a packet with a short header, its length, and its value; `None` for others.
    pub(crate) fn of_packet(&self, packet: &[u8]) -> Option<(usize, &T)> {
        if self.entries.is_empty() || !has_short_header(packet) {
            return None;
        }
        let rest = &packet[1..];
        self.prefix_of(&rest[..rest.len().min(MAX_CID_LEN)])
    }

    fn prefix_of(&self, bytes: &[u8]) -> Option<(usize, &T)> {
        let range = (Bound::Unbounded, Bound::Included(bytes));
        // Between an ID and what begins with it there is only what begins with it, hence no other ID.
        let (id, value) = self.entries.range::<[u8], _>(range).next_back()?;
        bytes.starts_with(id).then_some((id.len(), value))
    }

    /// Whether an ID begins with these bytes.
    fn extends(&self, bytes: &[u8]) -> bool {
        let range = (Bound::Included(bytes), Bound::Unbounded);
        let next = self.entries.range::<[u8], _>(range).next();
        next.is_some_and(|(id, _)| id.starts_with(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(bytes: &[u8]) -> ConnectionId {
        ConnectionId::new(bytes).unwrap_or_default()
    }

    #[test]
    fn the_id_of_a_packet_is_found_whatever_its_length() {
        let mut ids = ConnectionIdMap::default();
        assert!(ids.insert(&id(&[1, 2, 3]), 'a'));
        assert!(ids.insert(&id(&[1, 2, 4, 0, 0]), 'b'));
        assert_eq!(ids.of_packet(&[0x40, 1, 2, 3, 9]), Some((3, &'a')));
        assert_eq!(ids.of_packet(&[0x40, 1, 2, 4, 0, 0, 7]), Some((5, &'b')));
        for other in [
            &[][..],
            &[0x40],
            &[0x40, 1, 2],
            &[0x40, 1, 2, 4, 1, 0],
            &[0xc0, 1, 2, 3],
        ] {
            assert_eq!(ids.of_packet(other), None, "{other:?}");
        }
    }

    #[test]
    fn ids_that_conflict_are_refused() {
        let mut ids = ConnectionIdMap::default();
        assert!(ids.insert(&id(&[1, 2, 3]), ()));
        for other in [&[][..], &[1], &[1, 2, 3], &[1, 2, 3, 4]] {
            assert!(!ids.insert(&id(other), ()), "{other:?}");
        }
        assert!(ids.insert(&id(&[1, 2, 4]), ()));
    }
}
