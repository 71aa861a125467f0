//! Measurements of one request: times, bytes, round-trip time, loss.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::h3;
use crate::udp::SendRequest;

/// Outcome of a request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum End {
    /// The response was received completely.
    Complete,
    /// The response's content ended before it was complete.
    Broken,
    /// The caller dropped the response before its end.
    Abandoned,
}

/// Measurements of a request so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// Duration of the host's lookup; `None` on an open connection.
    pub resolve: Option<Duration>,
    /// Duration of TCP's handshake; `None` for QUIC and on an open connection.
    pub connect: Option<Duration>,
    /// Duration of the TLS handshake over TCP (the proxy's answer included), or of QUIC's
    /// handshake; `None` without TLS and on an open connection.
    pub handshake: Option<Duration>,
    /// From the start to the handover of the request's head to a connection, the last time it was sent;
    /// `None` before. Early data count from the start of the handshake.
    pub sent: Option<Duration>,
    /// From the start to the head of the response.
    pub first_byte: Option<Duration>,
    /// From the start to the end of the response, whatever its outcome.
    pub completion: Option<Duration>,
    /// Bytes of content received.
    pub received: u64,
    /// Round-trip time: QUIC's `smoothed_rtt` at the end; with TCP that of the connection's
    /// handshake. `None` if it was not measured, as behind a proxy.
    pub rtt: Option<Duration>,
    /// Share of retransmitted bytes among the stream bytes that this end sent on the connection during
    /// the request, 0 to 1. `None` with TCP, and if nothing was sent.
    pub retransmitted: Option<f64>,
    /// Outcome; `None` while the response is incomplete.
    pub end: Option<End>,
}

/// A handle of a request's measurements, in the extensions of its response. A handle put into the
/// extensions of a request is used for that request, so that failures are measured too.
#[derive(Clone, Debug)]
pub struct Measurements {
    begun: Instant,
    now: Arc<watch::Sender<Snapshot>>,
}

impl Default for Measurements {
    fn default() -> Self {
        Self::new()
    }
}

impl Measurements {
    /// Measurements of a request that starts now.
    pub fn new() -> Self {
        Self {
            begun: Instant::now(),
            now: Arc::new(watch::Sender::new(Snapshot::default())),
        }
    }

    /// A snapshot of the measurements.
    pub fn snapshot(&self) -> Snapshot {
        *self.now.borrow()
    }

    /// Waits for the end of the response. Pending forever if there is none.
    pub async fn ended(&self) -> Snapshot {
        let mut changes = self.now.subscribe();
        let ended = changes.wait_for(|snapshot| snapshot.end.is_some()).await;
        // The sender is owned by `self`, so the channel is open.
        ended.map_or_else(|_| self.snapshot(), |snapshot| *snapshot)
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut Snapshot)) {
        self.now.send_modify(change);
    }

    /// Records that the head of the request is sent; `early` if it was sent as early data.
    pub(super) fn leaves(&self, early: bool) {
        let elapsed = self.begun.elapsed();
        self.note(|snapshot| {
            let since = snapshot.handshake.filter(|_| early).unwrap_or_default();
            snapshot.sent = Some(elapsed.saturating_sub(since));
        });
    }

    pub(super) fn head_came(&self) {
        let elapsed = self.begun.elapsed();
        self.note(|snapshot| snapshot.first_byte = Some(elapsed));
    }
}

/// Body wrapper that updates [`Measurements`] as content is read.
pub(super) struct Recorder {
    measurements: Measurements,
    quic: Option<QuicShare>,
    received: u64,
    over: bool,
}

impl Recorder {
    pub(super) fn new(measurements: Measurements, quic: Option<QuicShare>) -> Self {
        Self {
            measurements,
            quic,
            received: 0,
            over: false,
        }
    }

    pub(super) fn received(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    /// Records the outcome; only the first call has an effect.
    pub(super) fn end(&mut self, end: End) {
        if std::mem::replace(&mut self.over, true) {
            return;
        }
        let elapsed = self.measurements.begun.elapsed();
        let received = self.received;
        let quic = self.quic.take().map(|quic| quic.measure());
        self.measurements.note(|snapshot| {
            snapshot.completion = Some(elapsed);
            snapshot.received = received;
            snapshot.end = Some(end);
            if let Some((rtt, share)) = quic {
                snapshot.rtt = rtt;
                snapshot.retransmitted = share;
            }
        });
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end(End::Abandoned);
    }
}

/// Counters of a QUIC connection at the start of a request.
pub(super) struct QuicShare {
    sender: SendRequest,
    sent: u64,
    again: u64,
}

impl QuicShare {
    pub(super) fn begin(sender: &SendRequest) -> Self {
        let (sent, again) = counters(sender);
        Self {
            sender: sender.clone(),
            sent,
            again,
        }
    }

    /// Counts from the start of the connection.
    pub(super) fn of_all(sender: &SendRequest) -> Self {
        Self {
            sender: sender.clone(),
            sent: 0,
            again: 0,
        }
    }

    /// The server's settings, if they were received.
    pub(super) fn peer_settings(&self) -> Option<h3::Settings> {
        self.sender.peer_settings()
    }

    fn measure(&self) -> (Option<Duration>, Option<f64>) {
        let (sent, again) = counters(&self.sender);
        let sent = sent.saturating_sub(self.sent);
        let again = again.saturating_sub(self.again);
        let share = (sent > 0).then(|| again as f64 / sent as f64);
        // Of several paths, the one that answers soonest.
        let paths = self.sender.stats().paths.into_iter();
        let measured = paths.filter(|path| !path.min_rtt.is_zero());
        (measured.map(|path| path.smoothed_rtt).min(), share)
    }
}

fn counters(sender: &SendRequest) -> (u64, u64) {
    let stats = sender.stats();
    (
        stats.stream_bytes_sent.get(),
        stats.stream_bytes_retransmitted.get(),
    )
}
