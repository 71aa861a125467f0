//! The connections of a worker, and which of them want what.

use std::collections::VecDeque;
use std::sync::Arc;

use swiftwater_quic::ConnectionHandle;

use crate::shared::Shared;
use crate::timers::TimerQueue;

/// The connections, and which of them want what.
#[derive(Default)]
pub(crate) struct Table {
    pub(crate) entries: Vec<Option<Entry>>,
    pub(crate) timers: TimerQueue,
    /// May have something to send.
    pub(crate) ready: VecDeque<usize>,
    /// Had input, or sent something, since they were last settled.
    pub(crate) unsettled: Vec<usize>,
}

pub(crate) struct Entry {
    pub(crate) handle: ConnectionHandle,
    pub(crate) shared: Arc<Shared>,
    /// In `ready`.
    pub(crate) ready: bool,
    /// In `unsettled`.
    pub(crate) unsettled: bool,
    /// An incoming connection whose handshake is in progress.
    pub(crate) handshaking: bool,
}

impl Table {
    pub(crate) fn insert(
        &mut self,
        handle: ConnectionHandle,
        shared: Arc<Shared>,
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
        });
        self.mark(index);
    }

    pub(crate) fn get(&self, index: usize) -> Option<&Entry> {
        self.entries.get(index)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, index: usize) -> Option<&mut Entry> {
        self.entries.get_mut(index)?.as_mut()
    }

    /// Connection `index` had input: it may want to send and have events.
    pub(crate) fn mark(&mut self, index: usize) {
        let Some(Some(entry)) = self.entries.get_mut(index) else {
            return;
        };
        if !std::mem::replace(&mut entry.ready, true) {
            self.ready.push_back(index);
        }
        self.unsettle(index);
    }

    /// Connection `index` had input, or sent something: it may have events, and another timeout.
    pub(crate) fn unsettle(&mut self, index: usize) {
        if let Some(Some(entry)) = self.entries.get_mut(index)
            && !std::mem::replace(&mut entry.unsettled, true)
        {
            self.unsettled.push(index);
        }
    }
}
