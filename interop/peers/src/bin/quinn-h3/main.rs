//! h3 on quinn, as server and client of the HTTP cases.

mod client;
mod server;
#[path = "../../stack/tls.rs"]
mod tls;

use clap::Parser;
use quinn as quic;
use swiftwater_interop_program::http::Role;

/// Whatever ends the program.
pub(crate) type AnyError = Box<dyn std::error::Error + Send + Sync>;

#[derive(Parser)]
struct Command {
    #[command(subcommand)]
    role: Role,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), AnyError> {
    match Command::parse().role {
        Role::H3Server(arguments) => server::run(arguments).await,
        Role::H3Client(arguments) => client::run(arguments).await,
    }
}
