//! Streams that have something to send, by priority.
//!
//! Each of the sixteen ranks (`Priority::rank`) in use has a queue of its own. Incremental streams
//! take turns in theirs: a turn is a quantum of bytes, about a packet, and what is left of it carries
//! over to the next packet, so no stream starves among equals, however the packets fall. Streams
//! that aren't incremental stand in the order of their identifiers. Operations cost O(1) among
//! incremental streams and O(log n) among the others. Queues are kept when they are empty, until all
//! are and the connection is idle, so that a stream that becomes ready for every packet allocates nothing.

use std::collections::BTreeSet;

use swiftwater_units::StreamId;

use crate::idle_memory::IdleMemory;

/// Bytes of one turn. A frame isn't cut for it; a turn ends with the frame that uses it up.
pub(super) const QUANTUM: u64 = 1024;

/// No stream.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct QueueNode {
    id: StreamId,
    prev: u32,
    next: u32,
    /// `None` if the stream is in no queue.
    rank: Option<u8>,
}

/// The streams of one rank.
#[derive(Debug)]
enum RankQueue {
    /// Incremental: a doubly linked list.
    Turns {
        head: u32,
        tail: u32,
        /// Bytes left of the first stream's turn.
        turn: u64,
    },
    /// One after another.
    Sequence(BTreeSet<(StreamId, u32)>),
}

impl RankQueue {
    fn new(rank: u8) -> Self {
        if rank % 2 == 1 {
            Self::Turns {
                head: NONE,
                tail: NONE,
                turn: QUANTUM,
            }
        } else {
            Self::Sequence(BTreeSet::new())
        }
    }

    fn first(&self) -> Option<u32> {
        match self {
            Self::Turns { head, .. } => (*head != NONE).then_some(*head),
            Self::Sequence(set) => set.first().map(|(_, key)| *key),
        }
    }

    /// Puts `key`, which is in no queue, last or in the order of identifiers.
    fn insert(&mut self, nodes: &mut [QueueNode], key: u32) {
        match self {
            Self::Sequence(set) => {
                set.insert((nodes[key as usize].id, key));
            }
            Self::Turns { head, tail, .. } => {
                let last = std::mem::replace(tail, key);
                if last == NONE {
                    *head = key;
                } else {
                    nodes[last as usize].next = key;
                }
                let node = &mut nodes[key as usize];
                (node.prev, node.next) = (last, NONE);
            }
        }
    }

    /// Takes out `key`, which is in this queue.
    fn remove(&mut self, nodes: &mut [QueueNode], key: u32) {
        let node = nodes[key as usize];
        match self {
            Self::Sequence(set) => {
                set.remove(&(node.id, key));
            }
            Self::Turns { head, tail, turn } => {
                if node.prev == NONE {
                    *head = node.next;
                    *turn = QUANTUM;
                } else {
                    nodes[node.prev as usize].next = node.next;
                }
                if node.next == NONE {
                    *tail = node.prev;
                } else {
                    nodes[node.next as usize].prev = node.prev;
                }
            }
        }
    }
}

/// Streams that have something to send. They are named by small dense keys.
#[derive(Debug, Default)]
pub(super) struct SendQueues {
    nodes: Vec<QueueNode>,
    /// With their ranks, in the order in which they were first needed: mostly there is one.
    queues: Vec<(u8, RankQueue)>,
    /// Bit `rank` is set if there are streams of that rank.
    ranks: u16,
}

impl SendQueues {
    /// True if no stream is ready.
    pub(super) fn is_empty(&self) -> bool {
        self.ranks == 0
    }

    /// The ranks that have streams, a bit each, the first rank being the lowest bit.
    pub(super) fn ranks(&self) -> u16 {
        self.ranks
    }

    /// The queue of `rank`, if there ever was one, and the streams.
    fn queue_mut(&mut self, rank: u8) -> Option<(&mut RankQueue, &mut [QueueNode])> {
        let mut queues = self.queues.iter_mut();
        let (_, queue) = queues.find(|(of, _)| *of == rank)?;
        Some((queue, &mut self.nodes))
    }

    /// The stream of `rank` that sends next.
    pub(super) fn first_of(&self, rank: u8) -> Option<u32> {
        let mut queues = self.queues.iter();
        let (_, queue) = queues.find(|(of, _)| *of == rank)?;
        queue.first()
    }

    /// Puts stream `id` with `key` among those of `rank`, or takes it out, unless it is so already, as
    /// it is for most packets.
    pub(super) fn set(&mut self, key: u32, id: StreamId, rank: u8, wanted: bool) {
        let now = self.nodes.get(key as usize).and_then(|node| node.rank);
        if now == wanted.then_some(rank) {
            return;
        }
        if wanted {
            self.insert(key, id, rank);
        } else {
            self.remove(key);
        }
    }

    /// Puts stream `id` with `key` among those of `rank`, unless it is there already.
    pub(super) fn insert(&mut self, key: u32, id: StreamId, rank: u8) {
        if self.nodes.len() <= key as usize {
            let unlinked = QueueNode {
                id,
                prev: NONE,
                next: NONE,
                rank: None,
            };
            self.nodes.resize(key as usize + 1, unlinked);
        }
        if self.nodes[key as usize].rank == Some(rank) {
            return;
        }
        self.remove(key);
        let node = &mut self.nodes[key as usize];
        (node.id, node.rank) = (id, Some(rank));
        if self.queue_mut(rank).is_none() {
            self.queues.push((rank, RankQueue::new(rank)));
        }
        if let Some((queue, nodes)) = self.queue_mut(rank) {
            queue.insert(nodes, key);
        }
        self.ranks |= 1 << rank;
    }

    /// Takes `key` out, if it is in.
    pub(super) fn remove(&mut self, key: u32) {
        let Some(rank) = self.nodes.get(key as usize).and_then(|node| node.rank) else {
            return;
        };
        if let Some((queue, nodes)) = self.queue_mut(rank) {
            queue.remove(nodes, key);
            if queue.first().is_none() {
                self.ranks &= !(1 << rank);
            }
        }
        self.nodes[key as usize].rank = None;
    }

    /// `key`, the stream of its rank that sends next, has sent `bytes`; another one follows if that used
    /// up its turn.
    pub(super) fn spend(&mut self, key: u32, bytes: u64) {
        let Some(rank) = self.nodes.get(key as usize).and_then(|node| node.rank) else {
            return;
        };
        let Some((queue, nodes)) = self.queue_mut(rank) else {
            return;
        };
        if let RankQueue::Turns { head, tail, turn } = queue
            && *head == key
        {
            // FIN-only frames count as a byte, so that no frame is free.
            let bytes = bytes.max(1);
            if *turn > bytes {
                *turn -= bytes;
            } else if *tail == key {
                // It is alone, and follows itself.
                *turn = QUANTUM;
            } else {
                queue.remove(nodes, key);
                queue.insert(nodes, key);
            }
        }
    }
}

impl IdleMemory for SendQueues {
    fn release_idle_memory(&mut self) {
        if !self.is_empty() {
            return;
        }
        let Self {
            nodes,
            queues,
            ranks: _,
        } = self;
        *nodes = Vec::new();
        *queues = Vec::new();
    }
}
