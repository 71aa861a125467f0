//! Memory for the payloads of datagrams that wait: few blocks that are used again, instead of an allocation for each
//! datagram.

use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};

/// Blocks of `BLOCK` bytes at least. One can be used again once no payload in it is left.
#[derive(Debug, Default)]
pub(super) struct PayloadArena<const BLOCK: usize> {
    /// What is left of the block in use; it has no content. There is none at first.
    current: Option<BytesMut>,
    /// Blocks that were used up, the oldest first.
    used: VecDeque<BytesMut>,
}

impl<const BLOCK: usize> PayloadArena<BLOCK> {
    /// Copies a payload that is given in parts. Of the blocks that are used up at most `limit` bytes are kept for
    /// later.
    pub(super) fn store(&mut self, parts: &[&[u8]], limit: usize) -> Bytes {
        let len: usize = parts.iter().map(|part| part.len()).sum();
        let mut block = match self.current.take() {
            Some(block) if block.capacity() >= len => block,
            full => self.begin_block(full, len, limit),
        };
        for part in parts {
            block.extend_from_slice(part);
        }
        let payload = block.split().freeze();
        self.current = Some(block);
        payload
    }

    /// A block with room for `len` bytes, which `full` does not have: the same or the oldest one if it is free, else a
    /// new one.
    fn begin_block(&mut self, full: Option<BytesMut>, len: usize, limit: usize) -> BytesMut {
        let is_free = |block: &mut BytesMut| block.try_reclaim(len);
        if let Some(mut full) = full {
            if is_free(&mut full) {
                return full;
            }
            self.used.push_back(full);
        }
        if self.used.front_mut().is_some_and(is_free)
            && let Some(oldest) = self.used.pop_front()
        {
            return oldest;
        }
        if self.used.len() > limit / BLOCK {
            self.used.pop_front();
        }
        BytesMut::with_capacity(len.max(BLOCK))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: usize = 16 << 10;
    const LIMIT: usize = 1 << 20;

    #[test]
    fn payloads_stay_as_they_are() {
        let mut arena = PayloadArena::<BLOCK>::default();
        let mut kept = VecDeque::new();
        for nth in 0..5_000_usize {
            let (head, tail) = ([nth as u8; 3], vec![(nth >> 8) as u8; nth * 7 % 1_500]);
            kept.push_back((nth, arena.store(&[&head, &tail], LIMIT)));
            if kept.len() > nth % 400 {
                let (nth, payload) = kept.pop_front().unwrap();
                assert_eq!(payload[..3], [nth as u8; 3]);
                assert_eq!(payload.len(), 3 + nth * 7 % 1_500);
                assert!(payload[3..].iter().all(|byte| *byte == (nth >> 8) as u8));
            }
        }
    }

    #[test]
    fn memory_is_used_again() {
        let mut arena = PayloadArena::<BLOCK>::default();
        let mut waiting = VecDeque::new();
        let mut places = std::collections::BTreeSet::new();
        for _ in 0..10_000 {
            let payload = arena.store(&[&[7; 1_200]], LIMIT);
            places.insert(payload.as_ptr() as usize);
            waiting.push_back(payload);
            if waiting.len() > 100 {
                waiting.pop_front();
            }
        }
        // Room for 100 payloads, and some blocks that are not yet free.
        assert!(places.len() < 200, "{}", places.len());
    }

    #[test]
    fn a_large_payload_gets_a_block_of_its_own() {
        let mut arena = PayloadArena::<BLOCK>::default();
        let small = arena.store(&[b"small"], LIMIT);
        let content = vec![1; 3 * BLOCK];
        let large = arena.store(&[&content], LIMIT);
        assert_eq!(small, b"small"[..]);
        assert_eq!(large, content);
    }
}
