//! Fates of datagrams (RFC 9221, section 5.2) that the application has not read yet.

use std::collections::VecDeque;

use swiftwater_quic::DatagramFate;

/// Most fates that wait: 96 kB of an application that sends datagrams with keys and never reads their
/// fates.
const MAX_WAITING: usize = 4096;

/// A bounded queue of fates by key; a full one drops the oldest.
#[derive(Debug, Default)]
pub(crate) struct DatagramFates {
    waiting: VecDeque<(u64, DatagramFate)>,
}

impl DatagramFates {
    pub(crate) fn push(&mut self, key: u64, fate: DatagramFate) {
        if self.waiting.len() >= MAX_WAITING {
            self.waiting.pop_front();
        }
        self.waiting.push_back((key, fate));
    }

    pub(crate) fn pop(&mut self) -> Option<(u64, DatagramFate)> {
        self.waiting.pop_front()
    }
}
