//! Answers the comparison's protocol.

use std::sync::Arc;

use job::{Answer, Failure, ServerArguments, events};
use swiftwater::{Connection, RecvStream, SendStream};

use crate::hosted::Responder;
use crate::settings;
use crate::streams::{Reader, supply};

pub(crate) async fn run(arguments: &ServerArguments) -> Result<(), Failure> {
    let server = settings::server(arguments)?;
    events::ready();
    while let Some(connection) = server.accept().await {
        if arguments.settings.tuned {
            tokio::spawn(host(connection));
        } else {
            tokio::spawn(serve(connection));
        }
    }
    Ok(())
}

/// Answers a client from inside the worker.
async fn host(connection: Connection) {
    connection.host(Arc::new(Responder::default()));
    connection.closed().await;
}

/// Answers a client until it closes.
async fn serve(connection: Connection) {
    while let Ok((send, receive)) = connection.accept_bi().await {
        // A client that breaks off reports its reasons itself.
        tokio::spawn(answer(send, receive));
    }
}

async fn answer(mut send: SendStream, receive: RecvStream) -> Result<(), Failure> {
    let mut answer = Answer::default();
    let mut reader = Reader::new(receive);
    let mut early = None;
    while reader.next(|data| early = answer.receive(data)).await? {
        if let Some(reply) = early.take() {
            supply(&mut send, reply).await?;
        }
    }
    supply(&mut send, answer.finish()).await
}
