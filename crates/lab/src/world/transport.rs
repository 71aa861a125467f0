//! Transport settings of a group of flows.

use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::Buffer;
use swiftwater_policies::Policies;
use swiftwater_quic::{MultipathConfig, TransportConfig};
use swiftwater_units::{Bandwidth, ByteCount};

use super::topology::{referred, routes};
use crate::scenario::{App, FlowSpec, Setup};

/// Assumed for a queue without limit.
const UNKNOWN: ByteCount = ByteCount::new(64 << 20);

/// Margin for jitter and reordering.
const JITTER: ByteCount = ByteCount::new(1 << 20);

/// Largest feedback of a peer's policies that video on demand accepts: that of the façade's `feedback`.
const MAX_FEEDBACK: u8 = 64;

/// Limit of concurrent video frames to a viewer, more than there will be.
const MAX_FRAMES: u64 = 1 << 16;

/// Paths of a connection at most: the most there may be.
const MAX_PATHS: u8 = 8;

/// Idle timeout of transfers and viewers, for connections whose end was lost.
const IDLE: Duration = Duration::from_secs(60);

/// The transport configuration of the connections of `flow`, both ends.
pub(super) fn config(setup: &Setup, flow: &FlowSpec) -> TransportConfig {
    let spec = &flow.transport;
    let mut transport = TransportConfig {
        controller: Arc::clone(&flow.controller),
        policies: Arc::clone(&flow.recovery),
        initial_max_datagram_size: setup.datagram_size,
        // The size is a parameter of the experiment.
        mtu_discovery: None,
        max_idle_timeout: ends_by_itself(&flow.app).then_some(IDLE),
        ..TransportConfig::default()
    };
    let packet = ByteCount::new(u64::from(setup.datagram_size));
    transport.initial_window = spec.initial_window.map(|packets| packet.times(packets));
    if let Some(rtt) = spec.initial_rtt {
        transport.initial_rtt = rtt;
    }
    if let Some(ecn) = spec.ecn {
        transport.ecn = ecn;
    }
    if let Some(pacing) = spec.pacing {
        transport.pacing = pacing;
    }
    if let Some(threshold) = spec.ack_eliciting_threshold {
        transport.ack_eliciting_threshold = threshold;
    }
    if let Some(delay) = spec.max_ack_delay {
        transport.max_ack_delay = delay;
    }
    let window = window(setup, flow).times(2);
    transport.stream_receive_window = window;
    transport.max_stream_receive_window = window;
    transport.receive_window = window;
    transport.max_receive_window = window;
    transport.send_window = window;
    if let Some(paths) = flow.paths.as_ref().filter(|paths| paths.are_several()) {
        transport.multipath = Some(MultipathConfig {
            max_paths: MAX_PATHS,
            coupling: paths.coupling,
            ..MultipathConfig::default()
        });
    }
    if let App::Video(_) = flow.app {
        transport.max_concurrent_uni_streams = MAX_FRAMES;
    }
    if flow.feedback.is_some() {
        transport.max_feedback_size = MAX_FEEDBACK;
    }
    transport
}

/// Settings of the client of video on demand: as the server's, whose `transport` this is, but with the policies of a
/// player. `None` for other applications.
pub(super) fn of_viewer(flow: &FlowSpec, transport: &TransportConfig) -> Option<TransportConfig> {
    let feedback = flow.feedback.as_ref()?;
    let mut viewer = transport.clone();
    viewer.policies = Arc::new(Policies::player().with_feedback(Arc::clone(&feedback.viewer)));
    Some(viewer)
}

fn ends_by_itself(app: &App) -> bool {
    matches!(app, App::Transfer { .. } | App::Poisson { .. })
}

/// Most bytes in flight, so that congestion control limits the flow and flow control doesn't: all paths
/// and all queues full, for the longest round-trip time, because data that arrive on a fast path wait for
/// those of a slow one. The queues of access links, which are unlimited, are not included: where those are
/// the bottleneck, flow control limits the growth.
fn window(setup: &Setup, flow: &FlowSpec) -> ByteCount {
    let routes = routes(setup, flow);
    let longest = routes.iter().map(|route| route.rtt).max();
    let rtt = longest.unwrap_or_default().max(setup.rtt + flow.extra_rtt);
    // A trace may exceed its mean for a while.
    let mut window = ByteCount::new(bottleneck(setup, flow).bytes_in(rtt)).times(4) + JITTER;
    for link in routes.iter().flat_map(|route| &route.links) {
        window += match referred(link, setup.rtt).resolved_buffer() {
            Ok(Buffer::Bytes(bytes)) => bytes,
            Ok(Buffer::Packets(packets)) => {
                ByteCount::new(u64::from(setup.datagram_size)).times(packets.get())
            }
            _ => UNKNOWN,
        };
    }
    window.min(UNKNOWN.times(16))
}

/// The lowest mean rate on the path of a flow's data, access links included; of several paths the sum.
pub(super) fn bottleneck(setup: &Setup, flow: &FlowSpec) -> Bandwidth {
    let bits = routes(setup, flow)
        .iter()
        .map(|route| route.rate.as_bps())
        .sum();
    Bandwidth::from_bps(bits)
}

/// The shortest round-trip propagation delay of a flow.
pub(super) fn base_rtt(setup: &Setup, flow: &FlowSpec) -> Duration {
    let shortest = routes(setup, flow).iter().map(|route| route.rtt).min();
    shortest.unwrap_or_default()
}
