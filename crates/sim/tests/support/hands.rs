//! An application on both sides of a pair, driven by the test: writes given data, reads received
//! data, optionally echoes.

use std::collections::BTreeMap;

use swiftwater_quic::{Event, ReadError, ReadOutcome, StreamEvent, WriteError};
use swiftwater_sim::Pair;
use swiftwater_units::{Dir, Side, StreamId};

use super::SIDES;

/// What was read of a stream, and how it ended.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Read {
    pub data: Vec<u8>,
    pub end: Option<Result<(), ReadError>>,
}

#[derive(Debug)]
struct Writing {
    data: Vec<u8>,
    done: usize,
    finish: bool,
    finished: bool,
    error: Option<WriteError>,
}

#[derive(Debug, Default)]
pub struct Hands {
    writing: BTreeMap<(Side, StreamId), Writing>,
    reading: BTreeMap<(Side, StreamId), Read>,
    /// The peer of who opened a bidirectional stream answers with what it read of it.
    echo: bool,
    /// A side that reads nothing for now.
    lazy: Option<Side>,
    /// Streams that a side's peer opened, in the order in which they were accepted.
    pub accepted: Vec<(Side, StreamId)>,
    /// Streams in the order in which their end was read.
    pub ended: Vec<(Side, StreamId)>,
    /// Other events.
    pub told: Vec<(Side, Event)>,
}

impl Hands {
    /// Bidirectional streams are echoed.
    pub fn echoing() -> Self {
        Self {
            echo: true,
            ..Self::default()
        }
    }

    /// A side accepts and reads nothing until [`Hands::wake`].
    pub fn lazy(side: Side) -> Self {
        Self {
            lazy: Some(side),
            ..Self::default()
        }
    }

    /// Writes `data` on a stream, as it finds room, then the end if `finish`.
    pub fn write(
        &mut self,
        pair: &mut Pair,
        side: Side,
        id: StreamId,
        data: Vec<u8>,
        finish: bool,
    ) {
        let writing = Writing {
            data,
            done: 0,
            finish,
            finished: false,
            error: None,
        };
        self.writing.insert((side, id), writing);
        self.pump(pair, side, id);
    }

    /// Opens a stream and writes `data` and the end on it.
    pub fn send(
        &mut self,
        pair: &mut Pair,
        side: Side,
        dir: Dir,
        data: Vec<u8>,
    ) -> Option<StreamId> {
        let id = pair.connection(side)?.open(dir)?;
        self.write(pair, side, id, data, true);
        Some(id)
    }

    pub fn read(&self, side: Side, id: StreamId) -> Read {
        self.reading.get(&(side, id)).cloned().unwrap_or_default()
    }

    pub fn write_error(&self, side: Side, id: StreamId) -> Option<WriteError> {
        self.writing.get(&(side, id))?.error.clone()
    }

    /// How many streams a side has read to their end.
    pub fn ends(&self, side: Side) -> usize {
        self.ended.iter().filter(|(each, _)| *each == side).count()
    }

    /// Runs the pair and serves both sides until `done`; false if that never happens.
    pub fn run(
        &mut self,
        pair: &mut Pair,
        mut done: impl FnMut(&mut Self, &mut Pair) -> bool,
    ) -> bool {
        pair.run_until(|pair| {
            self.serve(pair);
            done(self, pair)
        })
    }

    /// Acts on all events of both sides.
    pub fn serve(&mut self, pair: &mut Pair) {
        for side in SIDES {
            for event in pair.take_events(side) {
                match event {
                    Event::Stream(StreamEvent::Opened { dir }) => self.accept(pair, side, dir),
                    Event::Stream(StreamEvent::Readable { id }) => self.pull(pair, side, id),
                    Event::Stream(StreamEvent::Writable { id }) => self.pump(pair, side, id),
                    event => self.told.push((side, event)),
                }
            }
        }
    }

    /// Reads what a lazy side has left.
    pub fn wake(&mut self, pair: &mut Pair) {
        let Some(side) = self.lazy.take() else { return };
        for dir in [Dir::Bi, Dir::Uni] {
            self.accept(pair, side, dir);
        }
        let ids: Vec<_> = self.accepted.clone();
        for (_, id) in ids.into_iter().filter(|(each, _)| *each == side) {
            self.pull(pair, side, id);
        }
    }

    fn accept(&mut self, pair: &mut Pair, side: Side, dir: Dir) {
        if self.lazy == Some(side) {
            return;
        }
        while let Some(id) = pair.connection(side).and_then(|each| each.accept(dir)) {
            self.accepted.push((side, id));
            self.pull(pair, side, id);
        }
    }

    fn pump(&mut self, pair: &mut Pair, side: Side, id: StreamId) {
        let Some(writing) = self.writing.get_mut(&(side, id)) else {
            return;
        };
        let Some(connection) = pair.connection(side) else {
            return;
        };
        let mut stream = connection.send_stream(id);
        while writing.done < writing.data.len() && writing.error.is_none() {
            match stream.write(&writing.data[writing.done..]) {
                Ok(0) => return,
                Ok(n) => writing.done += n,
                Err(error) => writing.error = Some(error),
            }
        }
        if writing.finish && !writing.finished && writing.error.is_none() {
            writing.finished = true;
            writing.error = stream.finish().err();
        }
    }

    fn pull(&mut self, pair: &mut Pair, side: Side, id: StreamId) {
        if self.lazy == Some(side) {
            return;
        }
        let read = self.reading.entry((side, id)).or_default();
        if read.end.is_some() {
            return;
        }
        let mut buffer = [0; 4_096];
        let Some(connection) = pair.connection(side) else {
            return;
        };
        while read.end.is_none() {
            match connection.recv_stream(id).read(&mut buffer) {
                Ok(ReadOutcome::Data(n)) => read.data.extend_from_slice(&buffer[..n]),
                Ok(ReadOutcome::Blocked) => return,
                Ok(ReadOutcome::Finished) => read.end = Some(Ok(())),
                Err(error) => read.end = Some(Err(error)),
            }
        }
        self.ended.push((side, id));
        let answer =
            (self.echo && side != id.initiator() && id.dir() == Dir::Bi).then(|| read.data.clone());
        if let Some(answer) = answer {
            self.write(pair, side, id, answer, true);
        }
    }
}

/// Content of `len` bytes that encodes its position and its stream.
pub fn content(nth: usize, len: usize) -> Vec<u8> {
    (0..len)
        .map(|at| (at.wrapping_mul(31) ^ (at >> 8) ^ nth.wrapping_mul(131)) as u8)
        .collect()
}
