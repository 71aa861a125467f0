//! Answers requests.

use bytes::{Buf, Bytes};
use h3::server::RequestResolver;
use http::{Response, StatusCode};
use job::{Failure, HttpAnswer, ServerArguments, events};

use crate::quic::Incoming;
use crate::settings;

pub(crate) async fn run(arguments: ServerArguments) -> Result<(), Failure> {
    let endpoint = settings::server(&arguments)?;
    events::ready();
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(serve(incoming));
    }
    Ok(())
}

/// Answers a client until it closes.
async fn serve(incoming: Incoming) -> Result<(), Failure> {
    let connection = h3_quinn::Connection::new(incoming.await?);
    let mut builder = h3::server::builder();
    let mut requests = builder
        .send_grease(false)
        .build::<_, Bytes>(connection)
        .await?;
    while let Some(request) = requests.accept().await? {
        // A client that breaks off reports its reasons itself.
        tokio::spawn(answer(request));
    }
    Ok(())
}

async fn answer(request: RequestResolver<h3_quinn::Connection, Bytes>) -> Result<(), Failure> {
    let (request, mut stream) = request.resolve_request().await?;
    let mut answer = HttpAnswer::new(request.uri().path());
    while let Some(mut data) = stream.recv_data().await? {
        while data.has_remaining() {
            let chunk = data.chunk();
            if let Some(answer) = &mut answer {
                answer.receive(chunk);
            }
            let len = chunk.len();
            data.advance(len);
        }
    }
    let Some(mut content) = answer.and_then(HttpAnswer::finish) else {
        let refusal = Response::builder().status(StatusCode::BAD_REQUEST);
        stream.send_response(refusal.body(())?).await?;
        return Ok(stream.finish().await?);
    };
    let head = Response::builder().header("content-length", content.left());
    stream.send_response(head.body(())?).await?;
    while content.left() > 0 {
        let piece = content.next_bytes();
        content.advance(piece.len());
        stream.send_data(piece).await?;
    }
    Ok(stream.finish().await?)
}
