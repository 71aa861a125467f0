//! Between hyper and a tower service: what every request gets on its way in, every response on its
//! way out.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::{Body as _, Incoming};
use tower::ServiceExt;

use super::activity::{Activity, TrackedBody};
use super::limits::Limits;
use crate::web::body::{Body, BoxError, status_line};
use crate::web::connection_info::ConnectionInfo;
use crate::web::service::WebService;
use crate::web::timed_body::TimedBody;

/// The body of a response as hyper sees it: the service's, or a short text of ours.
pub(super) type OutgoingBody<B> = TrackedBody<Either<B, Full<Bytes>>>;

/// A tower service for the requests of one connection.
#[derive(Debug, Clone)]
pub(super) struct Adapter<S> {
    pub(super) service: S,
    pub(super) info: ConnectionInfo,
    pub(super) activity: Arc<Activity>,
    pub(super) limits: Arc<Limits>,
}

impl<S> hyper::service::Service<Request<Incoming>> for Adapter<S>
where
    S: WebService,
{
    type Response = Response<OutgoingBody<S::Content>>;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, BoxError>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let exchange = self.activity.begin();
        let Self {
            service,
            info,
            limits,
            ..
        } = self.clone();
        Box::pin(async move {
            let response = if request.headers().len() > limits.header_count {
                refuse(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
            } else {
                match service.oneshot(prepare(request, info, &limits)).await {
                    Ok(response) => response.map(Either::Left),
                    Err(error) => {
                        let error = error.into();
                        tracing::error!(%error, "the service failed");
                        refuse(StatusCode::INTERNAL_SERVER_ERROR)
                    }
                }
            };
            Ok(response.map(|body| TrackedBody::new(body, exchange)))
        })
    }
}

fn prepare(request: Request<Incoming>, info: ConnectionInfo, limits: &Limits) -> Request<Body> {
    let mut request = request.map(|body| {
        if body.is_end_stream() {
            Body::empty()
        } else {
            Body::new(TimedBody::new(body, limits.body_pace))
        }
    });
    request.extensions_mut().insert(info);
    request
}

fn refuse<B>(status: StatusCode) -> Response<Either<B, Full<Bytes>>> {
    let body = Full::new(Bytes::from(status_line(status, "")));
    let mut response = Response::new(Either::Right(body));
    *response.status_mut() = status;
    response
}
