//! How a connection ends: idle timeout, closing, draining (RFC 9000, section 10).

use std::time::Duration;

use swiftwater_units::{Instant, PathId};
use swiftwater_wire::ErrorCode;

use crate::crypto::EncryptionLevel;
use crate::error::{ConnectionError, TransportError};
use crate::observe::Observation;

use super::Connection;
use super::events::{EndpointEvent, Event};
use super::migration::Liveness;

/// What our CONNECTION_CLOSE says.
#[derive(Clone, Debug)]
pub(super) enum CloseFrame {
    Transport(TransportError),
    Application { code: u64, reason: Vec<u8> },
}

impl CloseFrame {
    /// The code and reason to send in `level`: what an application says must not travel in packets
    /// that an observer could read or forge (RFC 9000, section 10.2.3).
    pub(super) fn for_level(&self, level: EncryptionLevel) -> Self {
        match (self, level) {
            (Self::Application { .. }, EncryptionLevel::Initial | EncryptionLevel::Handshake) => {
                Self::Transport(TransportError::new(ErrorCode::APPLICATION_ERROR, ""))
            }
            _ => self.clone(),
        }
    }
}

/// The local end closed; incoming packets are answered with the close again.
#[derive(Debug)]
struct Closing {
    frame: CloseFrame,
    until: Instant,
    /// The close is to be sent.
    pending: bool,
    /// Packets received since, and the number that triggers the next answer: it doubles, so
    /// that two ends can't keep each other busy (RFC 9000, section 10.2.1).
    received: u64,
    answer_at: u64,
}

#[derive(Debug)]
enum State {
    Open,
    Closing(Box<Closing>),
    /// The peer closed, or its silence ended the connection; nothing is sent.
    Draining {
        until: Instant,
    },
    Drained,
}

/// Lifecycle and activity of a connection.
#[derive(Debug)]
pub(super) struct Lifecycle {
    state: State,
    reason: Option<Box<ConnectionError>>,
    started_at: Instant,
    /// Last packet received, or first ack-eliciting packet sent after one (RFC 9000, section 10.1).
    last_activity: Instant,
    /// Last packet sent or received.
    pub(super) last_packet_at: Instant,
    /// Probes of a silent path.
    pub(super) liveness: Liveness,
    /// The driver has been running since then, as far as its calls show.
    pub(super) running_since: Instant,
    sent_eliciting_since_receive: bool,
    idle_timeout: Option<Duration>,
    /// The interval that the application asked for while it runs, besides the configuration, ms; zero for
    /// none. Small, since most connections have none.
    keep_alive_millis: u32,
}

impl Lifecycle {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            state: State::Open,
            reason: None,
            started_at: now,
            last_activity: now,
            last_packet_at: now,
            liveness: Liveness::default(),
            running_since: now,
            sent_eliciting_since_receive: false,
            idle_timeout: None,
            keep_alive_millis: 0,
        }
    }

    pub(super) fn started_at(&self) -> Instant {
        self.started_at
    }

    /// The smaller of both ends' values, zero and absent meaning none.
    pub(super) fn set_idle_timeout(&mut self, ours: Option<Duration>, peers: Option<Duration>) {
        let set = |value: Option<Duration>| value.filter(|timeout| !timeout.is_zero());
        self.idle_timeout = match (set(ours), set(peers)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// The idle timeout that both ends agreed on.
    pub(super) fn idle_timeout(&self) -> Option<Duration> {
        self.idle_timeout
    }

    /// Sets the interval of PINGs; `None` and zero for none, otherwise 1 ms at least.
    pub(super) fn set_keep_alive(&mut self, interval: Option<Duration>) {
        let millis = interval.map_or(0, |interval| interval.as_micros().div_ceil(1000));
        self.keep_alive_millis = u32::try_from(millis).unwrap_or(u32::MAX);
    }

    /// The interval of PINGs that was asked for.
    pub(super) fn keep_alive(&self) -> Option<Duration> {
        let millis = u64::from(self.keep_alive_millis);
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    pub(super) fn on_received(&mut self, now: Instant) {
        self.last_activity = now;
        self.last_packet_at = now;
        self.sent_eliciting_since_receive = false;
    }

    /// When the last packet was received, or the first ack-eliciting one sent after it.
    pub(super) fn last_activity(&self) -> Instant {
        self.last_activity
    }

    pub(super) fn on_sent(&mut self, now: Instant, ack_eliciting: bool) {
        self.last_packet_at = now;
        if ack_eliciting && !self.sent_eliciting_since_receive {
            self.sent_eliciting_since_receive = true;
            self.last_activity = now;
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    pub(super) fn is_drained(&self) -> bool {
        matches!(self.state, State::Drained)
    }

    pub(super) fn reason(&self) -> Option<&ConnectionError> {
        self.reason.as_deref()
    }

    /// When the idle timeout expires: three PTOs away at least.
    pub(super) fn idle_deadline(&self, pto: Duration) -> Option<Instant> {
        let timeout = self.idle_timeout.filter(|_| self.is_open())?;
        Some(self.last_activity + timeout.max(pto * 3))
    }

    /// When closing or draining ends.
    pub(super) fn end(&self) -> Option<Instant> {
        match &self.state {
            State::Closing(closing) => Some(closing.until),
            State::Draining { until } => Some(*until),
            State::Open | State::Drained => None,
        }
    }

    /// The close to send now.
    pub(super) fn close_to_send(&self) -> Option<&CloseFrame> {
        match &self.state {
            State::Closing(closing) if closing.pending => Some(&closing.frame),
            _ => None,
        }
    }

    pub(super) fn on_close_sent(&mut self) {
        if let State::Closing(closing) = &mut self.state {
            closing.pending = false;
        }
    }

    /// A datagram arrived while closing.
    pub(super) fn on_received_after_close(&mut self) {
        if let State::Closing(closing) = &mut self.state {
            closing.received += 1;
            if closing.received >= closing.answer_at {
                closing.pending = true;
                closing.answer_at = closing.answer_at.saturating_mul(2);
            }
        }
    }
}

impl Connection {
    /// Three probe timeouts: how long closing and draining last (RFC 9000, section 10.2).
    fn closing_period(&self) -> Duration {
        self.longest_pto() * 3
    }

    /// The probe timeout of a path without back-off (RFC 9002, section 6.2.1); the longest of all while the
    /// path is not open.
    pub(super) fn pto(&self, path: PathId) -> Duration {
        let path = self.paths.get(path);
        path.map_or_else(
            || self.longest_pto(),
            |path| path.pto(self.peer_max_ack_delay()),
        )
    }

    /// The longest probe timeout of all paths, for what concerns the connection as a whole.
    pub(super) fn longest_pto(&self) -> Duration {
        let max_ack_delay = self.peer_max_ack_delay();
        let ptos = self.paths.iter().map(|path| path.pto(max_ack_delay));
        ptos.max().unwrap_or(max_ack_delay)
    }

    /// The longest smoothed RTT of all paths.
    pub(super) fn longest_rtt(&self) -> Duration {
        let rtts = self.paths.iter().map(|path| path.recovery.rtt().smoothed);
        rtts.max().unwrap_or_default()
    }

    /// The delay that the peer may add to acknowledgements of 1-RTT packets.
    pub(super) fn peer_max_ack_delay(&self) -> Duration {
        let declared = self
            .handshake
            .peer_terms()
            .map_or(Duration::from_millis(25), |terms| terms.max_ack_delay);
        self.policies.ack_asked.peer_max_ack_delay(declared)
    }

    /// Closes because of `error`, with a CONNECTION_CLOSE.
    pub(super) fn fail(&mut self, now: Instant, error: TransportError) {
        let reason = ConnectionError::Transport(error.clone());
        self.start_closing(now, CloseFrame::Transport(error), reason);
    }

    /// Closes without a fault of the peer's.
    pub(super) fn close_with(
        &mut self,
        now: Instant,
        error: TransportError,
        reason: ConnectionError,
    ) {
        self.start_closing(now, CloseFrame::Transport(error), reason);
    }

    /// Closes for the application, with a CONNECTION_CLOSE.
    pub(super) fn close_for_application(&mut self, now: Instant, code: u64, reason: &[u8]) {
        let frame = CloseFrame::Application {
            code,
            reason: reason.to_vec(),
        };
        self.start_closing(now, frame, ConnectionError::LocallyClosed { code });
    }

    fn start_closing(&mut self, now: Instant, frame: CloseFrame, reason: ConnectionError) {
        if !self.lifecycle.is_open() {
            return;
        }
        let until = now + self.closing_period();
        self.set_closed(now, reason);
        self.lifecycle.state = State::Closing(Box::new(Closing {
            frame,
            until,
            pending: true,
            received: 0,
            answer_at: 1,
        }));
    }

    /// The peer closed or reset: sends nothing any more.
    pub(super) fn start_draining(&mut self, now: Instant, reason: ConnectionError) {
        match &self.lifecycle.state {
            State::Open => {
                let until = now + self.closing_period();
                self.set_closed(now, reason);
                self.lifecycle.state = State::Draining { until };
            }
            State::Closing(closing) => {
                let until = closing.until;
                self.lifecycle.state = State::Draining { until };
            }
            State::Draining { .. } | State::Drained => {}
        }
    }

    /// Ends at once and silently, as on an idle timeout.
    pub(super) fn close_silently(&mut self, now: Instant, reason: ConnectionError) {
        self.set_closed(now, reason);
        self.drain();
    }

    fn set_closed(&mut self, now: Instant, reason: ConnectionError) {
        if self.lifecycle.reason.is_some() {
            return;
        }
        self.abandon_repairs(now);
        self.monitor
            .observe(now, &Observation::Closed { reason: &reason });
        let closed = reason.clone();
        self.outbox.event(Event::Closed { reason: closed });
        self.lifecycle.reason = Some(Box::new(reason));
    }

    /// Closing or draining is over.
    pub(super) fn drain(&mut self) {
        if !self.lifecycle.is_drained() {
            self.lifecycle.state = State::Drained;
            self.outbox.event(Event::Drained);
            self.outbox.endpoint_event(EndpointEvent::Drained);
        }
    }

    /// The connection closes: data are sent and repaired no more.
    fn abandon_repairs(&mut self, now: Instant) {
        self.policies.reinjections.clear();
        self.streams.abandon_repairs();
        let (mut fates, _) = self.fates(now);
        fates.report_repairs();
    }
}
