//! Many small requests.

use std::time::{Duration, Instant};

use bytes::Bytes;
use job::{Incoming, Latencies, Outgoing, Wanted, events};
use rustc_hash::FxHashMap;

use super::{Client, ROOM, ask, ask_rest};
use crate::role::Role;
use crate::streams::{Failure, Streams};

/// Requests on one connection, each on a separate stream, for some time.
#[derive(Debug)]
pub(crate) struct Requests {
    duration: Duration,
    in_flight: u32,
    request: Bytes,
    /// An answer of which no byte was received.
    answer: Incoming,
    waiting: FxHashMap<u64, Waiting>,
    latencies: Latencies,
    room: Vec<u8>,
    start: Instant,
    connecting: bool,
    done: bool,
}

/// A request that has not been answered.
#[derive(Debug)]
struct Waiting {
    since: Instant,
    unsent: Bytes,
    incoming: Incoming,
}

impl Requests {
    /// So many at a time, with so many bytes each way.
    pub(crate) fn new(duration: Duration, in_flight: u32, up: u64, down: u64) -> Self {
        let wanted = Wanted::Payload(down);
        Self {
            duration,
            in_flight,
            request: Outgoing::request(wanted, up).to_bytes(),
            answer: Incoming::new(wanted, up),
            waiting: FxHashMap::default(),
            latencies: Latencies::default(),
            room: vec![0; ROOM],
            start: Instant::now(),
            connecting: false,
            done: false,
        }
    }

    fn ask(&mut self, now: Instant, streams: &mut impl Streams) -> Result<(), Failure> {
        let (stream, unsent) = ask(streams, &self.request, true)?;
        let waiting = Waiting {
            since: now,
            unsent,
            incoming: self.answer.clone(),
        };
        self.waiting.insert(stream, waiting);
        Ok(())
    }
}

impl Client for Requests {
    fn wants_connection(&mut self) -> bool {
        !std::mem::replace(&mut self.connecting, true)
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

impl Role for Requests {
    fn established(&mut self, _: u64, streams: &mut impl Streams) -> Result<(), Failure> {
        events::start();
        self.start = Instant::now();
        for _ in 0..self.in_flight {
            self.ask(self.start, streams)?;
        }
        Ok(())
    }

    fn readable(&mut self, _: u64, stream: u64, streams: &mut impl Streams) -> Result<(), Failure> {
        let Some(waiting) = self.waiting.get_mut(&stream) else {
            return Ok(());
        };
        while let Some((len, finished)) = streams.read(stream, &mut self.room)? {
            waiting.incoming.receive(&self.room[..len]);
            if !finished {
                continue;
            }
            waiting.incoming.clone().check()?;
            let now = Instant::now();
            self.latencies.record(now - waiting.since);
            self.waiting.remove(&stream);
            let elapsed = now - self.start;
            if elapsed < self.duration {
                return self.ask(now, streams);
            }
            if self.waiting.is_empty() {
                events::requests_done(std::mem::take(&mut self.latencies), elapsed);
                self.done = true;
            }
            return Ok(());
        }
        Ok(())
    }

    fn writable(&mut self, _: u64, stream: u64, streams: &mut impl Streams) -> Result<(), Failure> {
        match self.waiting.get_mut(&stream) {
            Some(waiting) if !waiting.unsent.is_empty() => {
                ask_rest(streams, stream, &mut waiting.unsent, true)
            }
            _ => Ok(()),
        }
    }

    fn closed(&mut self, _: u64) -> Result<(), Failure> {
        if self.done {
            Ok(())
        } else {
            Err(Failure::Lost)
        }
    }
}
