//! What several paths mean for sending: which of them something must leave on whatever the scheduler names,
//! which may not send at the moment, and what limits each.

use std::time::Duration;

use swiftwater_units::{ByteCount, Instant, PathId};

use crate::handshake::Handshake;
use crate::policy::PathPhase;
use crate::transmit::SocketId;

use super::{PathSet, PathState};

/// How long a socket that takes nothing is expected to do so, as schedulers see it. The driver says when it
/// takes something again, mostly sooner.
const BLOCKED_SOCKET_PAUSE: Duration = Duration::from_millis(1);

impl PathSet {
    /// Nothing is to leave by these sockets at the moment; replaces those named before. False if no open
    /// path uses another one.
    pub(crate) fn block_sockets(&mut self, sockets: &[SocketId]) -> bool {
        if let Some(further) = self.further.get_mut() {
            further.blocked_sockets.clear();
            further.blocked_sockets.extend_from_slice(sockets);
        }
        let is_free = |path: &PathState| !sockets.contains(&path.network.address.local.socket);
        self.open().any(is_free)
    }

    /// True if nothing may leave on the path at the moment because its socket takes nothing.
    pub(crate) fn is_blocked(&self, path: &PathState) -> bool {
        let further = self.further.get();
        further.is_some_and(|further| {
            let socket = path.network.address.local.socket;
            further.blocked_sockets.contains(&socket)
        })
    }

    /// The congestion windows of the open paths together, bytes.
    pub(crate) fn total_window(&self) -> u64 {
        let windows = self.open().map(|path| path.recovery.cwnd().get());
        windows.sum()
    }

    /// Bytes for frames in a full packet with application data on any path that carries data.
    pub(crate) fn data_room(&self, handshake: &Handshake) -> usize {
        let further = self.others().iter();
        let further = further.filter(|path| path.phase == PathPhase::Active);
        let rooms = further.map(|path| path.data_room(handshake));
        rooms.fold(self.primary.data_room(handshake), usize::min)
    }

    /// The open path that is most likely to reach the peer.
    pub(crate) fn most_reliable(&self) -> &PathState {
        let order = |path: &&PathState| {
            let failures = path.recovery.pto_count();
            let is_blocked = self.is_blocked(path);
            let rtt = path.recovery.rtt().smoothed;
            (is_blocked, !path.carries_data(), failures, rtt)
        };
        self.open().min_by_key(order).unwrap_or(&self.primary)
    }

    /// The first open path after `previous` on which something is to be sent that is independent of window,
    /// pacer and scheduler. `ack_carrier` is the path that carries the acknowledgements of one.
    pub(crate) fn next_with_requirement(
        &mut self,
        now: Instant,
        ack_carrier: impl Fn(&PathState) -> PathId,
        previous: Option<PathId>,
    ) -> Option<PathId> {
        let is_due = |path: &PathState| path.space.received.ack_is_due(now);
        for path in self.iter_mut() {
            // It does not wait for the path's turn.
            if std::mem::take(&mut path.space.ping) {
                path.space.probes = path.space.probes.max(1);
            }
        }
        let mut paths = self.open();
        let next = paths.find(|path| {
            if previous.is_some_and(|previous| path.id <= previous) || self.is_blocked(path) {
                return false;
            }
            path.space.probes > 0
                || path.network.has_validation_frames()
                || (self.iter()).any(|other| is_due(other) && ack_carrier(other) == path.id)
        });
        next.map(|path| path.id)
    }

    /// Notes until when the pacer of each of several paths holds data back, for schedulers and timers; a
    /// blocked socket does so for a moment at least.
    pub(crate) fn sync_pacing(&mut self, now: Instant) {
        if self.is_single() {
            return;
        }
        self.for_each_mut(|path, is_blocked| {
            if !path.carries_data() {
                return;
            }
            let mut release = path.recovery.pacing_release(now);
            if is_blocked {
                release = release.max(now + BLOCKED_SOCKET_PAUSE);
            }
            path.pacing_until = (release > now).then_some(release);
        });
    }

    /// Nothing more can be sent now: of several paths, those with room are limited by the application.
    /// The one that the scheduler named last has noted it already.
    pub(crate) fn note_idle(&mut self, now: Instant, waiting: ByteCount, is_flow_limited: bool) {
        if self.is_single() {
            return;
        }
        for path in self.iter_mut().filter(|path| path.carries_data()) {
            let size = usize::from(path.network.mtu.current());
            let recovery = &mut path.recovery;
            if !recovery.has_window_for(size) {
                recovery.on_window_blocked();
                path.pacing_until = None;
            } else if path.pacing_until.is_some() && !waiting.is_zero() {
                recovery.on_pacer_blocked(now, waiting);
            } else {
                path.pacing_until = None;
                if is_flow_limited {
                    recovery.set_flow_limited(now);
                } else {
                    recovery.set_app_limited(now);
                }
            }
        }
    }
}
