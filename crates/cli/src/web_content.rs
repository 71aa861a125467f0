//! The one service type that the commands serve over HTTP: servers are compiled for it once.

use std::convert::Infallible;

use bytes::Bytes;
use http::{Request, Response};
use swiftwater_http::web::body::{Body, BoxError};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

/// A service for requests of every HTTP version; never fails.
pub(crate) type Content = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// `service` as content.
pub(crate) fn boxed<S, B>(service: S) -> Content
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    BoxCloneSyncService::new(service.map_response(|response: Response<B>| response.map(Body::new)))
}
