//! The time between the end of an IP tunnel and the next one.

use std::time::Duration;

use tokio::time::Instant;

/// The pause before the second attempt to open a tunnel; the first comes at once. Later ones are twice as long, up to
/// [`LONGEST_PAUSE`].
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(8);

/// A tunnel that was open for so long ends the outage before it.
const STABLE: Duration = Duration::from_secs(10);

/// When the next attempts come, and when it is too late for one.
#[derive(Debug, Default)]
pub(super) struct Outages {
    current: Option<Outage>,
}

#[derive(Debug)]
struct Outage {
    deadline: Instant,
    pause: Duration,
}

impl Outages {
    /// A tunnel that was opened at `opened` has ended.
    pub(super) fn tunnel_ended(&mut self, opened: Instant, now: Instant, max_time: Duration) {
        if now - opened >= STABLE {
            self.current = None;
        }
        self.current.get_or_insert_with(|| Outage {
            deadline: now + max_time,
            pause: Duration::ZERO,
        });
    }

    /// When to try to open a tunnel again; `None` if that would be too late.
    pub(super) fn next_attempt(&mut self, now: Instant) -> Option<Instant> {
        let outage = self.current.as_mut()?;
        let next = now + outage.pause;
        outage.pause = (2 * outage.pause).clamp(FIRST_PAUSE, LONGEST_PAUSE);
        (next < outage.deadline).then_some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secs(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn pauses_grow_until_the_time_is_up() {
        let start = Instant::now();
        let mut outages = Outages::default();
        outages.tunnel_ended(start, start + secs(60), secs(20));
        let mut now = start + secs(60);
        let mut pauses = Vec::new();
        while let Some(next) = outages.next_attempt(now) {
            pauses.push((next - now).as_secs());
            now = next;
        }
        assert_eq!(pauses, [0, 1, 2, 4, 8]);
    }

    #[test]
    fn a_tunnel_that_ends_soon_does_not_end_the_outage() {
        let start = Instant::now();
        let mut outages = Outages::default();
        outages.tunnel_ended(start, start + secs(1), secs(20));
        assert_eq!(outages.next_attempt(start + secs(1)), Some(start + secs(1)));
        outages.tunnel_ended(start + secs(1), start + secs(2), secs(20));
        assert_eq!(outages.next_attempt(start + secs(2)), Some(start + secs(3)));
        outages.tunnel_ended(start + secs(3), start + secs(20), secs(20));
        let again = outages.next_attempt(start + secs(20));
        assert_eq!(again, Some(start + secs(20)));
    }

    #[test]
    fn without_time_there_is_no_attempt() {
        let start = Instant::now();
        let mut outages = Outages::default();
        outages.tunnel_ended(start, start + secs(60), Duration::ZERO);
        assert_eq!(outages.next_attempt(start + secs(60)), None);
    }
}
