//! A candidate path comes into use: what of the path in use so far is kept, and what starts anew (RFC
//! 9000, sections 9.4 and 9.5).
//!
//! A change of port alone is taken for a NAT rebinding: the network path stays the same, so RTT and
//! window are kept. Any other change starts them anew. What was known is kept for as long as the move
//! may turn out to be an attacker's doing.

use std::sync::Arc;
use std::time::Duration;

use rand_core::Rng;
use swiftwater_units::Instant;

use crate::config::TransportConfig;

use super::{AckedDatagramSize, CandidatePath, Kept, PathState, Role};

/// How a candidate path comes into use.
#[derive(Debug)]
pub(crate) struct Switch<'a> {
    pub(crate) now: Instant,
    /// The time that its validation took, if it is known.
    pub(crate) rtt: Option<Duration>,
    /// How long packets may still be under way on the path in use so far.
    pub(crate) linger: Duration,
    pub(crate) config: &'a Arc<TransportConfig>,
}

impl PathState {
    /// Puts candidate path `at` in the place of the addresses in use. Returns the latter as the previous
    /// path.
    pub(crate) fn switch_to(
        &mut self,
        at: usize,
        switch: &Switch<'_>,
        rng: &mut dyn Rng,
    ) -> CandidatePath {
        let network = &mut self.network;
        let next = network.candidates.remove(at);
        let cid = next.cid.map(|cid| self.cids.remote.exchange(cid));
        let from = std::mem::replace(&mut network.address, next.address);
        let amplification = std::mem::replace(&mut network.amplification, next.amplification);
        network.validation = next.validation;
        network.acked_datagram_size =
            AckedDatagramSize::starting_at(self.space.ledger.next_number());
        let mut previous = CandidatePath::new(from, Role::Previous, cid, amplification);
        previous.responses = std::mem::replace(&mut network.responses, next.responses);
        if network.amplification.is_validated() {
            previous.expires_at = Some(switch.now + switch.linger);
        }
        if let Some(kept) = next.kept {
            self.resume(*kept, switch);
        } else if !from.is_same_host(&next.address) {
            previous.kept = Some(Box::new(self.restart(switch, rng)));
        }
        self.pacing_until = None;
        previous
    }

    /// The previous path is in use again: what was known of it holds.
    fn resume(&mut self, kept: Kept, switch: &Switch<'_>) {
        self.recovery.resume(switch.now, kept.recovery);
        let interim = std::mem::replace(&mut self.network.ecn, kept.ecn);
        self.network
            .ecn
            .resume(&interim, switch.now + switch.linger);
        self.network.mtu.resume(kept.mtu);
    }

    /// Nothing is known of the network path in use (section 9.4). Returns what was known of the one
    /// before.
    fn restart(&mut self, switch: &Switch<'_>, rng: &mut dyn Rng) -> Kept {
        let &Switch {
            now, rtt, config, ..
        } = switch;
        let initial_rtt = rtt.unwrap_or(config.initial_rtt);
        let recovery = (self.recovery).reset_for_new_path(now, config, initial_rtt, rng);
        let codepoint = self.recovery.controller().ecn_codepoint();
        let network = &mut self.network;
        let ecn = (network.ecn).restart(config.ecn, codepoint, now + switch.linger);
        let ip = network.address.remote.ip();
        let mtu = network.mtu.restart(config.initial_max_datagram_size, ip);
        Kept { recovery, ecn, mtu }
    }
}
