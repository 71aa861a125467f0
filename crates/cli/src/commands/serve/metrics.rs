//! Metrics for Prometheus, on a separate port.
//!
//! Metrics of requests come from `swiftwater-http`'s `MetricsLayer`; this module has those of
//! connections. Packets that QUIC sent and lost are added when a connection ends.

use std::convert::Infallible;
use std::net::SocketAddr;

use http::{Request, Response, StatusCode};
use metrics::{Unit, counter, describe_counter, describe_gauge, gauge};
use swiftwater::{ConnectionStats, Endpoint};
use swiftwater_http::tcp::{ConnectionEnd, Outcome, RunningServer, TcpServer};
use swiftwater_http::web::body::{Body, text_response};
use swiftwater_http::web::metrics::{PrometheusService, prometheus};
use swiftwater_tunnel::proxy::describe_metrics as describe_tunnels;
use tokio::net::TcpListener;
use tower::{ServiceExt, service_fn};

use super::connection_log::End;
use super::process_metrics;
use crate::exit::{Exit, Failure, plain_io_error};
use crate::web_content::boxed;

/// Lines of the access log and of standard output that were lost.
pub(super) const LINES_DROPPED: &str = "swiftwater_log_lines_dropped_total";

const OPEN: &str = "swiftwater_connections_open";
const ENDED: &str = "swiftwater_connections_ended_total";
const HANDSHAKES_FAILED: &str = "swiftwater_handshakes_failed_total";
const CERTIFICATES: &str = "swiftwater_acme_certificates_total";
const RELOADS: &str = "swiftwater_reloads_total";

/// Where requests for the metrics are answered.
pub(super) struct Exporter {
    shown: PrometheusService,
    listener: TcpListener,
}

impl Exporter {
    /// Starts to record, and binds the port.
    pub(super) async fn bind(address: SocketAddr) -> Result<Self, Failure> {
        let recorder = prometheus().map_err(|error| Failure::new(Exit::Failure, error))?;
        let shown = PrometheusService::new(recorder.handle());
        // Fails only if a recorder is installed already; then this one shows nothing, without harm.
        let _ = metrics::set_global_recorder(recorder);
        describe();
        describe_tunnels();
        process_metrics::describe();
        let listener = TcpListener::bind(address).await.map_err(|error| {
            let why = plain_io_error(&error);
            let text = format!("cannot listen on TCP {address} for metrics: {why}");
            Failure::new(Exit::Listen, text)
        })?;
        Ok(Self { shown, listener })
    }

    /// The bound address.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.listener.local_addr().ok()
    }

    /// Answers at `/metrics`, querying `endpoint` and `tcp_connections` each time.
    pub(super) fn serve(
        self,
        endpoint: Endpoint,
        tcp_connections: impl Fn() -> usize + Clone + Send + Sync + 'static,
    ) -> Result<RunningServer, Failure> {
        let shown = self.shown;
        let service = service_fn(move |request: Request<Body>| {
            let shown = shown.clone();
            let is_here = request.uri().path() == "/metrics";
            if is_here {
                refresh(&endpoint, tcp_connections());
            }
            async move {
                if is_here {
                    shown.oneshot(request).await
                } else {
                    let text = "the metrics are at /metrics";
                    let response: Response<Body> = text_response(StatusCode::NOT_FOUND, text);
                    Ok::<_, Infallible>(response)
                }
            }
        });
        Ok(TcpServer::plain().serve(self.listener, boxed(service))?)
    }
}

fn describe() {
    describe_gauge!(OPEN, "Connections at this moment, by transport");
    describe_counter!(ENDED, "Connections that are over, by application protocol");
    describe_counter!(HANDSHAKES_FAILED, "Handshakes that failed, by transport");
    describe_counter!(
        CERTIFICATES,
        "Attempts to get a certificate from the authority, by result"
    );
    describe_counter!(
        RELOADS,
        "Times that the configuration was read again, by result"
    );
    describe_counter!(
        LINES_DROPPED,
        "Lines of the access log and of standard output that were lost"
    );
    let lost = "QUIC packets declared lost, of connections that are over";
    describe_counter!("swiftwater_quic_packets_lost_total", lost);
    let sent = "QUIC packets sent, of connections that are over";
    describe_counter!("swiftwater_quic_packets_sent_total", sent);
    let bytes = "UDP payload of QUIC, of connections that are over";
    describe_counter!("swiftwater_quic_bytes_sent_total", Unit::Bytes, bytes);
    describe_counter!("swiftwater_quic_bytes_received_total", Unit::Bytes, bytes);
    let again = "Stream bytes sent again, of connections that are over";
    describe_counter!(
        "swiftwater_quic_bytes_retransmitted_total",
        Unit::Bytes,
        again
    );
}

/// Updates gauges from other components.
fn refresh(endpoint: &Endpoint, tcp_connections: usize) {
    process_metrics::refresh();
    let stats = endpoint.stats();
    gauge!(OPEN, "transport" => "quic").set(stats.connections as f64);
    gauge!(OPEN, "transport" => "tcp").set(tcp_connections as f64);
    counter!(HANDSHAKES_FAILED, "transport" => "quic").absolute(stats.handshakes_failed);
    counter!(HANDSHAKES_FAILED, "transport" => "tcp").increment(0);
    counter!(LINES_DROPPED).increment(0);
    let routing = stats.routing;
    for (name, value) in [
        ("swiftwater_quic_datagrams_sent_total", stats.datagrams_sent),
        (
            "swiftwater_quic_datagrams_received_total",
            stats.datagrams_received,
        ),
        ("swiftwater_quic_send_errors_total", stats.send_errors),
        (
            "swiftwater_quic_connections_accepted_total",
            routing.accepted,
        ),
        ("swiftwater_quic_connections_refused_total", routing.refused),
        ("swiftwater_quic_retries_sent_total", routing.retries_sent),
        (
            "swiftwater_quic_version_negotiations_sent_total",
            routing.versions_negotiated,
        ),
        (
            "swiftwater_quic_stateless_resets_sent_total",
            routing.resets_sent,
        ),
    ] {
        counter!(name).absolute(value);
    }
}

/// Counts a closed QUIC connection.
pub(super) fn count_quic(end: &End, stats: &ConnectionStats) {
    counter!(ENDED, "protocol" => end.protocol.clone()).increment(1);
    counter!("swiftwater_quic_bytes_sent_total").increment(end.bytes_sent);
    counter!("swiftwater_quic_bytes_received_total").increment(end.bytes_received);
    counter!("swiftwater_quic_packets_sent_total").increment(stats.packets_sent.get());
    let lost = stats.paths.iter().map(|path| path.lost_packets.get()).sum();
    counter!("swiftwater_quic_packets_lost_total").increment(lost);
    let again = stats.stream_bytes_retransmitted.get();
    counter!("swiftwater_quic_bytes_retransmitted_total").increment(again);
}

/// Counts a closed TCP connection.
pub(super) fn count_tcp(end: &ConnectionEnd, shown: &End) {
    match end.outcome {
        Outcome::HandshakeFailed(_) | Outcome::HandshakeTimeout => {
            counter!(HANDSHAKES_FAILED, "transport" => "tcp").increment(1);
        }
        _ => counter!(ENDED, "protocol" => shown.protocol.clone()).increment(1),
    }
}

/// Counts an attempt to get a certificate.
pub(super) fn count_certificate(worked: bool) {
    let result = if worked { "obtained" } else { "failed" };
    counter!(CERTIFICATES, "result" => result).increment(1);
}

/// Counts a reload.
pub(super) fn count_reload(worked: bool) {
    let result = if worked { "done" } else { "failed" };
    counter!(RELOADS, "result" => result).increment(1);
}
