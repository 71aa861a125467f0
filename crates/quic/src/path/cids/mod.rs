//! Connection IDs of a path: those we issued and those the peer gave us (RFC 9000, section 5.1).

mod local;
mod remote;

pub(crate) use self::local::{IssuedCid, LocalCids};
pub(crate) use self::remote::{DECLARED_LIMITS, RemoteCid, RemoteCids};

use swiftwater_wire::ConnectionId;

use crate::idle_memory::IdleMemory;

/// The connection IDs of a path, in both directions.
#[derive(Debug)]
pub(crate) struct PathCids {
    pub(crate) local: LocalCids,
    pub(crate) remote: RemoteCids,
    /// Our connection ID that the peer used last on the address in use.
    pub(crate) reached_by: ConnectionId,
    /// The peer's connection ID in use was seen on another address: the next one that comes replaces it.
    pub(crate) needs_fresh_remote: bool,
}

impl IdleMemory for PathCids {
    fn release_idle_memory(&mut self) {
        let Self {
            local,
            remote,
            reached_by: _,
            needs_fresh_remote: _,
        } = self;
        local.release_idle_memory();
        remote.release_idle_memory();
    }
}
