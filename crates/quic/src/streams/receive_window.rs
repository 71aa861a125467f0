//! Credit given to the peer: one receive window, used for each stream and for the connection.
//!
//! A window advertises `consumed + size` and does so again when half of it, or half of what unread
//! bytes of others leave of it, was used up; once a limit was lost, when an eighth was.
//! Its size doubles when the reader uses a window's worth of bytes in less than two round trips, because
//! then the window, not the network, may be what limits the sender.

use std::time::Duration;

use swiftwater_units::Instant;
use swiftwater_wire::VarInt;

/// Time of the connection when it processed the last datagram, and the round-trip time.
#[derive(Clone, Copy, Debug)]
pub(super) struct WindowClock {
    pub(super) now: Instant,
    pub(super) rtt: Duration,
}

/// The part of a window that is used up before a new limit is advertised.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) enum LimitStep {
    /// Few frames: the next limit arrives before it is needed if none is lost.
    #[default]
    Half,
    /// Several limits a round trip, early enough to allow for the loss of some (RFC 9000, section 4.2).
    Eighth,
}

impl LimitStep {
    /// Bytes of a window of `size`.
    fn of(self, size: u64) -> u64 {
        match self {
            Self::Half => size / 2,
            Self::Eighth => size / 8,
        }
    }
}

/// One receive window (RFC 9000, section 4.1).
#[derive(Debug)]
pub(super) struct ReceiveWindow {
    /// Last limit advertised.
    limit: u64,
    /// Bytes that the reader took or that were discarded.
    consumed: u64,
    size: u64,
    max_size: u64,
    /// When the size was last looked at, and what had been consumed then.
    tuned_at: Instant,
    consumed_then: u64,
}

impl ReceiveWindow {
    /// A window of `size` bytes that has been advertised and may grow to `max_size`.
    pub(super) fn new(size: u64, max_size: u64, now: Instant) -> Self {
        let size = size.min(VarInt::MAX.get());
        Self {
            limit: size,
            consumed: 0,
            size,
            max_size: max_size.clamp(size, VarInt::MAX.get()),
            tuned_at: now,
            consumed_then: 0,
        }
    }

    /// The same window, of which only `limit` bytes have been advertised so far.
    pub(super) fn with_limit(mut self, limit: u64) -> Self {
        self.limit = self.limit.min(limit);
        self
    }

    /// The offset up to which the peer may send.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }

    /// True if a larger limit than the first was advertised, for a window that its only reader raises.
    pub(super) fn is_raised(&self) -> bool {
        self.consumed_then > 0 || self.limit > self.size
    }

    /// Bytes consumed so far.
    pub(super) fn consumed(&self) -> u64 {
        self.consumed
    }

    /// Bytes that may be outstanding or buffered at once.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// `n` more bytes were read or discarded.
    pub(super) fn consume(&mut self, n: u64) {
        self.consumed = self.consumed.saturating_add(n);
    }

    /// The limit to advertise now, if `step` of the window has been used since the last time.
    pub(super) fn raise(&mut self, step: LimitStep, clock: WindowClock) -> Option<u64> {
        self.raise_by(step.of(self.size), step, clock)
    }

    /// The limit to advertise now for a window that many readers share, of which `received` bytes
    /// have arrived: as soon as it gives the peer as much again as it has left. With prompt readers
    /// that is `step` of the window. Where unread bytes take most of the window, the rest must
    /// not wait for them.
    pub(super) fn raise_shared(
        &mut self,
        received: u64,
        step: LimitStep,
        clock: WindowClock,
    ) -> Option<u64> {
        let left = self.limit.saturating_sub(received);
        self.raise_by(left.min(step.of(self.size)), step, clock)
    }

    /// The next limit to advertise where something else than the window holds credit back: `step` more
    /// bytes, or all that the window has for the peer if it would be due by
    /// [`ReceiveWindow::raise_shared`]. `None` if only readers can bring more.
    pub(super) fn next_step(&self, received: u64, step: u64) -> Option<u64> {
        let most = self.next_limit().saturating_sub(self.limit);
        if most >= step {
            return Some(self.limit + step);
        }
        let left = self.limit.saturating_sub(received);
        (most > 0 && most >= left.min(self.size / 2)).then_some(self.limit + most)
    }

    /// The limit to advertise now if it may be no more than `allowed`, in steps of at least `step`.
    /// The size of the window is not tuned by this: here the window is not what limits the sender.
    pub(super) fn raise_within(&mut self, received: u64, allowed: u64, step: u64) -> Option<u64> {
        self.next_step(received, step)
            .filter(|next| *next <= allowed)?;
        self.limit = self.next_limit().min(allowed);
        Some(self.limit)
    }

    fn raise_by(&mut self, least: u64, step: LimitStep, clock: WindowClock) -> Option<u64> {
        let credit = self.next_limit().saturating_sub(self.limit);
        if credit == 0 || credit < least {
            return None;
        }
        // A smaller part of the window may have arrived in one burst, which says little of the rate.
        if step == LimitStep::Half || self.consumed - self.consumed_then >= self.size / 2 {
            self.tune(clock);
        }
        self.limit = self.next_limit();
        Some(self.limit)
    }

    /// What could be advertised now.
    pub(super) fn next_limit(&self) -> u64 {
        self.consumed
            .saturating_add(self.size)
            .min(VarInt::MAX.get())
    }

    /// Doubles the window if, at the rate seen since the last time, all of it is used within 2 RTT.
    fn tune(&mut self, clock: WindowClock) {
        let elapsed = clock.now.saturating_since(self.tuned_at).as_nanos();
        let used = u128::from(self.consumed - self.consumed_then);
        let time_for_all = elapsed.saturating_mul(u128::from(self.size));
        if time_for_all < clock.rtt.as_nanos().saturating_mul(2 * used) {
            self.size = self.size.saturating_mul(2).min(self.max_size);
        }
        self.tuned_at = clock.now;
        self.consumed_then = self.consumed;
    }
}
