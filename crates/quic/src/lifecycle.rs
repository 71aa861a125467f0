//! Lifecycle of a connection: open, closing, draining; activity and idle timeout (RFC 9000, section 10).

use std::time::Duration;

use swiftwater_units::Instant;
use swiftwater_wire::ErrorCode;

use crate::crypto::EncryptionLevel;
use crate::error::{ConnectionError, TransportError};
use crate::liveness::Liveness;

/// A driver this late was not running: the process was stopped, or the machine.
pub(crate) const STOPPED_DRIVER: Duration = Duration::from_secs(1);

/// The contents of this end's CONNECTION_CLOSE.
#[derive(Clone, Debug)]
pub(crate) enum CloseFrame {
    Transport(TransportError),
    Application { code: u64, reason: Vec<u8> },
}

impl CloseFrame {
    /// The code and reason to send in `level`: what an application gave must not be sent in packets
    /// that an observer could read or forge (RFC 9000, section 10.2.3).
    pub(crate) fn for_level(&self, level: EncryptionLevel) -> Self {
        match (self, level) {
            (Self::Application { .. }, EncryptionLevel::Initial | EncryptionLevel::Handshake) => {
                Self::Transport(TransportError::new(ErrorCode::APPLICATION_ERROR, ""))
            }
            _ => self.clone(),
        }
    }
}

/// How a connection is terminated (RFC 9000, section 10).
#[derive(Debug)]
pub(crate) enum Termination {
    /// This end closes, with a CONNECTION_CLOSE (section 10.2.1).
    Closing {
        frame: CloseFrame,
        reason: ConnectionError,
    },
    /// The peer closed or reset: nothing is sent any more (sections 10.2.2 and 10.3).
    Draining { reason: ConnectionError },
    /// At once and silently, as on an idle timeout (section 10.1).
    Silent { reason: ConnectionError },
}

impl Termination {
    /// Closes because of `error`.
    pub(crate) fn error(error: TransportError) -> Self {
        Self::Closing {
            reason: ConnectionError::Transport(error.clone()),
            frame: CloseFrame::Transport(error),
        }
    }

    /// Closes for the application.
    pub(crate) fn application(code: u64, reason: &[u8]) -> Self {
        Self::Closing {
            frame: CloseFrame::Application {
                code,
                reason: reason.to_vec(),
            },
            reason: ConnectionError::LocallyClosed { code },
        }
    }

    /// Why.
    pub(crate) fn reason(&self) -> &ConnectionError {
        match self {
            Self::Closing { reason, .. } | Self::Draining { reason } | Self::Silent { reason } => {
                reason
            }
        }
    }
}

/// The local end closed; incoming packets are answered with the close again.
#[derive(Debug)]
pub(crate) struct Closing {
    frame: CloseFrame,
    pub(crate) until: Instant,
    /// The close is to be sent.
    pending: bool,
    /// Packets received since, and the number that triggers the next answer: it doubles, so
    /// that two ends can't keep each other busy (RFC 9000, section 10.2.1).
    received: u64,
    answer_at: u64,
}

#[derive(Debug)]
pub(crate) enum State {
    Open,
    Closing(Box<Closing>),
    /// The peer closed, or the idle timeout ended the connection; nothing is sent.
    Draining {
        until: Instant,
    },
    Drained,
}

/// Lifecycle and activity of a connection.
#[derive(Debug)]
pub(crate) struct Lifecycle {
    pub(crate) state: State,
    pub(crate) reason: Option<Box<ConnectionError>>,
    started_at: Instant,
    /// Last packet received, or first ack-eliciting packet sent after one (RFC 9000, section 10.1).
    last_activity: Instant,
    /// Last packet sent or received.
    pub(crate) last_packet_at: Instant,
    /// Probes of a path on which nothing is received.
    pub(crate) liveness: Liveness,
    /// The driver has been running since then, as far as its calls show.
    pub(crate) running_since: Instant,
    sent_eliciting_since_receive: bool,
    idle_timeout: Option<Duration>,
    /// The interval that the application asked for while it runs, besides the configuration, ms; zero for
    /// none. Small, since most connections have none.
    keep_alive_millis: u32,
}

impl Lifecycle {
    pub(crate) fn new(now: Instant) -> Self {
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

    pub(crate) fn started_at(&self) -> Instant {
        self.started_at
    }

    /// The smaller of both ends' values, zero and absent meaning none.
    pub(crate) fn set_idle_timeout(&mut self, local: Option<Duration>, remote: Option<Duration>) {
        let set = |value: Option<Duration>| value.filter(|timeout| !timeout.is_zero());
        self.idle_timeout = match (set(local), set(remote)) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    /// The idle timeout that both ends agreed on.
    pub(crate) fn idle_timeout(&self) -> Option<Duration> {
        self.idle_timeout
    }

    /// Sets the interval of PINGs; `None` and zero for none, otherwise 1 ms at least.
    pub(crate) fn set_keep_alive(&mut self, interval: Option<Duration>) {
        let millis = interval.map_or(0, |interval| interval.as_micros().div_ceil(1000));
        self.keep_alive_millis = u32::try_from(millis).unwrap_or(u32::MAX);
    }

    /// The interval of PINGs that was asked for.
    pub(crate) fn keep_alive(&self) -> Option<Duration> {
        let millis = u64::from(self.keep_alive_millis);
        (millis > 0).then(|| Duration::from_millis(millis))
    }

    /// Takes note if the driver did not run for a while: packets sent before say nothing about the
    /// path's round-trip time, since their acknowledgements waited to be read. `timer` is when the timer of
    /// loss detection expires, if it runs.
    pub(crate) fn detect_stopped_driver(&mut self, now: Instant, timer: Option<Instant>) {
        if timer.is_some_and(|expires_at| expires_at + STOPPED_DRIVER <= now) {
            self.running_since = now;
        }
    }

    pub(crate) fn on_received(&mut self, now: Instant) {
        self.last_activity = now;
        self.last_packet_at = now;
        self.sent_eliciting_since_receive = false;
    }

    /// When the last packet was received, or the first ack-eliciting one sent after it.
    pub(crate) fn last_activity(&self) -> Instant {
        self.last_activity
    }

    pub(crate) fn on_sent(&mut self, now: Instant, ack_eliciting: bool) {
        self.last_packet_at = now;
        if ack_eliciting && !self.sent_eliciting_since_receive {
            self.sent_eliciting_since_receive = true;
            self.last_activity = now;
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        matches!(self.state, State::Open)
    }

    pub(crate) fn is_drained(&self) -> bool {
        matches!(self.state, State::Drained)
    }

    pub(crate) fn reason(&self) -> Option<&ConnectionError> {
        self.reason.as_deref()
    }

    /// When the idle timeout expires: three PTOs away at least.
    pub(crate) fn idle_deadline(&self, pto: Duration) -> Option<Instant> {
        let timeout = self.idle_timeout.filter(|_| self.is_open())?;
        Some(self.last_activity + timeout.max(pto * 3))
    }

    /// When closing or draining ends.
    pub(crate) fn end(&self) -> Option<Instant> {
        match &self.state {
            State::Closing(closing) => Some(closing.until),
            State::Draining { until } => Some(*until),
            State::Open | State::Drained => None,
        }
    }

    /// Terminates the connection, as far as it has not ended before; closing and draining last until `until`. True
    /// if it is to be drained at once.
    pub(crate) fn terminate(&mut self, termination: Termination, until: Instant) -> bool {
        let is_open = self.is_open();
        let reason = match termination {
            Termination::Closing { frame, reason } => {
                if is_open {
                    self.state = State::Closing(Box::new(Closing {
                        frame,
                        until,
                        pending: true,
                        received: 0,
                        answer_at: 1,
                    }));
                }
                reason
            }
            Termination::Draining { reason } => {
                self.start_draining(until);
                reason
            }
            Termination::Silent { reason } => {
                self.reason.get_or_insert_with(|| Box::new(reason));
                return true;
            }
        };
        self.reason.get_or_insert_with(|| Box::new(reason));
        false
    }

    /// Sends nothing any more, until `until`, or until closing was to end.
    fn start_draining(&mut self, until: Instant) {
        let until = match &self.state {
            State::Open => until,
            State::Closing(closing) => closing.until,
            State::Draining { .. } | State::Drained => return,
        };
        self.state = State::Draining { until };
    }

    /// Closing or draining is over; false if it was over before.
    pub(crate) fn drain(&mut self) -> bool {
        let is_first = !self.is_drained();
        self.state = State::Drained;
        is_first
    }

    /// The close to send now.
    pub(crate) fn close_to_send(&self) -> Option<&CloseFrame> {
        match &self.state {
            State::Closing(closing) if closing.pending => Some(&closing.frame),
            _ => None,
        }
    }

    pub(crate) fn on_close_sent(&mut self) {
        if let State::Closing(closing) = &mut self.state {
            closing.pending = false;
        }
    }

    /// A datagram arrived while closing.
    pub(crate) fn on_received_after_close(&mut self) {
        if let State::Closing(closing) = &mut self.state {
            closing.received += 1;
            if closing.received >= closing.answer_at {
                closing.pending = true;
                closing.answer_at = closing.answer_at.saturating_mul(2);
            }
        }
    }
}
