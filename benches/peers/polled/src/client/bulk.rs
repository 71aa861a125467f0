//! One transfer.

use std::time::Instant;

use job::{Direction, Incoming, Outgoing, Wanted, events};

use super::{Client, ROOM};
use crate::role::Role;
use crate::streams::{Failure, Streams, supply};

/// One transfer on one stream.
#[derive(Debug)]
pub(crate) struct Bulk {
    bytes: u64,
    outgoing: Outgoing,
    incoming: Incoming,
    room: Vec<u8>,
    start: Instant,
    connecting: bool,
    done: bool,
}

impl Bulk {
    /// So many bytes, this way.
    pub(crate) fn new(bytes: u64, direction: Direction) -> Self {
        let (wanted, upload) = match direction {
            Direction::Download => (Wanted::Payload(bytes), 0),
            Direction::Upload => (Wanted::Checksum, bytes),
        };
        Self {
            bytes,
            outgoing: Outgoing::request(wanted, upload),
            incoming: Incoming::new(wanted, upload),
            room: vec![0; ROOM],
            start: Instant::now(),
            connecting: false,
            done: false,
        }
    }
}

impl Client for Bulk {
    fn wants_connection(&mut self) -> bool {
        !std::mem::replace(&mut self.connecting, true)
    }

    fn is_done(&self) -> bool {
        self.done
    }
}

impl Role for Bulk {
    fn established(&mut self, connection: u64, streams: &mut impl Streams) -> Result<(), Failure> {
        events::start();
        self.start = Instant::now();
        let stream = streams.open()?;
        self.writable(connection, stream, streams)
    }

    fn readable(&mut self, _: u64, stream: u64, streams: &mut impl Streams) -> Result<(), Failure> {
        while let Some((len, finished)) = streams.read(stream, &mut self.room)? {
            self.incoming.receive(&self.room[..len]);
            if finished {
                let took = self.start.elapsed();
                self.incoming.clone().check()?;
                events::bulk_done(self.bytes, took);
                self.done = true;
                break;
            }
        }
        Ok(())
    }

    fn writable(&mut self, _: u64, stream: u64, streams: &mut impl Streams) -> Result<(), Failure> {
        if self.outgoing.left() > 0 {
            supply(streams, stream, &mut self.outgoing)?;
        }
        Ok(())
    }

    fn closed(&mut self, _: u64) -> Result<(), Failure> {
        if self.done {
            Ok(())
        } else {
            Err(Failure::Lost)
        }
    }
}
