//! quiche in the comparison: its connections in an event loop of our own, on one thread.

#![forbid(unsafe_code)]

use datagrams::Socket;
use job::{ClientArguments, ServerArguments};
use polled::{Failure, Library, Role, Shared};

mod connection;
mod endpoint;
mod settings;
mod table;

use endpoint::Endpoint;

/// quiche.
struct Quiche;

impl Library for Quiche {
    type Endpoint<R: Role + 'static> = Endpoint<R>;

    fn server<R: Role + 'static>(
        arguments: &ServerArguments,
        role: Shared<R>,
    ) -> Result<Endpoint<R>, Failure> {
        let config = settings::server(arguments).map_err(Failure::library)?;
        let socket = Socket::bind(arguments.listen, arguments.settings.tuned)?;
        Ok(Endpoint::new(
            socket,
            config,
            arguments.settings,
            None,
            role,
        ))
    }

    fn client<R: Role + 'static>(
        arguments: &ClientArguments,
        role: Shared<R>,
    ) -> Result<Endpoint<R>, Failure> {
        let config = settings::client(arguments).map_err(Failure::library)?;
        let socket = Socket::bind(arguments.local(), arguments.settings.tuned)?;
        let server = Some(arguments.connect);
        Ok(Endpoint::new(
            socket,
            config,
            arguments.settings,
            server,
            role,
        ))
    }
}

fn main() -> Result<(), Failure> {
    polled::run::<Quiche>()
}
