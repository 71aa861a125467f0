//! The network path of a `PathState`: its addresses, their validation and anti-amplification limit, ECN,
//! datagram size and spin bit (RFC 9000, sections 8, 9, 13.4, 14 and 17.4), and the candidate paths
//! beside it.

use std::net::SocketAddr;

use crate::idle_memory::IdleMemory;

use super::{
    AckedDatagramSize, Address, Amplification, CandidatePaths, Ecn, Mtu, PathResponses, Spin,
    Validation,
};

/// The addresses of a path in use, and what is known of the network between them.
#[derive(Debug)]
pub(crate) struct NetworkPath {
    pub(crate) address: Address,
    pub(crate) amplification: Amplification,
    pub(crate) validation: Validation,
    pub(crate) ecn: Ecn,
    pub(crate) spin: Spin,
    /// Data of the peer's challenges that are to be echoed.
    pub(crate) responses: PathResponses,
    /// Addresses that are probed, and those in use before.
    pub(crate) candidates: CandidatePaths,
    pub(crate) mtu: Mtu,
    pub(crate) acked_datagram_size: AckedDatagramSize,
}

impl NetworkPath {
    /// Counts a datagram for the anti-amplification limit of its source address; false if that address
    /// is neither in use nor a candidate.
    pub(crate) fn on_datagram(&mut self, from: &Address, bytes: usize) -> bool {
        if self.address.matches(from) {
            self.amplification.on_received(bytes);
            return true;
        }
        let candidate = self.candidates.find(from);
        match candidate.and_then(|at| self.candidates.get_mut(at)) {
            Some(candidate) => candidate.amplification.on_received(bytes),
            None => return false,
        }
        true
    }

    /// A datagram of `len` bytes was sent to the address in use.
    pub(crate) fn on_datagram_sent(&mut self, len: usize) {
        self.amplification.on_sent(len);
        if self.ecn.mark().is_some() {
            self.ecn.on_sent();
        }
    }

    /// True if `remote` is the peer's address in use, or one of a candidate path.
    pub(crate) fn includes_remote(&self, remote: SocketAddr) -> bool {
        let mut candidates = self.candidates.iter();
        self.address.remote == remote || candidates.any(|path| path.address.remote == remote)
    }

    /// The responses that wait to be sent to `address`; `None` if it is neither in use nor a candidate.
    pub(crate) fn responses_to(&mut self, address: &Address) -> Option<&mut PathResponses> {
        if self.address.matches(address) {
            return Some(&mut self.responses);
        }
        let at = self.candidates.find(address)?;
        let candidate = self.candidates.get_mut(at)?;
        Some(&mut candidate.responses)
    }

    /// True if a challenge with this data awaits its response.
    pub(crate) fn is_challenged_with(&self, data: [u8; 8]) -> bool {
        let mut candidates = self.candidates.iter();
        self.validation.is_challenged_with(data)
            || candidates.any(|path| path.validation.is_challenged_with(data))
    }

    /// True if the addresses in use are being validated, or there are candidate paths.
    pub(crate) fn awaits_validation(&self) -> bool {
        self.validation.is_running() || !self.candidates.is_empty()
    }

    /// True if a challenge or a response waits to be sent.
    pub(crate) fn has_validation_frames(&self) -> bool {
        self.validation.needs_challenge() || !self.responses.is_empty()
    }
}

impl IdleMemory for NetworkPath {
    fn release_idle_memory(&mut self) {
        let Self {
            address: _,
            amplification: _,
            validation: _,
            ecn: _,
            spin: _,
            responses,
            candidates: _,
            mtu: _,
            acked_datagram_size: _,
        } = self;
        responses.release_idle_memory();
    }
}
