//! Feedback between the policies of both ends: messages that wait to leave, the newest that arrived, and
//! the policy that makes and reads them.
//!
//! A message that elicits an acknowledgement is delivered by `Control`, as every value of which the newest
//! counts; one that doesn't is written once.

use std::collections::BTreeMap;
use std::time::Duration;

use swiftwater_congestion::ExternalRate;
use swiftwater_units::{Instant, PacketNumber, PathId};
use swiftwater_wire::frame::{Feedback, FeedbackKind, MAX_FEEDBACK_SIZE};
use swiftwater_wire::{ErrorCode, Frame};

use crate::config::TransportConfig;
use crate::control::{Control, ControlKey, ControlValue};
use crate::error::TransportError;
use crate::frame_writer::FrameWriter;
use crate::policy::{
    FeedbackPayload, FeedbackPolicy, Hints, OutgoingFeedback, PathView, ReceivedFeedback,
};

/// Least time between two calls of [`FeedbackPolicy::poll`].
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Rates from outside that one message may bring.
const MAX_RATES: usize = 16;

/// The exchange of feedback of a connection that sends or accepts any.
#[derive(Debug)]
pub(crate) struct FeedbackExchange {
    policy: Box<dyn FeedbackPolicy>,
    /// Largest payload that this end accepts, bytes; 0 if it declared to accept none.
    accepted: u8,
    /// Largest payload that the peer accepts, bytes; 0 until its transport parameters are known.
    peer_limit: u8,
    /// The policy is not asked before then.
    not_before: Option<Instant>,
    /// Messages that have not left yet.
    waiting: BTreeMap<FeedbackKind, OutgoingFeedback>,
    /// Number of the next message, by kind.
    next_sequence: [u64; FeedbackKind::COUNT],
    /// The newest messages of the peer.
    received: BTreeMap<FeedbackKind, Received>,
    buffer: Vec<OutgoingFeedback>,
    /// What the driver knows of the datagram that is being received.
    arriving_tag: Option<u64>,
}

/// A message of the peer.
#[derive(Clone, Copy, Debug)]
struct Received {
    message: ReceivedFeedback,
    /// The application has not read it.
    is_unread: bool,
}

/// A FEEDBACK frame, or its payload, that the peer must not send.
fn violation(reason: &'static str) -> TransportError {
    TransportError::new(ErrorCode::PROTOCOL_VIOLATION, reason)
}

/// The payload size that this end declares to accept.
pub(crate) fn accepted_size(config: &TransportConfig) -> u8 {
    config.max_feedback_size.min(MAX_FEEDBACK_SIZE as u8)
}

/// The error for a frame that arrives though no feedback is accepted.
pub(crate) fn not_accepted() -> TransportError {
    violation("FEEDBACK was not negotiated")
}

impl FeedbackExchange {
    /// The exchange of a new connection; `None` if it neither sends nor accepts feedback.
    pub(crate) fn new(config: &TransportConfig) -> Option<Box<Self>> {
        let policy = config.policies.feedback();
        let accepted = accepted_size(config);
        (accepted > 0 || !policy.is_inert()).then(|| {
            Box::new(Self {
                policy,
                accepted,
                peer_limit: 0,
                not_before: None,
                waiting: BTreeMap::new(),
                next_sequence: [0; FeedbackKind::COUNT],
                received: BTreeMap::new(),
                buffer: Vec::new(),
                arriving_tag: None,
            })
        })
    }

    /// The peer's transport parameter.
    pub(crate) fn set_peer_limit(&mut self, max_feedback_size: u8) {
        self.peer_limit = max_feedback_size;
        self.policy.on_peer_limit(usize::from(max_feedback_size));
    }

    /// The policy has something new to go by.
    pub(crate) fn on_hints(&mut self) {
        self.not_before = None;
    }

    /// True if [`FeedbackExchange::poll`] would ask the policy at `now`.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        self.peer_limit > 0 && self.not_before.is_none_or(|at| at <= now) && !self.policy.is_inert()
    }

    /// Asks the policy what to send; returns how many of its messages are longer than the peer
    /// accepts, and dropped.
    pub(crate) fn poll(&mut self, now: Instant, paths: &[PathView], hints: &Hints) -> u64 {
        self.not_before = Some(now + POLL_INTERVAL);
        self.buffer.clear();
        self.policy.poll(now, paths, hints, &mut self.buffer);
        let mut dropped = 0;
        for message in self.buffer.drain(..) {
            if message.payload.as_bytes().len() > usize::from(self.peer_limit) {
                dropped += 1;
            } else {
                self.waiting.insert(message.kind, message);
            }
        }
        dropped
    }

    /// When the policy asks to be called.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.peer_limit == 0 {
            return None;
        }
        let deadline = self.policy.next_deadline()?;
        Some(self.not_before.map_or(deadline, |at| deadline.max(at)))
    }

    /// True if a message waits that is worth a packet of its own.
    pub(crate) fn has_urgent(&self) -> bool {
        self.waiting.values().any(|message| message.urgent)
    }

    /// Hands the messages that elicit acknowledgements to `control`, for the packet that is being
    /// filled.
    pub(crate) fn fill_control(&mut self, control: &mut Control) {
        let sequences = &mut self.next_sequence;
        self.waiting.retain(|&kind, message| {
            if message.ack_eliciting {
                let value = ControlValue::Feedback {
                    sequence: next_sequence(sequences, kind),
                    payload: Box::new(message.payload),
                };
                control.set(ControlKey::Feedback(kind), value);
            }
            !message.ack_eliciting
        });
    }

    /// Writes the messages that elicit no acknowledgement, as far as they fit. An older one of their
    /// kind is not sent again.
    pub(crate) fn fill(&mut self, control: &mut Control, writer: &mut FrameWriter<'_, '_>) {
        let sequences = &mut self.next_sequence;
        self.waiting.retain(|&kind, message| {
            if message.ack_eliciting {
                return true;
            }
            let written = writer.frame(&Frame::Feedback(Feedback {
                kind,
                sequence: sequences[usize::from(kind.get())],
                payload: message.payload.as_bytes(),
                ack_eliciting: false,
            }));
            if written {
                next_sequence(sequences, kind);
                control.cancel(ControlKey::Feedback(kind));
            }
            !written
        });
    }

    /// A FEEDBACK frame arrived on `path`, on the way for `age` at least; `None` if it is stale.
    pub(crate) fn on_frame(
        &mut self,
        now: Instant,
        path: PathId,
        age: Duration,
        frame: &Feedback<'_>,
    ) -> Result<Option<ReceivedFeedback>, TransportError> {
        if self.accepted == 0 {
            return Err(not_accepted());
        }
        let payload = Some(frame.payload)
            .filter(|payload| payload.len() <= usize::from(self.accepted))
            .and_then(|payload| FeedbackPayload::new(payload).ok())
            .ok_or_else(|| violation("a FEEDBACK payload longer than max_feedback_size"))?;
        let newest = self.received.get(&frame.kind);
        if newest.is_some_and(|newest| newest.message.sequence >= frame.sequence) {
            return Ok(None);
        }
        let message = ReceivedFeedback {
            kind: frame.kind,
            payload,
            sequence: frame.sequence,
            path,
            age,
        };
        let is_unread = true;
        self.received
            .insert(frame.kind, Received { message, is_unread });
        self.policy.on_feedback(now, &message);
        Ok(Some(message))
    }

    /// What the driver knows of the datagram whose packets come next.
    pub(crate) fn set_arriving_tag(&mut self, tag: Option<u64>) {
        self.arriving_tag = tag;
    }

    /// A 1-RTT packet was received.
    pub(crate) fn on_packet_received(&mut self, now: Instant, path: PathId, number: PacketNumber) {
        let tag = self.arriving_tag;
        self.policy.on_packet_received(now, path, number, tag);
    }

    /// The driver learned something from an element on the path.
    pub(crate) fn on_path_report(&mut self, now: Instant, report: &[u8]) {
        self.policy.on_path_report(now, report);
        self.not_before = None;
    }

    /// Rates that follow from the last message, with the paths that they are about.
    pub(crate) fn external_rates(&mut self) -> impl Iterator<Item = (PathId, ExternalRate)> + '_ {
        std::iter::from_fn(move || self.policy.poll_external_rate()).take(MAX_RATES)
    }

    /// Messages that the application has not read.
    pub(crate) fn unread(&self) -> usize {
        let unread = |received: &&Received| received.is_unread;
        self.received.values().filter(unread).count()
    }

    /// A message that the application has not read, the lowest kind first.
    pub(crate) fn read(&mut self) -> Option<ReceivedFeedback> {
        let mut received = self.received.values_mut();
        let unread = received.find(|received| received.is_unread)?;
        unread.is_unread = false;
        Some(unread.message)
    }
}

/// Takes the next number of `kind`.
fn next_sequence(sequences: &mut [u64; FeedbackKind::COUNT], kind: FeedbackKind) -> u64 {
    let next = &mut sequences[usize::from(kind.get())];
    *next += 1;
    *next - 1
}
