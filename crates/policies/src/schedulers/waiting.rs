//! Room on a path, and waiting for it.

use swiftwater_quic::policy::{Demand, PathDecision, PathView};
use swiftwater_units::{ByteCount, Instant};

/// True if window and pacer of the path let a full datagram go now.
pub(crate) fn has_room(path: &PathView, now: Instant) -> bool {
    has_window(path) && path.pacing_release <= now
}

fn has_window(path: &PathView) -> bool {
    path.window_room() >= ByteCount::new(path.mtu.into())
}

/// The decision to wait for a path without room: until its pacer lets a datagram go, or an acknowledgement
/// opens its window. `None` if nothing would end the wait, or if a probe timeout has gone unanswered, so
/// that the acknowledgement may never come.
pub(crate) fn wait_for(path: &PathView, now: Instant) -> Option<PathDecision> {
    if path.pto_count > 0 {
        None
    } else if has_window(path) {
        (path.pacing_release > now).then_some(PathDecision::Wait(path.pacing_release))
    } else {
        (!path.bytes_in_flight.is_zero()).then_some(PathDecision::Blocked)
    }
}

/// The decision while none of the eligible paths has room: to wait for an acknowledgement. If nothing is in
/// flight none will come, so that other paths that are ready must not be passed over without an end: the
/// next time at which a pacer lets a datagram go, or the ready path with the least RTT.
pub(crate) fn blocked(now: Instant, paths: &[PathView], demand: &Demand<'_>) -> PathDecision {
    let ready = paths
        .iter()
        .filter(|path| path.is_ready(now) && demand.suits(path.id))
        .min_by_key(|path| (path.smoothed_rtt, path.id));
    let in_flight = paths.iter().any(|path| !path.bytes_in_flight.is_zero());
    let Some(ready) = ready.filter(|_| !in_flight) else {
        return PathDecision::Blocked;
    };
    let paced = paths
        .iter()
        .filter(|path| path.is_usable() && has_window(path) && demand.suits(path.id));
    let releases = paced.map(|path| path.pacing_release);
    match releases.filter(|release| *release > now).min() {
        Some(release) => PathDecision::Wait(release),
        None => PathDecision::once(ready.id),
    }
}
