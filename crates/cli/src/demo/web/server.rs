//! The server of a visit: the same service over HTTP/3 or over HTTP/2.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, mpsc};

use http::{Request, Response, StatusCode};
use swiftwater_http::tcp::{Certificates, TcpLimits, TcpServer, server_config};
use swiftwater_http::udp::ALPN_HTTP3;
use swiftwater_http::web::body::{Body, text_response};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tower::service_fn;

use super::plan::WebProtocol;
use super::visit::Stage;
use super::website::Website;
use crate::demo::http3_connections::serve_http3;
use crate::demo::tcp_controller;
use crate::exit::{Exit, Failure};
use crate::runtime::single_threaded;
use crate::transport::{listen, server};
use crate::web_content::{Content, boxed};

/// Concurrent requests, the same for both.
const STREAMS: u32 = 128;

/// A running server.
pub(super) struct Listening {
    pub(super) address: SocketAddr,
    /// The kernel's congestion controller of its TCP connections.
    pub(super) tcp_controller: Option<String>,
}

/// Receiver of the address, or of the failure.
pub(super) type Waiting = mpsc::Sender<Result<Listening, Failure>>;

/// Serves until `stop` is dropped; `listening` gets the address, or the failure.
pub(super) fn run(
    stage: &Arc<Stage>,
    protocol: WebProtocol,
    address: IpAddr,
    listening: &Waiting,
    stop: oneshot::Receiver<()>,
) {
    let served = single_threaded().and_then(|runtime| {
        runtime.block_on(async {
            match protocol {
                WebProtocol::Http3 => http3(stage, address, listening, stop).await,
                WebProtocol::Http2 => http2(stage, address, listening, stop).await,
            }
        })
    });
    if let Err(failure) = served {
        // The receiver is gone if the address was sent already.
        let _ = listening.send(Err(failure));
    }
}

async fn http3(
    stage: &Arc<Stage>,
    address: IpAddr,
    listening: &Waiting,
    mut stop: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    let builder = server(&stage.identity, &[ALPN_HTTP3], &stage.tuning)
        .transport(|transport| transport.max_concurrent_bidi_streams = STREAMS.into());
    let quic = listen(&builder, (address, 0).into())?;
    let _ = listening.send(Ok(Listening {
        address: quic.local_addr(),
        tcp_controller: None,
    }));
    tokio::select! {
        () = serve_http3(&quic, content(&stage.website), |_| ()) => {}
        _ = &mut stop => {}
    }
    Ok(())
}

async fn http2(
    stage: &Arc<Stage>,
    address: IpAddr,
    listening: &Waiting,
    stop: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    let bad = |error: &dyn std::fmt::Display| Failure::new(Exit::Certificate, error);
    let certificates = Certificates::from_pem(&stage.identity.chain, &stage.identity.key)
        .map_err(|error| bad(&error))?;
    let tls = server_config(Arc::new(certificates)).map_err(|error| bad(&error))?;
    let listener = TcpListener::bind((address, 0)).await?;
    let _ = listening.send(Ok(Listening {
        address: listener.local_addr()?,
        tcp_controller: tcp_controller::set(&listener, stage.tcp_controller.as_deref())?,
    }));
    let limits = TcpLimits {
        concurrent_streams: STREAMS,
        ..TcpLimits::default()
    };
    let _running = TcpServer::tls(Arc::new(tls))
        .limits(limits)
        .serve(listener, content(&stage.website))?;
    // Stops when dropped.
    let _ = stop.await;
    Ok(())
}

/// Answers with the object at the path.
fn content(website: &Arc<Website>) -> Content {
    let website = Arc::clone(website);
    boxed(service_fn(move |request: Request<Body>| {
        let object = website.content(request.uri().path());
        let response = match object {
            Some(object) => Response::new(Body::full(object)),
            None => text_response(StatusCode::NOT_FOUND, ""),
        };
        std::future::ready(Ok::<_, Infallible>(response))
    }))
}
