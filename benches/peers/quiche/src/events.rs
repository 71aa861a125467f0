//! Where the events of connections go.

use polled::{Failure, Role, Shared};

use crate::connection::Connection;

/// Gets to know about connections, each with a separate number.
pub(crate) trait Events {
    /// Something may have happened on a connection whose handshake is over.
    fn progress(&mut self, number: u64, connection: &mut Connection) -> Result<(), Failure>;

    /// The connection is over.
    fn closed(&mut self, number: u64) -> Result<(), Failure>;
}

/// The jobs that use streams themselves.
pub(crate) struct OnStreams<R>(pub(crate) Shared<R>);

impl<R: Role> Events for OnStreams<R> {
    fn progress(&mut self, number: u64, connection: &mut Connection) -> Result<(), Failure> {
        let mut role = self.0.borrow_mut();
        if !connection.told {
            connection.told = true;
            role.established(number, connection)?;
        }
        while let Some(stream) = connection.library.stream_readable_next() {
            role.readable(number, stream, connection)?;
        }
        while let Some(stream) = connection.library.stream_writable_next() {
            role.writable(number, stream, connection)?;
        }
        Ok(())
    }

    fn closed(&mut self, number: u64) -> Result<(), Failure> {
        self.0.borrow_mut().closed(number)
    }
}
