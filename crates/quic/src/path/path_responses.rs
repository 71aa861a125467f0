//! Responses to the peer's path challenges that wait to be sent (RFC 9000, section 8.2.2).

use std::collections::VecDeque;

use crate::idle_memory::IdleMemory;
use crate::lazy_box::LazyBox;

/// Responses that wait on one path at most; the oldest is dropped for a newer one, since the peer repeats
/// its challenge.
const MAX_WAITING: usize = 4;

/// Data of challenges that are to be echoed on one path, oldest first; most of the time there are none.
#[derive(Debug, Default)]
pub(crate) struct PathResponses(LazyBox<VecDeque<[u8; 8]>>);

impl PathResponses {
    /// A challenge with this data is to be echoed.
    pub(crate) fn push(&mut self, data: [u8; 8]) {
        let waiting = self.0.need();
        if waiting.len() == MAX_WAITING {
            waiting.pop_front();
        }
        waiting.push_back(data);
    }

    /// The next response.
    pub(crate) fn first(&self) -> Option<[u8; 8]> {
        self.0.get()?.front().copied()
    }

    /// Takes the next response.
    pub(crate) fn pop(&mut self) -> Option<[u8; 8]> {
        self.0.get_mut()?.pop_front()
    }

    /// True if none waits.
    pub(crate) fn is_empty(&self) -> bool {
        self.first().is_none()
    }
}

impl IdleMemory for PathResponses {
    fn release_idle_memory(&mut self) {
        let Self(waiting) = self;
        if waiting.get().is_some_and(VecDeque::is_empty) {
            waiting.release();
        }
    }
}
