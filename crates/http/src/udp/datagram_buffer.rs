//! Received HTTP datagrams and fates of sent ones that a request's application has not read yet.

use std::collections::VecDeque;
use std::task::Waker;

use bytes::Bytes;
use swiftwater_net::quic::DatagramFate;

/// Memory of a datagram in addition to its bytes.
const DATAGRAM_OVERHEAD: usize = 64;

/// Datagrams that stay where they were received, in memory that they share with others; further ones that wait have
/// memory of their own. So what is not read holds back little more than it counts for.
const MAX_SHARED: usize = 64;

/// Most fates of datagrams that wait to be read, the newest: 96 kB.
const MAX_WAITING_FATES: usize = 4096;

/// What of one request waits to be read, and the tasks that wait for it.
#[derive(Debug, Default)]
pub(super) struct DatagramBuffer {
    datagrams: VecDeque<Bytes>,
    bytes: usize,
    dropped: u64,
    readers: Vec<Waker>,
    fates: VecDeque<(u64, DatagramFate)>,
    fate_readers: Vec<Waker>,
}

impl DatagramBuffer {
    /// Adds a datagram and wakes the readers; beyond `max_bytes`, each datagram counted as its payload and
    /// 64 bytes, the oldest are dropped.
    pub(super) fn push(&mut self, payload: Bytes, max_bytes: usize, wakers: &mut Vec<Waker>) {
        self.bytes += payload.len() + DATAGRAM_OVERHEAD;
        self.datagrams
            .push_back(if self.datagrams.len() < MAX_SHARED {
                payload
            } else {
                Bytes::copy_from_slice(&payload)
            });
        while self.bytes > max_bytes && self.pop_shared().is_some() {
            self.dropped += 1;
        }
        wakers.append(&mut self.readers);
    }

    /// The oldest datagram, in memory of its own.
    pub(super) fn pop(&mut self) -> Option<Bytes> {
        let shared = self.pop_shared()?;
        Some(Bytes::copy_from_slice(&shared))
    }

    fn pop_shared(&mut self) -> Option<Bytes> {
        let payload = self.datagrams.pop_front()?;
        self.bytes -= payload.len() + DATAGRAM_OVERHEAD;
        Some(payload)
    }

    /// Adds all datagrams to `datagrams`, the oldest first, where they are; false if there are none.
    pub(super) fn pop_all(&mut self, datagrams: &mut Vec<Bytes>) -> bool {
        let any = !self.datagrams.is_empty();
        datagrams.extend(self.datagrams.drain(..));
        self.bytes = 0;
        any
    }

    /// Datagrams dropped to make room for newer ones.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Adds the fate of a datagram and wakes the readers; the oldest is dropped if there are too many.
    pub(super) fn push_fate(&mut self, key: u64, fate: DatagramFate, wakers: &mut Vec<Waker>) {
        if self.fates.len() >= MAX_WAITING_FATES {
            self.fates.pop_front();
        }
        self.fates.push_back((key, fate));
        wakers.append(&mut self.fate_readers);
    }

    /// The oldest fate of a datagram.
    pub(super) fn pop_fate(&mut self) -> Option<(u64, DatagramFate)> {
        self.fates.pop_front()
    }

    /// Wakes a task when the next datagram is received.
    pub(super) fn wait(&mut self, waker: &Waker) {
        store_waker(&mut self.readers, waker);
    }

    /// Wakes a task when the next fate is known.
    pub(super) fn wait_for_fate(&mut self, waker: &Waker) {
        store_waker(&mut self.fate_readers, waker);
    }

    /// No more will be received: drops what waits and wakes all tasks.
    pub(super) fn finish(&mut self, wakers: &mut Vec<Waker>) {
        self.datagrams.clear();
        self.bytes = 0;
        self.fates.clear();
        wakers.append(&mut self.readers);
        wakers.append(&mut self.fate_readers);
    }
}

/// Stores the waker of a waiting task.
pub(super) fn store_waker(waiting: &mut Vec<Waker>, waker: &Waker) {
    if !waiting.iter().any(|each| each.will_wake(waker)) {
        waiting.push(waker.clone());
    }
}
