//! noq in the comparison. Its interface is nearly quinn's, and so is the program.

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

/// The library, and what quinn has otherwise.
mod quic {
    use bytes::Bytes;

    pub(crate) use noq::congestion::Bbr3Config as LossyConfig;
    pub(crate) use noq::*;

    /// Takes chunks that have come; `None` at the end.
    pub(crate) async fn read_chunks(
        stream: &mut RecvStream,
        chunks: &mut [Bytes],
    ) -> Result<Option<usize>, ReadError> {
        stream.read_many_chunks(chunks).await
    }
}

fn main() -> Result<(), Failure> {
    match Arguments::of_process().role {
        Role::Server(arguments) => {
            settings::runtime(arguments.workers)?.block_on(server::run(arguments))
        }
        Role::Client(arguments) => settings::runtime(1)?.block_on(client::run(arguments)),
    }
}
