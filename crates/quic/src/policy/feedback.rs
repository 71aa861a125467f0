//! Feedback between the policies of two peers: small opaque messages of which only the newest of
//! each kind counts.
//!
//! The transport carries them in FEEDBACK frames ([`swiftwater_wire::Frame::Feedback`]), to a peer
//! that announced by a transport parameter that it accepts them, and never repeats one that is out
//! of date. The contents are agreed on between the policies: a player's buffer (XLINK), shares of paths
//! and expected times (Chorus), rate and queue of a tunnel (TECC).

use std::fmt;
use std::time::Duration;

use swiftwater_congestion::ExternalRate;
use swiftwater_units::{Instant, PacketNumber, PathId};
use swiftwater_wire::frame::{FeedbackKind, MAX_FEEDBACK_SIZE};
use thiserror::Error;

use super::hints::Hints;
use super::path_view::PathView;

/// The payload of a message: at most 64 bytes, whose meaning the two peers agree on.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct FeedbackPayload {
    bytes: [u8; MAX_FEEDBACK_SIZE],
    len: u8,
}

/// A message is longer than [`MAX_FEEDBACK_SIZE`].
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("feedback of {0} bytes; at most 64 can be sent")]
pub struct FeedbackTooLong(pub usize);

impl FeedbackPayload {
    /// A copy of `bytes`, of which there may be 64.
    pub fn new(bytes: &[u8]) -> Result<Self, FeedbackTooLong> {
        let mut new = Self {
            bytes: [0; MAX_FEEDBACK_SIZE],
            len: bytes.len().min(MAX_FEEDBACK_SIZE) as u8,
        };
        new.bytes
            .get_mut(..bytes.len())
            .ok_or(FeedbackTooLong(bytes.len()))?
            .copy_from_slice(bytes);
        Ok(new)
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for FeedbackPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("FeedbackPayload")
            .field(&self.as_bytes())
            .finish()
    }
}

/// A message to the peer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct OutgoingFeedback {
    /// What it is about. It replaces the message of the same kind that hasn't left.
    pub kind: FeedbackKind,
    /// Its payload, at most as long as the peer accepts; a longer one is dropped and counted as an
    /// invalid decision.
    pub payload: FeedbackPayload,
    /// True if the peer shall acknowledge it: then a lost one is sent again, unless a newer one of
    /// its kind left. Else it leaves once, in a packet of its own only if `urgent`.
    pub ack_eliciting: bool,
    /// True if it shall leave at once; else it waits for a packet that leaves anyway: any one if it
    /// elicits no acknowledgement, else one that elicits an acknowledgement, too.
    pub urgent: bool,
}

/// A message of the peer, newer than all of its kind before.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReceivedFeedback {
    /// What it is about.
    pub kind: FeedbackKind,
    /// Its payload.
    pub payload: FeedbackPayload,
    /// Its number among those of its kind.
    pub sequence: u64,
    /// Path that it arrived on.
    pub path: PathId,
    /// How old it is at least: half a `smoothed_rtt` of that path.
    pub age: Duration,
}

/// Decides what the peer is sent, and reads what it sends.
///
/// What arrives is also shown to the other policies (`on_feedback` of
/// [`Scheduler`](super::Scheduler), [`Reinjector`](super::Reinjector) and
/// [`LossJudge`](super::LossJudge)).
pub trait FeedbackPolicy: Send + fmt::Debug {
    /// True if it never sends anything and reads nothing.
    fn is_inert(&self) -> bool {
        false
    }

    /// The peer accepts payloads of `size` bytes at most; told once, before [`FeedbackPolicy::poll`] is
    /// asked.
    fn on_peer_limit(&mut self, _size: usize) {}

    /// Appends what the peer is to be sent now. Asked before packets are written, when
    /// [`FeedbackPolicy::next_deadline`] has come and when the application gave new hints, but only
    /// of a peer that accepts feedback, and at most once per millisecond.
    fn poll(
        &mut self,
        now: Instant,
        paths: &[PathView],
        hints: &Hints,
        out: &mut Vec<OutgoingFeedback>,
    );

    /// The peer sent a message.
    fn on_feedback(&mut self, now: Instant, feedback: &ReceivedFeedback);

    /// A 1-RTT packet of the peer was received for the first time; `tag` is what the driver knows of its
    /// datagram ([`Connection::handle_tagged_datagram`](crate::Connection::handle_tagged_datagram)).
    fn on_packet_received(
        &mut self,
        _now: Instant,
        _path: PathId,
        _number: PacketNumber,
        _tag: Option<u64>,
    ) {
    }

    /// The driver learned something about the way of the packets from an element on it, such as a report of
    /// a tunnel ([`Connection::on_path_report`](crate::Connection::on_path_report)). The bytes come from outside.
    fn on_path_report(&mut self, _now: Instant, _report: &[u8]) {}

    /// A rate that follows from what the peer sent, and the path whose congestion controller shall be
    /// given it; asked after [`FeedbackPolicy::on_feedback`] until `None`, 16 times at most.
    fn poll_external_rate(&mut self) -> Option<(PathId, ExternalRate)> {
        None
    }

    /// When to be asked again although nothing else happens.
    fn next_deadline(&self) -> Option<Instant> {
        None
    }
}

/// No feedback.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFeedback;

impl FeedbackPolicy for NoFeedback {
    fn is_inert(&self) -> bool {
        true
    }

    fn poll(
        &mut self,
        _now: Instant,
        _paths: &[PathView],
        _hints: &Hints,
        _out: &mut Vec<OutgoingFeedback>,
    ) {
    }

    fn on_feedback(&mut self, _now: Instant, _feedback: &ReceivedFeedback) {}
}
