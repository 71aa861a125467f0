//! Virtual connection IDs: destinations of packets that share the 4-tuple of a connection without being of it
//! (draft-ietf-masque-quic-proxy, section 2.2).
//!
//! The endpoint only sorts such packets out; what they are for, and what is done with them, is the business of the
//! [`VirtualIdReceiver`].

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use swiftwater_quic::EcnCodepoint;
use swiftwater_quic::wire::{ConnectionId, has_short_header};
use thiserror::Error;

/// Connection IDs have up to 20 bytes in the versions of QUIC that the endpoint speaks (RFC 9000, section 17.2).
const MAX_LEN: usize = 20;

/// A packet whose destination is a virtual connection ID.
#[derive(Debug)]
pub struct VirtualPacket<'a> {
    /// The packet, which starts with a short header and the virtual ID. It may be changed.
    pub packet: &'a mut [u8],
    /// Bytes of the virtual ID.
    pub id_len: usize,
    /// Where it comes from.
    pub remote: SocketAddr,
    /// Its ECN mark.
    pub ecn: Option<EcnCodepoint>,
}

/// Takes the packets whose destination is a virtual connection ID.
pub trait VirtualIdReceiver: Send + Sync + 'static {
    /// Takes packets that arrived together, in the order of their arrival.
    ///
    /// The worker of the endpoint calls it between other work: it must not wait, and must not use handles of the
    /// endpoint or its connections.
    fn receive(&self, packets: &mut dyn Iterator<Item = VirtualPacket<'_>>);
}

/// Why an ID can't be a virtual one.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum VirtualIdError {
    /// Packets with this ID could not be told from those with another one that is in use: one is the beginning of the
    /// other.
    #[error("the connection ID conflicts with one in use")]
    Conflict,
    /// The endpoint's connection IDs are too short to draw one that conflicts with none.
    #[error("the endpoint's connection IDs are shorter than 8 bytes")]
    Short,
    /// The datagrams of the connection are carried otherwise than by a socket of the system
    /// ([`DatagramCarrier`](crate::DatagramCarrier)).
    #[error("the connection has no UDP socket")]
    NoSocket,
}

/// The virtual connection IDs of a worker. A look-up takes a hash for each length that is in use.
#[derive(Default)]
pub(crate) struct VirtualIds {
    receivers: HashMap<ConnectionId, Arc<dyn VirtualIdReceiver>>,
    /// How many IDs have each length.
    lengths: [usize; MAX_LEN + 1],
}

impl VirtualIds {
    /// Adds an ID, unless it conflicts with another one (draft-ietf-masque-quic-proxy, section 5.8).
    pub(crate) fn add(
        &mut self,
        id: ConnectionId,
        receiver: Arc<dyn VirtualIdReceiver>,
    ) -> Result<(), VirtualIdError> {
        let has_other_lengths =
            (self.lengths.iter().enumerate()).any(|(len, &count)| count > 0 && len != id.len());
        let conflicts = self.receivers.contains_key(&id)
            || (has_other_lengths && self.receivers.keys().any(|have| conflict(have, &id)));
        if conflicts {
            return Err(VirtualIdError::Conflict);
        }
        self.lengths[id.len()] += 1;
        self.receivers.insert(id, receiver);
        Ok(())
    }

    pub(crate) fn remove(&mut self, id: &ConnectionId) {
        if self.receivers.remove(id).is_some() {
            self.lengths[id.len()] -= 1;
        }
    }

    /// The ID that a datagram is for, and who takes it; `None` for long headers.
    pub(crate) fn find(
        &self,
        datagram: &[u8],
    ) -> Option<(ConnectionId, &Arc<dyn VirtualIdReceiver>)> {
        if self.receivers.is_empty() || !has_short_header(datagram) {
            return None;
        }
        let rest = &datagram[1..];
        let lengths = self.lengths.iter().enumerate();
        lengths
            .filter(|(_, count)| **count > 0)
            .find_map(|(len, _)| {
                let id = ConnectionId::new(rest.get(..len)?)?;
                Some((id, self.receivers.get(&id)?))
            })
    }
}

/// Whether one ID is the beginning of the other.
fn conflict(one: &ConnectionId, other: &ConnectionId) -> bool {
    one.as_bytes().starts_with(other.as_bytes()) || other.as_bytes().starts_with(one.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;

    impl VirtualIdReceiver for Nobody {
        fn receive(&self, _packets: &mut dyn Iterator<Item = VirtualPacket<'_>>) {}
    }

    fn id(bytes: &[u8]) -> ConnectionId {
        ConnectionId::new(bytes).unwrap()
    }

    fn found(ids: &VirtualIds, datagram: &[u8]) -> Option<ConnectionId> {
        ids.find(datagram).map(|(id, _)| id)
    }

    #[test]
    fn packets_with_short_headers_are_found_by_ids_of_any_length() {
        let mut ids = VirtualIds::default();
        assert_eq!(found(&ids, b"\x40aaaaaaaa"), None);
        ids.add(id(b"aaaaaaaa"), Arc::new(Nobody)).unwrap();
        ids.add(id(b"bbbbbbbbbb"), Arc::new(Nobody)).unwrap();
        assert_eq!(found(&ids, b"\x40aaaaaaaarest"), Some(id(b"aaaaaaaa")));
        assert_eq!(found(&ids, b"\x00bbbbbbbbbbrest"), Some(id(b"bbbbbbbbbb")));
        assert_eq!(found(&ids, b"\x40bbbbbbbbb"), None, "too short");
        assert_eq!(
            found(&ids, b"\xc0aaaaaaaarest"),
            None,
            "it has a long header"
        );
        assert_eq!(found(&ids, b""), None);
        ids.remove(&id(b"aaaaaaaa"));
        assert_eq!(found(&ids, b"\x40aaaaaaaarest"), None);
    }

    #[test]
    fn an_id_that_begins_another_is_refused() {
        let mut ids = VirtualIds::default();
        ids.add(id(b"aaaaaaaa"), Arc::new(Nobody)).unwrap();
        for conflicting in [&b"aaaaaaaa"[..], b"aaaaaaaaa", b"aaaa"] {
            let added = ids.add(id(conflicting), Arc::new(Nobody));
            assert_eq!(added, Err(VirtualIdError::Conflict));
        }
        ids.add(id(b"aaaabbbbb"), Arc::new(Nobody)).unwrap();
        ids.remove(&id(b"aaaaaaaa"));
        ids.add(id(b"aaaaaaaa"), Arc::new(Nobody)).unwrap();
    }
}
