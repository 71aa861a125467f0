//! A downloader on noq over `hq-interop`.

use std::error::Error;

use clap::Parser;
use noq as quic;
use swiftwater_interop_program::arguments::ClientArguments;

#[path = "../stack/client.rs"]
mod client;
#[path = "../stack/several_paths.rs"]
#[allow(dead_code, reason = "each side uses its part")]
mod paths;
#[path = "../stack/tls.rs"]
#[allow(dead_code, reason = "each side uses its half")]
mod tls;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    paths: paths::Paths,
    #[command(flatten)]
    arguments: ClientArguments,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let command = Command::parse();
    client::run("noq", command.arguments, command.paths).await
}
