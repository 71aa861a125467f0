//! What a TCP connection received during one request, by the kernel's count.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use swiftwater_net::{TcpInspector, TcpStatistics};
use swiftwater_select::Traffic;

#[cfg(test)]
mod tests;

/// The addresses of a connection's socket.
#[derive(Debug)]
pub(super) struct TcpAddresses {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
}

/// The inspector of a client. It is opened on first use; where that fails nothing is known.
#[derive(Debug, Default)]
pub(super) struct TcpStatisticsSource(Mutex<Inspector>);

#[derive(Debug, Default)]
enum Inspector {
    #[default]
    Unopened,
    Open(TcpInspector),
    Unavailable,
}

impl TcpStatisticsSource {
    fn read(&self, addresses: &TcpAddresses) -> Option<TcpStatistics> {
        let mut inspector = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if matches!(*inspector, Inspector::Unopened) {
            *inspector = TcpInspector::open().map_or_else(
                |error| {
                    tracing::debug!(%error, "no statistics of TCP connections");
                    Inspector::Unavailable
                },
                Inspector::Open,
            );
        }
        let Inspector::Open(inspector) = &mut *inspector else {
            return None;
        };
        let statistics = inspector.inspect(addresses.local, addresses.remote);
        statistics.unwrap_or_else(|error| {
            tracing::debug!(%error, "no statistics of a TCP connection");
            None
        })
    }
}

/// Statistics of a TCP connection at the start of a request.
pub(super) struct TcpShare {
    source: Arc<TcpStatisticsSource>,
    addresses: Arc<TcpAddresses>,
    before: TcpStatistics,
}

impl TcpShare {
    /// `None` if the kernel does not know the connection.
    pub(super) fn begin(
        source: &Arc<TcpStatisticsSource>,
        addresses: &Arc<TcpAddresses>,
    ) -> Option<Self> {
        let before = source.read(addresses)?;
        Some(Self {
            source: Arc::clone(source),
            addresses: Arc::clone(addresses),
            before,
        })
    }

    /// What came since the start; `None` if the connection is closed.
    pub(super) fn measure(&self) -> Option<TcpReceived> {
        let now = self.source.read(&self.addresses)?;
        Some(TcpReceived::between(&self.before, &now))
    }
}

/// What came on a TCP connection during a request.
#[derive(Clone, Copy, Debug)]
pub(super) struct TcpReceived {
    /// At the end.
    pub(super) smoothed_rtt: Option<Duration>,
    /// Bytes of data, in order.
    bytes: u64,
    segments: u32,
    out_of_order: u32,
}

impl TcpReceived {
    fn between(before: &TcpStatistics, now: &TcpStatistics) -> Self {
        let segments = now.data_segments_received;
        let out_of_order = now.out_of_order_segments_received;
        Self {
            smoothed_rtt: now.smoothed_rtt,
            bytes: now.bytes_received.saturating_sub(before.bytes_received),
            segments: segments.wrapping_sub(before.data_segments_received),
            out_of_order: out_of_order.wrapping_sub(before.out_of_order_segments_received),
        }
    }

    /// Share of out-of-order segments, 0 to 1; `None` if no data came.
    pub(super) fn out_of_order_share(&self) -> Option<f64> {
        let share = f64::from(self.out_of_order) / f64::from(self.segments);
        (self.segments > 0).then(|| share.min(1.0))
    }

    /// What the server sent, as far as can be told here.
    pub(super) fn traffic(&self) -> Traffic {
        Traffic::of_segments(self.bytes, self.segments.into(), self.out_of_order.into())
    }
}
