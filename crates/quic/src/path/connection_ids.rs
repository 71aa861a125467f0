//! The connection IDs of all paths, those among them that are not open yet (draft-ietf-quic-multipath-21,
//! section 3.2).

use std::time::Duration;

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::ConnectionId;

use super::{LocalCids, PathSet, UnopenedPath};

/// Probe timeouts for which packets to a retired connection ID are accepted (as long as the packets of a path that is
/// over: draft-ietf-quic-multipath-21, section 3.4).
const RETIRED_PTOS: u32 = 3;

impl PathSet {
    /// The paths that are not open, but for which connection IDs were issued.
    pub(crate) fn unopened(&self) -> &[UnopenedPath] {
        self.further.get().map_or(&[], |further| &further.unopened)
    }

    /// The same, to be changed.
    pub(crate) fn unopened_mut(&mut self) -> &mut Vec<UnopenedPath> {
        &mut self.further.need().unopened
    }

    /// The connection IDs that this end issued for a path, whether it is open or not; `None` once it is
    /// forgotten.
    pub(crate) fn local_cids(&self, id: PathId) -> Option<&LocalCids> {
        let unopened = self.unopened().iter().find(|path| path.id == id);
        unopened
            .map(|path| &path.local)
            .or_else(|| Some(&self.get(id)?.cids.local))
    }

    /// The same, to be changed.
    pub(crate) fn local_cids_mut(&mut self, id: PathId) -> Option<&mut LocalCids> {
        if self.get(id).is_some() {
            return self.get_mut(id).map(|path| &mut path.cids.local);
        }
        let unopened = &mut self.further.get_mut()?.unopened;
        let path = unopened.iter_mut().find(|path| path.id == id)?;
        Some(&mut path.local)
    }

    /// True if the peer issued `cid` for another path than `id`.
    pub(crate) fn has_remote_cid_besides(&self, id: PathId, cid: &ConnectionId) -> bool {
        let opened = self.iter().map(|path| (path.id, &path.cids.remote));
        let unopened = self.unopened().iter();
        let unopened = unopened.filter_map(|path| Some((path.id, path.remote.as_ref()?)));
        let mut all = opened.chain(unopened);
        !self.unopened().is_empty() && all.any(|(of, cids)| of != id && cids.contains(cid))
    }

    /// Every set of connection IDs that this end issued, with the path that it is for.
    pub(crate) fn all_local_cids(&self) -> impl Iterator<Item = (PathId, &LocalCids)> {
        let open = self.iter().map(|path| (path.id, &path.cids.local));
        open.chain(self.unopened().iter().map(|path| (path.id, &path.local)))
    }

    /// How long packets are accepted to an ID of path `id` after the peer has retired it: three probe timeouts,
    /// where the retirement may have come on a faster path than they.
    pub(crate) fn retired_cid_lifetime(
        &self,
        id: PathId,
        max_ack_delay: Duration,
    ) -> Option<Duration> {
        (!self.is_single()).then(|| self.pto(id, max_ack_delay) * RETIRED_PTOS)
    }

    /// When packets to a retired ID cease to be accepted.
    pub(crate) fn next_cid_expiry(&self) -> Option<Instant> {
        let expiries = self.iter().map(|path| path.cids.local.next_expiry());
        expiries.flatten().min()
    }

    /// Takes a retired ID out to which packets are accepted no more at `now`.
    pub(crate) fn expired_cid(&mut self, now: Instant) -> Option<ConnectionId> {
        self.iter_mut().find_map(|path| path.cids.local.expire(now))
    }

    /// The path that is not open, but that `cid` was issued for.
    pub(crate) fn unopened_path_of(&self, cid: &ConnectionId) -> Option<PathId> {
        let owner = (self.unopened().iter()).find(|path| path.local.accepts(cid));
        owner.map(|path| path.id)
    }
}
