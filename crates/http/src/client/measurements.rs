//! Measurements of one request: times, bytes, round-trip time, loss.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use swiftwater_net::quic::{Arrivals, Connection};
use swiftwater_select::Traffic;
use tokio::sync::Notify;
use tokio::time::Instant;

#[cfg(doc)]
use super::builder::Builder;
use super::tcp_share::TcpShare;
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
    /// Round-trip time: `smoothed_rtt` at the end, by QUIC or, with [`Builder::tcp_statistics`], by the
    /// kernel's TCP; else, until the end, and if the TCP connection is closed by then, that of TCP's handshake.
    /// `None` if it was not measured, as behind a proxy.
    pub rtt: Option<Duration>,
    /// Share of retransmitted bytes among the stream bytes that this end sent on the connection during
    /// the request, 0 to 1. `None` with TCP, and if nothing was sent.
    pub retransmitted: Option<f64>,
    /// Share of packets that did not come among those that the server's packet numbers tell of ([`Arrivals`]) during the
    /// request, 0 to 1: the receiver's estimate of the downlink's loss. `None` with TCP, and if no more than
    /// three packets came.
    pub missing: Option<f64>,
    /// Share of segments that came ahead of a gap among the segments with data that the TCP connection
    /// received during the request, 0 to 1: the receiver's estimate of the downlink's loss. It is too high where
    /// several segments came between a loss and its repair, as each of them counts, and where the network
    /// reorders; a loss behind which nothing came is not in it. `None` with QUIC, without
    /// [`Builder::tcp_statistics`], if nothing came, and if the connection is closed at the end.
    pub out_of_order: Option<f64>,
    /// Outcome; `None` while the response is incomplete.
    pub end: Option<End>,
}

/// A handle of a request's measurements, in the extensions of its response. A handle put into the
/// extensions of a request is used for that request, so that failures are measured too.
#[derive(Clone, Debug)]
pub struct Measurements {
    begun: Instant,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    now: Mutex<Snapshot>,
    /// The end was recorded.
    ended: Notify,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Snapshot> {
        self.now.lock().unwrap_or_else(PoisonError::into_inner)
    }
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
            shared: Arc::default(),
        }
    }

    /// A snapshot of the measurements.
    pub fn snapshot(&self) -> Snapshot {
        *self.shared.lock()
    }

    /// Waits for the end of the response. Pending forever if there is none.
    pub async fn ended(&self) -> Snapshot {
        loop {
            // Registered before the snapshot is read, so that an end in between wakes it.
            let ended = self.shared.ended.notified();
            let snapshot = self.snapshot();
            if snapshot.end.is_some() {
                return snapshot;
            }
            ended.await;
        }
    }

    pub(super) fn note(&self, change: impl FnOnce(&mut Snapshot)) {
        let mut snapshot = self.shared.lock();
        change(&mut snapshot);
        let ended = snapshot.end.is_some();
        drop(snapshot);
        if ended {
            self.shared.ended.notify_waiters();
        }
    }

    /// Records that the head of the request is sent, and returns when, counted from the start; `early` if it
    /// was sent as early data.
    pub(super) fn leaves(&self, early: bool) -> Duration {
        let elapsed = self.begun.elapsed();
        let mut sent = elapsed;
        self.note(|snapshot| {
            let since = snapshot.handshake.filter(|_| early).unwrap_or_default();
            sent = elapsed.saturating_sub(since);
            snapshot.sent = Some(sent);
        });
        sent
    }

    /// Records that the head of the response came, in answer to what was `sent` so long after the start.
    pub(super) fn head_came(&self, sent: Duration, rtt: Option<Duration>) {
        let elapsed = self.begun.elapsed();
        self.note(|snapshot| {
            snapshot.first_byte = Some(elapsed);
            snapshot.sent = Some(sent);
            snapshot.rtt = rtt;
        });
    }
}

/// Called once with the final measurements of a request, and an estimate of what the server sent on its connection
/// during the request.
pub(super) type OnEnd = Box<dyn FnOnce(Snapshot, Option<Traffic>) + Send + Sync>;

/// Body wrapper that updates [`Measurements`] as content is read.
pub(super) struct Recorder {
    measurements: Measurements,
    share: Option<ConnectionShare>,
    on_end: Option<OnEnd>,
    received: u64,
    over: bool,
}

impl Recorder {
    pub(super) fn new(
        measurements: Measurements,
        share: Option<ConnectionShare>,
        on_end: Option<OnEnd>,
    ) -> Self {
        Self {
            measurements,
            share,
            on_end,
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
        // It asks the kernel: not within the lock of the measurements.
        let measured = self.share.take().map(|share| share.measure());
        let measured = measured.unwrap_or_default();
        self.measurements.note(|snapshot| {
            snapshot.completion = Some(elapsed);
            snapshot.received = received;
            snapshot.rtt = measured.rtt.or(snapshot.rtt);
            snapshot.retransmitted = measured.retransmitted;
            snapshot.missing = measured.missing;
            snapshot.out_of_order = measured.out_of_order;
            snapshot.end = Some(end);
        });
        if let Some(on_end) = self.on_end.take() {
            on_end(self.measurements.snapshot(), measured.traffic);
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.end(End::Abandoned);
    }
}

/// Counters of a connection at the start of a request.
pub(super) enum ConnectionShare {
    Quic(QuicShare),
    Tcp(Box<TcpShare>),
}

impl ConnectionShare {
    /// The server's settings, if they were received; once for each connection.
    pub(super) fn take_peer_settings(&self) -> Option<h3::Settings> {
        match self {
            Self::Quic(quic) => quic.sender.take_peer_settings(),
            Self::Tcp(_) => None,
        }
    }

    fn measure(&self) -> ConnectionMeasurements {
        match self {
            Self::Quic(quic) => quic.measure(),
            Self::Tcp(tcp) => tcp
                .measure()
                .map(|tcp| ConnectionMeasurements {
                    rtt: tcp.smoothed_rtt,
                    out_of_order: tcp.out_of_order_share(),
                    traffic: Some(tcp.traffic()),
                    ..ConnectionMeasurements::default()
                })
                .unwrap_or_default(),
        }
    }
}

/// Measurements of a connection, of the time of a request; those of [`Snapshot`], and what the server sent.
#[derive(Default)]
struct ConnectionMeasurements {
    rtt: Option<Duration>,
    retransmitted: Option<f64>,
    missing: Option<f64>,
    out_of_order: Option<f64>,
    traffic: Option<Traffic>,
}

/// Counters of a QUIC connection at the start of a request.
pub(super) struct QuicShare {
    sender: SendRequest,
    before: QuicCounters,
}

/// Stream bytes that this end sent and sent again, and packets of the server.
#[derive(Clone, Copy, Default)]
struct QuicCounters {
    sent: u64,
    again: u64,
    arrivals: Arrivals,
}

impl QuicCounters {
    fn of(quic: &Connection) -> Self {
        let (sent, again) = quic.stream_bytes_sent();
        Self {
            sent: sent.get(),
            again: again.get(),
            arrivals: quic.arrivals(),
        }
    }
}

impl QuicShare {
    pub(super) fn begin(sender: &SendRequest) -> Self {
        let before = sender.connection().inspect(QuicCounters::of);
        let sender = sender.clone();
        Self { sender, before }
    }

    /// Counts from the start of the connection.
    pub(super) fn of_all(sender: &SendRequest) -> Self {
        let before = QuicCounters::default();
        let sender = sender.clone();
        Self { sender, before }
    }

    fn measure(&self) -> ConnectionMeasurements {
        let (now, rtt) = self.sender.connection().inspect(|quic| {
            // Of several paths, the one that answers soonest.
            let paths = quic.open_paths();
            let rtt = paths.filter_map(|path| quic.smoothed_rtt(path)).min();
            (QuicCounters::of(quic), rtt)
        });
        let sent = now.sent.saturating_sub(self.before.sent);
        let again = now.again.saturating_sub(self.before.again);
        let arrivals = now.arrivals.since(&self.before.arrivals);
        let (expected, missing) = (arrivals.expected.get(), arrivals.missing.get());
        ConnectionMeasurements {
            rtt,
            retransmitted: (sent > 0).then(|| again as f64 / sent as f64),
            missing: arrivals.missing_share(),
            out_of_order: None,
            traffic: Some(Traffic::of_packets(expected, missing)),
        }
    }
}
