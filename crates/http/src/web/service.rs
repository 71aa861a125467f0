//! The service type of servers, as one trait.

use std::future::Future;

use bytes::Bytes;
use http::{Request, Response};
use tower::Service;

use super::body::{Body, BoxError};

/// A tower service that servers of this crate can serve: of requests with a [`Body`], with responses
/// whatever their content, cloned for each connection or request. Never implemented directly: every
/// such service implements it, a router of axum for instance. Servers over TCP also require `Sync`.
pub trait WebService:
    Service<
        Request<Body>,
        Response = Response<Self::Content>,
        Error = Self::Failure,
        Future = Self::Answering,
    > + Clone
    + Send
    + 'static
{
    /// The content of responses.
    type Content: http_body::Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static;
    /// The error of the service; clients get 500.
    type Failure: Into<BoxError>;
    /// The response future.
    type Answering: Future<Output = Result<Response<Self::Content>, Self::Failure>> + Send + 'static;
}

impl<S, B> WebService for S
where
    S: Service<Request<Body>, Response = Response<B>> + Clone + Send + 'static,
    S::Future: Send + 'static,
    S::Error: Into<BoxError>,
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Content = B;
    type Failure = S::Error;
    type Answering = S::Future;
}
