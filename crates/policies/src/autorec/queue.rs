//! The reinjection queue (AutoRec, section V-B): lost data that were retransmitted and are not
//! acknowledged, by the age of their newest copy.
//!
//! Each event costs O(log n), where the paper walks its queue. A datum whose copies are used up
//! leaves the line but stays known until it is recovered, so that the next retransmission doesn't
//! renew its budget.

use std::collections::{BTreeMap, BTreeSet};

use swiftwater_quic::policy::Datum;
use swiftwater_units::{Instant, StreamId};

type Key = (StreamId, u64);

/// Where a datum stands.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// In line.
    Waiting(Place),
    /// A copy was asked for and hasn't left.
    Requested,
    /// It gets no copy unless it is retransmitted again.
    Spent,
}

/// Age first; among equals, the order of arrival.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Place {
    last_sent_at: Instant,
    ticket: u64,
    key: Key,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    len: u32,
    replicas: u32,
    state: State,
}

/// The queue of a connection.
#[derive(Clone, Debug, Default)]
pub struct ReinjectionQueue {
    data: BTreeMap<Key, Entry>,
    line: BTreeSet<Place>,
    requested: usize,
    tickets: u64,
}

impl ReinjectionQueue {
    /// An empty queue.
    pub fn new() -> Self {
        Self::default()
    }

    /// Data in line.
    pub fn len(&self) -> usize {
        self.line.len()
    }

    /// True if none is in line.
    pub fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Data of which a copy was asked for and hasn't left.
    pub fn requested(&self) -> usize {
        self.requested
    }

    /// Data that are known: in line, with a copy on its way out, or with none left.
    pub fn known(&self) -> usize {
        self.data.len()
    }

    /// Replicas of `datum` that left, if it is known.
    pub fn replicas(&self, datum: &Datum) -> Option<u32> {
        self.data.get(&key(datum)).map(|entry| entry.replicas)
    }

    /// The datum that has been silent longest, and when its newest copy left.
    pub fn head(&self) -> Option<(Datum, Instant)> {
        let place = self.line.first()?;
        Some((self.datum(place.key)?, place.last_sent_at))
    }

    /// Takes the head out of the line: a copy of it is asked for. It comes back when that has left,
    /// see [`ReinjectionQueue::on_replica_sent`].
    pub fn take_head(&mut self) -> Option<Datum> {
        let place = self.line.pop_first()?;
        if let Some(entry) = self.data.get_mut(&place.key) {
            entry.state = State::Requested;
            self.requested += 1;
        }
        self.datum(place.key)
    }

    /// `datum` was retransmitted: to the tail, if fewer than `level` replicas of it left.
    pub fn on_retransmitted(&mut self, datum: &Datum, now: Instant, level: u32) {
        let entry = self.data.entry(key(datum)).or_insert(Entry {
            len: datum.len,
            replicas: 0,
            state: State::Spent,
        });
        // The copy asked for is still to come.
        if entry.state != State::Requested {
            self.move_to_tail(key(datum), now, level);
        }
    }

    /// A replica of `datum` left: to the tail, if fewer than `level` did by now. False if the datum
    /// isn't known.
    pub fn on_replica_sent(&mut self, datum: &Datum, now: Instant, level: u32) -> bool {
        let Some(entry) = self.data.get_mut(&key(datum)) else {
            return false;
        };
        entry.replicas = entry.replicas.saturating_add(1);
        self.move_to_tail(key(datum), now, level);
        true
    }

    /// The copy of `datum` that was asked for will not leave: if it is wanted `again`, to the tail, as
    /// if the newest copy had left now.
    pub fn on_rejected(&mut self, datum: &Datum, now: Instant, level: u32, again: bool) {
        let key = key(datum);
        let Some(entry) = self.data.get_mut(&key) else {
            return;
        };
        if entry.state != State::Requested {
            return;
        }
        if again {
            self.move_to_tail(key, now, level);
        } else {
            entry.state = State::Spent;
            self.requested -= 1;
        }
    }

    fn move_to_tail(&mut self, key: Key, now: Instant, level: u32) {
        let Some(entry) = self.data.get_mut(&key) else {
            return;
        };
        match entry.state {
            State::Waiting(place) => {
                self.line.remove(&place);
            }
            State::Requested => self.requested -= 1,
            State::Spent => {}
        }
        if entry.replicas >= level {
            entry.state = State::Spent;
            return;
        }
        let place = Place {
            last_sent_at: now,
            ticket: self.tickets,
            key,
        };
        self.tickets += 1;
        entry.state = State::Waiting(place);
        self.line.insert(place);
    }

    /// `datum` became two: its first `at` bytes and the rest, both with its history.
    pub fn split(&mut self, datum: &Datum, at: u32) {
        let first = key(datum);
        let Some(entry) = self.data.get_mut(&first) else {
            return;
        };
        if at == 0 || at >= entry.len {
            return;
        }
        let mut rest = *entry;
        rest.len -= at;
        entry.len = at;
        let rest_key = (datum.stream, datum.offset + u64::from(at));
        match &mut rest.state {
            State::Waiting(place) => {
                place.key = rest_key;
                self.line.insert(*place);
            }
            State::Requested => self.requested += 1,
            State::Spent => {}
        }
        self.data.insert(rest_key, rest);
    }

    /// `datum` is recovered or abandoned. True if it was known.
    pub fn remove(&mut self, datum: &Datum) -> bool {
        let Some(entry) = self.data.remove(&key(datum)) else {
            return false;
        };
        match entry.state {
            State::Waiting(place) => {
                self.line.remove(&place);
            }
            State::Requested => self.requested -= 1,
            State::Spent => {}
        }
        true
    }

    /// The level changed: data of which `level` replicas or more left get out of the line.
    pub fn set_level(&mut self, level: u32) {
        let data = &mut self.data;
        self.line.retain(|place| {
            let Some(entry) = data.get_mut(&place.key) else {
                return false;
            };
            let stays = entry.replicas < level;
            if !stays {
                entry.state = State::Spent;
            }
            stays
        });
    }

    fn datum(&self, key: Key) -> Option<Datum> {
        let (stream, offset) = key;
        self.data.get(&key).map(|entry| Datum {
            stream,
            offset,
            len: entry.len,
        })
    }
}

fn key(datum: &Datum) -> Key {
    (datum.stream, datum.offset)
}
