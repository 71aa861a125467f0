//! The server of a variant: one service over HTTP/3, and over HTTP/2 at the same port.

use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, mpsc};

use http::{Request, Response, StatusCode};
use swiftwater_http::tcp::{Certificates, TcpServer, server_config};
use swiftwater_http::udp::ALPN_HTTP3;
use swiftwater_http::web::body::{Body, text_response};
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tower::service_fn;

use super::variant::Stage;
use crate::demo::http3_connections::serve_http3;
use crate::demo::tcp_controller;
use crate::exit::{Exit, Failure};
use crate::runtime::single_threaded;
use crate::transport::{listen, server};
use crate::web_content::boxed;

/// A server that runs.
pub(super) struct Listening {
    /// Of UDP and TCP.
    pub(super) at: SocketAddr,
    /// The congestion controller of the kernel's TCP.
    pub(super) tcp_controller: Option<String>,
}

/// Serves until `stop` is dropped; `ready` gets the address, or the failure.
pub(super) fn run(
    stage: &Arc<Stage>,
    address: IpAddr,
    ready: &mpsc::Sender<Result<Listening, Failure>>,
    stop: oneshot::Receiver<()>,
) {
    let served =
        single_threaded().and_then(|runtime| runtime.block_on(serve(stage, address, ready, stop)));
    if let Err(failure) = served {
        // The receiver is gone if the address was sent already.
        let _ = ready.send(Err(failure));
    }
}

async fn serve(
    stage: &Arc<Stage>,
    address: IpAddr,
    ready: &mpsc::Sender<Result<Listening, Failure>>,
    mut stop: oneshot::Receiver<()>,
) -> Result<(), Failure> {
    let bad = |error: &dyn std::fmt::Display| Failure::new(Exit::Certificate, error);
    let identity = &stage.identity;
    let certificates = Certificates::from_pem(&identity.chain, &identity.key);
    let certificates = certificates.map_err(|error| bad(&error))?;
    let tls = server_config(Arc::new(certificates)).map_err(|error| bad(&error))?;
    let listener = TcpListener::bind((address, 0)).await?;
    let at = listener.local_addr()?;
    let wanted = stage.plan.tcp_controller.as_deref();
    let tcp_controller = tcp_controller::set(&listener, wanted)?;
    let quic = listen(&server(identity, &[ALPN_HTTP3], &stage.plan.tuning), at)?;
    let service = {
        let stage = Arc::clone(stage);
        boxed(service_fn(move |request: Request<Body>| {
            let content = stage.plan.browsing.content(request.uri().path());
            let response = match content {
                Some(content) => Response::new(Body::full(content)),
                None => text_response(StatusCode::NOT_FOUND, ""),
            };
            std::future::ready(Ok::<_, Infallible>(response))
        }))
    };
    // Stops when dropped.
    let _over_tcp = TcpServer::tls(Arc::new(tls)).serve(listener, service.clone())?;
    let _ = ready.send(Ok(Listening { at, tcp_controller }));
    tokio::select! {
        () = serve_http3(&quic, service, |_| ()) => {}
        _ = &mut stop => {}
    }
    Ok(())
}
