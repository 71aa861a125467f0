//! Coupled congestion control: what each path acknowledges and loses scales the growth of its window
//! (draft-ietf-quic-multipath-21, section 5.1). The rules are in `swiftwater_congestion`.

use swiftwater_congestion::{CoupledAck, Coupling, CouplingRule};
use swiftwater_units::{ByteCount, Instant, PathId};

use crate::path::PathState;

/// Applies the rule of a connection to its paths.
#[derive(Debug)]
pub(crate) struct CoupledControl {
    coupling: Coupling,
    /// Congestion events of each path that the rule has been given.
    seen: Vec<(PathId, u64)>,
}

impl CoupledControl {
    pub(crate) fn new(rule: CouplingRule) -> Self {
        Self {
            coupling: Coupling::new(rule),
            seen: Vec::new(),
        }
    }

    /// Packets of a path were acknowledged or lost: scales the growth that the next acknowledgements bring.
    pub(crate) fn on_packets_settled(
        &mut self,
        now: Instant,
        path: &mut PathState,
        acked: ByteCount,
    ) {
        if self.coupling.rule() == CouplingRule::Uncoupled {
            return;
        }
        let events = path.recovery.stats().congestion_events;
        let seen = self.seen_of(path.id);
        if std::mem::replace(seen, events) != events {
            self.coupling.on_congestion_event(path.id);
        }
        if acked.is_zero() {
            return;
        }
        let scale = self.coupling.on_ack(&CoupledAck {
            path: path.id,
            now,
            acked,
            window: path.recovery.cwnd(),
            smoothed_rtt: path.recovery.rtt().smoothed,
        });
        path.recovery.set_growth_scale(scale);
    }

    fn seen_of(&mut self, path: PathId) -> &mut u64 {
        let known = self.seen.iter().position(|(id, _)| *id == path);
        let at = known.unwrap_or_else(|| {
            self.seen.push((path, 0));
            self.seen.len() - 1
        });
        &mut self.seen[at].1
    }

    /// A path has ended.
    pub(crate) fn on_path_closed(&mut self, path: PathId) {
        self.coupling.on_path_closed(path);
        self.seen.retain(|(id, _)| *id != path);
    }
}
