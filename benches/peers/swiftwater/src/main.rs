//! Swiftwater in the comparison.

#![forbid(unsafe_code)]

mod client;
mod hosted;
mod http3;
mod requests;
mod server;
mod settings;
mod streams;

use job::{Arguments, Failure, Role};

fn main() -> Result<(), Failure> {
    // Workers beyond the first have threads of their own.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    match Arguments::of_process().role {
        Role::Server(arguments) if arguments.settings.http3 => {
            runtime.block_on(http3::server::run(&arguments))
        }
        Role::Client(arguments) if arguments.settings.http3 => {
            runtime.block_on(http3::client::run(&arguments))
        }
        Role::Server(arguments) => runtime.block_on(server::run(&arguments)),
        Role::Client(arguments) => runtime.block_on(client::run(&arguments)),
    }
}
