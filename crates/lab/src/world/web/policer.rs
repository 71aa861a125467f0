//! What the network does to QUIC only, and slow ends of TCP: hooks on links.

use std::time::Duration;

use rand_core::Rng;
use swiftwater_sim::{LinkId, Network, Verdict};
use swiftwater_units::Instant;

use crate::scenario::Policer;

/// Random numbers of these hooks, apart from those of flows.
const STREAM: u64 = 1 << 33;

/// Bytes of a policed flow that may come at once.
const BURST: f64 = 32_000.0;

/// Bytes of IP's and UDP's headers.
const HEADERS: usize = 28;

/// Hooks onto both directions of a link.
pub(super) fn install(
    network: &mut Network,
    links: [LinkId; 2],
    policer: Policer,
    tcp_delay: Duration,
) {
    for (way, link) in (0..).zip(links) {
        let mut random = network.flow_rng(STREAM + way);
        let (mut tokens, mut at) = (BURST, Instant::ZERO);
        network.tap(link, move |datagram| {
            if datagram.tcp_port.is_some() {
                return match tcp_delay {
                    Duration::ZERO => Verdict::Pass,
                    delay => Verdict::Delay(delay),
                };
            }
            let drops = match policer {
                Policer::None => false,
                Policer::Loss(share) => (random.next_u64() as f64) < share * u64::MAX as f64,
                Policer::Block(from) => datagram.now >= Instant::ZERO + from,
                Policer::Rate(rate) => {
                    let elapsed = datagram.now.saturating_since(at).as_secs_f64();
                    at = datagram.now;
                    tokens = (tokens + elapsed * rate.as_bps() as f64 / 8.0).min(BURST);
                    let bytes = (datagram.data.len() + HEADERS) as f64;
                    let exceeds = bytes > tokens;
                    if !exceeds {
                        tokens -= bytes;
                    }
                    exceeds
                }
            };
            if drops { Verdict::Drop } else { Verdict::Pass }
        });
    }
}
