//! tquic in the comparison: its endpoint in an event loop of our own, on one thread.

#![forbid(unsafe_code)]

use datagrams::Socket;
use job::{Arguments, ClientArguments, ServerArguments};
use polled::{Failure, Library, Role, Shared};

mod connection;
mod endpoint;
mod handler;
mod sender;
mod settings;

use endpoint::Endpoint;

/// tquic.
struct Tquic;

impl Library for Tquic {
    type Endpoint<R: Role + 'static> = Endpoint;

    fn server<R: Role + 'static>(
        arguments: &ServerArguments,
        role: Shared<R>,
    ) -> Result<Endpoint, Failure> {
        arguments
            .settings
            .require_streams()
            .map_err(Failure::library)?;
        let config = settings::server(arguments).map_err(Failure::library)?;
        let socket = Socket::bind(arguments.listen, arguments.settings.tuned)?;
        Ok(Endpoint::new(socket, config, None, role))
    }

    fn client<R: Role + 'static>(
        arguments: &ClientArguments,
        role: Shared<R>,
    ) -> Result<Endpoint, Failure> {
        arguments
            .settings
            .require_streams()
            .map_err(Failure::library)?;
        let config = settings::client(arguments).map_err(Failure::library)?;
        let socket = Socket::bind(arguments.local(), arguments.settings.tuned)?;
        Ok(Endpoint::new(socket, config, Some(arguments.connect), role))
    }
}

fn main() -> Result<(), Failure> {
    polled::run::<Tquic>(Arguments::of_process())
}
