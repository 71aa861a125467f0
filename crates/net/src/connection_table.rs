//! The connections of a worker, and which of them have something to do.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_quic::ConnectionHandle;
use swiftwater_units::Instant;

use crate::connection_shared::ConnectionShared;
use crate::timers::TimerQueue;

/// Shortest pause before a deadline that is still in the past after it was acted on is looked at again.
const MIN_OVERDUE_PAUSE: Duration = Duration::from_millis(1);
/// The pause doubles up to this many times, to 32 ms.
const MAX_OVERDUE_DOUBLINGS: u8 = 5;

/// All connections of a worker by [`ConnectionHandle::index`].
#[derive(Default)]
pub(crate) struct ConnectionTable {
    entries: Vec<Option<Entry>>,
    timers: TimerQueue,
    /// May have something to send.
    ready: VecDeque<usize>,
    /// Had input, or sent something, since they were last settled.
    pub(crate) unsettled: Vec<usize>,
}

pub(crate) struct Entry {
    pub(crate) handle: ConnectionHandle,
    pub(crate) shared: Arc<ConnectionShared>,
    /// In `ready`.
    ready: bool,
    /// In `unsettled`.
    pub(crate) unsettled: bool,
    /// An incoming connection whose handshake is in progress.
    pub(crate) handshaking: bool,
    /// How often in a row its deadline was still in the past after it was acted on.
    overdue: u8,
}

impl ConnectionTable {
    pub(crate) fn insert(
        &mut self,
        handle: ConnectionHandle,
        shared: Arc<ConnectionShared>,
        handshaking: bool,
    ) {
        let index = handle.index();
        if self.entries.len() <= index {
            self.entries.resize_with(index + 1, || None);
        }
        self.entries[index] = Some(Entry {
            handle,
            shared,
            ready: false,
            unsettled: false,
            handshaking,
            overdue: 0,
        });
        self.mark(index);
    }

    /// Removes connection `index` and its deadline.
    pub(crate) fn remove(&mut self, index: usize) {
        if let Some(entry) = self.entries.get_mut(index) {
            *entry = None;
        }
        self.timers.set(index, None);
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut Entry> {
        self.entries.get_mut(index)?.as_mut()
    }

    /// The connection under this handle, unless it is gone.
    pub(crate) fn find(&self, handle: ConnectionHandle) -> Option<&Entry> {
        let entry = self.get(handle.index());
        entry.filter(|entry| entry.handle == handle)
    }

    /// Indices that connections have, or had.
    pub(crate) fn indices(&self) -> std::ops::Range<usize> {
        0..self.entries.len()
    }

    /// Takes all connections out.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = Entry> + '_ {
        self.entries.drain(..).flatten()
    }

    /// Connection `index` had input: it may have something to send, and events.
    pub(crate) fn mark(&mut self, index: usize) {
        self.make_ready(index);
        self.unsettle(index);
    }

    /// Connection `index` may have something to send.
    pub(crate) fn make_ready(&mut self, index: usize) {
        if let Some(Some(entry)) = self.entries.get_mut(index)
            && !std::mem::replace(&mut entry.ready, true)
        {
            self.ready.push_back(index);
        }
    }

    /// The next connection that may have something to send. It is not ready any more.
    pub(crate) fn pop_ready(&mut self) -> Option<usize> {
        let index = self.ready.pop_front()?;
        if let Some(entry) = self.get_mut(index) {
            entry.ready = false;
        }
        Some(index)
    }

    /// True if a connection may have something to send.
    pub(crate) fn has_ready(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Connection `index` had input, or sent something: it may have events, and another timeout.
    pub(crate) fn unsettle(&mut self, index: usize) {
        if let Some(Some(entry)) = self.entries.get_mut(index)
            && !std::mem::replace(&mut entry.unsettled, true)
        {
            self.unsettled.push(index);
        }
    }

    /// Sets or clears the deadline of connection `index`, as it is after everything due by `now` was acted on. One
    /// that is in the past all the same comes again at once, then after pauses that double: it may take something
    /// that can't happen now, such as sending through a blocked socket, and must not keep the worker busy.
    pub(crate) fn set_deadline(&mut self, index: usize, now: Instant, deadline: Option<Instant>) {
        let Some(Some(entry)) = self.entries.get_mut(index) else {
            return;
        };
        let deadline = match deadline {
            Some(at) if at <= now => {
                let doublings = entry.overdue.checked_sub(1);
                entry.overdue = (entry.overdue + 1).min(MAX_OVERDUE_DOUBLINGS + 1);
                Some(doublings.map_or(at, |doublings| now + MIN_OVERDUE_PAUSE * (1 << doublings)))
            }
            later => {
                entry.overdue = 0;
                later
            }
        };
        self.timers.set(index, deadline);
    }

    /// A connection whose deadline is `now` or has passed; its deadline is cleared.
    pub(crate) fn pop_expired(&mut self, now: Instant) -> Option<usize> {
        self.timers.pop_expired(now)
    }

    /// When to look for expired deadlines again.
    pub(crate) fn next_deadline(&self) -> Option<Instant> {
        self.timers.next()
    }
}
