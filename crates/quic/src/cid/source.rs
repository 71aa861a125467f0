//! The connection ID generator of an endpoint, for one of its workers.

use std::sync::Arc;

use rand_core::Rng;
use swiftwater_wire::{ConnectionId, MAX_CID_LEN};

use super::{ConnectionIdGenerator, RandomCids, Worker, WorkerCids, random_cid};
use crate::crypto::EndpointKey;

/// Length of the IDs unless a generator is configured, bytes.
const USUAL_LEN: usize = 8;

/// Makes one worker's connection IDs.
#[derive(Clone, Debug)]
pub(crate) struct CidSource {
    generator: Arc<dyn ConnectionIdGenerator>,
    worker: Worker,
    len: usize,
}

impl CidSource {
    /// The IDs of `worker`: those of a configured generator, or usual ones, under `key` if there are several
    /// workers.
    pub(crate) fn new(
        generator: Option<&Arc<dyn ConnectionIdGenerator>>,
        worker: Worker,
        key: &Arc<dyn EndpointKey>,
    ) -> Self {
        let generator: Arc<dyn ConnectionIdGenerator> = match generator {
            Some(generator) => Arc::clone(generator),
            None if worker.count > 1 => Arc::new(WorkerCids::new(USUAL_LEN, Arc::clone(key))),
            None => Arc::new(RandomCids::new(USUAL_LEN)),
        };
        let len = generator.cid_len().min(MAX_CID_LEN);
        Self {
            generator,
            worker,
            len,
        }
    }

    /// Length of every ID.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// A new ID. One of another length than the generator declares could not be found in a short header,
    /// and is replaced by a random one.
    pub(crate) fn generate(&self, rng: &mut dyn Rng) -> ConnectionId {
        let cid = self.generator.generate(self.worker.index, rng);
        debug_assert_eq!(cid.len(), self.len);
        if cid.len() == self.len {
            cid
        } else {
            random_cid(rng, self.len)
        }
    }

    /// True if further IDs are unlinkable, so that a client can migrate without being recognised.
    pub(crate) fn is_unlinkable(&self) -> bool {
        self.generator.is_unlinkable()
    }

    /// True if `cid` belongs to another host.
    pub(crate) fn is_elsewhere(&self, cid: &ConnectionId) -> bool {
        cid.len() == self.len && self.generator.is_elsewhere(cid)
    }

    /// The other worker that `cid` names, if it does.
    pub(crate) fn other_worker(&self, cid: &[u8]) -> Option<u8> {
        if self.worker.count <= 1 || cid.len() != self.len {
            return None;
        }
        let index = self.generator.worker_of(&ConnectionId::new(cid)?)?;
        (index < self.worker.count && index != self.worker.index).then_some(index)
    }
}
