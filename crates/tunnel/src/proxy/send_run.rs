//! Datagrams for a target, or forwarded ones for a client, that leave in one system call: those of equal size, the last one perhaps shorter.

use std::cell::RefCell;

use crate::MAX_UDP_PAYLOAD;

thread_local! {
    static RUN: RefCell<SendRun> = RefCell::new(SendRun::default());
}

/// Datagrams one after the other, in memory of the thread, which all its tunnels use in turn.
#[derive(Debug, Default)]
pub(super) struct SendRun {
    content: Vec<u8>,
    /// Bytes of each datagram but the last.
    size: usize,
    count: usize,
    /// The last one is shorter: none can follow.
    is_complete: bool,
}

impl SendRun {
    /// Lends the run of this thread, without content, to `user`, which must not ask for it again.
    pub(super) fn lend<R>(user: impl FnOnce(&mut Self) -> R) -> R {
        RUN.with_borrow_mut(|run| {
            run.clear();
            user(run)
        })
    }

    /// Adds a datagram; false if it can't follow those that are there, of which there may be `max_count`.
    pub(super) fn push(&mut self, payload: &[u8], max_count: usize) -> bool {
        self.push_parts(&[payload], max_count).is_some()
    }

    /// The same for a datagram in parts; returns it, in one piece.
    pub(super) fn push_parts(&mut self, parts: &[&[u8]], max_count: usize) -> Option<&mut [u8]> {
        let len = parts.iter().map(|part| part.len()).sum();
        if !self.takes(len, max_count) {
            return None;
        }
        if self.count == 0 {
            self.size = len;
        }
        let start = self.content.len();
        for part in parts {
            self.content.extend_from_slice(part);
        }
        self.count += 1;
        self.is_complete = len < self.size;
        Some(&mut self.content[start..])
    }

    /// Whether a datagram of `len` bytes can follow those that are there, of which there may be `max_count`.
    pub(super) fn takes(&self, len: usize, max_count: usize) -> bool {
        self.count == 0
            || (!self.is_complete
                && (1..=self.size).contains(&len)
                && self.count < max_count
                && self.content.len() + len <= MAX_UDP_PAYLOAD)
    }

    pub(super) fn clear(&mut self) {
        self.content.clear();
        (self.count, self.is_complete) = (0, false);
    }

    /// Datagrams.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// All of them together.
    pub(super) fn content(&self) -> &[u8] {
        &self.content
    }

    /// Bytes of each but the last.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// Each by itself.
    pub(super) fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let empty = (self.count == 1 && self.content.is_empty()).then_some(&self.content[..]);
        empty
            .into_iter()
            .chain(self.content.chunks(self.size.max(1)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Puts payloads of these sizes into runs of at most `max_count`; the sizes of each run.
    fn runs(sizes: &[usize], max_count: usize) -> Vec<Vec<usize>> {
        let mut run = SendRun::default();
        let mut runs = Vec::new();
        let taken = |run: &SendRun| run.datagrams().map(<[u8]>::len).collect::<Vec<_>>();
        for size in sizes {
            let payload = vec![0; *size];
            if !run.push(&payload, max_count) {
                runs.push(taken(&run));
                run.clear();
                assert!(run.push(&payload, max_count));
            }
        }
        runs.push(taken(&run));
        runs
    }

    #[test]
    fn equal_sizes_and_a_shorter_last_one_are_one_run() {
        assert_eq!(runs(&[30, 30, 30, 20], 8), [[30, 30, 30, 20]]);
        assert_eq!(runs(&[30, 20, 20], 8), [vec![30, 20], vec![20]]);
        assert_eq!(runs(&[20, 30], 8), [[20], [30]]);
        assert_eq!(runs(&[20; 5], 2), [vec![20; 2], vec![20; 2], vec![20]]);
        assert_eq!(runs(&[40_000, 40_000], 8), [[40_000], [40_000]]);
    }

    #[test]
    fn empty_datagrams_are_runs_of_their_own() {
        assert_eq!(runs(&[5, 0, 0, 5], 8), [[5], [0], [0], [5]]);
        assert_eq!(runs(&[0], 1), [[0]]);
    }
}
