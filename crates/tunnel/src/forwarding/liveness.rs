//! Whether forwarded packets still arrive: they have no acknowledgements of their own, and a proxy drops those of a client
//! whose address changed unnoticed until something comes from there over the connection.

use std::time::Duration;

use swiftwater_units::Instant;

/// Forwarding ends when nothing comes from the target for so long although packets were forwarded to it.
pub const SILENCE: Duration = Duration::from_secs(1);

/// Forwarded packets without an answer that may be lost by chance.
const MIN_UNANSWERED: u32 = 3;

/// The pause after the first silence; it doubles each time.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The pause doubles so often.
const MAX_DOUBLINGS: u32 = 6;

/// Whether to forward.
#[derive(Debug, Default)]
pub struct Liveness {
    /// Packets forwarded since something came, and when the first of them left.
    unanswered: u32,
    since: Option<Instant>,
    /// Until when nothing is forwarded.
    paused_until: Option<Instant>,
    silences: u32,
}

impl Liveness {
    /// A packet was forwarded; true if forwarding is to end for now, since nothing comes.
    pub fn on_forwarded(&mut self, now: Instant) -> bool {
        self.unanswered = self.unanswered.saturating_add(1);
        let since = *self.since.get_or_insert(now);
        let is_silent = self.unanswered > MIN_UNANSWERED && now.saturating_since(since) >= SILENCE;
        if is_silent {
            let pause = FIRST_PAUSE * (1 << self.silences.min(MAX_DOUBLINGS));
            self.silences = self.silences.saturating_add(1);
            self.paused_until = Some(now + pause);
            (self.unanswered, self.since) = (0, None);
        }
        is_silent
    }

    /// Something came from the target, beside the connection or through it; true if forwarding may begin again.
    pub fn on_received(&mut self, now: Instant) -> bool {
        (self.unanswered, self.since) = (0, None);
        self.paused_until.take_if(|until| now >= *until).is_some()
    }

    /// True while nothing is forwarded.
    pub fn is_paused(&self) -> bool {
        self.paused_until.is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn silence_ends_forwarding_and_an_arrival_after_the_pause_begins_it_again() {
        let mut liveness = Liveness::default();
        for millis in [0, 300, 600] {
            assert!(!liveness.on_forwarded(at(millis)));
        }
        assert!(!liveness.on_forwarded(at(999)), "it is not long enough");
        assert!(liveness.on_forwarded(at(1000)));
        assert!(liveness.is_paused());
        assert!(!liveness.on_received(at(1999)));
        assert!(liveness.on_received(at(2000)));
        assert!(!liveness.is_paused());
        // The next pause is twice as long.
        for millis in [3000, 3100, 3200] {
            assert!(!liveness.on_forwarded(at(millis)));
        }
        assert!(liveness.on_forwarded(at(4000)));
        assert!(!liveness.on_received(at(5999)));
        assert!(liveness.on_received(at(6000)));
    }

    #[test]
    fn answers_and_few_packets_are_no_silence() {
        let mut liveness = Liveness::default();
        for millis in (0..100_000).step_by(100) {
            assert!(!liveness.on_forwarded(at(millis)));
            assert!(!liveness.on_received(at(millis + 50)));
        }
        for seconds in 0..3 {
            let forwarded = liveness.on_forwarded(at(200_000 + 10_000 * seconds));
            assert!(!forwarded, "three packets may be lost by chance");
        }
    }
}
