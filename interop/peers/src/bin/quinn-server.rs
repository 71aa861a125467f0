//! A file server on quinn over `hq-interop`.

use std::error::Error;

use clap::Parser;
use quinn as quic;
use swiftwater_interop_program::arguments::ServerArguments;

#[path = "../stack/one_path.rs"]
#[allow(dead_code, reason = "each side uses its part")]
mod paths;
#[path = "../stack/server.rs"]
mod server;
#[path = "../stack/tls.rs"]
#[allow(dead_code, reason = "each side uses its half")]
mod tls;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    paths: paths::Paths,
    #[command(flatten)]
    arguments: ServerArguments,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let command = Command::parse();
    server::run("quinn", command.arguments, command.paths).await
}
