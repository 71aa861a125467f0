//! One path: addresses, validation, anti-amplification, ECN, connection IDs (RFC 9000, sections 5.1,
//! 8, 9 and 13.4).
//!
//! Round-trip times and windows are the path's recovery; MTU search will live here.

mod amplification;
mod cids;
mod ecn;
mod validation;

pub(crate) use amplification::Amplification;
pub(crate) use cids::{LocalCids, NewCidOutcome, PROMISED_LIMITS, RemoteCids};
pub(crate) use ecn::Ecn;
pub(crate) use validation::Validation;

use std::collections::VecDeque;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::ResetToken;

/// Responses to challenges that wait at most; more are dropped, the peer asks again.
const MAX_RESPONSES: usize = 4;

/// Where datagrams of a path go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Address {
    pub(crate) remote: SocketAddr,
    /// Our address, if the socket tells.
    pub(crate) local_ip: Option<IpAddr>,
}

impl Address {
    /// True if `other` is the same as far as both know.
    pub(crate) fn matches(&self, other: &Self) -> bool {
        self.remote == other.remote
            && (self.local_ip.is_none()
                || other.local_ip.is_none()
                || self.local_ip == other.local_ip)
    }
}

/// A challenge from the peer that wants its echo, on the path that it came from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Response {
    pub(crate) data: [u8; 8],
    pub(crate) to: Address,
    /// Bytes of the datagram that carried the challenge: the echo must not amplify it.
    pub(crate) received: usize,
}

/// The address that a path had before the peer seemed to move.
#[derive(Debug)]
pub(crate) struct Previous {
    pub(crate) address: Address,
    pub(crate) amplification: Amplification,
    /// A challenge to the old address, in case the move was an attacker's (RFC 9000, section
    /// 9.3.3).
    pub(crate) challenge: Option<[u8; 8]>,
    /// That challenge was sent.
    pub(crate) sent: bool,
}

/// Addresses and validation of one path.
#[derive(Debug)]
pub(crate) struct Path {
    pub(crate) id: PathId,
    pub(crate) address: Address,
    pub(crate) amplification: Amplification,
    pub(crate) validation: Validation,
    pub(crate) ecn: Ecn,
    pub(crate) responses: VecDeque<Response>,
    pub(crate) previous: Option<Previous>,
    pub(crate) local_cids: LocalCids,
    pub(crate) remote_cids: RemoteCids,
    /// The reset token that the endpoint knows, and the address it is good from.
    pub(crate) registered_token: Option<(SocketAddr, ResetToken)>,
    /// UDP payload size in use.
    pub(crate) max_datagram_size: u16,
}

impl Path {
    /// Queues the echo of a challenge. An address that is not the path's gets one echo at a time:
    /// several, one datagram each, could together be more than three times what it sent.
    pub(crate) fn on_challenge(&mut self, data: [u8; 8], from: Address, received: usize) {
        if from.remote != self.address.remote {
            self.responses
                .retain(|response| response.to.remote != from.remote);
        }
        if self.responses.len() == MAX_RESPONSES {
            self.responses.pop_front();
        }
        self.responses.push_back(Response {
            data,
            to: from,
            received,
        });
    }

    /// The peer sends from `address` now: start over with validation, which takes some `pto`, and
    /// remember the old address.
    pub(crate) fn move_to(
        &mut self,
        address: Address,
        challenge: [u8; 8],
        old: [u8; 8],
        pto: Duration,
    ) {
        let was_validated = self.amplification.is_validated();
        let amplification =
            std::mem::replace(&mut self.amplification, Amplification::unvalidated());
        let left = std::mem::replace(&mut self.address, address);
        if was_validated {
            // Only a validated address is worth going back to.
            self.previous = Some(Previous {
                address: left,
                amplification,
                challenge: Some(old),
                sent: false,
            });
        }
        self.validation.start(challenge, pto);
    }

    /// The new address never answered: go back. False if there is nothing to go back to.
    pub(crate) fn move_back(&mut self) -> bool {
        self.validation.abandon();
        match self.previous.take() {
            Some(previous) => {
                self.address = previous.address;
                self.amplification = previous.amplification;
                true
            }
            None => false,
        }
    }

    /// A PATH_RESPONSE arrived; true if it validates the current address.
    pub(crate) fn on_response(&mut self, now: Instant, data: [u8; 8]) -> bool {
        if let Some(previous) = &mut self.previous
            && previous.challenge == Some(data)
        {
            // The old address still answers. Whether the new one is real shows by itself.
            previous.challenge = None;
            return false;
        }
        if !self.validation.on_response(now, data) {
            return false;
        }
        self.amplification.set_validated();
        self.previous = None;
        true
    }
}
