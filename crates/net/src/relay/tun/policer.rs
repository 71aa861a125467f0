//! What networks do to one protocol only: UDP that is blocked, or limited to a rate, while TCP passes.

use std::sync::{Mutex, PoisonError};

use swiftwater_units::{Bandwidth, Instant};

use super::packet;
use crate::relay::shaper::Direction;

/// Bytes of a limited protocol that may come at once, in each direction.
const BURST: f64 = 32_000.0;

/// A protocol on top of IP.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum IpProtocol {
    /// TCP.
    Tcp,
    /// UDP, and QUIC with it.
    Udp,
}

/// How packets of a protocol are treated before they reach the links.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Policer {
    /// All pass.
    #[default]
    Pass,
    /// None passes.
    Block,
    /// What exceeds this rate in a direction is dropped; 32 kB may come at once.
    Rate(Bandwidth),
}

/// The policers of both protocols.
#[derive(Debug, Default)]
pub(super) struct Policers {
    state: Mutex<[Bucket; 2]>,
}

/// A policer, and what it would let pass now.
#[derive(Clone, Copy, Debug, Default)]
struct Bucket {
    policer: Policer,
    /// Bytes, up and down.
    tokens: [f64; 2],
    at: [Instant; 2],
}

impl Policers {
    /// From now on.
    pub(super) fn set(&self, protocol: IpProtocol, policer: Policer, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state[protocol as usize] = Bucket {
            policer,
            tokens: [BURST; 2],
            at: [now; 2],
        };
    }

    /// Whether a packet may pass.
    pub(super) fn admits(&self, direction: Direction, packet: &[u8], now: Instant) -> bool {
        let Some(protocol) = packet::protocol(packet) else {
            return true;
        };
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state[protocol as usize].admits(direction as usize, packet.len(), now)
    }
}

impl Bucket {
    fn admits(&mut self, direction: usize, bytes: usize, now: Instant) -> bool {
        let rate = match self.policer {
            Policer::Pass => return true,
            Policer::Block => return false,
            Policer::Rate(rate) => rate.as_bps() as f64 / 8.0,
        };
        let elapsed = now.saturating_since(self.at[direction]).as_secs_f64();
        self.at[direction] = now;
        let tokens = &mut self.tokens[direction];
        *tokens = (*tokens + elapsed * rate).min(BURST);
        let admits = bytes as f64 <= *tokens;
        if admits {
            *tokens -= bytes as f64;
        }
        admits
    }
}

#[cfg(test)]
mod tests;
