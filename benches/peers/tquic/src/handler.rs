//! What tquic's endpoint says happens.

use std::cell::RefCell;
use std::rc::Rc;

use polled::{Failure, Role, Shared};
use tquic::{Connection, TransportHandler};

use crate::connection::Handle;

/// Results of the role's actions for the endpoint.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// The first failure.
    pub(crate) failure: RefCell<Option<Failure>>,
    /// Connections to be closed once their pending data were sent.
    pub(crate) closing: RefCell<Vec<u64>>,
}

/// Tells the role.
pub(crate) struct Handler<R> {
    pub(crate) role: Shared<R>,
    pub(crate) notes: Rc<Notes>,
}

impl<R: Role> Handler<R> {
    fn tell(
        &mut self,
        connection: &mut Connection,
        tell: impl FnOnce(&mut R, u64, &mut Handle<'_>) -> Result<(), Failure>,
    ) {
        let Some(number) = connection.index() else {
            return;
        };
        let mut handle = Handle {
            library: connection,
            closing: false,
        };
        let result = tell(&mut self.role.borrow_mut(), number, &mut handle);
        if handle.closing {
            self.notes.closing.borrow_mut().push(number);
        }
        self.note(result);
    }

    fn note(&self, result: Result<(), Failure>) {
        if let Err(failure) = result {
            self.notes.failure.borrow_mut().get_or_insert(failure);
        }
    }
}

impl<R: Role> TransportHandler for Handler<R> {
    fn on_conn_created(&mut self, _: &mut Connection) {}

    fn on_conn_established(&mut self, connection: &mut Connection) {
        self.tell(connection, |role, number, handle| {
            role.established(number, handle)
        });
    }

    fn on_conn_closed(&mut self, connection: &mut Connection) {
        if let Some(number) = connection.index() {
            let result = self.role.borrow_mut().closed(number);
            self.note(result);
        }
    }

    fn on_stream_created(&mut self, _: &mut Connection, _: u64) {}

    fn on_stream_readable(&mut self, connection: &mut Connection, stream: u64) {
        self.tell(connection, |role, number, handle| {
            role.readable(number, stream, handle)
        });
    }

    fn on_stream_writable(&mut self, connection: &mut Connection, stream: u64) {
        self.tell(connection, |role, number, handle| {
            role.writable(number, stream, handle)
        });
    }

    fn on_stream_closed(&mut self, _: &mut Connection, _: u64) {}

    fn on_new_token(&mut self, _: &mut Connection, _: Vec<u8>) {}
}
