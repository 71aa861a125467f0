//! Validation of names over HTTP (HTTP-01, RFC 8555, section 8.3): requests of a certificate authority for
//! `/.well-known/acme-challenge/` are answered, all others passed on.

use std::collections::BTreeMap;
use std::future::{Ready, ready};
use std::sync::{Arc, PoisonError, RwLock};
use std::task::{Context, Poll};

use futures_util::future::Either;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Method, Request, Response};
use tower::{Layer, Service};

use super::body::Body;

/// Where validations are requested.
const DIRECTORY: &str = "/.well-known/acme-challenge/";

/// The answers to pending validations, by token. Clones share them.
#[derive(Clone, Debug, Default)]
pub struct HttpChallenges {
    pending: Arc<RwLock<BTreeMap<String, String>>>,
}

impl HttpChallenges {
    /// Answers requests for `token` with `key_authorization` (RFC 8555, section 8.1), until [`remove`](Self::remove).
    pub fn set(&self, token: &str, key_authorization: &str) {
        let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        pending.insert(token.to_owned(), key_authorization.to_owned());
    }

    /// Ends the validation with `token`.
    pub fn remove(&self, token: &str) {
        let mut pending = self.pending.write().unwrap_or_else(PoisonError::into_inner);
        pending.remove(token);
    }

    fn answer<B>(&self, request: &Request<B>) -> Option<String> {
        let token = request.uri().path().strip_prefix(DIRECTORY)?;
        let pending = self.pending.read().unwrap_or_else(PoisonError::into_inner);
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        pending.get(token).filter(|_| is_read).cloned()
    }
}

impl<S> Layer<S> for HttpChallenges {
    type Service = AnswerChallenges<S>;

    fn layer(&self, others: S) -> Self::Service {
        AnswerChallenges {
            challenges: self.clone(),
            others,
        }
    }
}

/// Answers validations, and passes all other requests on; made by [`HttpChallenges`] as a layer.
#[derive(Clone, Debug)]
pub struct AnswerChallenges<S> {
    challenges: HttpChallenges,
    others: S,
}

impl<S, B> Service<Request<B>> for AnswerChallenges<S>
where
    S: Service<Request<B>, Response = Response<Body>>,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Either<Ready<Result<Response<Body>, S::Error>>, S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.others.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Some(answer) = self.challenges.answer(&request) else {
            return Either::Right(self.others.call(request));
        };
        let length = HeaderValue::from(answer.len());
        let mut response = Response::new(Body::full(answer));
        let kind = HeaderValue::from_static("application/octet-stream");
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response.headers_mut().insert(CONTENT_LENGTH, length);
        Either::Left(ready(Ok(response)))
    }
}
