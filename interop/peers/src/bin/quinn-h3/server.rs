//! The server: answers as the contract says.

use std::sync::Arc;

use bytes::{Buf, Bytes};
use h3::error::StreamError;
use h3::server::RequestStream;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use quinn::{Endpoint, Incoming, ServerConfig};
use swiftwater_interop_program::arguments::Suite;
use swiftwater_interop_program::http::{
    ALPN, Crc, H3Server, PIECE, SMALL, asked_size, letters, pattern, small,
};
use swiftwater_interop_program::tls::read_identity;
use tokio::sync::Notify;

use crate::{AnyError, tls};

type Stream = RequestStream<h3_quinn::BidiStream<Bytes>, Bytes>;

/// Serves until the program is ended.
pub(crate) async fn run(arguments: H3Server) -> Result<(), AnyError> {
    let identity = read_identity(&arguments.cert, &arguments.key)?;
    let crypto = tls::server(identity, ALPN, Suite::Any, arguments.zero_rtt)?;
    let endpoint = Endpoint::server(ServerConfig::with_crypto(crypto), arguments.listen)?;
    println!("listening on {}", endpoint.local_addr()?);
    while let Some(incoming) = endpoint.accept().await {
        tokio::spawn(async move {
            match serve(incoming, arguments.zero_rtt).await {
                Ok(why) => println!("connection ended: {why}"),
                Err(error) => println!("connection failed: {error}"),
            }
        });
    }
    Ok(())
}

async fn serve(incoming: Incoming, early: bool) -> Result<String, AnyError> {
    let mut connecting = incoming.accept()?;
    let connection = if early {
        // Before the ClientHello is complete no stream can be opened, and a waiting task then isn't
        // woken.
        connecting.handshake_data().await?;
        match connecting.into_0rtt() {
            Ok((connection, _)) => connection,
            Err(connecting) => connecting.await?,
        }
    } else {
        connecting.await?
    };
    println!("connection");
    let quic = connection.clone();
    let mut http = h3::server::Connection::new(h3_quinn::Connection::new(connection)).await?;
    let going = Arc::new(Notify::new());
    loop {
        tokio::select! {
            accepted = http.accept() => match accepted {
                Ok(Some(resolver)) => {
                    let going = Arc::clone(&going);
                    tokio::spawn(async move {
                        let Ok((request, stream)) = resolver.resolve_request().await else {
                            return println!("request failed");
                        };
                        if let Err(error) = answer(&request, stream, &going).await {
                            println!("request failed: {error}");
                        }
                    });
                }
                Ok(None) | Err(_) => break,
            },
            // h3 takes the identifier for the last request that it accepts, not for the first that it
            // doesn't (RFC 9114, section 5.2): with 0 it would revoke the one just accepted.
            () = going.notified() => http.shutdown(1).await?,
        }
    }
    Ok(match quic.closed().await {
        quinn::ConnectionError::ApplicationClosed(close) => {
            format!("{:#x}", close.error_code.into_inner())
        }
        other => other.to_string(),
    })
}

async fn answer(
    request: &Request<()>,
    mut stream: Stream,
    going: &Notify,
) -> Result<(), StreamError> {
    let (method, path) = (request.method(), request.uri().path());
    println!("request {method} {path}");
    match (method, path) {
        (&Method::GET, "/headers") => headers(&mut stream, request.headers()).await,
        (&Method::GET, "/slow") => endless(stream).await,
        (&Method::GET, "/goaway") => {
            // GOAWAY is sent first, so that the last permitted request is this one.
            going.notify_one();
            content(&mut stream, StatusCode::OK, Bytes::from_static(b"going")).await
        }
        (&Method::POST, "/echo" | "/trailers") => echo(stream).await,
        (&Method::GET, path) => match asked_size(path) {
            Some(size) => content(&mut stream, StatusCode::OK, pattern(size).into()).await,
            None => content(&mut stream, StatusCode::NOT_FOUND, Bytes::new()).await,
        },
        _ => content(&mut stream, StatusCode::NOT_FOUND, Bytes::new()).await,
    }
}

fn head(status: StatusCode) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    response
}

async fn content(
    stream: &mut Stream,
    status: StatusCode,
    content: Bytes,
) -> Result<(), StreamError> {
    stream.send_response(head(status)).await?;
    if !content.is_empty() {
        stream.send_data(content).await?;
    }
    stream.finish().await
}

/// Endless content, which reports when it is stopped.
async fn endless(mut stream: Stream) -> Result<(), StreamError> {
    stream.send_response(head(StatusCode::OK)).await?;
    let piece = Bytes::from(vec![b'.'; PIECE]);
    loop {
        match stream.send_data(piece.clone()).await {
            Ok(()) => {}
            Err(StreamError::RemoteTerminate { code, .. }) => {
                println!("cancelled {:#x}", code.value());
                stream.stop_stream(code);
                return Ok(());
            }
            Err(error) => return Err(error),
        }
    }
}

async fn echo(stream: Stream) -> Result<(), StreamError> {
    let (mut send, mut receive) = stream.split();
    send.send_response(head(StatusCode::OK)).await?;
    while let Some(mut data) = receive.recv_data().await? {
        send.send_data(data.copy_to_bytes(data.remaining())).await?;
    }
    if let Some(trailers) = receive.recv_trailers().await? {
        send.send_trailers(trailers).await?;
    }
    send.finish().await
}

async fn headers(stream: &mut Stream, asked: &HeaderMap) -> Result<(), StreamError> {
    let number = |name| asked.get(name)?.to_str().ok()?.parse::<usize>().ok();
    let (Some(size), Some(turn)) = (number("x-size"), number("x-turn")) else {
        return content(stream, StatusCode::BAD_REQUEST, Bytes::new()).await;
    };
    let sum = Crc::of(asked.get("x-large").map_or(b"", HeaderValue::as_bytes));
    let is_small = |name: &&HeaderName| name.as_str().starts_with(SMALL);
    let count = asked.keys().filter(is_small).count();
    let mut fields = vec![
        ("x-large".to_owned(), letters(size)),
        ("x-digest".to_owned(), sum.to_string()),
        ("x-count".to_owned(), count.to_string()),
    ];
    fields.extend((0..count).map(|nth| small(nth, turn)));
    let mut response = head(StatusCode::OK);
    for (name, value) in fields {
        let field = (
            HeaderName::from_bytes(name.as_bytes()),
            HeaderValue::from_str(&value),
        );
        if let (Ok(name), Ok(value)) = field {
            response.headers_mut().insert(name, value);
        }
    }
    stream.send_response(response).await?;
    stream.finish().await
}
