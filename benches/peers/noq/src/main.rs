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

/// The library, and differences from quinn.
mod quic {
    use bytes::Bytes;
    use job::Controller;

    pub(crate) use noq::congestion::Bbr3Config as BbrConfig;
    /// Not BBRv3, the other choice: with 5 % of the packets lost its rate falls to some dozens of packets a second and stays
    /// there, in two runs of three.
    pub(crate) use noq::congestion::CubicConfig as LossyConfig;
    pub(crate) use noq::*;

    /// Its version of BBR.
    pub(crate) const BBR: Controller = Controller::Bbr3;

    /// Window of a stream, bytes. noq gives a connection up ("too many gaps in stream buffer") when more than 2,048
    /// frames of a stream wait behind a single lost packet: more than 2.8 MB must not be able to. quinn did the
    /// same (its issue 2809) and no longer does; noq 1.4.0 does still.
    pub(crate) const RECEIVE_WINDOW: u32 = 2048 * 1380;

    /// Reads received chunks; `None` at the end.
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
            arguments.settings.require_streams()?;
            settings::runtime(arguments.workers)?.block_on(server::run(arguments))
        }
        Role::Client(arguments) => {
            arguments.settings.require_streams()?;
            settings::runtime(1)?.block_on(client::run(arguments))
        }
    }
}
