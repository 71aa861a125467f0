//! Redirections of all requests to other addresses.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::task::{Context, Poll};

use http::header::LOCATION;
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use thiserror::Error;
use tower::Service;

use super::body::{Body, text_response};
use super::host::{host, host_name};

/// Stands for the path and query of the request in an address.
const PATH: &str = "{path}";
/// Stands for the host of the request, without port.
const HOST: &str = "{host}";

/// Why a text is no address to redirect to.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum RedirectError {
    /// It does not begin with a scheme or a path.
    #[error("an address begins with https://, http:// or a slash")]
    Target,
    /// It is not a URI.
    #[error("not an address of the web")]
    Syntax,
    /// The status does not redirect.
    #[error("the status of a redirection is 301, 302, 303, 307 or 308")]
    Status,
}

/// Answers each request with another address.
#[derive(Clone, Debug)]
pub struct Redirect {
    target: String,
    status: StatusCode,
}

impl Redirect {
    /// To `target`: `https://…`, `http://…`, or a path. `{path}` in it stands for path and query of the request, which
    /// begin with one slash, `{host}` for its host without port. With `status` 307 and 308 clients repeat method and
    /// content, with 301 and 302 usually not, with 303 never.
    pub fn new(target: &str, status: u16) -> Result<Self, RedirectError> {
        let is_path = target.starts_with('/') && !target.starts_with("//");
        let is_absolute = target.starts_with("https://") || target.starts_with("http://");
        if !is_path && !is_absolute {
            return Err(RedirectError::Target);
        }
        let example = target.replace(PATH, "/a?b").replace(HOST, "example.org");
        let uri: Uri = example.parse().map_err(|_| RedirectError::Syntax)?;
        if is_absolute && uri.host().is_none_or(str::is_empty) {
            return Err(RedirectError::Syntax);
        }
        if !matches!(status, 301 | 302 | 303 | 307 | 308) {
            return Err(RedirectError::Status);
        }
        let status = StatusCode::from_u16(status).map_err(|_| RedirectError::Status)?;
        // The path has a slash of its own; two at the start would be read as a host.
        let target = target.replace("/{path}", PATH);
        Ok(Self { target, status })
    }

    /// The address for a request; `None` if it needs a host and the request has no valid one.
    fn location<B>(&self, request: &Request<B>) -> Option<HeaderValue> {
        let mut target = self.target.clone();
        if target.contains(HOST) {
            target = target.replace(HOST, &host_name(host(request)?)?);
        }
        if target.contains(PATH) {
            let path = request.uri().path_and_query().map_or("/", |it| it.as_str());
            let path = format!("/{}", path.trim_start_matches(['/', '\\']));
            target = target.replace(PATH, &path);
        }
        HeaderValue::from_str(&target).ok()
    }
}

impl<B> Service<Request<B>> for Redirect {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Ready<Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let Some(location) = self.location(&request) else {
            return ready(Ok(text_response(StatusCode::BAD_REQUEST, "no valid host")));
        };
        let mut response = text_response(self.status, "");
        response.headers_mut().insert(LOCATION, location);
        ready(Ok(response))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(target: &str, uri: &str, host: &str) -> Option<String> {
        let redirect = Redirect::new(target, 308).unwrap();
        let request = Request::get(uri).header("host", host).body(()).unwrap();
        let location = redirect.location(&request)?;
        Some(location.to_str().unwrap().to_owned())
    }

    #[test]
    fn path_and_host_are_filled_in() {
        let of = |target, uri| location(target, uri, "example.org:8080").unwrap();
        assert_eq!(
            of("https://{host}{path}", "/a/b?c=d"),
            "https://example.org/a/b?c=d"
        );
        assert_eq!(
            of("https://{host}:8443{path}", "/"),
            "https://example.org:8443/"
        );
        assert_eq!(of("https://other/new", "/a?b"), "https://other/new");
        assert_eq!(of("/new{path}", "/a?b"), "/new/a?b");
        assert_eq!(
            location("https://{host}{path}", "/", "[::1]:80").unwrap(),
            "https://[::1]/"
        );
    }

    #[test]
    fn requests_choose_no_other_host() {
        for path in ["//evil.example/x", "///evil.example/x", "/\\evil.example/x"] {
            let Ok(uri) = path.parse::<Uri>() else {
                continue;
            };
            let uri = uri.to_string();
            for (target, expected) in [
                ("/{path}", "/evil.example/x"),
                ("https://good{path}", "https://good/evil.example/x"),
                ("https://good/{path}", "https://good/evil.example/x"),
            ] {
                assert_eq!(location(target, &uri, "a").unwrap(), expected, "{path}");
            }
        }
        assert_eq!(location("https://{host}{path}", "/", "a b"), None);
        assert_eq!(location("https://{host}{path}", "/", ""), None);
    }

    #[test]
    fn what_is_no_redirection_is_refused() {
        let of = |target, status| Redirect::new(target, status).unwrap_err();
        for target in [
            "example.org",
            "//example.org",
            "ftp://example.org",
            "{path}",
            "",
        ] {
            assert_eq!(of(target, 301), RedirectError::Target, "{target}");
        }
        assert_eq!(of("https://", 301), RedirectError::Syntax);
        assert_eq!(of("https://a b/", 301), RedirectError::Syntax);
        assert_eq!(of("https://a/", 200), RedirectError::Status);
        assert_eq!(of("https://a/", 304), RedirectError::Status);
    }
}
