//! How many challenges are answered (RFC 9000, section 8.2.2).
//!
//! An answer is a datagram of 1200 bytes that does not wait for the congestion window, and a few bytes
//! ask for it. Path validation sends two challenges per probe timeout; much more than that is a flood. The limit is one
//! of the connection: with one for each path, a peer would get more answers for opening more paths.

use std::time::Duration;

use swiftwater_units::Instant;

/// Answers in one round trip at most, on all paths together: as many datagrams as an initial
/// congestion window has (RFC 9002, section 7.2).
const MAX_PER_ROUND: u8 = 10;
/// Shortest round: the granularity of timers (RFC 9002, section 6.1.2).
const MIN_ROUND: Duration = Duration::from_millis(1);

/// Counts the answers of the current round trip.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PathResponseLimit {
    round_ends: Option<Instant>,
    answered: u8,
}

impl PathResponseLimit {
    /// A challenge arrived; true if it is to be answered. `rtt` is what a round trip takes on
    /// its path; a round lasts as long as one on the path of its first challenge.
    pub(crate) fn admit(&mut self, now: Instant, rtt: Duration) -> bool {
        if self.round_ends.is_none_or(|end| end <= now) {
            self.round_ends = Some(now + rtt.max(MIN_ROUND));
            self.answered = 0;
        }
        let admitted = self.answered < MAX_PER_ROUND;
        self.answered += u8::from(admitted);
        admitted
    }
}
