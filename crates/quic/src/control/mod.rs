//! Reliable delivery of small values: one mechanism for every frame that says "this value holds
//! now" (MAX_DATA, NEW_CONNECTION_ID, RESET_STREAM, HANDSHAKE_DONE ...).
//!
//! A value is *pending* until it is written, *in flight* until its packet is acknowledged, pending
//! again when the packet is lost, and gone or quiet when it was acknowledged. A newer value for the
//! same key replaces the older one; fates of older versions are ignored.
//!
//! A limit in flight of which the peer says that it is blocked below it (RFC 9000, section 19.13) was
//! probably lost: it is sent again without waiting for loss detection or a probe timeout, which the
//! silence of a blocked peer would put off. Probe timeouts repeat the newest limits in any case.

use std::collections::{BTreeMap, VecDeque};

use std::time::Duration;

use swiftwater_units::{Dir, Instant, PacketNumber, PathId, StreamId};
use swiftwater_wire::frame;
use swiftwater_wire::{ConnectionId, Frame, ResetToken};

use crate::frame_writer::{Carried, Fate, FrameWriter};
use crate::idle_memory::IdleMemory;
use crate::policy::FeedbackPayload;

/// Names a value. The order is the order of sending within one packet.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) enum ControlKey {
    /// `HANDSHAKE_DONE`.
    HandshakeDone,
    /// `RETIRE_CONNECTION_ID` of this sequence number.
    RetireConnectionId(PathId, u64),
    /// `NEW_CONNECTION_ID` of this sequence number.
    NewConnectionId(PathId, u64),
    /// `MAX_DATA`.
    MaxData,
    /// `MAX_STREAM_DATA`.
    MaxStreamData(StreamId),
    /// `MAX_STREAMS`.
    MaxStreams(Dir),
    /// `RESET_STREAM` or `RESET_STREAM_AT`.
    ResetStream(StreamId),
    /// `STOP_SENDING`.
    StopSending(StreamId),
    /// `DATA_BLOCKED`.
    DataBlocked,
    /// `STREAM_DATA_BLOCKED`.
    StreamDataBlocked(StreamId),
    /// `STREAMS_BLOCKED`.
    StreamsBlocked(Dir),
    /// `NEW_TOKEN`.
    NewToken,
    /// `ACK_FREQUENCY`.
    AckFrequency,
    /// `FEEDBACK` of this kind that elicits an acknowledgement.
    Feedback(frame::FeedbackKind),
}

/// A value for a [`ControlKey`].
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum ControlValue {
    /// For the keys whose frame has no field beyond the key.
    Unit,
    /// A limit, for the `Max…` and `…Blocked` keys.
    Limit(u64),
    /// For `ResetStream`.
    Reset {
        /// The application's code.
        error: u64,
        /// Final size, bytes.
        final_size: u64,
    },
    /// For `ResetStream`, as `RESET_STREAM_AT`.
    ResetAt {
        /// The application's code.
        error: u64,
        /// Final size, bytes.
        final_size: u64,
        /// Bytes that are delivered in spite of it.
        reliable_size: u64,
    },
    /// The application's code, for `StopSending`.
    Code(u64),
    /// For `NewConnectionId`.
    ConnectionId {
        /// The connection ID.
        cid: ConnectionId,
        /// Its reset token.
        reset_token: ResetToken,
        /// `retire_prior_to`.
        retire_prior_to: u64,
    },
    /// For `NewToken`.
    Token(Vec<u8>),
    /// For `AckFrequency`.
    Frequency(frame::AckFrequency),
    /// For `Feedback`.
    Feedback {
        /// Number among those of its kind.
        sequence: u64,
        /// What it says.
        payload: Box<FeedbackPayload>,
    },
}

/// The packet that a value is written to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ControlPacket {
    /// When it is sent.
    pub(crate) sent_at: Instant,
    /// Its number in the application's packet number space.
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

    /// Takes `key` out of the queue: what a peer can make us set and cancel while nothing may be
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

    /// Retires the peer's connection ID with this sequence number.
    pub(crate) fn retire_connection_id(&mut self, path: PathId, sequence: u64) {
        let key = ControlKey::RetireConnectionId(path, sequence);
        self.set(key, ControlValue::Unit);
    }

    /// `RETIRE_CONNECTION_ID` frames that are not acknowledged yet.
    pub(crate) fn retirements(&self) -> usize {
        let from = ControlKey::RetireConnectionId(PathId::ZERO, 0);
        let to = ControlKey::RetireConnectionId(PathId::new(u32::MAX), u64::MAX);
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
                if !writer.carry(&frame_of(key, &entry.value), carried) {
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
    /// limit can be said to be lost.
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
            let is_overtaken = report.largest_acked > Some(sent.number);
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
        let (first, last) = (ControlKey::MaxData, ControlKey::MaxStreams(Dir::Uni));
        let limits = self.entries.range_mut(first..=last);
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

/// The frame that carries `value` for `key`.
fn frame_of(key: ControlKey, value: &ControlValue) -> Frame<'_> {
    match (key, value) {
        (ControlKey::HandshakeDone, _) => Frame::HandshakeDone,
        (ControlKey::RetireConnectionId(path, sequence), _) => Frame::RetireConnectionId {
            path: multipath(path),
            sequence,
        },
        (
            ControlKey::NewConnectionId(path, sequence),
            &ControlValue::ConnectionId {
                cid,
                reset_token,
                retire_prior_to,
            },
        ) => Frame::NewConnectionId(frame::NewConnectionId {
            path: multipath(path),
            sequence,
            retire_prior_to,
            cid,
            reset_token,
        }),
        (ControlKey::MaxData, &ControlValue::Limit(limit)) => Frame::MaxData { limit },
        (ControlKey::MaxStreamData(id), &ControlValue::Limit(limit)) => {
            Frame::MaxStreamData { id, limit }
        }
        (ControlKey::MaxStreams(dir), &ControlValue::Limit(count)) => {
            Frame::MaxStreams { dir, count }
        }
        (ControlKey::DataBlocked, &ControlValue::Limit(limit)) => Frame::DataBlocked { limit },
        (ControlKey::StreamDataBlocked(id), &ControlValue::Limit(limit)) => {
            Frame::StreamDataBlocked { id, limit }
        }
        (ControlKey::StreamsBlocked(dir), &ControlValue::Limit(limit)) => {
            Frame::StreamsBlocked { dir, limit }
        }
        (ControlKey::ResetStream(id), &ControlValue::Reset { error, final_size }) => {
            Frame::ResetStream(frame::ResetStream {
                id,
                error,
                final_size,
            })
        }
        (
            ControlKey::ResetStream(id),
            &ControlValue::ResetAt {
                error,
                final_size,
                reliable_size,
            },
        ) => Frame::ResetStreamAt(frame::ResetStreamAt {
            id,
            error,
            final_size,
            reliable_size,
        }),
        (ControlKey::StopSending(id), &ControlValue::Code(error)) => {
            Frame::StopSending(frame::StopSending { id, error })
        }
        (ControlKey::NewToken, ControlValue::Token(token)) => Frame::NewToken { token },
        (ControlKey::AckFrequency, &ControlValue::Frequency(wish)) => Frame::AckFrequency(wish),
        (ControlKey::Feedback(kind), ControlValue::Feedback { sequence, payload }) => {
            Frame::Feedback(frame::Feedback {
                kind,
                sequence: *sequence,
                payload: payload.as_bytes(),
                ack_eliciting: true,
            })
        }
        (key, value) => unreachable!("{value:?} is no value for {key:?}"),
    }
}

/// Path 0 uses the frames of RFC 9000.
fn multipath(path: PathId) -> Option<PathId> {
    (path != PathId::ZERO).then_some(path)
}

#[cfg(test)]
mod tests {
    use swiftwater_wire::Writer;

    use super::*;

    const RTT: Duration = Duration::from_millis(80);
    const KEY: ControlKey = ControlKey::MaxData;

    fn millis(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// Sends a packet; the versions of the values in it.
    fn send(control: &mut Control, at: Instant, number: u64) -> Vec<u32> {
        let mut buf = [0; 1200];
        let mut carried = Vec::new();
        let mut writer = Writer::new(&mut buf);
        let packet = ControlPacket {
            sent_at: at,
            number: PacketNumber::new(number),
        };
        control.fill(
            &mut FrameWriter::new(&mut writer, 1200, &mut carried),
            packet,
        );
        let version = |carried: &Carried| match carried {
            Carried::Control { version, .. } => *version,
            other => panic!("{other:?}"),
        };
        carried.iter().map(version).collect()
    }

    fn report(now: Instant, limit: u64, largest_acked: Option<u64>) -> BlockedReport {
        BlockedReport {
            now,
            limit,
            smoothed_rtt: RTT,
            largest_acked: largest_acked.map(PacketNumber::new),
        }
    }

    fn with_limit_sent() -> Control {
        let mut control = Control::default();
        control.set(KEY, ControlValue::Limit(2000));
        assert_eq!(send(&mut control, millis(0), 0).len(), 1);
        control
    }

    #[test]
    fn a_limit_that_should_have_arrived_is_repeated_at_once() {
        let mut control = with_limit_sent();
        control.on_blocked(KEY, report(millis(81), 1000, None));
        assert_eq!(send(&mut control, millis(81), 1).len(), 1);
        // And one that was sent before an acknowledged packet.
        let mut control = with_limit_sent();
        control.on_blocked(KEY, report(millis(20), 1000, Some(1)));
        assert_eq!(send(&mut control, millis(20), 2).len(), 1);
    }

    #[test]
    fn a_limit_that_may_arrive_yet_is_repeated_when_it_is_late() {
        let mut control = with_limit_sent();
        control.on_blocked(KEY, report(millis(20), 1000, None));
        assert!(!control.has_pending());
        assert_eq!(control.next_repetition(), Some(millis(90)));
        control.repeat_by(millis(89));
        assert!(!control.has_pending());
        control.repeat_by(millis(90));
        assert!(control.has_pending());
        assert_eq!(control.next_repetition(), None);
        // The next time after twice as long.
        send(&mut control, millis(90), 1);
        assert_eq!(control.next_repetition(), Some(millis(180)));
        control.repeat_by(millis(180));
        send(&mut control, millis(180), 2);
        assert_eq!(control.next_repetition(), Some(millis(360)));
    }

    #[test]
    fn repetition_ends_with_an_acknowledgement_of_any_version() {
        let mut control = with_limit_sent();
        control.on_blocked(KEY, report(millis(81), 1000, None));
        let version = send(&mut control, millis(81), 1)[0];
        control.set(KEY, ControlValue::Limit(3000));
        send(&mut control, millis(82), 2);
        assert!(!control.on_frame_fate(KEY, version, Fate::Acked));
        control.repeat_by(millis(10_000));
        assert!(!control.has_pending());
        assert_eq!(control.next_repetition(), None);
    }

    #[test]
    fn a_peer_blocked_at_the_newest_limit_gets_nothing() {
        let mut control = with_limit_sent();
        control.on_blocked(KEY, report(millis(500), 2000, Some(9)));
        assert!(!control.has_pending());
        assert_eq!(control.next_repetition(), None);
    }

    #[test]
    fn other_limits_in_flight_go_along() {
        let mut control = with_limit_sent();
        let stream = ControlKey::MaxStreamData(StreamId::from_wire(0));
        control.set(stream, ControlValue::Limit(2000));
        send(&mut control, millis(1), 1);
        control.on_blocked(stream, report(millis(100), 1000, None));
        assert_eq!(send(&mut control, millis(100), 2).len(), 2);
    }

    #[test]
    fn probe_timeouts_repeat_the_newest_limits() {
        let mut control = with_limit_sent();
        for nth in 0..20 {
            let key = ControlKey::MaxStreamData(StreamId::from_wire(4 * nth));
            control.set(key, ControlValue::Limit(2000));
        }
        send(&mut control, millis(1), 1);
        control.repeat_limits();
        let versions = send(&mut control, millis(300), 2);
        assert_eq!(versions.len(), MAX_REPEATED_LIMITS);
        assert!(versions.iter().all(|version| *version > 20 - 8));
    }
}
