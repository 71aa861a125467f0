//! noq in the comparison. Its interface is quinn's, and so is all of the program.

#![forbid(unsafe_code)]

#[path = "../../quinn/src/client.rs"]
mod client;
#[path = "../../quinn/src/server.rs"]
mod server;
#[path = "../../quinn/src/settings.rs"]
mod settings;
#[path = "../../quinn/src/streams.rs"]
mod streams;

use job::{Arguments, Failure, Role};
use noq as quic;

fn main() -> Result<(), Failure> {
    match Arguments::of_process().role {
        Role::Server(arguments) => {
            settings::runtime(arguments.workers)?.block_on(server::run(arguments))
        }
        Role::Client(arguments) => settings::runtime(1)?.block_on(client::run(arguments)),
    }
}
