//! quiche in the comparison: its connections in an event loop of our own, on one thread.

#![forbid(unsafe_code)]

use job::{Arguments, ClientArguments, ServerArguments};
use polled::{Failure, Library, Role, Shared};

mod connection;
mod endpoint;
mod events;
mod http3;
mod settings;
mod table;

use endpoint::Endpoint;
use events::OnStreams;

/// quiche.
struct Quiche;

impl Library for Quiche {
    type Endpoint<R: Role + 'static> = Endpoint<OnStreams<R>>;

    fn server<R: Role + 'static>(
        arguments: &ServerArguments,
        role: Shared<R>,
    ) -> Result<Endpoint<OnStreams<R>>, Failure> {
        Endpoint::server(arguments, OnStreams(role))
    }

    fn client<R: Role + 'static>(
        arguments: &ClientArguments,
        role: Shared<R>,
    ) -> Result<Endpoint<OnStreams<R>>, Failure> {
        Endpoint::client(arguments, OnStreams(role))
    }
}

fn main() -> Result<(), Failure> {
    let arguments = Arguments::of_process();
    if arguments.settings().http3 {
        http3::run(arguments.role)
    } else {
        polled::run::<Quiche>(arguments)
    }
}
