//! The server: a tower service on [`H3Server`].

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::header::{HeaderMap, HeaderValue};
use http::{Method, Request, Response, StatusCode};
use http_body::Frame;
use http_body_util::StreamBody;
use swiftwater_http::h3;
use swiftwater_http::udp::{ALPN_HTTP3, H3Server};
use swiftwater_http::web::body::Body;
use swiftwater_http::web::early_data;
use swiftwater_net::quic::{ConnectionError, EarlyData, ServerConfig, TransportConfig};
use swiftwater_net::{Connection, Endpoint};
use swiftwater_tls::{ServerTls, Tickets};
use tower::service_fn;

use crate::content::{Crc, LARGE, add_small, count_small, letters, pattern};
use crate::{AnyError, Arguments, endpoint_options};

/// Most content that is made in memory, bytes.
const MOST: usize = 16 << 20;

/// Longest header value that is answered with, bytes.
const LONGEST: usize = 60_000;

/// A piece of the endless content, bytes.
const PIECE: usize = 16 << 10;

/// Sessions whose tickets are valid.
const SESSIONS: usize = 100;

/// Serves until the program is ended.
pub(crate) async fn run(arguments: &Arguments) -> Result<(), AnyError> {
    let early = arguments.has("zero-rtt");
    let tls = ServerTls::from_pem(&arguments.file("cert")?, &arguments.file("key")?)?
        .alpn([ALPN_HTTP3])
        .tickets(Tickets::SingleUse { capacity: SESSIONS })?
        .early_data(early)
        .key_log_file();
    let mut config = ServerConfig::new(Arc::new(tls), Arc::new(TransportConfig::default()));
    if early {
        config.early_data = EarlyData::Accept;
    }
    let options = endpoint_options()?.server(config);
    let endpoint = Endpoint::bind(arguments.address("listen")?, options)?;
    println!("listening on {}", endpoint.local_addr());
    let server = H3Server::new(h3::Config::default());
    while let Some(connection) = endpoint.accept().await {
        tokio::spawn(serve(server.clone(), connection));
    }
    Ok(())
}

async fn serve(server: H3Server, connection: Connection) {
    let draining = server.clone();
    let service = service_fn(move |request| {
        let server = draining.clone();
        async move { Ok::<_, Infallible>(answer(request, &server)) }
    });
    let served = server.serve(connection.clone(), service).await;
    let code = match connection.close_reason() {
        Some(
            ConnectionError::PeerApplication { code, .. }
            | ConnectionError::LocallyClosed { code, .. },
        ) => format!("{code:#x}"),
        other => format!("{other:?}"),
    };
    println!("connection ended: {code}");
    if let Err(error) = served {
        println!("connection failed: {error}");
    }
}

fn answer(request: Request<Body>, server: &H3Server) -> Response<Body> {
    let path = request.uri().path().to_owned();
    let early = if early_data::is_early(&request) {
        " early"
    } else {
        ""
    };
    println!("request {} {path}{early}", request.method());
    match (request.method(), path.as_str()) {
        (&Method::GET, "/headers") => headers(request.headers()),
        (&Method::GET, "/slow") => Response::new(endless()),
        (&Method::GET, "/goaway") => {
            server.drain();
            Response::new(Body::full("going"))
        }
        (&Method::POST, "/echo" | "/trailers") => Response::new(request.into_body()),
        (&Method::GET, path) => match path.strip_prefix("/bytes/").map(str::parse) {
            Some(Ok(size @ 0..=MOST)) => Response::new(Body::full(pattern(size))),
            _ => refusal(StatusCode::NOT_FOUND),
        },
        _ => refusal(StatusCode::NOT_FOUND),
    }
}

fn refusal(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Headers of the requested size, and a report on the request's headers.
fn headers(asked: &HeaderMap) -> Response<Body> {
    let number = |name| asked.get(name)?.to_str().ok()?.parse::<usize>().ok();
    let (Some(size @ 0..=LONGEST), Some(turn)) = (number("x-size"), number("x-turn")) else {
        return refusal(StatusCode::BAD_REQUEST);
    };
    let sum = Crc::of(asked.get(LARGE).map_or(b"", HeaderValue::as_bytes));
    let count = count_small(asked);
    let mut response = Response::new(Body::empty());
    let told = response.headers_mut();
    told.insert(LARGE, letters(size));
    told.insert("x-digest", HeaderValue::from(sum));
    told.insert("x-count", HeaderValue::from(count));
    add_small(told, count, turn);
    response
}

/// Endless content, which reports when it is stopped.
fn endless() -> Body {
    struct Wanted;
    impl Drop for Wanted {
        fn drop(&mut self) {
            println!("cancelled");
        }
    }
    let pieces = stream::unfold(Wanted, |wanted| async {
        let piece = Frame::data(Bytes::from(vec![b'.'; PIECE]));
        Some((Ok::<_, Infallible>(piece), wanted))
    });
    Body::new(StreamBody::new(Box::pin(pieces)))
}
