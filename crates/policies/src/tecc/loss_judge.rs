//! Loss recovery at a server whose packets pass a tunnel that repairs losses: what the tunnel will send again, the
//! server doesn't.
//!
//! While the client passes reports of the tunnel on, a missing packet is lost when the client says where it was lost,
//! or when the tunnel would have repaired it or given it up by then. Before the first report and when reports have
//! ceased, the configured thresholds hold (RFC 9002, section 6.1). A report counts for four intervals or one and a
//! half round trips; as a tunnel is silent while nothing passes, a packet sent after the last one is given one and a
//! half round trips to bring another.
//!
//! What the tunnel gave up is no sign of congestion before it, and the tunnel's own congestion control has seen it. But a
//! client that says so of losses before the tunnel takes the link there for itself. So it counts as any other loss, unless
//! clients are trusted up to a share of the packets (`given-up`).

use std::time::Duration;

use swiftwater_congestion::RttView;
use swiftwater_quic::policy::{
    LossCandidate, LossJudge, LossVerdict, ReceivedFeedback, ReorderingThresholds,
};
use swiftwater_tecc::LossPlace;
use swiftwater_tunable::tunable;
use swiftwater_units::{Instant, PacketNumber, PathId};

use super::message::TeccMessage;
use crate::loss_judges::LossJudgeFactory;

/// A tunnel that was silent for so long is no more.
const LONGEST_SILENCE: Duration = Duration::from_secs(10);

/// Packets that a tunnel may give up at once, if clients are believed at all, as when its link fails for a moment.
const GIVEN_UP_AT_ONCE: f64 = 8.0;

/// Parameters of [`TeccLossJudge`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TeccLossJudgeConfig {
    /// Losses that the tunnel repairs are left to it; default on.
    pub suppress: bool,
    /// A packet without news is lost when the tunnel has given it up by all means; otherwise when one repair and the news
    /// of it would have come. Default on.
    pub whole_horizon: bool,
    /// The probe timeout is longer by the time that a repair takes; default on.
    pub extend_pto: bool,
    /// Share of the packets that clients are believed that the tunnel gave up, so that their loss is no sign of congestion:
    /// 0 to 1, 1 for trusted clients; default 0.
    pub given_up: f64,
}

impl Default for TeccLossJudgeConfig {
    fn default() -> Self {
        Self {
            suppress: true,
            whole_horizon: true,
            extend_pto: true,
            given_up: 0.0,
        }
    }
}

tunable!(TeccLossJudgeConfig {
    "suppress" => suppress, "leave losses to the tunnel that it repairs";
    "whole-horizon" => whole_horizon, "wait for as long as the tunnel repairs before a packet without news is lost";
    "extend-pto" => extend_pto, "lengthen the probe timeout by the time of a repair";
    "given-up" => given_up in 0.0..=1.0, "share of packets whose loss is no sign of congestion if the tunnel gave them up";
});

impl LossJudgeFactory for TeccLossJudgeConfig {
    fn loss_judge(&self, path: PathId, configured: ReorderingThresholds) -> Box<dyn LossJudge> {
        Box::new(TeccLossJudge::new(*self, path, configured))
    }
}

/// The newest message.
#[derive(Clone, Debug)]
struct Report {
    message: TeccMessage,
    at: Instant,
}

/// See the module's documentation.
#[derive(Clone, Debug)]
pub struct TeccLossJudge {
    config: TeccLossJudgeConfig,
    path: PathId,
    configured: ReorderingThresholds,
    report: Option<Report>,
    suspects: u64,
    /// Packets that the tunnel may have given up, as of packet number `credited_to`.
    credit: f64,
    credited_to: u64,
}

impl TeccLossJudge {
    /// A judge without a report.
    pub fn new(
        config: TeccLossJudgeConfig,
        path: PathId,
        configured: ReorderingThresholds,
    ) -> Self {
        Self {
            config,
            path,
            configured,
            report: None,
            suspects: 0,
            credit: if config.given_up > 0.0 {
                GIVEN_UP_AT_ONCE
            } else {
                0.0
            },
            credited_to: 0,
        }
    }

    /// Packets that were declared lost although the client did not say so: the tunnel may have been repairing them.
    pub fn suspects(&self) -> u64 {
        self.suspects
    }

    /// Whether the tunnel may have given up packet `number`, after those before.
    fn may_be_given_up(&mut self, number: u64) -> bool {
        let sent = number.saturating_sub(self.credited_to);
        self.credited_to = self.credited_to.max(number);
        self.credit = (self.credit + sent as f64 * self.config.given_up).min(GIVEN_UP_AT_ONCE);
        let may_be = self.credit >= 1.0 || self.config.given_up >= 1.0;
        if may_be {
            self.credit -= 1.0;
        }
        may_be
    }

    /// The verdict of the configured thresholds.
    fn plain(&self, now: Instant, candidate: &LossCandidate) -> LossVerdict {
        let behind = candidate
            .largest_acked
            .get()
            .saturating_sub(candidate.number.get());
        let by_packets = (self.configured.packets).is_some_and(|packets| behind >= packets);
        let lost_at = candidate.sent_at + candidate.rtt * self.configured.time_eighths / 8;
        if by_packets || now >= lost_at {
            LossVerdict::Lost
        } else {
            LossVerdict::NotYet(lost_at)
        }
    }
}

/// Whether a report counts for a packet, and until when it will.
fn covered_until(report: &Report, candidate: &LossCandidate) -> Instant {
    let by_time = report.at + (4 * report.message.interval()).max(candidate.rtt * 3 / 2);
    if report.at < candidate.sent_at && candidate.sent_at < report.at + LONGEST_SILENCE {
        by_time.max(candidate.sent_at + candidate.rtt * 3 / 2)
    } else {
        by_time
    }
}

fn place(message: &TeccMessage, number: PacketNumber) -> Option<LossPlace> {
    let number = number.get();
    let mut lost = message.lost.iter();
    lost.find(|lost| (lost.first..=lost.last).contains(&number))
        .map(|lost| lost.place)
}

impl LossJudge for TeccLossJudge {
    fn thresholds(&self) -> ReorderingThresholds {
        if self.judges_packets() {
            // Every packet that is missing is judged.
            ReorderingThresholds {
                packets: Some(1),
                time_eighths: 8,
            }
        } else {
            self.configured
        }
    }

    fn judges_packets(&self) -> bool {
        self.config.suppress && self.report.is_some()
    }

    fn judge(&mut self, now: Instant, candidate: &LossCandidate) -> LossVerdict {
        let Some(report) = &self.report else {
            return self.plain(now, candidate);
        };
        let covered_until = covered_until(report, candidate);
        if now >= covered_until {
            return self.plain(now, candidate);
        }
        match place(&report.message, candidate.number) {
            Some(LossPlace::Upstream) => return LossVerdict::Lost,
            Some(LossPlace::Abandoned) => {
                return if self.may_be_given_up(candidate.number.get()) {
                    LossVerdict::AbandonedUpstream
                } else {
                    LossVerdict::Lost
                };
            }
            None => {}
        }
        let repair = if self.config.whole_horizon {
            report.message.horizon()
        } else {
            report.message.repair_time()
        };
        let safe_at = candidate.sent_at + candidate.rtt * 9 / 8 + repair;
        if now >= safe_at {
            self.suspects += 1;
            return LossVerdict::Lost;
        }
        LossVerdict::NotYet(safe_at.min(covered_until))
    }

    fn extra_probe_timeout(&self, _rtt: &RttView) -> Duration {
        let report = self.report.as_ref().filter(|_| self.config.extend_pto);
        report.map_or(Duration::ZERO, |report| report.message.repair_time())
    }

    fn on_feedback(&mut self, now: Instant, feedback: &ReceivedFeedback) {
        if feedback.path == self.path
            && let Some(message) = TeccMessage::decode(feedback)
        {
            self.report = Some(Report { message, at: now });
        }
    }
}
