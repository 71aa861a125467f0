//! What an acknowledgement does to a sender: the state machine of loss recovery, as in Linux
//! (`tcp_ack`, `tcp_fastretrans_alert`), with F-RTO (RFC 5682).
//!
//! Not modelled: ECN, reneging of SACK, and the undo of a recovery of which only a part was repaired.

use std::time::Duration;

use swiftwater_units::Instant;

use super::loss_probe::ProbeOutcome;
use super::reduction::{Progress, Reduction};
use super::scoreboard::Arrived;
use super::segment::Acknowledgement;
use super::sender::{Phase, Sender, Timer};

/// Added to a wait for reordering (`TCP_TIMEOUT_MIN`).
const REORDERING_SLACK: Duration = Duration::from_millis(2);

/// What is known from one acknowledgement.
struct News {
    now: Instant,
    advanced: bool,
    arrived: Arrived,
    /// A segment that was sent once, before the phase began, has arrived.
    has_original: bool,
    /// Reports only what was known, without payload or a change of the window.
    is_duplicate_ack: bool,
    /// Reports the arrival of a duplicate.
    has_duplicate: bool,
    /// When the segment was sent that the acknowledgement answers, by its timestamp.
    echo: Option<Instant>,
    lost_before: u64,
    /// The timer is to be restarted.
    rearms: bool,
    lost_repetition: bool,
}

impl Sender {
    /// Takes an acknowledgement. `echo` is the timestamp it returns, and `has_payload` whether it came
    /// with data.
    pub fn on_ack(
        &mut self,
        now: Instant,
        ack: &Acknowledgement,
        echo: Option<Instant>,
        has_payload: bool,
    ) {
        if ack.next > self.scoreboard.sent() {
            // Of what was never sent.
            return;
        }
        let first_sent = self.scoreboard.first().map(|first| first.sent_at);
        let before = self.acked;
        let permitted = ack.next + ack.window;
        let window_changed = permitted != self.permitted;
        if ack.next >= before {
            self.permitted = permitted;
        }
        let duplicate = ack.blocks.first().filter(|block| block.end <= ack.next);
        if let Some(block) = duplicate {
            self.undo.on_duplicate(block.end);
        }
        let lost_before = self.scoreboard.lost_ever();
        let arrived = self.scoreboard.on_ack(ack);
        self.acked = before.max(ack.next);
        let advanced = self.acked > before;
        if advanced {
            self.on_progress();
        }
        let phase_end = self.phase_end;
        let has_original = arrived
            .newly()
            .any(|segment| !segment.retransmitted && segment.payload.end <= phase_end);
        let is_new = advanced || has_payload || window_changed;
        let mut news = News {
            now,
            advanced,
            has_original,
            is_duplicate_ack: !is_new && arrived.sacked.is_empty(),
            has_duplicate: duplicate.is_some(),
            echo,
            lost_before,
            rearms: advanced,
            lost_repetition: false,
            arrived,
        };
        self.measure(&mut news, first_sent);
        self.holds_back = false;
        self.prefers_new = None;
        self.on_probe_ack(&news);
        self.leave_phase(&news);
        self.recover(&mut news);
        if news.rearms && !self.arm_probe(now, true) {
            self.rearm(now);
        }
        self.grow_or_reduce(&news);
    }

    /// Round trips: for the timeout, RACK and HyStart.
    fn measure(&mut self, news: &mut News, first_sent: Option<Instant>) {
        let (now, arrived) = (news.now, &news.arrived);
        let since = |sent: Instant| now.saturating_since(sent);
        let is_ambiguous = arrived.acked.iter().any(|segment| segment.retransmitted);
        let acked = || arrived.acked.iter().filter(|segment| !segment.sacked);
        let sacked = || arrived.sacked.iter().filter(|each| !each.retransmitted);
        let mut earliest = None;
        let mut latest = None;
        if !is_ambiguous {
            earliest = acked().next().map(|segment| since(segment.sent_at));
            latest = acked().next_back().map(|segment| since(segment.sent_at));
        }
        let first_sacked = sacked().next().map(|segment| since(segment.sent_at));
        if first_sacked.is_some() {
            latest = sacked().next_back().map(|segment| since(segment.sent_at));
        }
        if let (Some(rtt), Some(first)) = (first_sacked, first_sent) {
            // In recovery the timer must not move on with every block.
            news.rearms |= rtt > now.saturating_since(first);
        }
        let mut sample = earliest.or(first_sacked);
        if sample.is_none() && news.advanced {
            sample = news.echo.map(since);
            latest = sample;
        }
        self.rack.on_arrived(now, arrived);
        if let Some(rtt) = sample {
            self.rto.on_sample(rtt, self.acked, self.scoreboard.sent());
        }
        if let Some(rtt) = latest {
            let smoothed = self.rto.smoothed().unwrap_or(rtt);
            let ends = (self.acked, self.scoreboard.sent());
            self.window.on_rtt(now, rtt, smoothed, ends);
        }
    }

    fn on_probe_ack(&mut self, news: &News) {
        let is_duplicate = news.has_duplicate || news.is_duplicate_ack;
        match self.probe.on_ack(self.acked, is_duplicate) {
            ProbeOutcome::RepairedLoss => {
                self.window.reduce();
                self.window.end_reduction(news.now);
                self.settle();
            }
            ProbeOutcome::Waiting | ProbeOutcome::Harmless => {}
        }
    }

    /// Recovery ends when everything is acknowledged that was sent before it began.
    fn leave_phase(&mut self, news: &News) {
        if self.phase == Phase::Open {
            self.undo.forget_repetitions();
        } else if self.phase == Phase::Recovery && self.acked >= self.phase_end {
            let is_undone = self.may_undo(news) && self.undo_reduction();
            self.phase = Phase::Open;
            if !is_undone {
                self.window.end_reduction(news.now);
            }
        }
    }

    fn recover(&mut self, news: &mut News) {
        match self.phase {
            Phase::Recovery => {
                if self.undo.is_refuted() && self.undo_reduction() {
                    self.settle();
                }
                self.identify_losses(news);
                if self.phase != Phase::Recovery && self.scoreboard.was_lost() > 0 {
                    self.enter_recovery(news.now);
                }
            }
            Phase::Loss => {
                self.examine_timeout(news);
                self.identify_losses(news);
                if self.phase == Phase::Open || news.lost_repetition {
                    self.recover_or_settle(news.now);
                }
            }
            Phase::Open | Phase::Disorder => {
                if self.undo.is_refuted() {
                    self.undo_reduction();
                }
                self.identify_losses(news);
                self.recover_or_settle(news.now);
            }
        }
    }

    /// A repetition in flight calls for recovery, too: when one recovery ends with it, another begins,
    /// with another reduction.
    fn recover_or_settle(&mut self, now: Instant) {
        if self.scoreboard.was_lost() > 0 {
            self.enter_recovery(now);
        } else {
            self.settle();
        }
    }

    fn identify_losses(&mut self, news: &mut News) {
        let repeating = self.scoreboard.repeating();
        let smoothed = self.rto.smoothed().unwrap_or_default();
        let in_recovery = self.phase >= Phase::Recovery;
        let again =
            self.rack
                .detect_after_ack(news.now, &mut self.scoreboard, smoothed, in_recovery);
        if let Some(at) = again {
            self.arm(news.now, Timer::Reordering, at + REORDERING_SLACK);
            news.rearms = false;
        }
        news.lost_repetition |= self.scoreboard.repeating() < repeating;
    }

    /// An acknowledgement after a timeout (RFC 5682, section 3.1).
    fn examine_timeout(&mut self, news: &News) {
        let is_recovered = self.acked >= self.phase_end;
        if news.advanced && self.may_undo(news) {
            self.undo_timeout();
            return;
        }
        if self.examines_timeout {
            if news.has_original {
                self.undo_timeout();
                return;
            }
            if self.scoreboard.sent() > self.phase_end {
                if !news.arrived.sacked.is_empty() || news.is_duplicate_ack {
                    self.examines_timeout = false;
                }
            } else if news.advanced && !is_recovered {
                self.phase_end = self.scoreboard.sent();
                self.prefers_new = Some(self.phase_end);
                return;
            }
        }
        if is_recovered {
            if self.may_undo(news) {
                self.undo_reduction();
            }
            self.phase = Phase::Open;
        }
    }

    fn undo_timeout(&mut self) {
        self.scoreboard.unmark_lost();
        self.undo_reduction();
        self.examines_timeout = false;
        self.phase = Phase::Open;
    }

    fn may_undo(&self, news: &News) -> bool {
        self.undo.is_refuted() || self.undo.is_original(news.echo)
    }

    fn undo_reduction(&mut self) -> bool {
        self.window
            .restore(self.undo.prior_window, self.undo.prior_threshold);
        self.undo.clear();
        self.stats.undone += 1;
        true
    }

    /// No loss is known.
    fn settle(&mut self) {
        if self.scoreboard.repeating() == 0 {
            self.undo.forget_repetitions();
        }
        let is_clean = self.scoreboard.sacked() == 0
            && self.scoreboard.was_lost() == 0
            && self.scoreboard.repeating() == 0;
        let phase = if is_clean {
            Phase::Open
        } else {
            Phase::Disorder
        };
        if self.phase != phase {
            self.phase = phase;
            self.phase_end = self.scoreboard.sent();
        }
    }

    pub(super) fn enter_recovery(&mut self, now: Instant) {
        debug_assert!(
            self.phase != Phase::Recovery,
            "recovery began before {now:?}"
        );
        let repeating = self.scoreboard.repeating() as u64;
        let prior = self.window.get();
        self.undo
            .begin(self.acked, repeating, prior, self.window.worth());
        self.probe.cancel();
        self.reduction = Reduction::begin(prior);
        self.window.reduce();
        self.phase = Phase::Recovery;
        self.phase_end = self.scoreboard.sent();
        self.stats.recoveries += 1;
    }

    pub(super) fn enter_loss(&mut self, now: Instant) {
        let first = self.scoreboard.first().map(|first| first.payload.start);
        let rack = &self.rack;
        self.scoreboard.mark_lost(|segment| {
            Some(segment.payload.start) == first || !rack.is_recent(now, segment)
        });
        let is_new = self.phase < Phase::Recovery;
        let repeats = self.timeouts_in_row() > 0;
        if is_new || self.acked >= self.phase_end || (self.phase == Phase::Loss && !repeats) {
            let repeating = self.scoreboard.repeating() as u64;
            self.undo.begin(
                self.acked,
                repeating,
                self.window.get(),
                self.window.worth(),
            );
            self.window.reduce();
        }
        self.window.set(self.scoreboard.in_flight() + 1);
        self.window.on_timeout(now, self.scoreboard.sent());
        self.phase = Phase::Loss;
        self.phase_end = self.scoreboard.sent();
        self.probe.cancel();
        self.examines_timeout = is_new || repeats;
        self.prefers_new = None;
        self.holds_back = false;
    }

    fn grow_or_reduce(&mut self, news: &News) {
        let delivered = news.arrived.delivered();
        if self.phase == Phase::Recovery {
            self.reduce_by(Progress {
                delivered,
                lost: self.scoreboard.lost_ever() - news.lost_before,
                advanced: news.advanced,
            });
        } else if news.advanced || (self.rack.has_reordering() && delivered > 0) {
            self.window.on_acked(news.now, delivered);
        }
    }
}
