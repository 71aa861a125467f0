//! Reliable delivery of small values: one mechanism for every frame that says "this value holds
//! now" (MAX_DATA, NEW_CONNECTION_ID, RESET_STREAM, HANDSHAKE_DONE ...).
//!
//! A value is *pending* until it is written, *in flight* until its packet is acknowledged, pending
//! again when the packet is lost, and gone or quiet when it was acknowledged. A newer value for the
//! same key replaces the older one; fates of older versions are ignored.

use std::collections::{BTreeMap, VecDeque};

use swiftwater_units::{Dir, PathId, StreamId};
use swiftwater_wire::frame;
use swiftwater_wire::{ConnectionId, Frame, ResetToken};

use crate::frame_writer::{Carried, Fate, FrameWriter};
use crate::idle_memory::IdleMemory;

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
}

#[derive(Debug)]
struct Slot {
    value: ControlValue,
    version: u32,
    pending: bool,
    /// It was written at least once.
    sent: bool,
}

/// The values awaiting delivery.
#[derive(Debug, Default)]
pub(crate) struct Control {
    slots: BTreeMap<ControlKey, Slot>,
    /// Keys of pending values, oldest first.
    queue: VecDeque<ControlKey>,
    next_version: u32,
}

impl IdleMemory for Control {
    fn release_idle_memory(&mut self) {
        let Self {
            slots,
            queue,
            next_version: _,
        } = self;
        if slots.is_empty() {
            // An empty map may keep a node.
            *slots = BTreeMap::new();
        }
        queue.shrink_to_fit();
    }
}

impl Control {
    /// Sets the value to deliver for `key`.
    pub(crate) fn set(&mut self, key: ControlKey, value: ControlValue) {
        self.next_version = self.next_version.wrapping_add(1);
        let version = self.next_version;
        let slot = Slot {
            value,
            version,
            pending: true,
            sent: false,
        };
        let queued = self.slots.insert(key, slot).is_some_and(|old| old.pending);
        if !queued {
            self.queue.push_back(key);
        }
    }

    /// Stops delivering `key`.
    pub(crate) fn cancel(&mut self, key: ControlKey) {
        if self.slots.remove(&key).is_some_and(|slot| slot.pending) {
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
        self.slots.get(&key).is_some_and(|slot| !slot.sent)
    }

    /// True if something waits to be written.
    pub(crate) fn has_pending(&self) -> bool {
        !self.queue.is_empty()
    }

    /// `RETIRE_CONNECTION_ID` frames that are not acknowledged yet.
    pub(crate) fn retirements(&self) -> usize {
        let from = ControlKey::RetireConnectionId(PathId::ZERO, 0);
        let to = ControlKey::RetireConnectionId(PathId::new(u32::MAX), u64::MAX);
        self.slots.range(from..=to).count()
    }

    /// Writes as many pending values as fit, oldest first.
    pub(crate) fn fill(&mut self, writer: &mut FrameWriter<'_, '_>) {
        while let Some(&key) = self.queue.front() {
            if let Some(slot) = self.slots.get_mut(&key)
                && slot.pending
            {
                let carried = Carried::Control {
                    key,
                    version: slot.version,
                };
                if !writer.carry(&frame_of(key, &slot.value), carried) {
                    return;
                }
                slot.pending = false;
                slot.sent = true;
            }
            self.queue.pop_front();
        }
    }

    /// The packet that carried `version` of `key` was acknowledged or lost; true if the latest value
    /// was delivered with it.
    pub(crate) fn on_frame_fate(&mut self, key: ControlKey, version: u32, fate: Fate) -> bool {
        let Some(slot) = self
            .slots
            .get_mut(&key)
            .filter(|slot| slot.version == version)
        else {
            return false;
        };
        match fate {
            Fate::Acked => {
                // A pending slot of this version was queued again by a loss that proved spurious.
                self.cancel(key);
                return true;
            }
            Fate::Lost | Fate::Probed if !slot.pending => {
                slot.pending = true;
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
        (key, value) => unreachable!("{value:?} is no value for {key:?}"),
    }
}

/// Path 0 uses the frames of RFC 9000.
fn multipath(path: PathId) -> Option<PathId> {
    (path != PathId::ZERO).then_some(path)
}
