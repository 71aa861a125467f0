//! The interval between the starts of connection attempts (RFC 8305, section 5), by what is known of QUIC on the network.

use std::collections::VecDeque;
use std::time::Duration;

use super::quic_failures::Network;

/// Default (RFC 8305, section 5).
const USUAL: Duration = Duration::from_millis(250);

/// The recommended minimum (RFC 8305, section 5).
const SHORT: Duration = Duration::from_millis(100);

/// The least interval that is permitted (RFC 8305, section 5).
const LEAST: Duration = Duration::from_millis(10);

/// Networks that are remembered; the least recent is forgotten.
const CAPACITY: usize = 64;

/// The interval, and the networks on which QUIC worked at the latest attempt.
#[derive(Debug, Default)]
pub(super) struct Stagger {
    fixed: Option<Duration>,
    worked: VecDeque<Network>,
}

impl Stagger {
    /// The interval `fixed` everywhere, or if there is none 250 ms where QUIC worked, and else 100 ms.
    pub(super) fn new(fixed: Option<Duration>) -> Self {
        Self {
            fixed,
            worked: VecDeque::new(),
        }
    }

    /// The interval on `network`.
    pub(super) fn on(&self, network: Network) -> Duration {
        self.usual_or(network, SHORT)
    }

    /// The interval between the first attempts of QUIC and of TCP for a selection that sends requests over the other protocol
    /// later, whichever connects first: waiting for QUIC gains little then. The usual one if QUIC worked on `network`,
    /// and else 10 ms.
    pub(super) fn of_compared(&self, network: Network) -> Duration {
        self.usual_or(network, LEAST)
    }

    /// The interval that was set, the usual one where QUIC worked, and else `otherwise`.
    fn usual_or(&self, network: Network, otherwise: Duration) -> Duration {
        let worked = || self.worked.contains(&network);
        (self.fixed).unwrap_or_else(|| if worked() { USUAL } else { otherwise })
    }

    /// QUIC worked on `network`, or did not.
    pub(super) fn quic_ended(&mut self, network: Network, worked: bool) {
        if self.worked.back() == Some(&network) && worked {
            return;
        }
        self.worked.retain(|known| *known != network);
        if worked {
            if self.worked.len() >= CAPACITY {
                self.worked.pop_front();
            }
            self.worked.push_back(network);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    fn network(n: u8) -> Network {
        Network {
            v4: Some(Ipv4Addr::new(192, 0, 2, n)),
            v6: None,
        }
    }

    #[test]
    fn tcp_waits_longer_where_quic_worked() {
        let mut stagger = Stagger::new(None);
        assert_eq!(stagger.on(network(1)), SHORT);
        stagger.quic_ended(network(1), true);
        assert_eq!(stagger.on(network(1)), USUAL);
        assert_eq!(stagger.on(network(2)), SHORT);
        assert_eq!(stagger.of_compared(network(1)), USUAL);
        assert_eq!(stagger.of_compared(network(2)), LEAST);
        stagger.quic_ended(network(1), false);
        assert_eq!(stagger.on(network(1)), SHORT);
    }

    #[test]
    fn an_interval_that_was_set_holds_everywhere() {
        let mut stagger = Stagger::new(Some(Duration::ZERO));
        assert_eq!(stagger.on(network(1)), Duration::ZERO);
        stagger.quic_ended(network(1), true);
        assert_eq!(stagger.on(network(1)), Duration::ZERO);
        assert_eq!(stagger.of_compared(network(1)), Duration::ZERO);
    }

    #[test]
    fn networks_are_forgotten_in_the_order_of_use() {
        let mut stagger = Stagger::new(None);
        for n in 0..=64 {
            stagger.quic_ended(network(n), true);
        }
        assert_eq!(stagger.on(network(0)), SHORT);
        assert!((1..=64).all(|n| stagger.on(network(n)) == USUAL));
    }
}
