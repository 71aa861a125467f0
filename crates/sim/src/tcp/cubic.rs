//! CUBIC (RFC 9438) as Linux computes it: windows are whole packets, and rounding decides at the small
//! windows of lossy paths.
//!
//! The controllers of `swiftwater-congestion` count bytes in floating point, test the window by rules of
//! RFC 9002 and pace. They are not used here because with windows of two to ten packets these
//! differences are larger than what is to be measured.

use std::time::Duration;

use swiftwater_units::Instant;

/// A tick of the kernel's clock at 250 Hz: the cubic function is evaluated at most once a tick.
const TICK: Duration = Duration::from_millis(4);
/// The window is kept for this long while it does not change.
const LEAST_INTERVAL: Duration = Duration::from_micros(31_250);
/// `beta_cubic` times 1024.
const BETA: u64 = 717;
/// `C` in packets per cubic second, times 1024: 0.4.
const C: u64 = 410;
/// Acknowledged packets for each packet that Reno's window grows by, per packet of window, times 8.
const RENO_SHARE: u64 = 8 * (1024 + BETA) / 3 / (1024 - BETA);
/// Of one ACK each before the first reduction: growth by 5 % per round trip.
const EARLY_PACE: u64 = 20;

#[derive(Clone, Copy, Debug)]
struct Epoch {
    began: Instant,
    /// Window of the plateau, packets.
    origin: u64,
    /// Time from the beginning to the plateau, 1/1024 s.
    k: u64,
    /// Window that Reno would have, packets.
    reno: u64,
    /// Packets acknowledged that have not made Reno's window grow.
    reno_acked: u64,
}

/// Growth in congestion avoidance, and the reduction upon loss.
#[derive(Clone, Debug, Default)]
pub struct Cubic {
    /// Window before the last reduction, packets; 0 before the first.
    last_max: u64,
    epoch: Option<Epoch>,
    /// Acknowledged packets for each packet that the window grows by.
    pace: u64,
    last_window: u64,
    last_at: Option<Instant>,
}

impl Cubic {
    /// A curve without history.
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes `acked` acknowledged packets at a window of `window` packets, and returns the number of
    /// acknowledged packets for each packet of growth. `min_rtt` is how far the function is looked
    /// ahead.
    pub fn on_acked(&mut self, now: Instant, window: u64, acked: u64, min_rtt: Duration) -> u64 {
        if let Some(epoch) = &mut self.epoch {
            epoch.reno_acked += acked;
        }
        let since_last = self.last_at.map(|at| now.saturating_since(at));
        if self.epoch.is_some()
            && self.last_window == window
            && since_last.is_some_and(|since| since <= LEAST_INTERVAL)
        {
            return self.pace;
        }
        let is_same_tick = since_last.is_some_and(|since| since < TICK);
        let mut epoch = match self.epoch {
            Some(epoch) => epoch,
            None => self.begin_epoch(now, window, acked),
        };
        if self.last_at.is_none() || epoch.began == now || !is_same_tick {
            self.last_window = window;
            self.last_at = Some(now);
            self.pace = self.cubic_pace(&epoch, now, window, min_rtt);
        }
        let per_packet = (window * RENO_SHARE) >> 3;
        while epoch.reno_acked > per_packet {
            epoch.reno_acked -= per_packet.max(1);
            epoch.reno += 1;
        }
        if epoch.reno > window {
            self.pace = self.pace.min(window / (epoch.reno - window));
        }
        // At most half a window each round trip.
        self.pace = self.pace.max(2);
        self.epoch = Some(epoch);
        self.pace
    }

    fn begin_epoch(&self, now: Instant, window: u64, acked: u64) -> Epoch {
        let distance = self.last_max.saturating_sub(window);
        let k = (distance as f64 * (1_u64 << 40) as f64 / C as f64).cbrt();
        Epoch {
            began: now,
            origin: self.last_max.max(window),
            k: k as u64,
            reno: window,
            reno_acked: acked,
        }
    }

    fn cubic_pace(&self, epoch: &Epoch, now: Instant, window: u64, min_rtt: Duration) -> u64 {
        let t = ticks(now.saturating_since(epoch.began) + min_rtt);
        let distance = u128::from(t.abs_diff(epoch.k));
        let change = (u128::from(C) * distance * distance * distance) >> 40;
        let change = u64::try_from(change).unwrap_or(u64::MAX / 2);
        let target = if t < epoch.k {
            epoch.origin.saturating_sub(change)
        } else {
            epoch.origin.saturating_add(change)
        };
        let pace = if target > window {
            window / (target - window)
        } else {
            100 * window
        };
        if self.last_max == 0 {
            pace.min(EARLY_PACE)
        } else {
            pace
        }
    }

    /// A loss at a window of `window` packets; returns the reduced one.
    pub fn on_loss(&mut self, window: u64) -> u64 {
        self.epoch = None;
        self.last_max = if window < self.last_max {
            window * (1024 + BETA) / 2048
        } else {
            window
        };
        (window * BETA / 1024).max(2)
    }

    /// A timeout: everything learnt is forgotten.
    pub fn reset(&mut self) {
        *self = Self::new();
    }

    /// Nothing was sent for `idle`: that time does not count as growth.
    pub fn on_idle(&mut self, now: Instant, idle: Duration) {
        if let Some(epoch) = &mut self.epoch {
            epoch.began = (epoch.began + idle).min(now);
        }
    }

    /// When the running stage of growth began.
    pub fn epoch_began(&self) -> Option<Instant> {
        self.epoch.map(|epoch| epoch.began)
    }
}

/// In units of 1/1024 s.
fn ticks(duration: Duration) -> u64 {
    (duration.as_nanos() * 1024 / 1_000_000_000) as u64
}
