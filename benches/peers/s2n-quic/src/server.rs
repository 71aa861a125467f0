//! Answers the comparison's protocol.

use job::{Answer, Failure, ServerArguments, events};
use s2n_quic::Connection;
use s2n_quic::stream::BidirectionalStream;

use crate::settings;
use crate::streams::{supply, take};

pub(crate) async fn run(arguments: ServerArguments) -> Result<(), Failure> {
    let mut server = settings::server(&arguments)?;
    events::ready();
    while let Some(connection) = server.accept().await {
        tokio::spawn(serve(connection));
    }
    Ok(())
}

/// Answers a client until it closes.
async fn serve(mut connection: Connection) {
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        // A client that breaks off reports its reasons itself.
        tokio::spawn(answer(stream));
    }
}

async fn answer(mut stream: BidirectionalStream) -> Result<(), Failure> {
    let mut answer = Answer::default();
    let mut early = None;
    while take(&mut stream, |data| early = early.or(answer.receive(data))).await? {
        if let Some(reply) = early.take() {
            supply(&mut stream, reply).await?;
        }
    }
    supply(&mut stream, answer.finish()).await
}
