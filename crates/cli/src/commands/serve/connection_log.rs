//! One log line for each closed connection.

use std::net::SocketAddr;
use std::time::Duration;

use serde::Serialize;
use swiftwater::ConnectionStats;
use swiftwater_http::tcp::{ConnectionEnd, Outcome};

use super::access_format::{canonical, seconds};

/// A closed connection.
#[derive(Clone, Debug, Serialize)]
pub(super) struct End {
    pub(super) peer: SocketAddr,
    /// As in ALPN; `-` if none was negotiated.
    pub(super) protocol: String,
    pub(super) requests: u64,
    /// On the wire: UDP payload, or bytes of the TCP socket.
    pub(super) bytes_sent: u64,
    pub(super) bytes_received: u64,
    pub(super) seconds: f64,
    /// Why it ended, if not normally.
    pub(super) error: Option<String>,
    /// Statistics of QUIC.
    #[serde(flatten)]
    pub(super) quic: Option<Quic>,
}

/// Statistics of QUIC.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Quic {
    pub(super) rtt_ms: f64,
    pub(super) min_rtt_ms: f64,
    pub(super) packets_sent: u64,
    pub(super) packets_lost: u64,
    pub(super) bytes_retransmitted: u64,
}

impl End {
    /// Record of a QUIC connection.
    pub(super) fn of_quic(
        peer: SocketAddr,
        alpn: Option<&[u8]>,
        requests: u64,
        elapsed: Duration,
        error: Option<String>,
        stats: &ConnectionStats,
    ) -> Self {
        let millis = |time: Duration| seconds(time) * 1e3;
        let path = stats.paths.first();
        Self {
            peer: canonical(peer),
            protocol: name(alpn),
            requests,
            bytes_sent: stats.bytes_sent.get(),
            bytes_received: stats.bytes_received.get(),
            seconds: seconds(elapsed),
            error,
            quic: Some(Quic {
                rtt_ms: path.map_or(0.0, |path| millis(path.smoothed_rtt)),
                min_rtt_ms: path.map_or(0.0, |path| millis(path.min_rtt)),
                packets_sent: stats.packets_sent.get(),
                packets_lost: stats.paths.iter().map(|path| path.lost_packets.get()).sum(),
                bytes_retransmitted: stats.stream_bytes_retransmitted.get(),
            }),
        }
    }

    /// Record of a TCP connection.
    pub(super) fn of_tcp(end: &ConnectionEnd) -> Self {
        Self {
            peer: canonical(end.peer),
            protocol: name(end.alpn.as_deref()),
            requests: end.requests,
            bytes_sent: end.bytes_sent,
            bytes_received: end.bytes_received,
            seconds: seconds(end.elapsed),
            error: match &end.outcome {
                Outcome::Orderly => None,
                Outcome::HandshakeFailed(why) => Some(format!("TLS handshake: {why}")),
                Outcome::HandshakeTimeout => Some("the TLS handshake took too long".to_owned()),
                Outcome::Broken(why) => Some(why.clone()),
                other => Some(format!("{other:?}")),
            },
            quic: None,
        }
    }

    /// Logs it at the level `info`.
    pub(super) fn trace(&self) {
        let Self {
            peer,
            protocol,
            requests,
            bytes_sent,
            bytes_received,
            seconds,
            ..
        } = self;
        let error = self.error.as_deref();
        let rtt_ms = self.quic.map(|quic| quic.rtt_ms);
        let packets_lost = self.quic.map(|quic| quic.packets_lost);
        let bytes_retransmitted = self.quic.map(|quic| quic.bytes_retransmitted);
        tracing::info!(
            %peer,
            protocol,
            requests,
            bytes_sent,
            bytes_received,
            seconds,
            rtt_ms,
            packets_lost,
            bytes_retransmitted,
            error,
            "connection ended"
        );
    }
}

fn name(alpn: Option<&[u8]>) -> String {
    // Only names that the server offers can be negotiated.
    alpn.map_or_else(
        || "-".to_owned(),
        |name| String::from_utf8_lossy(name).into_owned(),
    )
}
