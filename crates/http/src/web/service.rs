//! What servers answer requests with, in one word.

use std::future::Future;

use bytes::Bytes;
use http::{Request, Response};
use tower::Service;

use super::body::{Body, BoxError};

/// A tower service that servers of this crate can serve: of requests with a [`Body`], with responses
/// whatever their content, cloned for each connection or request. Never implemented by hand: every
/// such service is one, a router of axum for instance. Servers over TCP want it to be `Sync`, too.
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
    /// What the service fails with; clients see 500.
    type Failure: Into<BoxError>;
    /// A response on its way.
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
