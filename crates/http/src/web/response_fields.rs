//! Sets and removes fields of responses, for security policies, cross-origin requests and caching.

use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::{future::Future, pin::Pin};

use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Request, Response};
use pin_project_lite::pin_project;
use thiserror::Error;
use tower::{Layer, Service};

/// Fields that describe the connection or the content as it is sent: only those who send know them.
const OF_MESSAGES: [HeaderName; 7] = [
    header::CONNECTION,
    header::CONTENT_LENGTH,
    header::TE,
    header::TRAILER,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    header::CONTENT_ENCODING,
];

/// Why a field can't be set.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ResponseFieldError {
    /// It is not the name of a field (RFC 9110, section 5.1).
    #[error("`{0}` is not the name of a field")]
    Name(String),
    /// The value has characters that fields can't hold (RFC 9110, section 5.5).
    #[error("the value of `{0}` has characters that fields can't hold")]
    Value(String),
    /// The field describes the message itself.
    #[error("`{0}` is set by the server")]
    OfMessage(String),
}

/// Fields to set, in the place of those that a response has, or to remove.
#[derive(Clone, Debug, Default)]
pub struct ResponseFields {
    fields: Arc<Vec<(HeaderName, Option<HeaderValue>)>>,
}

impl ResponseFields {
    /// From names and values; an empty value removes the field. A later entry replaces an earlier one of the same name.
    pub fn new<'a>(
        fields: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, ResponseFieldError> {
        let mut parsed: Vec<(HeaderName, Option<HeaderValue>)> = Vec::new();
        for (text, value) in fields {
            let name = HeaderName::from_bytes(text.as_bytes());
            let name = name.map_err(|_| ResponseFieldError::Name(text.to_owned()))?;
            if OF_MESSAGES.contains(&name) {
                return Err(ResponseFieldError::OfMessage(text.to_owned()));
            }
            let value = match value {
                "" => None,
                value => {
                    let value = HeaderValue::from_str(value);
                    Some(value.map_err(|_| ResponseFieldError::Value(text.to_owned()))?)
                }
            };
            parsed.retain(|(known, _)| *known != name);
            parsed.push((name, value));
        }
        Ok(Self {
            fields: Arc::new(parsed),
        })
    }

    /// True if there are none.
    pub fn is_empty(&self) -> bool {
        self.fields.is_empty()
    }

    /// Changes the fields of a response.
    pub fn apply(&self, headers: &mut HeaderMap) {
        for (name, value) in self.fields.iter() {
            match value {
                Some(value) => drop(headers.insert(name.clone(), value.clone())),
                None => while headers.remove(name).is_some() {},
            }
        }
    }
}

impl<S> Layer<S> for ResponseFields {
    type Service = WithResponseFields<S>;

    fn layer(&self, inner: S) -> Self::Service {
        WithResponseFields {
            inner,
            fields: self.clone(),
        }
    }
}

/// A service behind [`ResponseFields`].
#[derive(Clone, Debug)]
pub struct WithResponseFields<S> {
    inner: S,
    fields: ResponseFields,
}

impl<S, B, R> Service<Request<B>> for WithResponseFields<S>
where
    S: Service<Request<B>, Response = Response<R>>,
{
    type Response = Response<R>;
    type Error = S::Error;
    type Future = ResponseFieldsFuture<S::Future>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        ResponseFieldsFuture {
            inner: self.inner.call(request),
            fields: self.fields.clone(),
        }
    }
}

pin_project! {
    /// Response future of [`WithResponseFields`].
    #[derive(Debug)]
    pub struct ResponseFieldsFuture<F> {
        #[pin]
        inner: F,
        fields: ResponseFields,
    }
}

impl<F, R, E> Future for ResponseFieldsFuture<F>
where
    F: Future<Output = Result<Response<R>, E>>,
{
    type Output = Result<Response<R>, E>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let mut response = ready!(this.inner.poll(cx))?;
        this.fields.apply(response.headers_mut());
        Poll::Ready(Ok(response))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_set_replaced_and_removed() {
        let fields = [
            ("X-Frame-Options", "SAMEORIGIN"),
            ("Server", ""),
            ("x-frame-options", "DENY"),
        ];
        let fields = ResponseFields::new(fields).unwrap();
        let mut headers = HeaderMap::new();
        for (name, value) in [("server", "a"), ("x-frame-options", "b"), ("date", "c")] {
            headers.append(name, HeaderValue::from_static(value));
        }
        headers.append("server", HeaderValue::from_static("d"));
        fields.apply(&mut headers);
        assert_eq!(headers.get("server"), None);
        assert_eq!(headers["x-frame-options"], "DENY");
        assert_eq!(headers["date"], "c");
        assert_eq!(headers.len(), 2);
    }

    #[test]
    fn what_is_no_field_is_refused() {
        let of = |name, value| ResponseFields::new([(name, value)]).unwrap_err();
        assert!(matches!(of("a b", "x"), ResponseFieldError::Name(_)));
        assert!(matches!(of("a", "x\r\ny: z"), ResponseFieldError::Value(_)));
        let of_message = of("Content-Length", "1");
        assert!(matches!(of_message, ResponseFieldError::OfMessage(_)));
    }
}
