//! Emits the observations of connections as `tracing` events.
//!
//! An observer like any other: where no subscriber enables its target, [`TraceFactory`] makes none, and
//! a connection costs what it costs without. Reports the state of connections; each packet is for
//! qlog.

use swiftwater_quic::observe::{HandshakeStage, Observation, Observer, ObserverFactory, Owner};
use swiftwater_units::{Instant, Side};
use tracing::{Level, Span};

/// The target of the spans and events.
const TARGET: &str = "swiftwater::connection";

/// Emits connections to `tracing`: a span `connection` for each, with `id` (its original destination
/// connection ID, the same at both ends), `side` and `remote`, and events in it as its state changes.
/// Target `swiftwater::connection`; levels:
///
/// - `INFO`: handshake complete, closed (`WARN` if by an error), peer moved;
/// - `DEBUG`: versions, stages of the handshake, early data, paths, MTU, ECN, key updates, states of
///   the congestion controller;
/// - `TRACE`: losses, probe timeouts, drops, flow control, streams.
///
/// Whether a subscriber is interested is asked when a connection begins: `RUST_LOG=swiftwater::connection=debug`
/// in programs that take their filter from there.
#[derive(Clone, Copy, Debug, Default)]
pub struct TraceFactory;

impl ObserverFactory for TraceFactory {
    fn observer(&self, side: Side) -> Option<Box<dyn Observer>> {
        tracing::enabled!(target: TARGET, Level::INFO).then(|| {
            let observer = TraceObserver {
                side,
                span: Span::none(),
            };
            Box::new(observer) as Box<dyn Observer>
        })
    }
}

struct TraceObserver {
    side: Side,
    span: Span,
}

impl Observer for TraceObserver {
    fn observe(&mut self, _now: Instant, observation: &Observation<'_>) {
        if let Observation::Started {
            original_dst_cid,
            path,
            version,
            ..
        } = observation
        {
            let (side, remote) = (side_name(self.side), path.remote);
            let id = original_dst_cid;
            self.span =
                tracing::info_span!(target: TARGET, parent: None, "connection", %id, side, %remote);
            let _in = self.span.enter();
            tracing::debug!(target: TARGET, version = %format_args!("{version:#010x}"), "started");
            return;
        }
        let _in = self.span.enter();
        lifecycle(observation);
    }
}

fn side_name(side: Side) -> &'static str {
    match side {
        Side::Client => "client",
        Side::Server => "server",
    }
}

fn lifecycle(observation: &Observation<'_>) {
    match observation {
        Observation::HandshakeProgress { stage } => match stage {
            HandshakeStage::Complete => tracing::info!(target: TARGET, "connected"),
            stage => tracing::debug!(target: TARGET, ?stage, "handshake"),
        },
        Observation::Closed { reason } => {
            use swiftwater_quic::ConnectionError::{LocallyClosed, PeerApplication};
            match reason {
                LocallyClosed { .. } | PeerApplication { .. } => {
                    tracing::info!(target: TARGET, %reason, "closed");
                }
                reason => tracing::warn!(target: TARGET, %reason, "closed"),
            }
        }
        Observation::PathChanged { from, to } => {
            tracing::info!(target: TARGET, from = %from.remote, to = %to.remote, "path changed");
        }
        Observation::VersionChosen { original, version } => {
            let (original, version) = (
                format_args!("{original:#010x}"),
                format_args!("{version:#010x}"),
            );
            tracing::debug!(target: TARGET, %original, %version, "version chosen");
        }
        Observation::Retry { .. } => tracing::debug!(target: TARGET, "retry"),
        Observation::Alpn { protocol } => {
            let protocol = String::from_utf8_lossy(protocol);
            tracing::debug!(target: TARGET, %protocol, "protocol");
        }
        Observation::EarlyData { outcome } => {
            tracing::debug!(target: TARGET, ?outcome, "early data");
        }
        Observation::KeyUpdated {
            generation,
            initiator,
        } => {
            let by_us = *initiator == Owner::Local;
            tracing::debug!(target: TARGET, generation, by_us, "keys updated");
        }
        _ => path(observation),
    }
}

fn path(observation: &Observation<'_>) {
    match observation {
        Observation::PathProbed { path } => {
            tracing::debug!(target: TARGET, remote = %path.remote, "path probed");
        }
        Observation::PathValidated { path, rtt } => {
            tracing::debug!(target: TARGET, remote = %path.remote, ?rtt, "path validated");
        }
        Observation::PathFailed { path } => {
            tracing::debug!(target: TARGET, remote = %path.remote, "path failed");
        }
        Observation::MtuUpdated {
            before,
            size,
            black_hole,
            ..
        } => tracing::debug!(target: TARGET, before, size, black_hole, "MTU"),
        Observation::EcnUpdated { state, .. } => {
            tracing::debug!(target: TARGET, ?state, "ECN");
        }
        Observation::CongestionState { state, before, .. } => {
            tracing::debug!(target: TARGET, state, before, "congestion state");
        }
        Observation::PacketLost {
            number,
            size,
            trigger,
            ..
        } => {
            tracing::trace!(target: TARGET, number = number.get(), size, ?trigger, "packet lost");
        }
        Observation::PacketDropped { reason, size, .. } => {
            tracing::trace!(target: TARGET, reason, size, "packet dropped");
        }
        Observation::ProbeTimeout { count, .. } => {
            tracing::trace!(target: TARGET, count, "probe timeout");
        }
        Observation::FlowBlocked { blocked } => {
            tracing::trace!(target: TARGET, blocked, "flow control");
        }
        Observation::StreamOpened { id } => {
            tracing::trace!(target: TARGET, id = id.get(), "stream opened");
        }
        Observation::StreamClosed { id } => {
            tracing::trace!(target: TARGET, id = id.get(), "stream closed");
        }
        _ => {}
    }
}
