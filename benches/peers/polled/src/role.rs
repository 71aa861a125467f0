//! Receivers of connection events.

use crate::streams::{Failure, Streams};

/// Gets the events of connections, each with a separate number.
pub trait Role {
    /// The handshake is over.
    fn established(&mut self, connection: u64, streams: &mut impl Streams) -> Result<(), Failure>;

    /// Something may be read.
    fn readable(
        &mut self,
        connection: u64,
        stream: u64,
        streams: &mut impl Streams,
    ) -> Result<(), Failure>;

    /// Something may be written on a stream that did not take everything.
    fn writable(
        &mut self,
        connection: u64,
        stream: u64,
        streams: &mut impl Streams,
    ) -> Result<(), Failure>;

    /// The connection is over.
    fn closed(&mut self, connection: u64) -> Result<(), Failure>;
}
