//! What streams and datagrams must look like, whatever the network does.

use std::collections::{BTreeMap, BTreeSet};

use swiftwater_quic::{ReadError, ReadOutcome, WriteError};
use swiftwater_sim::Pattern;
use swiftwater_units::{Dir, Side, StreamId};

/// One direction of a stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Half {
    pub(crate) written: u64,
    /// Bytes that were not accepted because there was no space.
    pub(crate) wanted: u64,
    pub(crate) finished: bool,
    pub(crate) reset: Option<u64>,
    /// Bytes that are delivered in spite of the reset.
    pub(crate) promised: u64,
    /// Bytes that are delivered although the stream will expire.
    expires: Option<u64>,
    pub(crate) acknowledged: bool,
    pub(crate) read: u64,
    pub(crate) stopped: Option<u64>,
    /// The end or the reset was reported to the reader.
    pub(crate) ended: bool,
}

impl Half {
    /// The sender has said all, and the reader has it.
    pub(crate) fn is_settled(&self) -> bool {
        if self.stopped.is_some() {
            return true;
        }
        if self.reset.is_some() {
            return self.ended;
        }
        let acknowledged = self.acknowledged || !self.finished;
        self.wanted == 0 && self.read == self.written && self.ended == self.finished && acknowledged
    }
}

/// Names the direction of a stream by who sends.
pub(crate) type HalfKey = (StreamId, Side);

/// Everything that was written, read and sent.
#[derive(Debug, Default)]
pub(crate) struct Model {
    pub(crate) halves: BTreeMap<HalfKey, Half>,
    /// Streams that each side has opened or accepted, in that order.
    pub(crate) known: [Vec<StreamId>; 2],
    /// Streams accepted so far, by side and kind.
    accepted: [[u64; 2]; 2],
    /// Sizes of the datagrams that each side sent.
    sent_datagrams: [Vec<usize>; 2],
    received_datagrams: [BTreeSet<usize>; 2],
}

impl Model {
    pub(crate) fn pattern((id, sender): HalfKey) -> Pattern {
        Pattern::new(2 * id.get() + sender as u64)
    }

    /// Rises with everything that arrives.
    pub(crate) fn progress(&self) -> u64 {
        let each = |half: &Half| half.read + u64::from(half.ended) + u64::from(half.acknowledged);
        self.halves.values().map(each).sum()
    }

    pub(crate) fn stream(&self, side: Side, index: usize) -> Option<StreamId> {
        let known = &self.known[side as usize];
        (!known.is_empty()).then(|| known[index % known.len()])
    }

    pub(crate) fn opened(&mut self, side: Side, id: StreamId) {
        assert_eq!(id.initiator(), side);
        self.known[side as usize].push(id);
        let mut add = |sender| {
            let old = self.halves.insert((id, sender), Half::default());
            assert!(old.is_none(), "{id:?} was opened twice");
        };
        add(side);
        if id.dir() == Dir::Bi {
            add(!side);
        }
    }

    pub(crate) fn accepted(&mut self, side: Side, dir: Dir, id: StreamId) {
        assert_eq!((id.initiator(), id.dir()), (!side, dir));
        let opened = self.halves.contains_key(&(id, !side));
        assert!(opened, "{id:?} was accepted but never opened");
        let next = &mut self.accepted[side as usize][dir as usize];
        assert_eq!(
            id,
            StreamId::new(!side, dir, *next),
            "accepted out of order"
        );
        *next += 1;
        self.known[side as usize].push(id);
    }

    /// The outcome of writing `len` bytes; `limit` is what the reader may have unread at most.
    pub(crate) fn wrote(
        &mut self,
        key: HalfKey,
        len: u64,
        outcome: &Result<usize, WriteError>,
        limit: u64,
    ) {
        let Some(half) = self.halves.get_mut(&key) else {
            assert_eq!(
                *outcome,
                Err(WriteError::Closed),
                "{key:?} can't be written"
            );
            return;
        };
        match outcome {
            Ok(taken) => {
                assert!(!half.finished && half.reset.is_none(), "{key:?}: {half:?}");
                let taken = *taken as u64;
                assert!(taken <= len);
                half.written += taken;
                half.wanted += len - taken;
                let unread = half.written - half.read;
                assert!(
                    half.stopped.is_some() || unread <= limit,
                    "{key:?}: {unread} bytes unread, {limit} permitted"
                );
            }
            Err(error) => half.refused(key, error),
        }
    }

    pub(crate) fn did_finish(&mut self, key: HalfKey, outcome: &Result<(), WriteError>) {
        let Some(half) = self.halves.get_mut(&key) else {
            assert_eq!(*outcome, Err(WriteError::Closed), "{key:?} can't be ended");
            return;
        };
        match outcome {
            Ok(()) => {
                assert!(!half.finished && half.reset.is_none(), "{key:?}: {half:?}");
                half.finished = true;
                half.wanted = 0;
            }
            Err(error) => half.refused(key, error),
        }
    }

    /// The outcome of a reset that still delivers the first `reliable` bytes; 0 for a plain one.
    pub(crate) fn did_reset(
        &mut self,
        key: HalfKey,
        code: u64,
        reliable: u64,
        outcome: &Result<(), WriteError>,
    ) {
        let Some(half) = self.halves.get_mut(&key) else {
            assert_eq!(*outcome, Err(WriteError::Closed), "{key:?} can't be reset");
            return;
        };
        match outcome {
            Ok(()) => {
                let reliable = reliable.min(half.written);
                if half.reset.is_none() {
                    half.reset = Some(code);
                    half.promised = reliable;
                } else {
                    // Only the reliable size can still be lowered; the code stays.
                    assert!(half.promised > 0, "{key:?}: {half:?}");
                    half.promised = half.promised.min(reliable);
                }
                half.wanted = 0;
            }
            Err(error) => half.refused(key, error),
        }
    }

    /// A time was set after which the stream is abandoned but for its first bytes.
    pub(crate) fn will_expire(&mut self, key: HalfKey, reliable: u64) {
        let half = self.halves.get_mut(&key).expect("a stream that was opened");
        half.expires = Some(reliable);
    }

    /// That time came.
    pub(crate) fn did_expire(&mut self, key: HalfKey, code: u64) {
        let half = self.halves.get_mut(&key).expect("a stream that was opened");
        assert!(
            half.reset.is_none() && !half.acknowledged,
            "{key:?}: {half:?}"
        );
        let reliable = half.expires.expect("a time was set");
        half.reset = Some(code);
        half.promised = reliable.min(half.written);
        half.wanted = 0;
    }

    pub(crate) fn did_stop(&mut self, key: HalfKey, code: u64, outcome: &Result<(), ReadError>) {
        let Some(half) = self.halves.get_mut(&key) else {
            assert_eq!(*outcome, Err(ReadError::Closed), "{key:?} can't be stopped");
            return;
        };
        match outcome {
            Ok(()) => {
                assert!(half.stopped.is_none() && !half.ended, "{key:?}: {half:?}");
                half.stopped = Some(code);
            }
            Err(ReadError::Closed) => {
                assert!(half.ended || half.stopped.is_some(), "{key:?}: {half:?}");
            }
            Err(error) => panic!("{key:?}: stop failed with {error:?}"),
        }
    }

    /// The outcome of a read into `buffer`; true if there may be more.
    pub(crate) fn did_read(
        &mut self,
        key: HalfKey,
        buffer: &[u8],
        outcome: &Result<ReadOutcome, ReadError>,
    ) -> bool {
        let Some(half) = self.halves.get_mut(&key) else {
            assert_eq!(*outcome, Err(ReadError::Closed), "{key:?} can't be read");
            return false;
        };
        let was = half.clone();
        match *outcome {
            Ok(ReadOutcome::Data(len)) => {
                assert!(!half.ended && half.stopped.is_none(), "{key:?}: {was:?}");
                assert!((1..=buffer.len()).contains(&len), "{key:?}: {len} bytes");
                let intact = Self::pattern(key).matches(half.read, &buffer[..len]);
                assert!(intact, "{key:?}: wrong bytes, {was:?}");
                half.read += len as u64;
                assert!(half.read <= half.written, "{key:?}: {was:?} and {len} more");
                return true;
            }
            Ok(ReadOutcome::Blocked) => {
                assert!(!half.ended && half.stopped.is_none(), "{key:?}: {was:?}");
            }
            Ok(ReadOutcome::Finished) => {
                assert!(half.finished && !half.ended, "{key:?}: {was:?}");
                assert_eq!(half.read, half.written, "{key:?}: {was:?}");
                assert!(half.stopped.is_none(), "{key:?}: {was:?}");
                half.ended = true;
            }
            Err(ReadError::Reset(code)) => {
                assert_eq!(half.reset, Some(code), "{key:?}: {was:?}");
                assert!(half.read >= half.promised, "{key:?}: {was:?}");
                assert!(!half.ended, "{key:?}: {was:?}");
                half.ended = true;
            }
            Err(ReadError::Closed) => {
                assert!(half.ended || half.stopped.is_some(), "{key:?}: {was:?}");
            }
            Err(ref error) => panic!("{key:?}: reading failed with {error:?}"),
        }
        false
    }

    pub(crate) fn was_stopped(&mut self, key: HalfKey, code: u64) {
        let half = &self.halves[&key];
        assert_eq!(half.stopped, Some(code), "{key:?}: {half:?}");
    }

    pub(crate) fn was_acknowledged(&mut self, key: HalfKey) {
        let half = self.halves.get_mut(&key).expect("a stream that was opened");
        assert!(half.finished && !half.acknowledged, "{key:?}: {half:?}");
        half.acknowledged = true;
    }

    /// The number of the next datagram from `side`, which has `len` bytes.
    pub(crate) fn next_datagram(&self, side: Side, len: usize) -> Vec<u8> {
        let number = self.sent_datagrams[side as usize].len();
        let pattern = Pattern::new(1_000_003 + 2 * number as u64 + side as u64);
        let mut content = (number as u64).to_be_bytes().to_vec();
        while content.len() < len {
            let missing = (len - content.len()) as u64;
            content.extend(pattern.chunk(content.len() as u64, missing));
        }
        content.truncate(len);
        content
    }

    pub(crate) fn sent_datagram(&mut self, side: Side, len: usize) {
        self.sent_datagrams[side as usize].push(len);
    }

    pub(crate) fn received_datagram(&mut self, side: Side, content: &[u8]) {
        let sent = &self.sent_datagrams[!side as usize];
        let Some(number) = content.first_chunk().map(|n| u64::from_be_bytes(*n)) else {
            assert!(
                sent.contains(&content.len()),
                "a datagram that was not sent"
            );
            return;
        };
        let number = number as usize;
        assert_eq!(sent.get(number), Some(&content.len()), "datagram {number}");
        let pattern = Pattern::new(1_000_003 + 2 * number as u64 + !side as u64);
        assert!(pattern.matches(8, &content[8..]), "datagram {number}");
        let is_new = self.received_datagrams[side as usize].insert(number);
        assert!(is_new, "datagram {number} arrived twice");
    }
}

impl Half {
    /// A write, end or reset was refused: there must be a reason.
    fn refused(&self, key: HalfKey, error: &WriteError) {
        match error {
            WriteError::Stopped(code) => assert_eq!(self.stopped, Some(*code), "{key:?}: {self:?}"),
            WriteError::Closed => {
                let is_over = self.finished || self.reset.is_some() || self.stopped.is_some();
                assert!(is_over, "{key:?}: {self:?}");
            }
            WriteError::ConnectionLost(_) => panic!("{key:?}: lost without an event"),
            other => panic!("{key:?}: {other:?}"),
        }
    }
}
