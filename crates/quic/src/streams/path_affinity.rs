//! Streams whose data are to leave on a certain path: they stand in queues of that path.
//!
//! While the path can't carry them, they stand in for any path, so that nothing waits for a path that has
//! failed. A connection without such streams keeps nothing.

use std::collections::BTreeMap;

use swiftwater_units::{PathId, StreamId};

use super::Streams;
use super::connection_send::SendTotals;
use super::stream_scheduler::{QueueMembership, StreamScheduler};
use crate::error::WriteError;
use crate::idle_memory::IdleMemory;

/// The streams of one path.
#[derive(Debug)]
pub(super) struct StreamsOfPath {
    pub(super) path: PathId,
    /// The path can't carry data at the moment: any other one may.
    is_suspended: bool,
    pub(super) scheduler: StreamScheduler,
    /// What the streams contribute to the totals of the connection.
    pub(super) totals: SendTotals,
}

impl StreamsOfPath {
    /// True if data of these streams may leave on `path`.
    pub(super) fn may_use(&self, path: PathId) -> bool {
        self.is_suspended || self.path == path
    }
}

/// The paths that streams are assigned to.
#[derive(Debug, Default)]
pub(super) struct PathAffinities {
    paths: Vec<StreamsOfPath>,
    by_key: BTreeMap<u32, PathId>,
}

impl PathAffinities {
    pub(super) fn iter(&self) -> impl Iterator<Item = &StreamsOfPath> {
        self.paths.iter()
    }

    /// Where the stream of `key` stands, if it is assigned to a path.
    pub(super) fn of_key(&mut self, key: u32) -> Option<&mut StreamsOfPath> {
        let path = *self.by_key.get(&key)?;
        self.paths.iter_mut().find(|of| of.path == path)
    }

    fn path_of_key(&self, key: u32) -> Option<PathId> {
        self.by_key.get(&key).copied()
    }

    /// Takes out the stream of `key`, which contributes `totals`.
    fn remove(&mut self, key: u32, totals: SendTotals) {
        if let Some(of) = self.of_key(key) {
            of.scheduler.discard(key);
            of.totals.subtract(totals);
        }
        self.by_key.remove(&key);
        self.paths
            .retain(|of| self.by_key.values().any(|path| *path == of.path));
    }

    fn insert(&mut self, key: u32, path: PathId, share: u32) -> &mut StreamsOfPath {
        self.by_key.insert(key, path);
        let at = self.paths.iter().position(|of| of.path == path);
        let at = at.unwrap_or_else(|| {
            self.paths.push(StreamsOfPath {
                path,
                is_suspended: false,
                scheduler: StreamScheduler::new(share),
                totals: SendTotals::default(),
            });
            self.paths.len() - 1
        });
        &mut self.paths[at]
    }
}

impl IdleMemory for PathAffinities {
    fn release_idle_memory(&mut self) {
        let Self { paths, by_key: _ } = self;
        for of in paths {
            of.scheduler.release_idle_memory();
        }
    }
}

impl Streams {
    /// Assigns a stream to a path, or to all of them.
    pub(crate) fn set_path(
        &mut self,
        id: StreamId,
        path: Option<PathId>,
    ) -> Result<(), WriteError> {
        let (key, _) = self.sending(id)?;
        self.assign(key, path);
        Ok(())
    }

    /// The path that a stream is assigned to.
    pub(crate) fn path_of(&self, id: StreamId) -> Option<PathId> {
        let affinities = self.outgoing.affinities.get()?;
        affinities.path_of_key(self.ids.key(id)?)
    }

    fn assign(&mut self, key: u32, path: Option<PathId>) {
        let Some((id, rank, totals)) = self.slab.get(key).and_then(|stream| {
            let send = stream.send.as_ref()?;
            Some((stream.id, stream.priority.rank(), SendTotals::of(send)))
        }) else {
            return;
        };
        let outgoing = &mut self.outgoing;
        if outgoing.affinities.get().is_none() && path.is_none() {
            return;
        }
        let affinities = outgoing.affinities.need();
        affinities.remove(key, totals);
        let queues = totals.queues();
        match path {
            Some(path) => {
                outgoing.scheduler.discard(key);
                let of = affinities.insert(key, path, outgoing.scheduler.share());
                of.scheduler.set(key, id, rank, queues);
                of.totals.add(totals);
            }
            None => outgoing.scheduler.set(key, id, rank, queues),
        }
        if affinities.by_key.is_empty() {
            outgoing.affinities.release();
        }
    }

    /// The path can't carry data for now, or can again.
    pub(crate) fn suspend_path(&mut self, path: PathId, is_suspended: bool) {
        let Some(affinities) = self.outgoing.affinities.get_mut() else {
            return;
        };
        for of in affinities.paths.iter_mut().filter(|of| of.path == path) {
            of.is_suspended = is_suspended;
        }
    }

    /// The path is over: its streams may leave on any other.
    pub(crate) fn discard_path(&mut self, path: PathId) {
        let Some(affinities) = self.outgoing.affinities.get() else {
            return;
        };
        let of_path = |(key, of): (&u32, &PathId)| (*of == path).then_some(*key);
        let keys: Vec<u32> = affinities.by_key.iter().filter_map(of_path).collect();
        for key in keys {
            self.assign(key, None);
        }
    }

    /// Paths that streams are assigned to and for which something waits, with the bytes that may be sent.
    pub(crate) fn waiting_for_paths(&self) -> impl Iterator<Item = (PathId, u64)> {
        let credit = self.outgoing.credit();
        let assigned = self.outgoing.assigned();
        let waiting =
            assigned.filter(move |of| !of.is_suspended && of.scheduler.has_any(credit > 0));
        waiting.map(move |of| (of.path, of.totals.lost + of.totals.unsent.min(credit)))
    }

    /// Bytes that may leave on certain paths only: lost ones, and new ones.
    pub(crate) fn bytes_of_paths(&self) -> (u64, u64) {
        let assigned = self.outgoing.assigned();
        assigned
            .filter(|of| !of.is_suspended)
            .fold((0, 0), |(lost, unsent), of| {
                (lost + of.totals.lost, unsent + of.totals.unsent)
            })
    }
}

impl super::connection_send::ConnectionSend {
    /// The queues of the stream of `key`.
    pub(super) fn scheduler_of(&mut self, key: u32) -> &mut StreamScheduler {
        let of = (self.affinities.get_mut()).and_then(|affinities| affinities.of_key(key));
        of.map_or(&mut self.scheduler, |of| &mut of.scheduler)
    }

    /// Streams that are assigned to paths, by path.
    pub(super) fn assigned(&self) -> impl Iterator<Item = &StreamsOfPath> {
        let affinities = self.affinities.get().into_iter();
        affinities.flat_map(PathAffinities::iter)
    }

    /// Queues that may send on `path`, those of streams for any path first; `None` means any path.
    pub(super) fn schedulers_on(
        &self,
        path: Option<PathId>,
    ) -> impl Iterator<Item = &StreamScheduler> {
        let permitted = self.assigned().filter(move |of| match path {
            Some(path) => of.may_use(path),
            None => of.is_suspended,
        });
        std::iter::once(&self.scheduler).chain(permitted.map(|of| &of.scheduler))
    }

    pub(super) fn set_queues(&mut self, key: u32, id: StreamId, rank: u8, queues: QueueMembership) {
        self.scheduler_of(key).set(key, id, rank, queues);
    }
}
