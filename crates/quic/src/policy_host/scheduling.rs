//! Which path sends next: what waits, the question to the scheduler, and what its answer is held against.

use swiftwater_units::{ByteCount, Instant, PathId};

use super::{MIN_WAIT, PolicyBuffers, PolicyHost, refreshed};
use crate::control::Control;
use crate::datagrams::Datagrams;
use crate::monitor::Monitor;
use crate::path::{PathSet, PathState};
use crate::policy::{CopyDemand, Demand, PathDecision, PathView};
use crate::streams::Streams;

/// The owners of what may wait to be sent.
#[derive(Clone, Copy)]
pub(crate) struct Waiting<'a> {
    pub(crate) streams: &'a Streams,
    pub(crate) control: &'a Control,
    pub(crate) datagrams: &'a Datagrams,
    /// CRYPTO frames of 1-RTT packets wait.
    pub(crate) has_handshake_data: bool,
}

impl Waiting<'_> {
    /// The path for which data wait that may leave on no other, if it is ready.
    fn for_a_path(&self, now: Instant, paths: &PathSet) -> Option<Scheduled> {
        let is_ready = |path: &PathState| {
            let size = usize::from(path.network.mtu.current());
            path.carries_data()
                && !paths.is_blocked(path)
                && path.recovery.has_window_for(size)
                && path.pacing_until.is_none_or(|until| until <= now)
        };
        let datagrams = self.datagrams.waiting_for_paths();
        let datagrams = datagrams.map(|(path, bytes)| (path, bytes as u64));
        let mut waiting = datagrams.chain(self.streams.waiting_for_paths());
        let ready = waiting.find(|(id, _)| paths.get(*id).is_some_and(is_ready));
        ready.map(|(id, bytes)| Scheduled {
            path: id,
            max_bytes: ByteCount::new(bytes),
            wait_until: None,
        })
    }

    /// What waits, with these copies, as schedulers see it.
    fn demand<'a>(&self, copies: &'a [CopyDemand]) -> Demand<'a> {
        // What may leave on a certain path only is none of the scheduler's choices.
        let (lost_of_paths, new_of_paths) = self.streams.bytes_of_paths();
        let lost = self.streams.pending_retransmission_bytes() - lost_of_paths;
        let new = self.streams.pending_new_bytes(new_of_paths);
        let datagrams_of_paths = self.datagrams.waiting_for_paths();
        let datagrams_of_paths: u64 = datagrams_of_paths.map(|(_, bytes)| bytes as u64).sum();
        let next = self.streams.next_demand();
        let is_bare_end = next.is_some() && lost == 0 && new == 0;
        Demand {
            control: self.control.has_pending() || self.has_handshake_data || is_bare_end,
            datagram_bytes: ByteCount::new(self.datagrams.unsent_bytes() - datagrams_of_paths),
            new_bytes: ByteCount::new(new),
            retransmission_bytes: ByteCount::new(lost),
            next_stream: next.as_ref().map(|next| next.stream),
            priority: next.as_ref().map(|next| next.priority),
            deadline: next.as_ref().and_then(|next| next.deadline),
            copies,
        }
    }
}

/// What the scheduler decided.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scheduled {
    /// The path of the next packets.
    pub(crate) path: PathId,
    /// Bytes of datagrams that may follow one another there before the scheduler is asked again; one
    /// datagram always may.
    pub(crate) max_bytes: ByteCount,
    /// Until then it may carry acknowledgements only.
    pub(crate) wait_until: Option<Instant>,
}

impl Scheduled {
    /// A datagram on `path` with what does not depend on window and pacer.
    pub(crate) fn without_data(now: Instant, path: PathId) -> Self {
        Self {
            path,
            max_bytes: ByteCount::ZERO,
            wait_until: Some(now),
        }
    }

    /// As many datagrams on `path` as window and pacer let go.
    fn batch(path: PathId) -> Self {
        Self {
            path,
            max_bytes: ByteCount::MAX,
            wait_until: None,
        }
    }
}

impl PolicyHost {
    /// Asks the scheduler which path sends next, and whether it may send data. On the path that is named,
    /// acknowledgements are sent in any case; on others they wait until one of these is named.
    pub(crate) fn schedule(
        &mut self,
        now: Instant,
        waiting: &Waiting<'_>,
        paths: &mut PathSet,
        monitor: &mut Monitor,
    ) -> Scheduled {
        paths.sync_pacing(now);
        let scheduled = self.ask_scheduler(now, waiting, paths, monitor);
        let path = paths.get_mut(scheduled.path);
        if let (Some(until), Some(path)) = (scheduled.wait_until, path) {
            let wait = &mut path.pacing_until;
            *wait = Some(wait.map_or(until, |at| at.min(until)));
        }
        scheduled
    }

    /// A decision for a path that is not open counts as invalid, and the primary path is taken.
    fn ask_scheduler(
        &mut self,
        now: Instant,
        waiting: &Waiting<'_>,
        paths: &PathSet,
        monitor: &mut Monitor,
    ) -> Scheduled {
        if let Some(scheduled) = waiting.for_a_path(now, paths) {
            return scheduled;
        }
        if self.scheduler.is_inert() {
            return Scheduled::batch(paths.primary().id);
        }
        let has_feedback = self.has_urgent_feedback();
        let PolicyBuffers {
            views,
            copy_demand: copies,
            ..
        } = self.buffers.need();
        let views = refreshed(views, now, paths);
        self.copies.demand(copies);
        let mut demand = waiting.demand(copies);
        demand.control |= has_feedback;
        if demand == Demand::nothing() {
            // The re-injector may want to use the room of a path.
            let ready = views.iter().filter(|view| view.is_ready(now));
            let fastest = ready.min_by_key(|view| (view.smoothed_rtt, view.id));
            return Scheduled::batch(fastest.map_or(paths.primary().id, |view| view.id));
        }
        let is_known = |id: PathId| views.iter().any(|view| view.id == id);
        let wait = |until| Scheduled {
            wait_until: Some(until),
            ..Scheduled::batch(paths.primary().id)
        };
        match self.scheduler.next(now, views, &demand) {
            PathDecision::Path { id, max_bytes } if is_known(id) => {
                return Scheduled {
                    path: id,
                    max_bytes,
                    wait_until: None,
                };
            }
            PathDecision::Wait(until) => return wait(until.max(now + MIN_WAIT)),
            // The pacer's timer runs if it is the pacer that holds data back.
            PathDecision::Blocked if !views.iter().any(|view| view.is_ready(now)) => {
                return Scheduled::batch(paths.primary().id);
            }
            // Another path is ready, but the scheduler prefers to wait for an acknowledgement or a pacer.
            PathDecision::Blocked => {
                if let Some(until) = wait_for_preferred(now, views) {
                    return wait(until);
                }
            }
            PathDecision::Path { .. } => {}
        }
        monitor.stats.invalid_decisions += 1;
        Scheduled::batch(paths.primary().id)
    }
}

/// Until when data wait though a path is ready: until the pacer of another lets them go, or for a round trip if
/// something is in flight whose acknowledgement gives room. `None` if there is neither.
fn wait_for_preferred(now: Instant, views: &[PathView]) -> Option<Instant> {
    let usable = || views.iter().filter(|view| view.is_usable());
    let held = usable().map(|view| view.pacing_release);
    if let Some(release) = held.filter(|release| *release > now).min() {
        return Some(release.max(now + MIN_WAIT));
    }
    let in_flight = views.iter().any(|view| !view.bytes_in_flight.is_zero());
    let rtt = usable().map(|view| view.smoothed_rtt).min();
    in_flight.then(|| now + rtt.unwrap_or_default().max(MIN_WAIT))
}
