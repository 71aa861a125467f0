//! The connection IDs, addresses and reset tokens that associate datagrams with connections (RFC 9000,
//! section 5.2).
//!
//! Maps are looked up, and iterated only where the order does not matter; each connection's entry lists its keys so that
//! they can be removed.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::net::SocketAddr;

use slab::Slab;
use swiftwater_wire::{ConnectionId, InvariantHeader, ResetToken};

/// Identifies a connection of an endpoint.
///
/// Indices are used again once a connection is drained, handles are not: one of a drained
/// connection means nothing to the endpoint any more.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ConnectionHandle {
    index: u32,
    generation: u32,
}

impl ConnectionHandle {
    /// A small number that no other connection of the endpoint has before this one is drained.
    pub const fn index(self) -> usize {
        self.index as usize
    }
}

/// The keys under which one connection is found.
#[derive(Debug)]
struct ConnectionRoutes {
    generation: u32,
    /// Connection IDs that this endpoint issued.
    cids: Vec<ConnectionId>,
    /// The client's address and the destination of its first Initial (accepted connections).
    first_dst: Option<(SocketAddr, ConnectionId)>,
    /// The peer's address if the local connection ID is empty.
    remote: Option<Box<SocketAddr>>,
    /// Tokens with which the peer may reset the connection.
    reset_tokens: Vec<(SocketAddr, [u8; 16])>,
    /// True while an accepted connection counts as a handshake in progress.
    handshaking: bool,
}

/// All connections, and the keys under which they are found.
#[derive(Debug, Default)]
pub(super) struct Routes {
    slots: Slab<ConnectionRoutes>,
    next_generation: u32,
    by_cid: HashMap<ConnectionId, ConnectionHandle>,
    /// The client chooses the ID, so that it counts only together with the client's address.
    by_first_dst: HashMap<(SocketAddr, ConnectionId), ConnectionHandle>,
    by_remote: HashMap<SocketAddr, ConnectionHandle>,
    /// Keyed hashing keeps the time of a look-up from depending on how much of a token is right.
    by_reset_token: HashMap<(SocketAddr, [u8; 16]), ConnectionHandle>,
    /// The last entry of `by_cid` that was found: consecutive datagrams mostly have the same ID.
    last_found: Option<(ConnectionId, ConnectionHandle)>,
    handshakes: usize,
}

impl Routes {
    /// The connection that a header belongs to.
    pub(super) fn find(
        &mut self,
        remote: SocketAddr,
        header: &InvariantHeader<'_>,
    ) -> Option<ConnectionHandle> {
        if let Some((cid, handle)) = &self.last_found
            && cid.as_bytes() == header.dst_cid
        {
            return Some(*handle);
        }
        let cid = ConnectionId::new(header.dst_cid)?;
        if cid.is_empty() {
            return self.by_remote.get(&remote).copied();
        }
        if let Some(&handle) = self.by_cid.get(&cid) {
            self.last_found = Some((cid, handle));
            return Some(handle);
        }
        if header.is_long {
            return self.by_first_dst.get(&(remote, cid)).copied();
        }
        None
    }

    /// The only place where connection IDs are removed, so that no removed one is found.
    fn discard_cid(&mut self, cid: &ConnectionId) {
        self.by_cid.remove(cid);
        self.last_found = None;
    }

    /// The connection that a datagram resets, if it ends in a token known from `remote`
    /// (RFC 9000, section 10.3.1).
    pub(super) fn find_reset(
        &self,
        remote: SocketAddr,
        datagram: &[u8],
    ) -> Option<ConnectionHandle> {
        if datagram.len() < crate::datagram_size::MIN_STATELESS_RESET
            || self.by_reset_token.is_empty()
        {
            return None;
        }
        let token = datagram.last_chunk()?;
        self.by_reset_token.get(&(remote, *token)).copied()
    }

    pub(super) fn has_cid(&self, cid: ConnectionId) -> bool {
        self.by_cid.contains_key(&cid)
    }

    /// True if an ID begins with `cid`, or `cid` with it.
    pub(super) fn conflicts_with_cid(&self, cid: ConnectionId) -> bool {
        let wanted = cid.as_bytes();
        let mut cids = self.by_cid.keys().map(ConnectionId::as_bytes);
        cids.any(|have| have.starts_with(wanted) || wanted.starts_with(have))
    }

    /// True if a connection with an empty connection ID takes all that comes from `remote`.
    pub(super) fn has_remote(&self, remote: SocketAddr) -> bool {
        self.by_remote.contains_key(&remote)
    }

    /// Connections that are not drained.
    pub(super) fn connections(&self) -> usize {
        self.slots.len()
    }

    /// True if there are no connections, and no keys are left of earlier ones.
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
            && self.by_cid.is_empty()
            && self.by_first_dst.is_empty()
            && self.by_remote.is_empty()
            && self.by_reset_token.is_empty()
    }

    /// Accepted connections whose handshake is in progress.
    pub(super) fn handshakes(&self) -> usize {
        self.handshakes
    }

    /// Adds a connection opened by this endpoint.
    pub(super) fn add_outgoing(
        &mut self,
        remote: SocketAddr,
        local_cid: ConnectionId,
    ) -> ConnectionHandle {
        self.add(remote, local_cid, None)
    }

    /// Adds a connection accepted by this endpoint; `first_dst` is the destination of the Initial that it
    /// starts with.
    pub(super) fn add_incoming(
        &mut self,
        remote: SocketAddr,
        local_cid: ConnectionId,
        first_dst: ConnectionId,
    ) -> ConnectionHandle {
        self.handshakes += 1;
        let handle = self.add(remote, local_cid, Some((remote, first_dst)));
        self.by_first_dst.insert((remote, first_dst), handle);
        handle
    }

    fn add(
        &mut self,
        remote: SocketAddr,
        local_cid: ConnectionId,
        first_dst: Option<(SocketAddr, ConnectionId)>,
    ) -> ConnectionHandle {
        let generation = self.next_generation;
        self.next_generation = generation.wrapping_add(1);
        let index = self.slots.insert(ConnectionRoutes {
            generation,
            cids: Vec::new(),
            first_dst,
            remote: local_cid.is_empty().then(|| Box::new(remote)),
            reset_tokens: Vec::new(),
            handshaking: first_dst.is_some(),
        });
        let handle = ConnectionHandle {
            index: index as u32,
            generation,
        };
        if local_cid.is_empty() {
            self.by_remote.insert(remote, handle);
        }
        self.add_cid(handle, local_cid);
        handle
    }

    fn slot(&mut self, handle: ConnectionHandle) -> Option<&mut ConnectionRoutes> {
        let slot = self.slots.get_mut(handle.index())?;
        (slot.generation == handle.generation).then_some(slot)
    }

    /// Routes datagrams with `cid` to the connection; false if another connection has that ID, and keeps
    /// it. Empty IDs and those of drained connections are ignored.
    pub(super) fn add_cid(&mut self, handle: ConnectionHandle, cid: ConnectionId) -> bool {
        if let Some(owner) = self.by_cid.get(&cid) {
            return *owner == handle;
        }
        if let Some(slot) = self.slot(handle).filter(|_| !cid.is_empty()) {
            slot.cids.push(cid);
            self.by_cid.insert(cid, handle);
        }
        true
    }

    pub(super) fn remove_cid(&mut self, handle: ConnectionHandle, cid: ConnectionId) {
        if let Some(slot) = self.slot(handle)
            && let Some(at) = slot.cids.iter().position(|&have| have == cid)
        {
            slot.cids.swap_remove(at);
            self.discard_cid(&cid);
        }
    }

    pub(super) fn add_reset_token(
        &mut self,
        handle: ConnectionHandle,
        remote: SocketAddr,
        token: ResetToken,
    ) {
        if self.slot(handle).is_none() {
            return;
        }
        let key = (remote, token.0);
        if let Entry::Vacant(entry) = self.by_reset_token.entry(key) {
            entry.insert(handle);
            if let Some(slot) = self.slot(handle) {
                // Mostly there is one at a time.
                slot.reset_tokens.reserve_exact(1);
                slot.reset_tokens.push(key);
            }
        }
    }

    pub(super) fn remove_reset_token(
        &mut self,
        handle: ConnectionHandle,
        remote: SocketAddr,
        token: ResetToken,
    ) {
        let key = (remote, token.0);
        if let Some(slot) = self.slot(handle)
            && let Some(at) = slot.reset_tokens.iter().position(|&have| have == key)
        {
            slot.reset_tokens.swap_remove(at);
            self.by_reset_token.remove(&key);
        }
    }

    /// The connection no longer counts as a handshake in progress. The destination of the client's
    /// first Initial stays associated with it until the end: a delayed copy of that packet
    /// must not start a second connection. Returns where it was accepted from, if it counted until now.
    pub(super) fn finish_handshake(&mut self, handle: ConnectionHandle) -> Option<SocketAddr> {
        let slot = self.slot(handle)?;
        if !std::mem::take(&mut slot.handshaking) {
            return None;
        }
        let client = slot.first_dst.map(|(client, _)| client);
        self.handshakes = self.handshakes.saturating_sub(1);
        client
    }

    /// Removes the connection and all its keys. Returns where it was accepted from.
    pub(super) fn remove(&mut self, handle: ConnectionHandle) -> Option<SocketAddr> {
        self.slot(handle)?;
        self.finish_handshake(handle);
        let slot = self.slots.remove(handle.index());
        for cid in slot.cids {
            self.discard_cid(&cid);
        }
        for key in slot.reset_tokens {
            self.by_reset_token.remove(&key);
        }
        if let Some(key) = slot.first_dst {
            self.by_first_dst.remove(&key);
        }
        if let Some(remote) = slot.remote {
            self.by_remote.remove(&*remote);
        }
        slot.first_dst.map(|(client, _)| client)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_conflict_if_one_begins_the_other() {
        let id = |bytes: &[u8]| ConnectionId::new(bytes).unwrap_or_default();
        let mut routes = Routes::default();
        let handle = routes.add_outgoing(([192, 0, 2, 1], 443).into(), id(b"12345678"));
        for conflicting in [&b"12345678"[..], b"1234", b"123456789", b""] {
            assert!(routes.conflicts_with_cid(id(conflicting)));
        }
        assert!(!routes.conflicts_with_cid(id(b"12345679")));
        routes.remove(handle);
        assert!(!routes.conflicts_with_cid(id(b"12345678")));
    }
}
