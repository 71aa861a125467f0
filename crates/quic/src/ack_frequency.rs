//! How often acknowledgements go, by agreement (draft-ietf-quic-ack-frequency).
//!
//! [`ReceivedAckFrequency`] is what the peer requested of this end; [`SentAckFrequency`] is what this end requests of the
//! peer. When a packet is acknowledged is decided by an [`AckPolicy`](crate::policy::AckPolicy), which is given the former;
//! frames are delivered by `Control`.

use std::time::Duration;

use swiftwater_units::Instant;
use swiftwater_wire::ErrorCode;
use swiftwater_wire::frame::AckFrequency;

use crate::config::{AckFrequencyConfig, TransportConfig};
use crate::error::TransportError;

/// The longest valid delay: below 2^14 milliseconds (RFC 9000, section 18.2).
const MAX_DELAY: Duration = Duration::from_micros((1 << 14) * 1000 - 1);
/// The longest delay that can be declared, in whole milliseconds.
pub(crate) const MAX_DECLARED: Duration = Duration::from_millis((1 << 14) - 1);
/// A request for a delay is renewed once the round trip has changed by one part in so many.
const CHANGE_DENOMINATOR: u32 = 4;
/// Acknowledgements that a window is spread over at least: fewer would let it drain.
const ACKS_PER_WINDOW: u64 = 4;

/// The shortest delay that the peer may request, in whole microseconds as it is declared and at most
/// what this end declares as the longest (section 3); `None` if the extension is not offered.
pub(crate) fn offered(config: &TransportConfig) -> Option<Duration> {
    let longest = config.max_ack_delay.min(MAX_DECLARED);
    let min = config.min_ack_delay?.min(longest);
    Some(Duration::from_micros(min.as_micros() as u64))
}

/// The ACK_FREQUENCY frames of the peer, which this end obeys.
#[derive(Debug)]
pub(crate) struct ReceivedAckFrequency {
    /// The shortest delay that this end declared to accept; `None` if it didn't offer the extension.
    min_ack_delay: Option<Duration>,
    /// Boxed, since few peers ask.
    newest: Option<Box<AckFrequency>>,
}

impl ReceivedAckFrequency {
    /// Offers the extension with this shortest delay.
    pub(crate) fn new(min_ack_delay: Option<Duration>) -> Self {
        Self {
            min_ack_delay,
            newest: None,
        }
    }

    /// Errors unless the extension was offered: a frame of an extension that was not offered is unknown.
    pub(crate) fn check_offered(&self) -> Result<(), TransportError> {
        match self.min_ack_delay {
            Some(_) => Ok(()),
            None => Err(TransportError::new(
                ErrorCode::FRAME_ENCODING_ERROR,
                "acknowledgement frequency was not offered",
            )),
        }
    }

    /// An ACK_FREQUENCY frame arrived (section 4).
    pub(crate) fn on_frame(&mut self, frame: &AckFrequency) -> Result<(), TransportError> {
        self.check_offered()?;
        let delay = Duration::from_micros(frame.max_ack_delay);
        if delay > MAX_DELAY || self.min_ack_delay.is_some_and(|min| delay < min) {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "a delay of acknowledgements outside the agreed range",
            ));
        }
        let is_newer = |old: &AckFrequency| frame.sequence > old.sequence;
        if self.newest.as_deref().is_none_or(is_newer) {
            self.newest = Some(Box::new(*frame));
        }
        Ok(())
    }

    /// The request in force.
    pub(crate) fn request(&self) -> Option<AckFrequency> {
        self.newest.as_deref().copied()
    }

    /// The delay of acknowledgements in force; `own` without a request of the peer.
    pub(crate) fn max_ack_delay(&self, own: Duration) -> Duration {
        self.newest.as_ref().map_or(own, |requested| {
            Duration::from_micros(requested.max_ack_delay)
        })
    }
}

/// The ACK_FREQUENCY frames that this end sends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct SentAckFrequency {
    /// The shortest delay that the peer accepts; `None` if it doesn't know the extension.
    peer_min: Option<Duration>,
    next_sequence: u64,
    /// Delay and threshold of the newest request.
    newest: Option<(Duration, u64)>,
    /// The delay that is certainly in force at the peer, if any request was delivered.
    in_force: Option<Duration>,
    /// No new request before: one round trip after the last.
    not_before: Option<Instant>,
}

impl SentAckFrequency {
    /// The peer's transport parameter.
    pub(crate) fn set_peer_min(&mut self, min_ack_delay: Option<Duration>) {
        self.peer_min = min_ack_delay;
    }

    /// True if the peer understands IMMEDIATE_ACK and may be waiting longer than it would by itself.
    pub(crate) fn may_request_immediate_ack(&self) -> bool {
        self.peer_min.is_some() && self.newest.is_some()
    }

    /// A request to send now, if there is a configuration for it (`config`) and the last one no longer fits the path. `window` is the congestion
    /// window in packets.
    pub(crate) fn poll(
        &mut self,
        config: Option<&AckFrequencyConfig>,
        now: Instant,
        smoothed_rtt: Duration,
        window: u64,
    ) -> Option<AckFrequency> {
        let (config, peer_min) = (config?, self.peer_min?);
        if self.not_before.is_some_and(|at| now < at) {
            return None;
        }
        let delay = (smoothed_rtt / config.rtt_divisor.max(1))
            .clamp(peer_min, config.max_ack_delay.max(peer_min))
            .min(MAX_DELAY);
        let threshold = config
            .ack_eliciting_threshold
            .min((window / ACKS_PER_WINDOW).max(1));
        let fits = self.newest.is_some_and(|(old_delay, old_threshold)| {
            old_delay.abs_diff(delay) <= old_delay / CHANGE_DENOMINATOR
                && old_threshold.abs_diff(threshold) <= old_threshold / 2
        });
        if fits {
            return None;
        }
        self.newest = Some((delay, threshold));
        self.not_before = Some(now + smoothed_rtt);
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        Some(AckFrequency {
            sequence,
            ack_eliciting_threshold: threshold,
            max_ack_delay: delay.as_micros() as u64,
            reordering_threshold: config.reordering_threshold,
        })
    }

    /// The newest request arrived.
    pub(crate) fn on_acked(&mut self) {
        self.in_force = self.newest.map(|(delay, _)| delay);
    }

    /// The longest delay that the peer may add to acknowledgements now: the larger of what is in
    /// force and what is on its way (section 7). `own` is what the peer declared.
    pub(crate) fn peer_max_ack_delay(&self, own: Duration) -> Duration {
        let in_force = self.in_force.unwrap_or(own);
        self.newest
            .map_or(in_force, |(delay, _)| delay.max(in_force))
    }
}
