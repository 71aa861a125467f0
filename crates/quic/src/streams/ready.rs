//! The order in which streams get their turns.
//!
//! Streams of the highest priority go first, those of equal priority in turns. A turn is a quantum
//! of bytes, about a packet, and what is left of it carries over to the next packet; so no stream
//! starves among equals, however the packets fall. Every operation is O(1) but for finding the
//! level of a priority, which is a binary search among the priorities in use.

/// Bytes of one turn. A frame isn't cut for it; a turn ends with the frame that uses it up.
const QUANTUM: u64 = 1024;

/// No stream.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Node {
    prev: u32,
    next: u32,
    priority: i32,
    linked: bool,
}

const UNLINKED: Node = Node {
    prev: NONE,
    next: NONE,
    priority: 0,
    linked: false,
};

/// The streams of one priority, a doubly linked list.
#[derive(Debug)]
struct Level {
    priority: i32,
    head: u32,
    tail: u32,
    /// Bytes left of the first stream's turn.
    turn: u64,
}

/// Streams that have something to send. They are named by small dense keys.
#[derive(Debug, Default)]
pub(super) struct Ready {
    nodes: Vec<Node>,
    /// Levels that have streams, highest priority last.
    levels: Vec<Level>,
}

impl Ready {
    /// True if no stream is ready.
    pub(super) fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// Whose turn it is, and its priority.
    pub(super) fn first(&self) -> Option<(u32, i32)> {
        self.levels.last().map(|level| (level.head, level.priority))
    }

    /// Puts `key` behind the others of its priority, unless it is there already.
    pub(super) fn insert(&mut self, key: u32, priority: i32) {
        if self.nodes.len() <= key as usize {
            self.nodes.resize(key as usize + 1, UNLINKED);
        }
        let node = self.nodes[key as usize];
        if node.linked && node.priority == priority {
            return;
        }
        self.remove(key);
        let at = match self.level(priority) {
            Ok(at) => at,
            Err(at) => {
                let level = Level {
                    priority,
                    head: NONE,
                    tail: NONE,
                    turn: QUANTUM,
                };
                self.levels.insert(at, level);
                at
            }
        };
        self.link_last(at, key);
    }

    /// Takes `key` out, if it is in.
    pub(super) fn remove(&mut self, key: u32) {
        let Some(&node) = self.nodes.get(key as usize).filter(|node| node.linked) else {
            return;
        };
        let Ok(at) = self.level(node.priority) else {
            return;
        };
        self.unlink(at, key);
        if self.levels[at].head == NONE {
            self.levels.remove(at);
        }
    }

    /// The stream whose turn it is, `key`, has sent `bytes`; the next one follows if that used up
    /// its turn.
    pub(super) fn spend(&mut self, key: u32, bytes: u64) {
        let Some(at) = self
            .levels
            .len()
            .checked_sub(1)
            .filter(|&at| self.levels[at].head == key)
        else {
            return;
        };
        // FIN-only frames count as a byte, so that no frame is free.
        let bytes = bytes.max(1);
        if self.levels[at].turn > bytes {
            self.levels[at].turn -= bytes;
            return;
        }
        self.unlink(at, key);
        self.link_last(at, key);
    }

    fn level(&self, priority: i32) -> Result<usize, usize> {
        self.levels
            .binary_search_by_key(&priority, |level| level.priority)
    }

    fn link_last(&mut self, at: usize, key: u32) {
        let level = &mut self.levels[at];
        let last = level.tail;
        level.tail = key;
        if last == NONE {
            level.head = key;
        } else {
            self.nodes[last as usize].next = key;
        }
        self.nodes[key as usize] = Node {
            prev: last,
            next: NONE,
            priority: level.priority,
            linked: true,
        };
    }

    fn unlink(&mut self, at: usize, key: u32) {
        let node = self.nodes[key as usize];
        let level = &mut self.levels[at];
        if node.prev == NONE {
            level.head = node.next;
            level.turn = QUANTUM;
        } else {
            self.nodes[node.prev as usize].next = node.next;
        }
        if node.next == NONE {
            level.tail = node.prev;
        } else {
            self.nodes[node.next as usize].prev = node.prev;
        }
        self.nodes[key as usize] = UNLINKED;
    }
}
