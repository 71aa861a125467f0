//! The paths of a connection by identifier, and all packet number spaces: those of the paths, and
//! those of the handshake, whose packets travel on the initial path (RFC 9000, section 12.3).
//!
//! What several paths mean for sending is in `sending`, their connection IDs together in `connection_ids`; which
//! identifiers there may be, and when paths open and end, is in `multipath`.

use std::time::Duration;

use swiftwater_units::{Instant, PacketNumber, PathId};
use swiftwater_wire::{ConnectionId, ResetToken};

use crate::idle_memory::IdleMemory;
use crate::lazy_box::LazyBox;
use crate::policy::PathPhase;
use crate::space::{HandshakeSpaces, Space, SpaceId};

use super::further::FurtherPaths;
use super::{Address, LossDetection, MtuState, OtherPaths, PathResponseLimit, PathState};

/// Packets that answer a peer which acknowledges nothing, at most.
const MAX_UNACKNOWLEDGED_RUN: u32 = 4096;
/// The same for Initial and Handshake packets.
const MAX_UNACKNOWLEDGED_RUN_IN_HANDSHAKE: u32 = 256;

/// Owns the paths and packet number spaces of a connection. A look-up fails for a path that is not open.
#[derive(Debug)]
pub(crate) struct PathSet {
    handshake_spaces: HandshakeSpaces,
    /// The open path with the smallest identifier; a connection has at least one path.
    pub(super) primary: PathState,
    /// Limits the responses on all paths, those on candidate paths included.
    response_limit: PathResponseLimit,
    /// Most connections have one path.
    pub(super) further: LazyBox<FurtherPaths>,
}

impl PathSet {
    /// One path, with the packet number spaces of a connection that starts.
    pub(crate) fn new(initial: PathState) -> Self {
        Self {
            handshake_spaces: HandshakeSpaces::new(),
            primary: initial,
            response_limit: PathResponseLimit::default(),
            further: LazyBox::default(),
        }
    }

    /// The path that calls without a path mean: the open one with the smallest identifier.
    pub(crate) fn primary(&self) -> &PathState {
        &self.primary
    }

    /// The path of the handshake, on which packets of the Initial and Handshake spaces travel (path ID 0).
    pub(crate) fn initial(&self) -> &PathState {
        &self.primary
    }

    /// The same, to be changed.
    pub(crate) fn initial_mut(&mut self) -> &mut PathState {
        &mut self.primary
    }

    pub(crate) fn get(&self, id: PathId) -> Option<&PathState> {
        if self.primary.id == id {
            return Some(&self.primary);
        }
        self.others().iter().find(|path| path.id == id)
    }

    pub(crate) fn get_mut(&mut self, id: PathId) -> Option<&mut PathState> {
        if self.primary.id == id {
            return Some(&mut self.primary);
        }
        (self.others_mut().iter_mut()).find(|path| path.id == id)
    }

    pub(super) fn others(&self) -> &[PathState] {
        self.further.get().map_or(&[], |further| &further.opened)
    }

    pub(super) fn others_mut(&mut self) -> &mut [PathState] {
        (self.further.get_mut()).map_or(&mut [], |further| &mut further.opened)
    }

    /// Every path that was opened: the open ones by identifier, then those that are being closed.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &PathState> + Clone {
        std::iter::once(&self.primary).chain(self.others())
    }

    /// A path that became usable for data, or ceased to be, since it was last asked for; each change is returned
    /// once.
    pub(crate) fn next_usability_change(&mut self) -> Option<(PathId, bool)> {
        let has_changed = |path: &&mut PathState| path.carries_data() != path.is_announced_usable;
        let path = self.iter_mut().find(has_changed)?;
        path.is_announced_usable = !path.is_announced_usable;
        Some((path.id, path.is_announced_usable))
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut PathState> {
        let others = (self.further.get_mut()).map_or(&mut [][..], |further| &mut further.opened);
        std::iter::once(&mut self.primary).chain(others)
    }

    /// Every path that was opened, with whether its socket is blocked.
    pub(super) fn for_each_mut(&mut self, mut act: impl FnMut(&mut PathState, bool)) {
        let Some(further) = self.further.get_mut() else {
            return act(&mut self.primary, false);
        };
        let blocked = &further.blocked_sockets;
        for path in std::iter::once(&mut self.primary).chain(&mut further.opened) {
            let is_blocked = blocked.contains(&path.network.address.local.socket);
            act(path, is_blocked);
        }
    }

    /// The paths that are not being closed, by identifier.
    pub(crate) fn open(&self) -> impl Iterator<Item = &PathState> + Clone {
        self.iter().filter(|path| !path.is_closing())
    }

    /// True if there is one path, which is the case unless multipath was negotiated and used.
    #[inline]
    pub(crate) fn is_single(&self) -> bool {
        self.others().is_empty()
    }

    /// Adds a path that has just been opened.
    pub(crate) fn insert(&mut self, path: PathState) {
        self.further.need().opened.push(path);
        self.sort();
    }

    /// Takes a path out; `None` if it is not open or the last one.
    pub(crate) fn remove(&mut self, id: PathId) -> Option<PathState> {
        let primary_id = self.primary.id;
        let opened = &mut self.further.get_mut()?.opened;
        if primary_id == id {
            let next = opened.iter().position(|path| !path.is_closing())?;
            return Some(std::mem::replace(&mut self.primary, opened.remove(next)));
        }
        let at = opened.iter().position(|path| path.id == id)?;
        Some(opened.remove(at))
    }

    /// Puts the paths in order after one was added or began to close.
    pub(crate) fn sort(&mut self) {
        let Some(further) = self.further.get_mut() else {
            return;
        };
        let order = |path: &PathState| (path.is_closing(), path.id);
        further.opened.sort_by_key(order);
        if let Some(first) = further.opened.first_mut()
            && order(first) < order(&self.primary)
        {
            std::mem::swap(first, &mut self.primary);
            further.opened.sort_by_key(order);
        }
    }

    /// Counts a received datagram's bytes for the anti-amplification limit of the path that they came
    /// on; false if there is none.
    pub(crate) fn on_datagram(&mut self, from: &Address, len: usize) -> bool {
        let mut is_known = self.primary.network.on_datagram(from, len);
        for path in self.others_mut() {
            is_known |= path.network.on_datagram(from, len);
        }
        is_known
    }

    /// The path that a packet to `cid` belongs to: connection IDs are issued for one path each. With one
    /// path every packet is its own, those of the handshake among them, which clients send to
    /// connection IDs of their choice. `None` if it is no ID of an open path.
    pub(crate) fn path_of(&self, cid: &ConnectionId) -> Option<PathId> {
        if self.further.get().is_none() {
            return Some(self.primary.id);
        }
        let mut paths = self.iter();
        let owner = paths.find(|path| path.cids.local.accepts(cid));
        owner.map(|path| path.id)
    }

    /// True if `token` is a stateless reset token of the peer's (RFC 9000, section 10.3.1).
    pub(crate) fn is_reset_token(&self, token: &ResetToken) -> bool {
        self.iter()
            .any(|path| path.cids.remote.is_reset_token(token))
    }

    /// The probe timeout of a path without back-off (RFC 9002, section 6.2.1); the longest of all while the
    /// path is not open.
    pub(crate) fn pto(&self, id: PathId, max_ack_delay: Duration) -> Duration {
        let path = self.get(id);
        path.map_or_else(
            || self.longest_pto(max_ack_delay),
            |path| path.pto(max_ack_delay),
        )
    }

    /// The longest probe timeout of all paths, for what concerns the connection as a whole.
    pub(crate) fn longest_pto(&self, max_ack_delay: Duration) -> Duration {
        let ptos = self.iter().map(|path| path.pto(max_ack_delay));
        ptos.max().unwrap_or(max_ack_delay)
    }

    /// The longest probe timeout of paths in use, and of those in use before while packets may still
    /// come from there: how long packets that were sent until now may be under way.
    pub(crate) fn longest_recent_pto(&self, max_ack_delay: Duration) -> Duration {
        let candidates = self.iter().flat_map(|path| path.network.candidates.iter());
        let previous = candidates.filter_map(|path| path.kept.as_ref());
        let ptos = previous.map(|kept| kept.recovery.pto_base() + max_ack_delay);
        ptos.fold(self.longest_pto(max_ack_delay), Duration::max)
    }

    /// The longest smoothed RTT of all paths.
    pub(crate) fn longest_rtt(&self) -> Duration {
        let rtts = self.iter().map(|path| path.recovery.rtt().smoothed);
        rtts.max().unwrap_or_default()
    }

    /// The path whose recovery counts the packets of a space.
    pub(crate) fn path_for(&self, id: SpaceId) -> Option<&PathState> {
        match id {
            SpaceId::Initial | SpaceId::Handshake => Some(&self.primary),
            SpaceId::Data(path) => self.get(path),
        }
    }

    /// The same, to be changed.
    pub(crate) fn path_for_mut(&mut self, id: SpaceId) -> Option<&mut PathState> {
        match id {
            SpaceId::Initial | SpaceId::Handshake => Some(&mut self.primary),
            SpaceId::Data(path) => self.get_mut(path),
        }
    }

    /// The spaces in use, with their identifiers: Initial, Handshake, then those of the paths.
    pub(crate) fn spaces(&self) -> impl Iterator<Item = (SpaceId, &Space)> {
        let data = self
            .iter()
            .map(|path| (SpaceId::Data(path.id), &path.space));
        self.handshake_spaces.iter().chain(data)
    }

    pub(crate) fn space(&self, id: SpaceId) -> Option<&Space> {
        match id {
            SpaceId::Data(path) => self.get(path).map(|path| &path.space),
            id => self.handshake_spaces.get(id),
        }
    }

    pub(crate) fn space_mut(&mut self, id: SpaceId) -> Option<&mut Space> {
        match id {
            SpaceId::Data(path) => self.get_mut(path).map(|path| &mut path.space),
            id => self.handshake_spaces.get_mut(id),
        }
    }

    /// True if a packet number space has no number left.
    pub(crate) fn are_numbers_exhausted(&self) -> bool {
        let mut spaces = self.spaces();
        spaces.any(|(_, space)| space.ledger.is_exhausted())
    }

    /// True if the peer goes on sending but acknowledges nothing, not even probes: every packet that
    /// answers it would have to be kept. A peer that receives nothing can't send that much, and
    /// one that does must acknowledge (RFC 9000, section 13.2.1).
    pub(crate) fn has_unresponsive_peer(&self) -> bool {
        self.spaces().any(|(id, space)| {
            let limit = match id {
                SpaceId::Data(_) => MAX_UNACKNOWLEDGED_RUN,
                SpaceId::Initial | SpaceId::Handshake => MAX_UNACKNOWLEDGED_RUN_IN_HANDSHAKE,
            };
            space.unacknowledged_run > limit
        })
    }

    /// The first path with a candidate path that has a challenge or a response to send, and the index of
    /// that candidate path.
    pub(crate) fn candidate_to_validate(&self) -> Option<(PathId, usize)> {
        let at = |path: &PathState| path.network.candidates.next_to_send();
        self.open().find_map(|path| Some((path.id, at(path)?)))
    }

    /// The first path with an MTU probe to send now, and the size of that probe; see
    /// [`PathState::mtu_probe_to_send`].
    pub(crate) fn mtu_probe_to_send(
        &mut self,
        now: Instant,
        waiting: u64,
        room: usize,
    ) -> Option<(PathId, u16)> {
        let mut probe = None;
        self.for_each_mut(|path, is_blocked| {
            if probe.is_none() && path.phase == PathPhase::Active && !is_blocked {
                let size = path.mtu_probe_to_send(now, waiting, room);
                probe = size.map(|size| (path.id, size));
            }
        });
        probe
    }

    /// Whether the largest datagram of any path is still to be found.
    pub(crate) fn are_searched(&self) -> bool {
        let searches = |state| matches!(state, MtuState::Waiting | MtuState::Searching);
        self.iter().any(|path| searches(path.network.mtu.state()))
    }

    /// Data that the pacer or the scheduler has held back until now may go.
    pub(crate) fn on_pacing_timeout(&mut self, now: Instant) {
        for path in self.iter_mut() {
            path.pacing_until = path.pacing_until.filter(|&until| until > now);
        }
    }

    /// An MTU probe in flight whose fate should have shown by now.
    pub(crate) fn overdue_mtu_probe(&mut self, now: Instant) -> Option<(PathId, PacketNumber)> {
        self.iter_mut()
            .find_map(|path| Some((path.id, path.network.mtu.on_timeout(now)?)))
    }

    /// A challenge arrived on path `id`; true if it is to be answered.
    pub(crate) fn admit_challenge(&mut self, now: Instant, id: PathId) -> bool {
        let rtt = self.get(id).map(|path| path.recovery.rtt().smoothed);
        rtt.is_some_and(|rtt| self.response_limit.admit(now, rtt))
    }

    /// The path that sent the challenge which a response with this data answers.
    pub(crate) fn challenged_with(&self, data: [u8; 8]) -> Option<PathId> {
        let mut paths = self.iter();
        let path = paths.find(|path| path.network.is_challenged_with(data));
        path.map(|path| path.id)
    }

    /// The next path after `previous`, or the first one, on which something is being validated.
    pub(crate) fn next_in_validation(&self, previous: Option<PathId>) -> Option<PathId> {
        let mut paths = self.open();
        let is_next = |path: &&PathState| previous.is_none_or(|previous| path.id > previous);
        let path = paths.find(|path| is_next(path) && path.network.awaits_validation());
        path.map(|path| path.id)
    }

    /// A path, the spaces of the handshake, and the other paths.
    #[inline]
    pub(crate) fn for_transmission(
        &mut self,
        id: PathId,
    ) -> Option<(&mut PathState, &mut HandshakeSpaces, OtherPaths<'_>)> {
        let spaces = &mut self.handshake_spaces;
        let others = (self.further.get_mut()).map_or(&mut [][..], |further| &mut further.opened);
        if self.primary.id == id {
            return Some((&mut self.primary, spaces, OtherPaths::all(others)));
        }
        let at = others.iter().position(|path| path.id == id)?;
        let (before, rest) = others.split_at_mut(at);
        let (path, after) = rest.split_first_mut()?;
        let others = OtherPaths::around(&mut self.primary, before, after);
        Some((path, spaces, others))
    }

    /// Ends the space of an encryption level that is over (RFC 9001, section 4.9): what is in flight in
    /// it leaves flight. False if it was over before.
    pub(crate) fn discard(&mut self, id: SpaceId) -> bool {
        discard_space(id, &mut self.handshake_spaces, &mut self.primary)
    }

    /// Takes everything in flight in a space out of flight, and puts its packet numbers into `numbers`
    /// instead of what is there. False if the space is discarded, or its path not open.
    pub(crate) fn abandon(&mut self, id: SpaceId, numbers: &mut Vec<PacketNumber>) -> bool {
        let Some(detection) = self.loss_detection(id) else {
            return false;
        };
        numbers.clear();
        let bytes = detection.space.ledger.abandon(numbers);
        detection.recovery.on_discard(bytes);
        true
    }

    /// Loss recovery of one packet number space.
    pub(crate) fn loss_detection(&mut self, id: SpaceId) -> Option<LossDetection<'_>> {
        let (space, recovery, network) = match id {
            SpaceId::Data(path) => {
                let path = self.get_mut(path)?;
                (&mut path.space, &mut path.recovery, &mut path.network)
            }
            id => {
                let space = self.handshake_spaces.get_mut(id)?;
                (space, &mut self.primary.recovery, &mut self.primary.network)
            }
        };
        Some(LossDetection {
            id,
            space,
            recovery,
            network,
        })
    }
}

/// Ends a space of the handshake: what is in flight in it leaves flight. False if it was over before.
pub(crate) fn discard_space(
    id: SpaceId,
    spaces: &mut HandshakeSpaces,
    path: &mut PathState,
) -> bool {
    let Some(mut space) = spaces.take(id) else {
        return false;
    };
    let bytes = space.ledger.abandon(&mut Vec::new());
    path.recovery.on_discard(bytes);
    path.recovery.reset_pto_count();
    true
}

impl IdleMemory for PathSet {
    fn release_idle_memory(&mut self) {
        let Self {
            handshake_spaces,
            primary,
            response_limit: _,
            further,
        } = self;
        handshake_spaces.release_idle_memory();
        primary.release_idle_memory();
        if let Some(further) = further.get_mut() {
            further.release_idle_memory();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::sync::Arc;

    use rand_chacha::ChaCha20Rng;
    use rand_core::SeedableRng;
    use swiftwater_units::Side;

    use super::*;
    use crate::config::TransportConfig;
    use crate::path::{Amplification, LocalCids, NewPath, RemoteCids};
    use crate::transmit::LocalAddress;

    const UNKNOWN: PathId = PathId::new(7);

    fn path(id: PathId) -> PathState {
        let config = Arc::new(TransportConfig::default());
        let rng = &mut ChaCha20Rng::seed_from_u64(1);
        let cid = ConnectionId::new(&[1; 8]).unwrap_or_default();
        let new = NewPath {
            id,
            side: Side::Client,
            config: &config,
            address: Address {
                remote: SocketAddr::from(([192, 0, 2, 1], 443)),
                local: LocalAddress::default(),
            },
            amplification: Amplification::validated(),
            local_cids: LocalCids::new(cid),
            remote_cids: RemoteCids::new(cid, 2),
            phase: PathPhase::Active,
        };
        PathState::new(Instant::ZERO, new, rng)
    }

    #[test]
    fn a_path_that_is_not_open_is_not_found() {
        let mut paths = PathSet::new(path(PathId::ZERO));
        paths.insert(path(PathId::new(3)));
        for id in [PathId::ZERO, PathId::new(3)] {
            let space = SpaceId::Data(id);
            assert_eq!(paths.get(id).map(|path| path.id), Some(id));
            assert_eq!(paths.get_mut(id).map(|path| path.id), Some(id));
            assert_eq!(paths.path_for(space).map(|path| path.id), Some(id));
            assert_eq!(paths.path_for_mut(space).map(|path| path.id), Some(id));
            assert!(paths.space(space).is_some() && paths.space_mut(space).is_some());
            assert_eq!(
                paths.loss_detection(space).map(|detection| detection.id),
                Some(space)
            );
            let found = paths.for_transmission(id);
            assert_eq!(found.map(|(path, ..)| path.id), Some(id));
        }
        let space = SpaceId::Data(UNKNOWN);
        assert!(paths.get(UNKNOWN).is_none() && paths.get_mut(UNKNOWN).is_none());
        assert!(paths.path_for(space).is_none() && paths.path_for_mut(space).is_none());
        assert!(paths.space(space).is_none() && paths.space_mut(space).is_none());
        assert!(paths.loss_detection(space).is_none());
        assert!(paths.for_transmission(UNKNOWN).is_none());
    }

    #[test]
    fn paths_in_validation_follow_in_the_order_of_their_identifiers() {
        let ids = [PathId::ZERO, PathId::new(3), PathId::new(5)];
        let mut paths = PathSet::new(path(ids[0]));
        paths.insert(path(ids[1]));
        paths.insert(path(ids[2]));
        assert_eq!(paths.next_in_validation(None), None);
        for id in [ids[2], ids[0]] {
            let path = paths.get_mut(id).expect("the path is open");
            path.network.validation.start(Duration::from_millis(100));
        }
        assert_eq!(paths.next_in_validation(None), Some(ids[0]));
        assert_eq!(paths.next_in_validation(Some(ids[0])), Some(ids[2]));
        assert_eq!(paths.next_in_validation(Some(ids[2])), None);
    }

    #[test]
    fn a_response_belongs_to_the_path_that_sent_the_challenge() {
        let (data, other) = ([7; 8], PathId::new(3));
        let mut paths = PathSet::new(path(PathId::ZERO));
        paths.insert(path(other));
        for path in paths.iter_mut() {
            path.network.validation.start(Duration::from_millis(100));
        }
        let path = paths.get_mut(other).expect("the path is open");
        path.network.validation.on_sent(Instant::ZERO, data, true);
        assert_eq!(paths.challenged_with(data), Some(other));
        assert_eq!(paths.challenged_with([8; 8]), None);
    }
}
