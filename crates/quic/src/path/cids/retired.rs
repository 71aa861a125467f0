//! Connection IDs of this end that the peer has retired, while packets to them may still arrive.
//!
//! RETIRE_CONNECTION_ID may arrive on a faster path than the packets that were sent before it (RFC 9000, section
//! 5.1.2; draft-ietf-quic-multipath-21, section 3.2).

use std::collections::VecDeque;

use swiftwater_units::Instant;
use swiftwater_wire::ConnectionId;

/// IDs of one path that are kept at most; the peer may retire them at any rate.
const MAX_KEPT: usize = 8;

/// Retired IDs of one path, with the times until which packets to them are accepted, in order of time.
#[derive(Debug, Default)]
pub(crate) struct RetiredCids(VecDeque<(Instant, ConnectionId)>);

impl RetiredCids {
    /// Keeps `cid` until `expiry`. Returns the oldest one if there are too many.
    pub(crate) fn keep(&mut self, cid: ConnectionId, expiry: Instant) -> Option<ConnectionId> {
        let expiry = (self.0.back()).map_or(expiry, |(latest, _)| expiry.max(*latest));
        let excess = (self.0.len() >= MAX_KEPT).then(|| self.0.pop_front());
        self.0.push_back((expiry, cid));
        excess.flatten().map(|(_, cid)| cid)
    }

    /// When the next one expires.
    pub(crate) fn next_expiry(&self) -> Option<Instant> {
        self.0.front().map(|(expiry, _)| *expiry)
    }

    /// Takes one out that has expired at `now`.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<ConnectionId> {
        let is_due = self.next_expiry().is_some_and(|expiry| expiry <= now);
        let expired = is_due.then(|| self.0.pop_front());
        expired.flatten().map(|(_, cid)| cid)
    }

    /// The IDs to which packets are accepted.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ConnectionId> {
        self.0.iter().map(|(_, cid)| *cid)
    }

    /// True if there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn cid(nth: u8) -> ConnectionId {
        ConnectionId::new(&[nth; 8]).expect("eight bytes")
    }

    #[test]
    fn few_are_kept_and_not_for_long() {
        let mut retired = RetiredCids::default();
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        for nth in 0..MAX_KEPT as u8 {
            assert_eq!(retired.keep(cid(nth), at(10)), None);
        }
        assert_eq!(retired.keep(cid(100), at(5)), Some(cid(0)));
        assert_eq!(retired.iter().count(), MAX_KEPT);
        assert_eq!(retired.expire(at(9)), None);
        assert_eq!(retired.next_expiry(), Some(at(10)));
        while retired.expire(at(10)).is_some() {}
        assert!(retired.is_empty());
    }
}
