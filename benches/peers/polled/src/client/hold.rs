//! Connections that are kept.

use bytes::Bytes;
use job::{ECHO, GREETING, Incoming, Outgoing, Wanted, events};
use rustc_hash::FxHashMap;

use super::{Client, ROOM, ask, ask_rest};
use crate::role::Role;
use crate::streams::{Failure, Streams};

/// Connections that are being opened at a time.
const PARALLEL: u32 = 16;

/// Opens connections and streams on them, and keeps them.
#[derive(Debug)]
pub(crate) struct Hold {
    count: u32,
    /// On each connection.
    streams: u32,
    request: Bytes,
    /// An answer of which no byte was received.
    answer: Incoming,
    started: u32,
    finished: u32,
    /// Answers not complete, by connection and stream.
    waiting: FxHashMap<(u64, u64), Waiting>,
    /// How many those are, by connection.
    left: FxHashMap<u64, u32>,
    room: Vec<u8>,
}

/// A request that has not been answered.
#[derive(Debug)]
struct Waiting {
    unsent: Bytes,
    incoming: Incoming,
}

impl Hold {
    /// So many connections with so many streams each that stay open.
    pub(crate) fn new(count: u32, streams: u32) -> Self {
        let (wanted, upload) = match streams {
            0 => (Wanted::Payload(GREETING), GREETING),
            _ => (Wanted::Echo(ECHO), ECHO),
        };
        Self {
            count,
            streams,
            request: Outgoing::request(wanted, upload).to_bytes(),
            answer: Incoming::new(wanted, upload),
            started: 0,
            finished: 0,
            waiting: FxHashMap::default(),
            left: FxHashMap::default(),
            room: vec![0; ROOM],
        }
    }
}

impl Client for Hold {
    fn wants_connection(&mut self) -> bool {
        if self.started == 0 {
            events::start();
        }
        let wants = self.started < self.count && self.started - self.finished < PARALLEL;
        self.started += u32::from(wants);
        wants
    }

    fn is_done(&self) -> bool {
        self.finished == self.count
    }
}

impl Role for Hold {
    fn established(&mut self, connection: u64, streams: &mut impl Streams) -> Result<(), Failure> {
        let count = self.streams.max(1);
        self.left.insert(connection, count);
        for _ in 0..count {
            let (stream, unsent) = ask(streams, &self.request, self.streams == 0)?;
            let waiting = Waiting {
                unsent,
                incoming: self.answer.clone(),
            };
            self.waiting.insert((connection, stream), waiting);
        }
        Ok(())
    }

    fn readable(
        &mut self,
        connection: u64,
        stream: u64,
        streams: &mut impl Streams,
    ) -> Result<(), Failure> {
        let Some(waiting) = self.waiting.get_mut(&(connection, stream)) else {
            return Ok(());
        };
        let mut complete = false;
        while let Some((len, finished)) = streams.read(stream, &mut self.room)? {
            waiting.incoming.receive(&self.room[..len]);
            // A stream that stays open has no end.
            complete = finished || (self.streams > 0 && waiting.incoming.is_complete());
            if complete {
                break;
            }
        }
        if !complete {
            return Ok(());
        }
        waiting.incoming.clone().check()?;
        self.waiting.remove(&(connection, stream));
        if let Some(left) = self.left.get_mut(&connection) {
            *left -= 1;
            if *left == 0 {
                self.left.remove(&connection);
                self.finished += 1;
                if self.is_done() {
                    events::hold_done(self.count);
                }
            }
        }
        Ok(())
    }

    fn writable(
        &mut self,
        connection: u64,
        stream: u64,
        streams: &mut impl Streams,
    ) -> Result<(), Failure> {
        match self.waiting.get_mut(&(connection, stream)) {
            Some(waiting) if !waiting.unsent.is_empty() => {
                ask_rest(streams, stream, &mut waiting.unsent, self.streams == 0)
            }
            _ => Ok(()),
        }
    }

    fn closed(&mut self, _: u64) -> Result<(), Failure> {
        if self.is_done() {
            Ok(())
        } else {
            Err(Failure::Lost)
        }
    }
}
