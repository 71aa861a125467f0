//! Answers the comparison's protocol. Also part of noq's program, whose interface is the same.

use job::{Answer, Failure, ServerArguments, events};

use crate::quic::{Incoming, RecvStream, SendStream};
use crate::settings;
use crate::streams::{supply, take};

pub(crate) async fn run(arguments: ServerArguments) -> Result<(), Failure> {
    let endpoint = settings::server(&arguments)?;
    events::ready();
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(serve(incoming));
    }
    Ok(())
}

/// Answers a client until it closes.
async fn serve(incoming: Incoming) {
    let Ok(connection) = incoming.await else {
        return;
    };
    while let Ok((send, receive)) = connection.accept_bi().await {
        // A client that breaks off reports its reasons itself.
        tokio::spawn(answer(send, receive));
    }
}

async fn answer(mut send: SendStream, mut receive: RecvStream) -> Result<(), Failure> {
    let mut answer = Answer::default();
    let mut early = None;
    while take(&mut receive, |data| early = early.or(answer.receive(data))).await? {
        if let Some(reply) = early.take() {
            supply(&mut send, reply).await?;
        }
    }
    supply(&mut send, answer.finish()).await
}
