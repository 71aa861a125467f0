//! The server of a visit: the same service over HTTP/3 or over HTTP/2.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, mpsc};

use http::{Request, Response, StatusCode};
use swiftwater_http::tcp::{Certificates, TcpLimits, TcpServer, server_config};
use swiftwater_http::udp::{ALPN_HTTP3, H3Server};
use swiftwater_http::web::body::{Body, text_response};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinSet;
use tower::{Service, service_fn};

use super::plan::WebProtocol;
use super::visit::Stage;
use super::website::Website;
use crate::demo::tcp_controller;
use crate::exit::{Exit, Failure};
use crate::runtime::single_threaded;
use crate::transport::{listen, server};

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
    let http = H3Server::default();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            connection = quic.accept() => {
                let Some(connection) = connection else { return Ok(()) };
                let (http, service) = (http.clone(), service(&stage.website));
                connections.spawn(async move {
                    if let Err(error) = http.serve(connection, service).await {
                        tracing::info!(%error, "a connection failed");
                    }
                });
            }
            _ = &mut stop => return Ok(()),
        }
    }
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
        .serve(listener, service(&stage.website))?;
    // Stops when dropped.
    let _ = stop.await;
    Ok(())
}

/// Answers with the object at the path.
fn service(
    website: &Arc<Website>,
) -> impl Service<
    Request<Body>,
    Response = Response<Body>,
    Error = Infallible,
    Future = impl Future<Output = Result<Response<Body>, Infallible>> + Send + 'static,
> + Clone
+ Send
+ Sync
+ 'static {
    let website = Arc::clone(website);
    service_fn(move |request: Request<Body>| {
        let content = website.content(request.uri().path());
        let response = match content {
            Some(content) => Response::new(Body::full(content)),
            None => text_response(StatusCode::NOT_FOUND, ""),
        };
        std::future::ready(Ok(response))
    })
}
