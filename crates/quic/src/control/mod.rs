//! Reliable delivery of small values: one mechanism for every frame that means "this value holds
//! now" (MAX_DATA, NEW_CONNECTION_ID, RESET_STREAM, HANDSHAKE_DONE ...).
//!
//! A value is *pending* until it is written, *in flight* until its packet is acknowledged, pending
//! again when the packet is lost, and removed when it was acknowledged. A newer value for the
//! same key replaces the older one; fates of older versions are ignored.
//!
//! A limit in flight below which the peer reports to be blocked (RFC 9000, section 19.13) was
//! probably lost: it is sent again without waiting for loss detection or a probe timeout, which
//! start late because a blocked peer sends nothing. Probe timeouts repeat the newest limits in any case.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use swiftwater_units::{Instant, PacketNumber, PathId};

use crate::frame_writer::{Carried, Fate, FrameWriter};
use crate::idle_memory::IdleMemory;

pub(crate) use crate::control_values::{ControlKey, ControlValue};

use crate::control_values::frame_of;

/// The packet that a value is written to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlPacket {
    /// When it is sent.
    pub(crate) sent_at: Instant,
    /// The path that it leaves on.
    pub(crate) path: PathId,
    /// Its number in the packet number space of that path.
    pub(crate) number: PacketNumber,
}

/// What is known when the peer reports that it is blocked.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BlockedReport {
    pub(crate) now: Instant,
    /// The limit that it is blocked at.
    pub(crate) limit: u64,
    /// Smoothed round-trip time.
    pub(crate) smoothed_rtt: Duration,
    /// Path whose packets `largest_acked` is about.
    pub(crate) path: PathId,
    /// Largest packet number that the peer acknowledged.
    pub(crate) largest_acked: Option<PacketNumber>,
}

/// Repetitions of a limit that the peer is blocked below.
#[derive(Clone, Copy, Debug)]
struct Repetition {
    /// Time from one sending to the next; doubles with each.
    interval: Duration,
    /// When the value in flight is sent again, unless it is acknowledged before.
    at: Option<Instant>,
}

/// A value awaiting delivery.
#[derive(Debug)]
struct ControlEntry {
    value: ControlValue,
    version: u32,
    pending: bool,
    /// The packet that it was written to last.
    sent_in: Option<ControlPacket>,
    /// The peer is blocked below this value, or an older one.
    repetition: Option<Repetition>,
}

/// The values awaiting delivery.
#[derive(Debug, Default)]
pub(crate) struct Control {
    entries: BTreeMap<ControlKey, ControlEntry>,
    /// Keys of pending values, oldest first.
    queue: VecDeque<ControlKey>,
    next_version: u32,
    /// When the next value is repeated, at the earliest: it may have been acknowledged meanwhile.
    repeat_at: Option<Instant>,
}

/// Shortest time between two repetitions of a value (RFC 9002, section 6.1.2: kGranularity).
const MIN_REPEAT_INTERVAL: Duration = Duration::from_millis(1);

/// Longest such time.
const MAX_REPEAT_INTERVAL: Duration = Duration::from_secs(10);

/// Limits that one report of a blocked peer, or one probe timeout, repeats at most.
const MAX_REPEATED_LIMITS: usize = 8;

impl IdleMemory for Control {
    fn release_idle_memory(&mut self) {
        let Self {
            entries,
            queue,
            next_version: _,
            repeat_at: _,
        } = self;
        if entries.is_empty() {
            // An empty map may keep a node.
            *entries = BTreeMap::new();
        }
        queue.shrink_to_fit();
    }
}

impl Control {
    /// Sets the value to deliver for `key`.
    pub(crate) fn set(&mut self, key: ControlKey, value: ControlValue) {
        self.next_version = self.next_version.wrapping_add(1);
        let version = self.next_version;
        let old = self.entries.get(&key);
        let queued = old.is_some_and(|old| old.pending);
        // A peer that is blocked below the old value is blocked below the new one.
        let repetition = old.and_then(|old| old.repetition);
        let entry = ControlEntry {
            value,
            version,
            pending: true,
            sent_in: None,
            repetition: repetition.map(|repetition| Repetition {
                at: None,
                ..repetition
            }),
        };
        self.entries.insert(key, entry);
        if !queued {
            self.queue.push_back(key);
        }
    }

    /// Stops delivering `key`.
    pub(crate) fn cancel(&mut self, key: ControlKey) {
        if self.entries.remove(&key).is_some_and(|entry| entry.pending) {
            self.unqueue(key);
        }
    }

    /// Takes `key` out of the queue: what a peer can make this end set and cancel while nothing may be
    /// sent must not pile up there.
    fn unqueue(&mut self, key: ControlKey) {
        if let Some(at) = self.queue.iter().rposition(|queued| *queued == key) {
            self.queue.remove(at);
        }
    }

    /// True if the value of `key` has never left yet.
    pub(crate) fn is_unsent(&self, key: ControlKey) -> bool {
        self.entries
            .get(&key)
            .is_some_and(|entry| entry.sent_in.is_none())
    }

    /// True if something waits to be written.
    pub(crate) fn has_pending(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Stops delivering what concerns only path `id`, except that it is abandoned.
    pub(crate) fn cancel_path(&mut self, id: PathId) {
        let of_path = |key: &ControlKey| match *key {
            ControlKey::NewConnectionId(path, _)
            | ControlKey::RetireConnectionId(path, _)
            | ControlKey::PathStatus(path)
            | ControlKey::PathCidsBlocked(path) => path == id,
            _ => false,
        };
        self.entries.retain(|key, _| !of_path(key));
        self.queue.retain(|key| !of_path(key));
    }

    /// Retires the peer's connection ID with this sequence number.
    pub(crate) fn retire_connection_id(&mut self, path: PathId, sequence: u64) {
        let key = ControlKey::RetireConnectionId(path, sequence);
        self.set(key, ControlValue::Unit);
    }

    /// `RETIRE_CONNECTION_ID` frames for a path that are not acknowledged yet.
    pub(crate) fn retirements(&self, path: PathId) -> usize {
        let from = ControlKey::RetireConnectionId(path, 0);
        let to = ControlKey::RetireConnectionId(path, u64::MAX);
        self.entries.range(from..=to).count()
    }

    /// Writes as many pending values as fit, oldest first.
    pub(crate) fn fill(&mut self, writer: &mut FrameWriter<'_, '_>, packet: ControlPacket) {
        while let Some(&key) = self.queue.front() {
            if let Some(entry) = self.entries.get_mut(&key)
                && entry.pending
            {
                let carried = Carried::Control {
                    key,
                    version: entry.version,
                };
                if !writer.carry(&frame_of(key, &entry.value, packet.path), carried) {
                    return;
                }
                entry.pending = false;
                entry.sent_in = Some(packet);
                if let Some(repetition) = &mut entry.repetition {
                    let at = packet.sent_at + repetition.interval;
                    repetition.at = Some(at);
                    repetition.interval = (repetition.interval * 2).min(MAX_REPEAT_INTERVAL);
                    self.repeat_at = Some(self.repeat_at.map_or(at, |next| next.min(at)));
                }
            }
            self.queue.pop_front();
        }
    }

    /// The peer reports that the limit `key` blocks it. If a higher limit is in flight, that is sent
    /// again, and so are other limits in flight, which may block the peer next: at once if the peer
    /// acknowledged a newer packet, or sent the report after the limit should have arrived; else when the
    /// limit counts as lost.
    pub(crate) fn on_blocked(&mut self, key: ControlKey, report: BlockedReport) {
        let Some(entry) = self.entries.get_mut(&key) else {
            return;
        };
        if !matches!(entry.value, ControlValue::Limit(limit) if limit > report.limit) {
            return;
        }
        let rtt = report.smoothed_rtt;
        // The time threshold of loss detection (RFC 9002, section 6.1.2).
        let interval = (rtt + rtt / 8).max(MIN_REPEAT_INTERVAL);
        if entry.pending {
            // The peer reports once for each limit: the next loss must be found without a report.
            entry.repetition = Some(Repetition { interval, at: None });
        }
        let mut next = self.repeat_at;
        for (_, entry) in self.limits_in_flight() {
            let Some(sent) = entry.sent_in else { continue };
            if entry.repetition.is_some() {
                continue;
            }
            let is_overtaken = sent.path == report.path && report.largest_acked > Some(sent.number);
            let is_overdue = report.now.saturating_since(sent.sent_at) > rtt;
            let at = if is_overtaken || is_overdue {
                report.now
            } else {
                sent.sent_at + interval
            };
            entry.repetition = Some(Repetition {
                interval,
                at: Some(at),
            });
            next = Some(next.map_or(at, |next| next.min(at)));
        }
        self.repeat_at = next;
        self.repeat_by(report.now);
    }

    /// The newest limits in flight, up to a number.
    fn limits_in_flight(&mut self) -> impl Iterator<Item = (ControlKey, &mut ControlEntry)> {
        let limits = self.entries.range_mut(ControlKey::LIMITS);
        let mut in_flight: Vec<_> = limits.filter(|(_, entry)| !entry.pending).collect();
        in_flight.sort_unstable_by_key(|(_, entry)| std::cmp::Reverse(entry.version));
        in_flight
            .into_iter()
            .take(MAX_REPEATED_LIMITS)
            .map(|(&key, entry)| (key, entry))
    }

    /// When [`Control::repeat_by`] has something to do.
    pub(crate) fn next_repetition(&self) -> Option<Instant> {
        self.repeat_at
    }

    /// Queues again the limits whose time to be repeated has come by `now`.
    pub(crate) fn repeat_by(&mut self, now: Instant) {
        if self.repeat_at.is_none_or(|at| at > now) {
            return;
        }
        self.repeat_at = None;
        for (&key, entry) in &mut self.entries {
            let Some(repetition) = &mut entry.repetition else {
                continue;
            };
            let Some(at) = repetition.at else { continue };
            if entry.pending {
                repetition.at = None;
            } else if at <= now {
                repetition.at = None;
                entry.pending = true;
                self.queue.push_back(key);
            } else {
                self.repeat_at = Some(self.repeat_at.map_or(at, |next| next.min(at)));
            }
        }
    }

    /// A probe timeout expired: queues the newest limits in flight again, because a peer that is blocked
    /// sends nothing that would show their loss.
    pub(crate) fn repeat_limits(&mut self) {
        let mut keys = Vec::new();
        for (key, entry) in self.limits_in_flight() {
            entry.pending = true;
            keys.push(key);
        }
        self.queue.extend(keys);
    }

    /// The packet that carried `version` of `key` was acknowledged or lost; true if the latest value
    /// was delivered with it.
    pub(crate) fn on_frame_fate(&mut self, key: ControlKey, version: u32, fate: Fate) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else {
            return false;
        };
        if fate == Fate::Acked {
            // The peer has a limit beyond the one that blocked it.
            entry.repetition = None;
        }
        if entry.version != version {
            return false;
        }
        match fate {
            Fate::Acked => {
                // A pending entry of this version was queued again by a loss that proved spurious.
                self.cancel(key);
                return true;
            }
            Fate::Lost | Fate::Probed if !entry.pending => {
                entry.pending = true;
                self.queue.push_back(key);
            }
            Fate::Lost | Fate::Probed => {}
        }
        false
    }
}
