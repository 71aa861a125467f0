//! The transfers of a pair, shared by both ends.

use std::collections::BTreeMap;

use swiftwater_quic::Connection;
use swiftwater_units::{Dir, Instant, Side, StreamId};

use super::Direction;
use crate::apps::{Sink, Source};
use crate::pattern::Pattern;

/// A transfer of a pair.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TransferId(usize);

/// Progress or result of a transfer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TransferReport {
    /// When it was started.
    pub start: Instant,
    /// When the end was read; the time of the report if it was not.
    pub finish: Instant,
    /// Bytes read.
    pub received: u64,
    /// True if everything was read and is correct.
    pub verified: bool,
    /// True if all bytes read are correct.
    pub intact: bool,
}

#[derive(Debug)]
struct Transfer {
    from: Side,
    bytes: u64,
    source: Source,
    sink: Sink,
    stream: Option<StreamId>,
    start: Instant,
    finish: Option<Instant>,
    failed: bool,
}

impl Transfer {
    fn is_verified(&self) -> bool {
        self.sink.is_finished() && self.sink.is_intact() && self.sink.received() == self.bytes
    }
}

/// All transfers.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    list: Vec<Transfer>,
    by_stream: BTreeMap<StreamId, usize>,
    /// Transfers without a stream, by direction; all earlier ones have one.
    next_to_open: [usize; 2],
    /// Transfers that are neither complete nor failed.
    unsettled: usize,
}

impl Transfers {
    pub(super) fn add(&mut self, direction: Direction, bytes: u64, now: Instant) -> TransferId {
        let id = self.list.len();
        let pattern = Pattern::new(id as u64);
        self.list.push(Transfer {
            from: direction.sender(),
            bytes,
            source: Source::new(pattern, Some(bytes)),
            sink: Sink::new(pattern),
            stream: None,
            start: now,
            finish: None,
            failed: false,
        });
        self.unsettled += 1;
        TransferId(id)
    }

    /// Opens streams for the transfers from `side` that have none, as far as permitted.
    pub(super) fn open(&mut self, side: Side, connection: &mut Connection) {
        let next = &mut self.next_to_open[side as usize];
        while let Some(transfer) = self.list.get_mut(*next) {
            if transfer.from == side {
                let Some(id) = connection.open(Dir::Uni) else {
                    return;
                };
                transfer.stream = Some(id);
                self.by_stream.insert(id, *next);
                // A blocked or failed stream is reported by an event.
                let _ = transfer.source.pump(connection, id);
            }
            *next += 1;
        }
    }

    pub(super) fn is_known(&self, id: StreamId) -> bool {
        self.by_stream.contains_key(&id)
    }

    /// True if a transfer to `side` isn't complete yet.
    pub(super) fn expects(&self, side: Side) -> bool {
        let mut transfers = self.list.iter();
        self.unsettled > 0 && transfers.any(|each| each.from != side && each.finish.is_none())
    }

    pub(super) fn write(&mut self, id: StreamId, connection: &mut Connection) {
        if let Some(&at) = self.by_stream.get(&id) {
            let _ = self.list[at].source.pump(connection, id);
        }
    }

    pub(super) fn read(&mut self, now: Instant, id: StreamId, connection: &mut Connection) {
        let Some(&at) = self.by_stream.get(&id) else {
            return;
        };
        let transfer = &mut self.list[at];
        if transfer.finish.is_some() || transfer.failed {
            return;
        }
        transfer.failed = transfer.sink.drain(connection, id).is_err();
        if transfer.sink.is_finished() {
            transfer.finish = Some(now);
        }
        if transfer.finish.is_some() || transfer.failed {
            self.unsettled -= 1;
        }
    }

    pub(super) fn is_settled(&self) -> bool {
        self.unsettled == 0
    }

    pub(super) fn is_verified(&self) -> bool {
        self.list.iter().all(Transfer::is_verified)
    }

    pub(super) fn report(&self, id: TransferId, now: Instant) -> TransferReport {
        let transfer = &self.list[id.0];
        TransferReport {
            start: transfer.start,
            finish: transfer.finish.unwrap_or(now),
            received: transfer.sink.received(),
            verified: transfer.is_verified(),
            intact: transfer.sink.is_intact(),
        }
    }
}
