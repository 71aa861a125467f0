//! Which content a request is for: by its host, then by its path.

use std::collections::BTreeMap;
use std::convert::Infallible;

use http::header::LOCATION;
use http::uri::PathAndQuery;
use http::{HeaderValue, Request, Response, StatusCode, Uri};
use swiftwater_http::web::body::{Body, text_response};
use swiftwater_http::web::host::{host, host_name};
use tower::ServiceExt;

use super::config::values::{HostPattern, RoutePath};
use super::content::Content;

/// Sites by their hosts.
#[derive(Clone, Default)]
pub(super) struct Router {
    sites: Vec<Routes>,
    exact: BTreeMap<String, usize>,
    /// By what is behind the `*`, beginning with a dot.
    below: BTreeMap<String, usize>,
    /// For hosts that nobody else has.
    default: Option<usize>,
}

/// What is where on a site.
pub(super) type Routes = Vec<Route>;

/// What is below a path.
#[derive(Clone)]
pub(super) struct Route {
    pub(super) path: RoutePath,
    /// Whether the content sees paths without that of the route.
    pub(super) strip: bool,
    /// Whether the path itself is a directory, whose name ends in a slash.
    pub(super) directory: bool,
    pub(super) content: Content,
}

impl Router {
    /// Adds a site for `hosts`, for all others if there are none.
    pub(super) fn add(&mut self, hosts: &[HostPattern], mut routes: Routes) {
        let index = self.sites.len();
        // The longest that fits comes first.
        routes.sort_by_key(|route| std::cmp::Reverse(route.path.as_str().len()));
        self.sites.push(routes);
        if hosts.is_empty() {
            self.default = Some(index);
        }
        for pattern in hosts {
            match pattern.as_str().strip_prefix('*') {
                Some(below) => self.below.insert(below.to_owned(), index),
                None => self.exact.insert(pattern.as_str().to_owned(), index),
            };
        }
    }

    /// Answers a request.
    pub(super) async fn answer(
        &self,
        request: Request<Body>,
    ) -> Result<Response<Body>, Infallible> {
        let Some(routes) = self.site(host(&request)) else {
            // RFC 9110, section 15.5.20.
            return Ok(text_response(
                StatusCode::MISDIRECTED_REQUEST,
                "no such host here",
            ));
        };
        let path = request.uri().path();
        // What it means is up to who resolves it, and might lie below another route.
        if routes.len() > 1 && has_dot_segments(path) {
            return Ok(text_response(StatusCode::BAD_REQUEST, "dots in the path"));
        }
        match routes
            .iter()
            .find(|route| covers(route.path.as_str(), path))
        {
            Some(route) => route.answer(request).await,
            None => Ok(text_response(StatusCode::NOT_FOUND, "")),
        }
    }

    fn site(&self, host: Option<&str>) -> Option<&Routes> {
        let by_name = host.and_then(host_name).and_then(|name| {
            let below = || self.below.get(&name[name.find('.')?..]);
            self.exact.get(&name).or_else(below)
        });
        by_name
            .copied()
            .or(self.default)
            .and_then(|index| self.sites.get(index))
    }
}

impl Route {
    async fn answer(&self, request: Request<Body>) -> Result<Response<Body>, Infallible> {
        let prefix = self.path.as_str();
        if !self.strip || prefix == "/" {
            return self.content.clone().oneshot(request).await;
        }
        let query = request.uri().query();
        if self.directory && request.uri().path() == prefix {
            let target = with_query(&format!("{prefix}/"), query);
            return Ok(redirect(&target));
        }
        let rest = request.uri().path().strip_prefix(prefix).unwrap_or("/");
        let target = with_query(if rest.is_empty() { "/" } else { rest }, query);
        let Some(request) = with_target(request, &target) else {
            return Ok(text_response(StatusCode::BAD_REQUEST, ""));
        };
        let mut response = self.content.clone().oneshot(request).await?;
        restore_location(&mut response, prefix);
        Ok(response)
    }
}

/// Whether `path` is `prefix` or below it.
fn covers(prefix: &str, path: &str) -> bool {
    prefix == "/"
        || path
            .strip_prefix(prefix)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Whether `path` has a segment that means this directory or the one above, however it is written.
fn has_dot_segments(path: &str) -> bool {
    path.split('/').any(|segment| {
        let plain = segment.replace("%2e", ".").replace("%2E", ".");
        plain == "." || plain == ".."
    })
}

fn with_query(path: &str, query: Option<&str>) -> String {
    match query {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    }
}

/// `request` for another path and query; `None` if that is none.
fn with_target(mut request: Request<Body>, target: &str) -> Option<Request<Body>> {
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.path_and_query = Some(target.parse::<PathAndQuery>().ok()?);
    *request.uri_mut() = Uri::from_parts(parts).ok()?;
    Some(request)
}

fn redirect(target: &str) -> Response<Body> {
    let mut response = text_response(StatusCode::MOVED_PERMANENTLY, "");
    if let Ok(target) = HeaderValue::from_str(target) {
        response.headers_mut().insert(LOCATION, target);
    }
    response
}

/// Puts the prefix, which the content does not know, before the path in `Location`.
fn restore_location(response: &mut Response<Body>, prefix: &str) {
    let location = response.headers().get(LOCATION);
    let Some(path) = location.and_then(|value| value.to_str().ok()) else {
        return;
    };
    // Two slashes begin another host.
    if path.starts_with('/')
        && !path.starts_with("//")
        && let Ok(value) = HeaderValue::from_str(&format!("{prefix}{path}"))
    {
        response.headers_mut().insert(LOCATION, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_at_segments() {
        assert!(covers("/", "/x") && covers("/", "*") && covers("/", ""));
        assert!(covers("/api", "/api") && covers("/api", "/api/") && covers("/api", "/api/x"));
        assert!(!covers("/api", "/apis") && !covers("/api", "/x/api"));
    }

    #[test]
    fn dots_are_found_however_they_are_written() {
        for path in ["/..", "/a/../b", "/a/.", "/a/%2e%2E/b", "/.%2e"] {
            assert!(has_dot_segments(path), "{path}");
        }
        for path in ["/", "/...", "/.well-known/x", "/a..b", "/%2e%2e%2e"] {
            assert!(!has_dot_segments(path), "{path}");
        }
    }
}
