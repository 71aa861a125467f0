//! s2n-quic in the comparison: its endpoint on tokio.

#![forbid(unsafe_code)]

mod client;
mod server;
mod settings;
mod streams;

use job::{Arguments, Failure, Role};

fn main() -> Result<(), Failure> {
    match Arguments::of_process().role {
        Role::Server(arguments) => {
            arguments.settings.require_streams()?;
            settings::runtime(arguments.workers)?.block_on(server::run(arguments))
        }
        Role::Client(arguments) => {
            arguments.settings.require_streams()?;
            settings::runtime(1)?.block_on(client::run(arguments))
        }
    }
}
