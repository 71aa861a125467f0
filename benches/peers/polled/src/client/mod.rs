//! The clients' jobs.

mod bulk;
mod handshakes;
mod hold;
mod requests;

use bytes::{Buf, Bytes};

use crate::streams::{Failure, Streams};

pub(crate) use bulk::Bulk;
pub(crate) use handshakes::Handshakes;
pub(crate) use hold::Hold;
pub(crate) use requests::Requests;

/// Bytes read from a stream at a time.
const ROOM: usize = 64 * 1024;

/// Progress of a job, which prints the events itself.
pub trait Client {
    /// True if another connection is to be opened now; called again after that.
    fn wants_connection(&mut self) -> bool;

    /// True once everything is done.
    fn is_done(&self) -> bool;
}

/// A request on a separate stream. Returns the stream and the unsent rest.
fn ask(streams: &mut impl Streams, request: &Bytes, finish: bool) -> Result<(u64, Bytes), Failure> {
    let stream = streams.open()?;
    let mut unsent = request.clone();
    ask_rest(streams, stream, &mut unsent, finish)?;
    Ok((stream, unsent))
}

/// What could not be sent before.
fn ask_rest(
    streams: &mut impl Streams,
    stream: u64,
    unsent: &mut Bytes,
    finish: bool,
) -> Result<(), Failure> {
    let taken = streams.write(stream, unsent.clone(), finish)?;
    unsent.advance(taken);
    Ok(())
}
