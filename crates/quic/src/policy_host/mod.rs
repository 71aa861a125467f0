//! Where policies are hosted: scheduler, re-injector and acknowledgement policy, with the views they are
//! given, and what their answers are held against. What the scheduler is asked is in `scheduling`.

mod copy_queue;
mod scheduling;

pub(crate) use self::copy_queue::WaitingCopy;
pub(crate) use self::scheduling::{Scheduled, Waiting};

use std::fmt;
use std::time::Duration;

use swiftwater_units::{ByteCount, Instant, PathId};
use swiftwater_wire::frame::AckFrequency;

use self::copy_queue::CopyQueue;
use crate::ack_frequency::{ReceivedAckFrequency, SentAckFrequency, offered};
use crate::config::{AckFrequencyConfig, TransportConfig};
use crate::feedback_exchange::FeedbackExchange;
use crate::frame_writer::Carried;
use crate::handshake::Handshake;
use crate::idle_memory::IdleMemory;
use crate::lazy_box::LazyBox;
use crate::observe::Observation;
use crate::path::{LossFacts, PathSet, PathState};
use crate::policy::{
    AckPolicy, CopyDemand, Hints, NextData, Occasion, OutstandingRange, PacketFate, PacketOutcome,
    PathView, ReceivedFeedback, Reinjection, Reinjector, Rejection, RejectionReason, Scheduler,
};
use crate::streams::{RepairEvent, Streams};

use crate::monitor::Monitor;

/// Least time between two calls that a policy asks for by its deadlines: one in the past would make the
/// driver spin.
const MIN_WAIT: Duration = Duration::from_millis(1);

/// The peer's delay of acknowledgements while it has declared none (RFC 9000, section 18.2).
const DEFAULT_MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// The policies of a connection.
pub(crate) struct PolicyHost {
    scheduler: Box<dyn Scheduler>,
    pub(crate) reinjector: Box<dyn Reinjector>,
    pub(crate) ack: Box<dyn AckPolicy>,
    /// Messages between the policies of both ends; `None` if this one neither sends nor accepts any.
    pub(crate) feedback: Option<Box<FeedbackExchange>>,
    /// How often the peer requests to be acknowledged.
    pub(crate) ack_frequency_received: ReceivedAckFrequency,
    /// How often this end requests to be acknowledged.
    pub(crate) ack_frequency_sent: SentAckFrequency,
    hints: LazyBox<Hints>,
    /// Copies that the re-injector asked for, not sent yet.
    pub(crate) copies: CopyQueue,
    buffers: LazyBox<PolicyBuffers>,
}

/// What a host keeps between calls while the connection is not idle: buffers, above all.
#[derive(Debug, Default)]
struct PolicyBuffers {
    views: Vec<PathView>,
    reinjections: Vec<Reinjection>,
    copy_demand: Vec<CopyDemand>,
    outcomes: Vec<PacketOutcome>,
    /// The re-injector is not called by its deadline before then.
    not_before: Option<Instant>,
}

impl PolicyHost {
    pub(crate) fn new(config: &TransportConfig) -> Self {
        Self {
            scheduler: config.policies.scheduler(),
            reinjector: config.policies.reinjector(),
            ack: config.policies.ack_policy(config.ack_eliciting_threshold),
            feedback: FeedbackExchange::new(config),
            ack_frequency_received: ReceivedAckFrequency::new(offered(config)),
            ack_frequency_sent: SentAckFrequency::default(),
            hints: LazyBox::default(),
            copies: CopyQueue::default(),
            buffers: LazyBox::default(),
        }
    }

    /// The delay that the peer may add to acknowledgements of 1-RTT packets: what it declared in the
    /// `handshake`, or was asked for since.
    pub(crate) fn peer_max_ack_delay(&self, handshake: &Handshake) -> Duration {
        let declared = handshake
            .peer_terms()
            .map_or(DEFAULT_MAX_ACK_DELAY, |terms| terms.max_ack_delay);
        self.ack_frequency_sent.peer_max_ack_delay(declared)
    }

    /// How often the peer is to be asked to acknowledge, if what suits `path` has changed
    /// (draft-ietf-quic-ack-frequency).
    pub(crate) fn ack_frequency_request(
        &mut self,
        now: Instant,
        config: Option<&AckFrequencyConfig>,
        path: &PathState,
    ) -> Option<AckFrequency> {
        let rtt = path.recovery.rtt();
        if !rtt.has_sample {
            return None;
        }
        let window = path.recovery.cwnd().get() / u64::from(path.network.mtu.current());
        self.ack_frequency_sent
            .poll(config, now, rtt.smoothed, window)
    }

    /// A datagram of `bytes` left on `path`.
    pub(crate) fn on_datagram_sent(&mut self, now: Instant, path: PathId, bytes: usize) {
        if !self.scheduler.is_inert() {
            self.scheduler
                .on_sent(now, path, ByteCount::new(bytes as u64));
        }
    }

    /// Path `path` became usable for data, or ceased to be. The re-injector is asked afterwards.
    pub(crate) fn on_path_change(&mut self, now: Instant, path: PathId, is_usable: bool) {
        self.scheduler.on_path_change(now, path, is_usable);
    }

    /// Reports the fates of a path's 1-RTT packets to the re-injector.
    pub(crate) fn on_outcomes(
        &mut self,
        now: Instant,
        path: &PathState,
        facts: &LossFacts,
        monitor: &mut Monitor,
    ) {
        let acked = &facts.acked.acked;
        let has_lost = !facts.lost.is_empty() || !facts.abandoned.is_empty();
        if self.reinjector.is_inert() || (acked.is_empty() && !has_lost) {
            return;
        }
        let outcomes = &mut self.buffers.need().outcomes;
        outcomes.clear();
        let record = |number, sent_at, size, fate| {
            let packet = path.space.ledger.packet(number);
            PacketOutcome {
                path: path.id,
                number,
                sent_at,
                size,
                repeated: packet.is_some_and(|packet| packet.retransmission),
                fate,
            }
        };
        outcomes.extend(acked.iter().map(|packet| {
            let fate = match packet.lost_in {
                None => PacketFate::Acked,
                Some(_) => PacketFate::Spurious,
            };
            record(packet.number, packet.sent_at, packet.size, fate)
        }));
        outcomes
            .extend((facts.lost.iter().chain(&facts.abandoned)).map(|packet| {
                record(packet.number, packet.sent_at, packet.size, PacketFate::Lost)
            }));
        outcomes.sort_unstable_by_key(|outcome| outcome.number);
        self.reinjector.on_outcomes(now, outcomes, &path.view(now));
        self.observe_redundancy(now, monitor);
    }

    /// Shows the observer a change of the re-injector's state.
    fn observe_redundancy(&mut self, now: Instant, monitor: &mut Monitor) {
        if !monitor.is_observed() {
            return;
        }
        let report = self.reinjector.report();
        let seen = &mut monitor.last_reported.need().reinjector_decisions;
        if std::mem::replace(seen, report.decisions) != report.decisions {
            let report = &report;
            monitor.observe(now, &Observation::Redundancy { report });
        }
    }

    /// Asks the re-injector what to send a second time.
    pub(crate) fn consult_reinjector(
        &mut self,
        now: Instant,
        occasion: Occasion,
        paths: &PathSet,
        streams: &Streams,
        monitor: &mut Monitor,
    ) {
        let is_asked_for = matches!(occasion, Occasion::SpareRoom | Occasion::Timer);
        let is_of_interest = is_asked_for || self.reinjector.is_asked_on(occasion);
        if self.reinjector.is_inert() || !is_of_interest {
            return;
        }
        let PolicyBuffers {
            views,
            reinjections: asked,
            ..
        } = self.buffers.need();
        let views = refreshed(views, now, paths);
        asked.clear();
        let mut outstanding = (paths.iter()).flat_map(|path| outstanding_ranges(path, streams));
        let none = Hints::default();
        let hints = self.hints.get().unwrap_or(&none);
        let unsent =
            (streams.pending_bytes()).saturating_sub(streams.pending_retransmission_bytes());
        self.reinjector.on_unsent_data(now, ByteCount::new(unsent));
        let next = streams
            .next_demand()
            .map(|next| NextData::new(next.stream, next.priority).first_frame(next.first_frame));
        self.reinjector.on_next_data(now, next);
        self.reinjector
            .reinject(now, occasion, &mut outstanding, views, hints, asked);
        self.queue_reinjections(now, paths, monitor);
    }

    /// Queues the copies that the re-injector asked for, and reports back those that can't be sent: a
    /// policy whose requests are invalid or without end harms only itself.
    fn queue_reinjections(&mut self, now: Instant, paths: &PathSet, monitor: &mut Monitor) {
        let mut rejections = Vec::new();
        for copy in self.buffers.need().reinjections.drain(..) {
            let reason = if copy.offset.checked_add(copy.len.into()).is_none() {
                RejectionReason::RangeGone
            } else if !paths.iter().any(|path| copy.target.permits(path.id)) {
                RejectionReason::NoPath
            } else if self.copies.push(copy).is_err() {
                RejectionReason::QueueFull
            } else {
                continue;
            };
            rejections.push(Rejection::new(copy, reason));
        }
        if !rejections.is_empty() {
            monitor.stats.invalid_decisions += rejections.len() as u64;
            self.reinjector.on_rejected(now, &rejections);
        }
    }

    /// The application gave new hints. The re-injector is shown them when it is asked.
    pub(crate) fn update_hints(&mut self, now: Instant, change: impl FnOnce(&mut Hints)) {
        let hints = self.hints.need();
        change(hints);
        self.scheduler.on_hints(now, hints);
        if let Some(feedback) = &mut self.feedback {
            feedback.on_hints();
        }
    }

    /// Shows the peer's feedback to scheduler and re-injector.
    pub(crate) fn on_feedback(&mut self, now: Instant, message: &ReceivedFeedback) {
        self.scheduler.on_feedback(now, message);
        self.reinjector.on_feedback(now, message);
    }

    /// When the feedback policy asks to be called; it is not before the handshake is complete.
    pub(crate) fn feedback_deadline(&self, handshake: &Handshake) -> Option<Instant> {
        let exchange = self.feedback.as_ref()?;
        exchange.deadline().filter(|_| handshake.is_complete())
    }

    /// Asks the feedback policy what the peer is to be sent, unless it was asked just now or the handshake
    /// is not complete.
    pub(crate) fn poll_feedback(
        &mut self,
        now: Instant,
        handshake: &Handshake,
        paths: &PathSet,
        monitor: &mut Monitor,
    ) {
        if !handshake.is_complete() {
            return;
        }
        let Some(feedback) = self.feedback.as_deref_mut().filter(|due| due.is_due(now)) else {
            return;
        };
        let views = refreshed(&mut self.buffers.need().views, now, paths);
        let none = Hints::default();
        let hints = self.hints.get().unwrap_or(&none);
        monitor.stats.invalid_decisions += feedback.poll(now, views, hints);
    }

    /// True if feedback waits that is worth a packet of its own.
    pub(crate) fn has_urgent_feedback(&self) -> bool {
        (self.feedback.as_ref()).is_some_and(|feedback| feedback.has_urgent())
    }

    /// True if a copy waits that may leave on `path`.
    pub(super) fn has_copy_for(&self, path: PathId) -> bool {
        self.copies.has_copy_for(path)
    }

    /// Reports what happened to data under repair to the re-injector and to the observer.
    #[inline]
    pub(crate) fn report_repairs(
        &mut self,
        now: Instant,
        streams: &mut Streams,
        monitor: &mut Monitor,
    ) {
        if streams.has_repair_events() {
            self.report_all_repairs(now, streams, monitor);
        }
    }

    fn report_all_repairs(&mut self, now: Instant, streams: &mut Streams, monitor: &mut Monitor) {
        while let Some(event) = streams.poll_repair() {
            match event {
                RepairEvent::Policy(event) => self.reinjector.on_repair(now, &event),
                RepairEvent::Lost {
                    range,
                    detection_time,
                    cause,
                } => monitor.observe(
                    now,
                    &Observation::DataLost {
                        range,
                        detection_time,
                        cause,
                    },
                ),
                RepairEvent::Recovered(recovery) => monitor.observe(
                    now,
                    &Observation::DataRecovered {
                        range: recovery.range,
                        by: recovery.by,
                        recovery_latency: recovery.latency,
                        detection_time: recovery.detection_time,
                        retransmissions: recovery.retransmissions,
                        replicas: recovery.replicas,
                    },
                ),
            }
        }
    }

    /// When the re-injector asks to be called.
    pub(crate) fn reinjector_deadline(&self) -> Option<Instant> {
        let deadline = self.reinjector.next_deadline()?;
        let not_before = self.buffers.get().and_then(|buffers| buffers.not_before);
        Some(not_before.map_or(deadline, |at| deadline.max(at)))
    }

    /// Calls the re-injector if its deadline has come.
    pub(crate) fn on_timeout(
        &mut self,
        now: Instant,
        paths: &PathSet,
        streams: &Streams,
        monitor: &mut Monitor,
    ) {
        if self.reinjector_deadline().is_none_or(|at| at > now) {
            return;
        }
        self.consult_reinjector(now, Occasion::Timer, paths, streams, monitor);
        let is_past = self.reinjector.next_deadline().is_some_and(|at| at <= now);
        let not_before = is_past.then(|| now + MIN_WAIT);
        self.buffers.need().not_before = not_before;
    }
}

/// The views of all paths.
fn refreshed<'a>(views: &'a mut Vec<PathView>, now: Instant, paths: &PathSet) -> &'a [PathView] {
    views.clear();
    views.extend(paths.iter().map(|path| path.view(now)));
    if !paths.is_single() {
        views.sort_unstable_by_key(|view| view.id);
    }
    views
}

/// The stream ranges that are in flight on a path, oldest first.
fn outstanding_ranges<'a>(
    path: &'a PathState,
    streams: &'a Streams,
) -> impl Iterator<Item = OutstandingRange> + 'a {
    (path.space.ledger.outstanding()).filter_map(move |(packet, sent, carried)| match carried {
        Carried::Stream {
            id,
            offset,
            len,
            fin,
            ..
        } => {
            let range = offset..offset + u64::from(len);
            let hints = streams.hints_of(id, range.clone());
            Some(
                OutstandingRange::new(path.id, packet, sent.sent_at, id, offset, len)
                    .fin(fin)
                    .retransmission(sent.retransmission)
                    .priority(hints.priority.unwrap_or_default())
                    .deadline(hints.deadline)
                    .copies(streams.replicas_of(id, range))
                    .first_frame(hints.first_frame),
            )
        }
        _ => None,
    })
}

impl IdleMemory for PolicyHost {
    fn release_idle_memory(&mut self) {
        let Self {
            scheduler: _,
            reinjector: _,
            ack: _,
            feedback: _,
            ack_frequency_received: _,
            ack_frequency_sent: _,
            hints: _,
            copies,
            buffers,
        } = self;
        copies.shrink_to_fit();
        buffers.release();
    }
}

impl fmt::Debug for PolicyHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PolicyHost")
            .field("reinjector", &self.reinjector)
            .field("hints", &self.hints)
            .finish_non_exhaustive()
    }
}
