//! What was measured of one request: what a chooser of protocols learns from.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

use crate::h3;
use crate::udp::SendRequest;

/// How a request ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum End {
    /// The response came to its end.
    Complete,
    /// The response's content broke off.
    Broken,
    /// Nobody wanted the rest of the content.
    Abandoned,
}

/// What is known of a request so far.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// The lookup of the host; `None` if a connection stood.
    pub resolve: Option<Duration>,
    /// TCP's handshake; `None` for QUIC and if a connection stood.
    pub connect: Option<Duration>,
    /// The handshake of TLS after TCP's (the proxy's answer included), or of QUIC; `None` without
    /// protection and if a connection stood.
    pub handshake: Option<Duration>,
    /// From the beginning to the head of the request being handed to a connection, the last time it was
    /// sent; `None` before. Early data count from the beginning of their connection's handshake.
    pub sent: Option<Duration>,
    /// From the beginning to the head of the response.
    pub first_byte: Option<Duration>,
    /// From the beginning to the end of the response, whatever the end was.
    pub completion: Option<Duration>,
    /// Bytes of content received.
    pub received: u64,
    /// Round-trip time: QUIC's smoothed one at the end; with TCP that of the connection's handshake.
    /// `None` if the transport doesn't know, as behind a proxy.
    pub rtt: Option<Duration>,
    /// Of the stream bytes that this end sent on the connection during the request, the share that was
    /// sent again, 0 to 1. `None` with TCP, and if nothing was sent.
    pub retransmitted: Option<f64>,
    /// How it ended; `None` while it hasn't.
    pub end: Option<End>,
}

/// A handle of a request's measurements, in the extensions of its response. Put into the extensions of
/// a request, it is used for that one, so that failures are measured too.
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
    /// Measurements of a request that begins now.
    pub fn new() -> Self {
        Self {
            begun: Instant::now(),
            now: Arc::new(watch::Sender::new(Snapshot::default())),
        }
    }

    /// What is known so far.
    pub fn snapshot(&self) -> Snapshot {
        *self.now.borrow()
    }

    /// Waits until the response ended. For ever if there is none.
    pub async fn ended(&self) -> Snapshot {
        let mut changes = self.now.subscribe();
        let ended = changes.wait_for(|snapshot| snapshot.end.is_some()).await;
        // The sender lives in `self`.
        ended.map_or_else(|_| self.snapshot(), |snapshot| *snapshot)
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut Snapshot)) {
        self.now.send_modify(change);
    }

    /// The head of the request is about to leave; `early` if it left with its connection's handshake.
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

/// Watches the response's content for [`Measurements`].
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

    /// The end; the first counts.
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

/// The counters of a QUIC connection since a request began.
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

    /// Counts from the connection's own beginning.
    pub(super) fn of_all(sender: &SendRequest) -> Self {
        Self {
            sender: sender.clone(),
            sent: 0,
            again: 0,
        }
    }

    /// The server's settings, if they came.
    pub(super) fn peer_settings(&self) -> Option<h3::Settings> {
        self.sender.peer_settings()
    }

    fn measure(&self) -> (Option<Duration>, Option<f64>) {
        let (sent, again) = counters(&self.sender);
        let sent = sent.saturating_sub(self.sent);
        let again = again.saturating_sub(self.again);
        let share = (sent > 0).then(|| again as f64 / sent as f64);
        let paths = self.sender.stats().paths;
        let path = paths.first();
        let measured = path.filter(|path| !path.min_rtt.is_zero());
        (measured.map(|path| path.smoothed_rtt), share)
    }
}

fn counters(sender: &SendRequest) -> (u64, u64) {
    let stats = sender.stats();
    (
        stats.stream_bytes_sent.get(),
        stats.stream_bytes_retransmitted.get(),
    )
}
