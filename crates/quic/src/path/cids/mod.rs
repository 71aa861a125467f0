//! Connection IDs of a path: those that this end issued and those that the peer issued (RFC 9000, section 5.1).

mod local;
mod remote;
mod retired;

pub(crate) use self::local::{IssuedCid, LocalCids};
pub(crate) use self::remote::{DECLARED_LIMITS, RemoteCid, RemoteCids};

use swiftwater_wire::ConnectionId;

use crate::idle_memory::IdleMemory;

/// The connection IDs of a path, in both directions.
#[derive(Debug)]
pub(crate) struct PathCids {
    pub(crate) local: LocalCids,
    pub(crate) remote: RemoteCids,
    /// The connection ID that the peer's newest packet on the address in use was sent to.
    pub(crate) last_dst_cid: ConnectionId,
    /// The peer's connection ID in use was seen on another address: the next one that comes replaces it.
    pub(crate) needs_fresh_remote: bool,
}

impl IdleMemory for PathCids {
    fn release_idle_memory(&mut self) {
        let Self {
            local,
            remote,
            last_dst_cid: _,
            needs_fresh_remote: _,
        } = self;
        local.release_idle_memory();
        remote.release_idle_memory();
    }
}
