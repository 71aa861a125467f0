//! quinn in the comparison.

#![forbid(unsafe_code)]

mod client;
mod server;
mod settings;
mod streams;

use job::{Arguments, Failure, Role};
use quinn as quic;

fn main() -> Result<(), Failure> {
    match Arguments::of_process().role {
        Role::Server(arguments) => {
            settings::runtime(arguments.workers)?.block_on(server::run(arguments))
        }
        Role::Client(arguments) => settings::runtime(1)?.block_on(client::run(arguments)),
    }
}
