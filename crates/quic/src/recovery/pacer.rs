//! The pacer: one token bucket per path, driven by a rate and a depth (RFC 9002, section 7.7).
//!
//! It says *when* a packet may leave, never whether the window allows it. Every packet that counts
//! in flight is debited with its real length, probes included; a sender that ignores the answer (probes
//! do) goes into a bounded debt.

use std::time::Duration;

use swiftwater_congestion::{Pacing, RttView};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

/// Credit is kept in units of one bit per second during one nanosecond, so that filling and
/// debiting are exact and the mean rate doesn't drift. It saturates at 1.1 GB.
const UNITS_PER_BYTE: i64 = 8 * 1_000_000_000;
/// Depth of the bucket in time; the bounds in packets below have precedence.
const BURST_TIME: Duration = Duration::from_millis(1);
const MIN_BURST_PACKETS: u64 = 2;
const MAX_BURST_PACKETS: u64 = 10;
/// Depth at most for drivers with coarse timers.
const MAX_COARSE_BURST_PACKETS: u64 = 64;
/// Lateness of a timer for which credit is still given. Beyond it the flow counts as stalled.
const MAX_LATENESS: Duration = Duration::from_millis(5);

/// Token bucket of one path.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pacer {
    enabled: bool,
    credit: i64,
    filled_at: Instant,
    rate: Bandwidth,
    /// Depth while packets are in flight, bytes.
    burst: u64,
    /// Depth while nothing is in flight, bytes.
    idle_burst: u64,
    packet: u64,
    /// By how much the driver's timers are late.
    granularity: Duration,
    idle: bool,
    /// No RTT sample yet, so the rate is a guess.
    is_guess: bool,
    /// Data wait for the pacer alone, and could go at this time.
    held_until: Option<Instant>,
}

impl Pacer {
    /// A full bucket: the initial window may leave at once. The rate is set by the first
    /// [`Pacer::configure`].
    pub(super) fn new(now: Instant, enabled: bool, packet: u64, initial_window: ByteCount) -> Self {
        Self {
            enabled,
            credit: units(initial_window.get()),
            filled_at: now,
            rate: Bandwidth::from_transfer(initial_window.get(), Duration::from_secs(1)),
            burst: packet.saturating_mul(MIN_BURST_PACKETS),
            idle_burst: initial_window.get(),
            packet,
            granularity: Duration::ZERO,
            idle: true,
            is_guess: true,
            held_until: None,
        }
    }

    /// Takes over rate and depth after a batch, an RTT sample or a change of window.
    pub(super) fn configure(
        &mut self,
        now: Instant,
        pacing: &Pacing,
        cwnd: ByteCount,
        rtt: &RttView,
        pto: Duration,
        initial_window: ByteCount,
    ) {
        self.fill(now);
        self.is_guess = !rtt.has_sample;
        let wanted = pacing.rate.unwrap_or_else(|| {
            Bandwidth::from_transfer(cwnd.scaled(pacing.gain).get(), rtt.smoothed)
        });
        // Were the gap between two packets to exceed the probe timeout, each packet would leave by
        // timeout and the controller would take that for the path's rate.
        let floor = Bandwidth::from_transfer(self.packet, pto);
        self.rate = wanted.max(floor).max(Bandwidth::from_bps(8));
        self.burst = match pacing.quantum {
            Some(quantum) => quantum.get().max(self.packet),
            None => self.rate.bytes_in(BURST_TIME).clamp(
                self.packet.saturating_mul(MIN_BURST_PACKETS),
                self.packet.saturating_mul(MAX_BURST_PACKETS),
            ),
        };
        // What could leave before a timer that is set now fires may as well leave at once.
        let coarse = self.rate.bytes_in(self.granularity);
        let most = self.packet.saturating_mul(MAX_COARSE_BURST_PACKETS);
        self.burst = self.burst.max(coarse.min(most));
        self.idle_burst = initial_window.min(cwnd).get().max(self.burst);
    }

    /// The driver's timers are this late; counts from the next [`Pacer::configure`] on.
    pub(super) fn set_granularity(&mut self, granularity: Duration) {
        self.granularity = granularity;
    }

    /// As [`Pacer::set_granularity`] set it.
    pub(super) fn granularity(&self) -> Duration {
        self.granularity
    }

    pub(super) fn set_packet_size(&mut self, packet: u64) {
        self.packet = packet;
    }

    /// When the next full-sized packet may leave; `now` if at once.
    pub(super) fn release(&mut self, now: Instant) -> Instant {
        if !self.enabled {
            return now;
        }
        self.fill(now);
        let missing = units(self.packet).saturating_sub(self.credit);
        if missing <= 0 {
            return now;
        }
        let nanos = missing.unsigned_abs().div_ceil(self.rate.as_bps().max(1));
        // The bucket may have been filled ahead of `now` if the caller's time went backwards.
        self.filled_at.max(now) + Duration::from_nanos(nanos)
    }

    /// Bytes that may leave back to back now; zero unless a full-sized packet may.
    pub(super) fn budget(&mut self, now: Instant) -> usize {
        if !self.enabled {
            return usize::MAX;
        }
        self.fill(now);
        let bytes = (self.credit / UNITS_PER_BYTE).max(0).unsigned_abs();
        if bytes < self.packet {
            return 0;
        }
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }

    /// A packet of `size` bytes left.
    pub(super) fn on_sent(&mut self, now: Instant, size: u64) {
        self.fill(now);
        self.idle = false;
        self.credit = self
            .credit
            .saturating_sub(units(size))
            .max(-units(self.burst));
    }

    /// Data wait, and only the pacer holds them back: if the timer for it fires late, the credit
    /// of the time lost is not capped away.
    pub(super) fn on_held(&mut self, now: Instant) {
        if self.enabled {
            self.held_until = Some(self.release(now));
        }
    }

    /// Something other than the pacer holds data back.
    pub(super) fn on_not_held(&mut self) {
        self.held_until = None;
    }

    /// There are no data: credit beyond the depth expires.
    pub(super) fn on_drained(&mut self, now: Instant) {
        self.fill(now);
        self.held_until = None;
        self.credit = self.credit.min(units(self.depth()));
    }

    /// Nothing is in flight any more; from now on credit for an initial window may build up.
    pub(super) fn on_idle(&mut self, now: Instant) {
        self.fill(now);
        self.idle = true;
    }

    /// The rate in force; `None` if pacing is disabled.
    pub(super) fn rate(&self) -> Option<Bandwidth> {
        self.enabled.then_some(self.rate)
    }

    /// The depth in force, bytes. Until the first RTT sample it stays the initial window: what comes
    /// after the first packets of a handshake, early data above all, is still part of that window, and
    /// may leave at once (RFC 9002, section 7.7).
    fn depth(&self) -> u64 {
        if self.idle || self.is_guess {
            self.idle_burst
        } else {
            self.burst
        }
    }

    fn fill(&mut self, now: Instant) {
        let elapsed = now.saturating_since(self.filled_at);
        if elapsed.is_zero() {
            return;
        }
        self.filled_at = now;
        let mut cap = units(self.depth());
        if let Some(due) = self.held_until.take() {
            let late = now.saturating_since(due).min(MAX_LATENESS);
            cap = cap.saturating_add(self.earned(late));
        }
        // Never lowers: credit above the cap was granted for lateness and still counts.
        let filled = self.credit.saturating_add(self.earned(elapsed)).min(cap);
        self.credit = self.credit.max(filled);
    }

    /// Credit that builds up in `interval`.
    fn earned(&self, interval: Duration) -> i64 {
        let nanos = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX);
        let product = u128::from(self.rate.as_bps()) * u128::from(nanos);
        i64::try_from(product).unwrap_or(i64::MAX)
    }
}

/// Credit for `bytes`.
fn units(bytes: u64) -> i64 {
    i64::try_from(bytes)
        .unwrap_or(i64::MAX)
        .saturating_mul(UNITS_PER_BYTE)
}
