//! The sending half: what to send next, and the timer. What acknowledgements do to it is in the module
//! `recovery`.

use std::ops::Range;
use std::time::Duration;

use swiftwater_units::Instant;

use super::config::Config;
use super::gathering::Gathering;
use super::loss_probe::LossProbe;
use super::rack::Rack;
use super::reduction::{Progress, Reduction};
use super::rto::{MIN_TIMEOUT, RetransmissionTimeout};
use super::scoreboard::Scoreboard;
use super::segment::MSS;
use super::ticks::Ticks;
use super::undo::Undo;
use super::window::CongestionWindow;

/// What the sender is doing about losses, as `icsk_ca_state` in Linux.
#[derive(Clone, Copy, Debug, Eq, PartialEq, PartialOrd)]
pub enum Phase {
    /// Nothing is suspicious.
    Open,
    /// SACK blocks or a repetition are outstanding, nothing is lost.
    Disorder,
    /// Losses are repaired at a reduced window.
    Recovery,
    /// The retransmission timer expired.
    Loss,
}

/// What the one timer of a sender is for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Timer {
    Retransmission,
    LossProbe,
    Reordering,
    /// The peer's window is closed.
    Window,
}

/// Counters of a sender.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SenderStats {
    /// Segments with payload or FIN, repetitions included.
    pub segments: u64,
    /// Repetitions among them.
    pub retransmissions: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Tail loss probes.
    pub loss_probes: u64,
    /// Times that repair of losses began without a timeout.
    pub recoveries: u64,
    /// Reductions that were undone: nothing had been lost.
    pub undone: u64,
}

/// Sends one direction of a connection.
#[derive(Clone, Debug)]
pub struct Sender {
    pub(super) scoreboard: Scoreboard,
    pub(super) rack: Rack,
    pub(super) rto: RetransmissionTimeout,
    pub(super) window: CongestionWindow,
    pub(super) phase: Phase,
    /// End of what was sent when the phase began (`high_seq`).
    pub(super) phase_end: u64,
    pub(super) reduction: Reduction,
    pub(super) probe: LossProbe,
    pub(super) undo: Undo,
    /// F-RTO (RFC 5682) is examining the last timeout.
    pub(super) examines_timeout: bool,
    /// New data go before repetitions, to find out whether a timeout was spurious; the end of what was
    /// sent when that began.
    pub(super) prefers_new: Option<u64>,
    /// No repetition before the next acknowledgement.
    pub(super) holds_back: bool,
    pub(super) timer: Option<(Timer, Instant)>,
    /// Earliest unacknowledged offset.
    pub(super) acked: u64,
    /// End of what the peer's window permits.
    pub(super) permitted: u64,
    pub(super) stats: SenderStats,
    /// End of the bytes written, and whether FIN follows them.
    written: u64,
    finished: bool,
    /// The application waits for room to write more: a segment that is not full waits, too.
    more_follows: bool,
    /// Whether a lone segment probes the peer's window next.
    probes_window: bool,
    /// A probe that leaves whatever the window is.
    forced: Option<Range<u64>>,
    last_sent: Option<Instant>,
    timeouts_in_row: u32,
    /// New segments since the sender had nothing to do.
    burst: u64,
    /// Something waits for more room, although there is some.
    has_gathered: bool,
    slow_start_after_idle: bool,
    loss_probe: bool,
    ticks: Ticks,
}

impl Sender {
    /// A sender of an established connection. `handshake_rtt` is the round trip of the handshake,
    /// if it was measured; `peer_window` what the peer accepts at first, bytes.
    pub fn new(
        now: Instant,
        config: &Config,
        handshake_rtt: Option<Duration>,
        peer_window: u64,
    ) -> Self {
        let mut rto = RetransmissionTimeout::new();
        let mut rack = Rack::new();
        if let Some(rtt) = handshake_rtt {
            rto.on_sample(rtt, 0, 0);
            rack.on_handshake(rtt);
        }
        let mut window = CongestionWindow::new(now, config.initial_window.max(1));
        window.begin(now);
        Self {
            scoreboard: Scoreboard::new(),
            rack,
            rto,
            window,
            phase: Phase::Open,
            phase_end: 0,
            reduction: Reduction::default(),
            probe: LossProbe::default(),
            undo: Undo::default(),
            examines_timeout: false,
            prefers_new: None,
            holds_back: false,
            timer: None,
            acked: 0,
            permitted: peer_window,
            stats: SenderStats::default(),
            written: 0,
            finished: false,
            more_follows: false,
            probes_window: false,
            forced: None,
            last_sent: None,
            timeouts_in_row: 0,
            burst: 0,
            has_gathered: false,
            slow_start_after_idle: config.slow_start_after_idle,
            loss_probe: config.loss_probe,
            ticks: Ticks::new(config.tick),
        }
    }

    /// The application wrote `bytes` more.
    pub fn write(&mut self, bytes: u64) {
        self.written += bytes;
    }

    /// Whether the application has more to write and waits for room (`MSG_MORE`).
    pub fn set_more_follows(&mut self, more_follows: bool) {
        self.more_follows = more_follows;
    }

    /// The application writes nothing more: FIN follows.
    pub fn finish(&mut self) {
        self.finished = true;
    }

    /// End of all offsets to send, FIN included.
    pub fn end(&self) -> u64 {
        self.written + u64::from(self.finished)
    }

    /// End of the bytes written; FIN has this offset.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Whether everything, FIN included, is acknowledged.
    pub fn is_done(&self) -> bool {
        self.finished && self.acked == self.end()
    }

    /// End of what was sent.
    pub fn sent(&self) -> u64 {
        self.scoreboard.sent()
    }

    /// Bytes written that were never sent.
    pub fn unsent(&self) -> u64 {
        self.written.saturating_sub(self.scoreboard.sent())
    }

    /// Earliest unacknowledged offset.
    pub fn acked(&self) -> u64 {
        self.acked
    }

    /// The congestion window, packets.
    pub fn window(&self) -> &CongestionWindow {
        &self.window
    }

    /// What the sender is doing about losses.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// The estimator of the round trip.
    pub fn timeout(&self) -> &RetransmissionTimeout {
        &self.rto
    }

    /// Counters.
    pub fn stats(&self) -> SenderStats {
        self.stats
    }

    /// Expiries of the retransmission timer since the last progress.
    pub fn timeouts_in_row(&self) -> u32 {
        self.timeouts_in_row
    }

    /// When [`Sender::on_timer`] has to be called.
    pub fn next_timer(&self) -> Option<Instant> {
        self.timer.map(|(_, at)| at)
    }

    /// The offsets of the next segment to send; `None` if nothing may be sent now.
    pub fn poll(&mut self, now: Instant) -> Option<Range<u64>> {
        if let Some(range) = self.forced.take() {
            return Some(range);
        }
        let has_room = self.scoreboard.in_flight() < self.window.get();
        if let Some(end) = self.prefers_new {
            if has_room && let Some(range) = self.send_new(now) {
                return Some(range);
            }
            self.prefers_new = None;
            self.holds_back = self.scoreboard.sent() > end;
            self.examines_timeout &= self.holds_back;
        }
        if has_room && !self.holds_back && self.scoreboard.lost() > 0 {
            return self.repeat(now);
        }
        if has_room && let Some(range) = self.send_new(now) {
            return Some(range);
        }
        self.end_burst(now);
        None
    }

    fn repeat(&mut self, now: Instant) -> Option<Range<u64>> {
        let range = self.scoreboard.retransmit(now)?;
        self.on_repeated(now);
        let is_first = self.scoreboard.first().map(|first| &first.payload) == Some(&range);
        if is_first && !matches!(self.timer, Some((Timer::Reordering, _))) {
            self.arm(now, Timer::Retransmission, now + self.rto.timeout());
        }
        if self.phase == Phase::Recovery {
            self.reduction.on_sent(1);
        }
        Some(range)
    }

    fn on_repeated(&mut self, now: Instant) {
        self.stats.segments += 1;
        self.stats.retransmissions += 1;
        self.last_sent = Some(now);
        self.undo.on_repeated(now);
    }

    /// The next new segment, if there is one and the peer's window permits it.
    fn next_new(&self) -> Option<u64> {
        let sent = self.scoreboard.sent();
        let data = self.written.saturating_sub(sent).min(MSS);
        let is_last = sent + data == self.written;
        let bytes = data + u64::from(self.finished && is_last && sent <= self.written);
        let fits = sent + data <= self.permitted;
        let waits = self.more_follows && data < MSS && !self.finished;
        (bytes > 0 && fits && !waits).then_some(bytes)
    }

    fn send_new(&mut self, now: Instant) -> Option<Range<u64>> {
        let bytes = self.next_new()?;
        if self.gathers(now) {
            self.has_gathered = true;
            return None;
        }
        if self.scoreboard.is_empty()
            && let Some(last) = self.last_sent
        {
            let idle = now.saturating_since(last);
            let timeout = self.slow_start_after_idle.then(|| self.rto.timeout());
            self.window.on_restart(now, idle, timeout);
        }
        Some(self.record_new(now, bytes))
    }

    /// Whether several segments are to be sent, but not before there is room for more of them.
    fn gathers(&self, now: Instant) -> bool {
        let Some((first, last)) = self.scoreboard.first().zip(self.last_sent) else {
            return false;
        };
        let Some(smoothed_rtt) = self.rto.smoothed().filter(|_| self.unsent() > MSS) else {
            return false;
        };
        let window = self.window.get();
        let permitted = self.permitted.saturating_sub(self.scoreboard.sent()) / MSS;
        let gathering = Gathering {
            window,
            threshold: self.window.threshold(),
            room: permitted.min(window.saturating_sub(self.scoreboard.in_flight())),
            out: self.scoreboard.len(),
            since_last: now.saturating_since(last),
            since_first: now.saturating_since(first.sent_at),
            smoothed_rtt,
        };
        self.phase < Phase::Recovery && self.burst == 0 && gathering.waits()
    }

    fn record_new(&mut self, now: Instant, bytes: u64) -> Range<u64> {
        let was_empty = self.scoreboard.is_empty();
        let range = self.scoreboard.send_new(now, bytes);
        self.last_sent = Some(now);
        self.stats.segments += 1;
        self.burst += 1;
        if was_empty || matches!(self.timer, Some((Timer::LossProbe, _))) {
            self.rearm(now);
        }
        if self.phase == Phase::Recovery {
            self.reduction.on_sent(1);
        }
        range
    }

    /// Nothing more can be sent now.
    fn end_burst(&mut self, now: Instant) {
        let sent = std::mem::take(&mut self.burst);
        let has_gathered = std::mem::take(&mut self.has_gathered);
        let is_full = self.scoreboard.in_flight() >= self.window.get();
        let is_limited = is_full || has_gathered;
        let has_more = self.end() > self.scoreboard.sent();
        if sent > 0 || (is_limited && has_more) {
            let can_shrink = self.slow_start_after_idle && self.phase == Phase::Open;
            let shrink_after = can_shrink.then(|| self.rto.timeout());
            let ends = (self.acked, self.scoreboard.sent());
            let out = self.scoreboard.len();
            self.window
                .validate(now, out, ends, is_limited, shrink_after);
        }
        if sent > 0 {
            self.arm_probe(now, false);
        }
        if self.scoreboard.is_empty() && has_more && self.next_new().is_none() {
            if self.timer.is_none() {
                self.arm(now, Timer::Window, now + self.rto.timeout());
            }
        } else if matches!(self.timer, Some((Timer::Window, _))) && self.scoreboard.is_empty() {
            self.timer = None;
        }
    }

    /// Whether the peer's window has to be asked for, by a byte that it has already.
    pub fn take_window_probe(&mut self) -> bool {
        std::mem::take(&mut self.probes_window)
    }

    pub(super) fn arm(&mut self, now: Instant, timer: Timer, at: Instant) {
        self.timer = Some((timer, self.ticks.expiry(now, at)));
    }

    /// Restarts the retransmission timer. The time that passed before a loss probe or a wait for
    /// reordering counts.
    pub(super) fn rearm(&mut self, now: Instant) {
        let Some(first) = self.scoreboard.first() else {
            self.timer = None;
            return;
        };
        let timeout = self.rto.timeout();
        let at = match self.timer {
            Some((Timer::LossProbe | Timer::Reordering, _)) => {
                (first.sent_at + timeout).max(now + Duration::from_millis(1))
            }
            _ => now + timeout,
        };
        self.arm(now, Timer::Retransmission, at);
    }

    /// Sets the timer of a loss probe, if one may be sent (RFC 8985, section 7.2). `advancing` is
    /// whether the retransmission timer would be restarted otherwise.
    pub(super) fn arm_probe(&mut self, now: Instant, advancing: bool) -> bool {
        let Some(first) = self.scoreboard.first() else {
            return false;
        };
        if !self.loss_probe || self.phase != Phase::Open {
            return false;
        }
        let single = self.scoreboard.len() == 1;
        let delay = LossProbe::delay(self.rto.smoothed(), single, MIN_TIMEOUT);
        let timeout_at = if advancing {
            now + self.rto.timeout()
        } else {
            first.sent_at + self.rto.timeout()
        };
        let at = if timeout_at > now {
            timeout_at.min(now + delay)
        } else {
            now + delay
        };
        self.arm(now, Timer::LossProbe, at);
        true
    }

    /// The timer may have expired.
    pub fn on_timer(&mut self, now: Instant) {
        let Some((timer, _)) = self.timer.filter(|(_, at)| *at <= now) else {
            return;
        };
        match timer {
            Timer::Retransmission => self.on_timeout(now),
            Timer::LossProbe => self.send_probe(now),
            Timer::Reordering => self.on_reordering_timer(now),
            Timer::Window => {
                self.rto.back_off();
                self.arm(now, Timer::Window, now + self.rto.timeout());
                self.probes_window = true;
            }
        }
    }

    fn send_probe(&mut self, now: Instant) {
        let mut has_sent = false;
        if !self.probe.is_in_flight() {
            let range = match self.next_new() {
                Some(bytes) => {
                    let range = self.record_new(now, bytes);
                    self.probe.on_sent(range.end, false);
                    Some(range)
                }
                None => self.scoreboard.probe(now).inspect(|_| {
                    self.on_repeated(now);
                    self.probe.on_sent(self.scoreboard.sent(), true);
                }),
            };
            has_sent = range.is_some();
            self.stats.loss_probes += u64::from(has_sent);
            self.forced = range;
            // The probe is no burst of the application.
            self.burst = 0;
        }
        if has_sent {
            self.timer = None;
        }
        self.rearm(now);
    }

    fn on_reordering_timer(&mut self, now: Instant) {
        let before = self.scoreboard.in_flight();
        let lost_before = self.scoreboard.lost_ever();
        let again = self.detect(now);
        if self.scoreboard.in_flight() != before {
            if self.phase != Phase::Recovery {
                self.enter_recovery(now);
                let progress = Progress {
                    delivered: 1,
                    lost: self.scoreboard.lost_ever() - lost_before,
                    advanced: false,
                };
                self.reduce_by(progress);
            }
            self.holds_back = false;
        }
        match again {
            Some(at) => self.arm(now, Timer::Reordering, at),
            None => self.rearm(now),
        }
    }

    /// Marks losses; returns when more may be lost.
    pub(super) fn detect(&mut self, now: Instant) -> Option<Instant> {
        let smoothed = self.rto.smoothed().unwrap_or_default();
        let in_recovery = self.phase >= Phase::Recovery;
        self.rack
            .detect(now, &mut self.scoreboard, smoothed, in_recovery)
    }

    /// The window during a reduction, after an acknowledgement.
    pub(super) fn reduce_by(&mut self, progress: Progress) {
        let threshold = self.window.threshold().unwrap_or(u64::MAX);
        let in_flight = self.scoreboard.in_flight();
        if let Some(window) = self.reduction.on_ack(progress, in_flight, threshold) {
            self.window.set(window);
        }
    }

    fn on_timeout(&mut self, now: Instant) {
        if self.scoreboard.is_empty() {
            self.timer = None;
            return;
        }
        self.stats.timeouts += 1;
        self.enter_loss(now);
        self.timeouts_in_row += 1;
        self.rto.back_off();
        self.arm(now, Timer::Retransmission, now + self.rto.timeout());
    }

    /// The peer acknowledged something.
    pub(super) fn on_progress(&mut self) {
        self.timeouts_in_row = 0;
    }
}
