//! quinn in the comparison.

#![forbid(unsafe_code)]

mod client;
mod http3;
mod server;
mod settings;
mod streams;

use job::{Arguments, Failure, Role};

/// The library, and differences from noq.
mod quic {
    use bytes::Bytes;
    use job::Controller;
    pub(crate) use quinn::congestion::BbrConfig;
    pub(crate) use quinn::congestion::BbrConfig as LossyConfig;
    pub(crate) use quinn::*;

    /// Its version of BBR.
    pub(crate) const BBR: Controller = Controller::Bbr1;

    /// Window of a stream, bytes.
    pub(crate) const RECEIVE_WINDOW: u32 = job::STREAM_WINDOW;

    /// Reads received chunks; `None` at the end.
    pub(crate) async fn read_chunks(
        stream: &mut RecvStream,
        chunks: &mut [Bytes],
    ) -> Result<Option<usize>, ReadError> {
        stream.read_chunks(chunks).await
    }
}

fn main() -> Result<(), Failure> {
    match Arguments::of_process().role {
        Role::Server(arguments) => {
            let runtime = settings::runtime(arguments.workers)?;
            if arguments.settings.http3 {
                runtime.block_on(http3::server::run(arguments))
            } else {
                runtime.block_on(server::run(arguments))
            }
        }
        Role::Client(arguments) if arguments.settings.http3 => {
            settings::runtime(1)?.block_on(http3::client::run(arguments))
        }
        Role::Client(arguments) => settings::runtime(1)?.block_on(client::run(arguments)),
    }
}
