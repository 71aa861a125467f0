//! One handshake after the other.

use std::time::Instant;

use job::events;

use super::Client;
use crate::role::Role;
use crate::streams::{Failure, Streams};

/// Handshakes, some at a time. A connection is closed as soon as it is established.
#[derive(Debug)]
pub(crate) struct Handshakes {
    count: u32,
    parallel: u32,
    started: u32,
    established: u32,
    start: Instant,
}

impl Handshakes {
    /// So many, so many of them at a time.
    pub(crate) fn new(count: u32, parallel: u32) -> Self {
        Self {
            count,
            parallel,
            started: 0,
            established: 0,
            start: Instant::now(),
        }
    }
}

impl Client for Handshakes {
    fn wants_connection(&mut self) -> bool {
        let under_way = self.started - self.established;
        let wants = self.started < self.count && under_way < self.parallel;
        if wants {
            if self.started == 0 {
                events::start();
                self.start = Instant::now();
            }
            self.started += 1;
        }
        wants
    }

    fn is_done(&self) -> bool {
        self.established == self.count
    }
}

impl Role for Handshakes {
    fn established(&mut self, _: u64, streams: &mut impl Streams) -> Result<(), Failure> {
        self.established += 1;
        streams.close();
        if self.is_done() {
            events::handshakes_done(self.count, self.start.elapsed());
        }
        Ok(())
    }

    fn readable(&mut self, _: u64, _: u64, _: &mut impl Streams) -> Result<(), Failure> {
        Ok(())
    }

    fn writable(&mut self, _: u64, _: u64, _: &mut impl Streams) -> Result<(), Failure> {
        Ok(())
    }

    fn closed(&mut self, _: u64) -> Result<(), Failure> {
        Ok(())
    }
}
