//! One path: addresses, validation, anti-amplification, ECN, datagram size, spin bit, connection IDs
//! (RFC 9000, sections 5.1, 8, 9, 13.4, 14 and 17.4).
//!
//! Round-trip times and windows are the path's recovery.

mod acked_datagram_size;
mod amplification;
mod candidate_paths;
mod cids;
mod ecn;
mod mtu;
mod path_response_limit;
mod spin;
mod validation;

pub(crate) use acked_datagram_size::AckedDatagramSize;
pub(crate) use amplification::Amplification;
pub(crate) use candidate_paths::{CandidatePath, CandidatePaths, Kept, Role};
pub(crate) use cids::{LocalCids, NewCidOutcome, PROMISED_LIMITS, RemoteCids};
pub(crate) use ecn::Ecn;
pub use ecn::EcnState;
pub(crate) use mtu::Mtu;
pub use mtu::MtuState;
pub(crate) use path_response_limit::PathResponseLimit;
pub(crate) use spin::Spin;
pub(crate) use validation::{Answered, Validation};

pub(crate) use crate::transmit::PathAddress as Address;

use std::collections::VecDeque;
use std::net::SocketAddr;

use swiftwater_units::PathId;
use swiftwater_wire::{ConnectionId, ResetToken};

/// Responses to challenges that wait at most; more are dropped, the peer asks again.
const MAX_RESPONSES: usize = 4;

/// Addresses and validation of the path in use.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) id: PathId,
    pub(crate) address: Address,
    pub(crate) amplification: Amplification,
    pub(crate) validation: Validation,
    pub(crate) ecn: Ecn,
    pub(crate) spin: Spin,
    /// Limits the echoes, those on candidate paths included.
    pub(crate) path_response_limit: PathResponseLimit,
    /// Challenges of the peer that want their echo.
    pub(crate) responses: VecDeque<[u8; 8]>,
    /// Paths besides this one.
    pub(crate) candidates: CandidatePaths,
    pub(crate) local_cids: LocalCids,
    pub(crate) remote_cids: RemoteCids,
    /// Our connection ID that the peer used last on this path.
    pub(crate) reached_by: ConnectionId,
    /// The peer's connection ID in use was seen on another path: the next one that comes replaces it.
    pub(crate) owes_fresh_cid: bool,
    /// The reset tokens that the endpoint knows, and the addresses they are good from.
    pub(crate) registered_tokens: Vec<(SocketAddr, ResetToken)>,
    pub(crate) mtu: Mtu,
    pub(crate) acked_datagram_size: AckedDatagramSize,
}

impl Path {
    /// Gives back memory that present addresses and connection IDs don't need.
    pub(crate) fn release_idle_memory(&mut self) {
        self.responses.shrink_to_fit();
        self.registered_tokens.shrink_to_fit();
        self.local_cids.release_idle_memory();
        self.remote_cids.release_idle_memory();
    }

    /// Queues the echo of a challenge that came on this path.
    pub(crate) fn on_challenge(&mut self, data: [u8; 8]) {
        if self.responses.len() == MAX_RESPONSES {
            self.responses.pop_front();
        }
        self.responses.push_back(data);
    }

    /// Counts a datagram for the amplification limit of where it came from; false if nothing is known
    /// of that address.
    pub(crate) fn on_datagram(&mut self, from: &Address, bytes: usize) -> bool {
        if self.address.matches(from) {
            self.amplification.on_received(bytes);
            return true;
        }
        match self
            .candidates
            .find(from)
            .and_then(|at| self.candidates.get_mut(at))
        {
            Some(side) => side.amplification.on_received(bytes),
            None => return false,
        }
        true
    }

    /// True if the peer may be at `remote` as far as we know.
    pub(crate) fn knows_remote(&self, remote: SocketAddr) -> bool {
        self.address.remote == remote
            || self
                .candidates
                .iter()
                .any(|side| side.address.remote == remote)
    }
}
