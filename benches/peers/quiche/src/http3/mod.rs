//! Jobs over HTTP/3, with quiche's own module for it.

mod client;
mod exchanges;
mod server;

use std::cell::RefCell;
use std::rc::Rc;

use job::Role as End;
use polled::Failure;

use crate::endpoint::Endpoint;
use client::Client;
use exchanges::Exchanges;
use server::Server;

/// Runs the job of the command line.
pub(crate) fn run(role: End) -> Result<(), Failure> {
    match role {
        End::Server(arguments) => {
            let server = Rc::new(RefCell::new(Server::default()));
            let endpoint = Endpoint::server(&arguments, Exchanges::new(server)?)?;
            polled::serve(endpoint, &arguments)
        }
        End::Client(arguments) => {
            let client = Rc::new(RefCell::new(Client::new(&arguments)?));
            let events = Exchanges::new(Rc::clone(&client))?;
            polled::perform(Endpoint::client(&arguments, events)?, &client)
        }
    }
}
