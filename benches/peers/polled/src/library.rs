//! What a program says about its library.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use job::{ClientArguments, ServerArguments};

use crate::role::Role;
use crate::streams::Failure;

/// A role that gets the events of the endpoint.
pub type Shared<R> = Rc<RefCell<R>>;

/// A library: how endpoints of it are made.
pub trait Library {
    /// An endpoint with a role of this type.
    type Endpoint<R: Role + 'static>: Endpoint;

    /// One that accepts connections.
    fn server<R: Role + 'static>(
        arguments: &ServerArguments,
        role: Shared<R>,
    ) -> Result<Self::Endpoint<R>, Failure>;

    /// One that connects.
    fn client<R: Role + 'static>(
        arguments: &ClientArguments,
        role: Shared<R>,
    ) -> Result<Self::Endpoint<R>, Failure>;
}

/// A socket with the connections on it.
pub trait Endpoint {
    /// Starts to connect to the server.
    fn connect(&mut self) -> Result<(), Failure>;

    /// Waits for an event, but no longer than `longest`, and processes it: datagrams, timers, the role, and
    /// data to send then.
    fn turn(&mut self, longest: Option<Duration>) -> Result<(), Failure>;

    /// Closes all connections.
    fn close(&mut self) -> Result<(), Failure>;
}
