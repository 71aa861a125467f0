//! Selects the content of a request by its host, then by its decoded path ([`RequestPath`]), which is
//! also used to look up files.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::convert::Infallible;

use http::header::LOCATION;
use http::uri::PathAndQuery;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version};
use swiftwater_http::web::body::{Body, text_response};
use swiftwater_http::web::connection_info::ConnectionInfo;
use swiftwater_http::web::host::{host, host_name};
use swiftwater_http::web::request_path::RequestPath;
use swiftwater_http::web::response_fields::ResponseFields;
use swiftwater_http::web::upgrade::UpgradeRequest;
use tower::ServiceExt;

use super::config::values::{HostPattern, RoutePath};
use crate::web_content::Content;

/// Sites by their hosts.
#[derive(Clone, Default)]
pub(super) struct Router {
    sites: Vec<SiteRoutes>,
    exact: BTreeMap<String, usize>,
    /// By the suffix after the `*`, starting with a dot.
    below: BTreeMap<String, usize>,
    /// For hosts of no other site.
    default: Option<usize>,
}

/// The routes of a site.
#[derive(Clone)]
struct SiteRoutes {
    routes: Vec<RouteService>,
    /// Fields of answers that come from no route.
    fields: ResponseFields,
}

/// The content below a path.
#[derive(Clone)]
pub(super) struct RouteService {
    pub(super) path: RoutePath,
    /// Whether the route's path is removed for the content.
    pub(super) strip: bool,
    /// Whether the path itself is a directory, whose name ends in a slash.
    pub(super) directory: bool,
    /// Whether `Location` of the content lacks the route's path too, if that is removed.
    pub(super) relocate: bool,
    /// Whether the content answers requests for other protocols itself.
    pub(super) takes_protocols: bool,
    /// Whether the content is a proxy for tunnels, in whose paths a slash may be part of a segment (RFC 9484, section 4.6).
    pub(super) tunnels: bool,
    pub(super) content: Content,
    /// Fields of the site, for answers that do not come from the content.
    pub(super) fields: ResponseFields,
}

impl Router {
    /// Adds a site for `hosts`, for all others if there are none, with `fields` in answers that come from no route.
    pub(super) fn add(
        &mut self,
        hosts: &[HostPattern],
        mut routes: Vec<RouteService>,
        fields: ResponseFields,
    ) {
        let index = self.sites.len();
        // Sorted by length, the longest first.
        routes.sort_by_key(|route| std::cmp::Reverse(route.path.as_str().len()));
        self.sites.push(SiteRoutes { routes, fields });
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
        let Some(site) = self.site(site_name(&request).as_deref()) else {
            // RFC 9110, section 15.5.20.
            return Ok(text_response(
                StatusCode::MISDIRECTED_REQUEST,
                "no such host here",
            ));
        };
        let path = request.uri().path().to_owned();
        match choose(&site.routes, &path) {
            Choice::Route(route, _)
                if !route.directory && request.version() == Version::HTTP_09 =>
            {
                // `hq-interop` can't carry the fields that upstreams exchange.
                let text = "only files are served over hq-interop";
                Ok(with(&route.fields, StatusCode::FORBIDDEN, text))
            }
            Choice::Route(route, _) if route.refuses(&request) => {
                // RFC 9220, section 3.
                let text = "the protocol of the request is unknown here";
                Ok(with(&route.fields, StatusCode::NOT_IMPLEMENTED, text))
            }
            Choice::Route(route, rest) => route.answer(request, rest).await,
            Choice::Refused => {
                let text = "other programs may interpret the path differently";
                Ok(with(&site.fields, StatusCode::BAD_REQUEST, text))
            }
            Choice::None => Ok(with(&site.fields, StatusCode::NOT_FOUND, "")),
        }
    }

    fn site(&self, host: Option<&str>) -> Option<&SiteRoutes> {
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

/// The host whose site answers a request. A request for a TCP tunnel names the target in its place (RFC 9110, section
/// 9.3.6): the site is that of the name or address by which the client knows the server.
fn site_name(request: &Request<Body>) -> Option<Cow<'_, str>> {
    let upgrade = request.extensions().get::<UpgradeRequest>();
    let is_to_target = request.method() == Method::CONNECT
        && upgrade.is_some_and(|upgrade| upgrade.protocol().is_none());
    if !is_to_target {
        return host(request).map(Cow::Borrowed);
    }
    let connection = request.extensions().get::<ConnectionInfo>()?;
    let by_name = connection.server_name.as_deref().map(Cow::Borrowed);
    // An address is no server name (RFC 6066, section 3).
    by_name.or_else(|| Some(Cow::Owned(connection.local.to_string())))
}

/// Result of routing a path.
enum Choice<'a> {
    /// A route, and the rest of the path after the route's own.
    Route(&'a RouteService, &'a str),
    /// Programs differ in how they interpret the path, and some may resolve it to another route's.
    Refused,
    None,
}

/// The route of `path`.
fn choose<'a>(routes: &'a [RouteService], path: &'a str) -> Choice<'a> {
    if let [only] = routes
        && only.path.as_str() == "/"
    {
        return Choice::Route(only, path);
    }
    if !path.starts_with('/') {
        // OPTIONS * and CONNECT: only a route for all paths matches.
        let all = routes.iter().find(|route| route.path.as_str() == "/");
        return all.map_or(Choice::None, |route| Choice::Route(route, path));
    }
    let Ok(meaning) = RequestPath::parse(path) else {
        return Choice::Refused;
    };
    if has_dot_segments(path) {
        return Choice::Refused;
    }
    // The longest first.
    let found = routes.iter().find_map(|route| {
        let rest = meaning.strip_prefix(route.path.as_str())?;
        Some((route, rest))
    });
    match found {
        Some((route, rest)) if route.tunnels || !meaning.is_ambiguous() => {
            Choice::Route(route, rest)
        }
        None if !meaning.is_ambiguous() => Choice::None,
        _ => Choice::Refused,
    }
}

impl RouteService {
    /// Whether `request` asks for a protocol by extended CONNECT and the content has none.
    fn refuses(&self, request: &Request<Body>) -> bool {
        let asked = request.extensions().get::<UpgradeRequest>();
        !self.takes_protocols
            && asked.is_some_and(|asked| asked.is_connect() && asked.protocol().is_some())
    }

    /// Answers a request whose path has `rest` after the route's path.
    async fn answer(
        &self,
        request: Request<Body>,
        rest: &str,
    ) -> Result<Response<Body>, Infallible> {
        let prefix = self.path.as_str();
        if !self.strip || prefix == "/" {
            return self.content.clone().oneshot(request).await;
        }
        let query = request.uri().query();
        if self.directory && rest.is_empty() {
            let target = with_query(&format!("{prefix}/"), query);
            let mut response = redirect(&target);
            self.fields.apply(response.headers_mut());
            return Ok(response);
        }
        // Some programs interpret two slashes at the start as a host.
        let rest = format!("/{}", rest.trim_start_matches('/'));
        let target = with_query(&rest, query);
        let Some(request) = with_target(request, &target) else {
            return Ok(with(&self.fields, StatusCode::BAD_REQUEST, ""));
        };
        let mut response = self.content.clone().oneshot(request).await?;
        if self.relocate {
            restore_location(&mut response, prefix);
        }
        Ok(response)
    }
}

/// A short answer with `fields`.
fn with(fields: &ResponseFields, status: StatusCode, text: &'static str) -> Response<Body> {
    let mut response = text_response(status, text);
    fields.apply(response.headers_mut());
    response
}

/// Whether `path` has a segment `.` or `..` in any encoding. File look-up ignores `.`; upstreams get
/// paths as they were sent.
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

/// `request` for another path and query; `None` if it is invalid.
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

/// Adds the removed prefix to the path in `Location`.
fn restore_location(response: &mut Response<Body>, prefix: &str) {
    let location = response.headers().get(LOCATION);
    let Some(path) = location.and_then(|value| value.to_str().ok()) else {
        return;
    };
    // Two slashes start another host.
    if path.starts_with('/')
        && !path.starts_with("//")
        && let Ok(value) = HeaderValue::from_str(&format!("{prefix}{path}"))
    {
        response.headers_mut().insert(LOCATION, value);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tower::service_fn;

    use super::*;

    /// Routes whose content is never requested.
    fn routes(paths: &[&str]) -> Vec<RouteService> {
        routes_with_tunnels(paths, &[])
    }

    /// The same, of which `tunnels` are proxies for tunnels.
    fn routes_with_tunnels(paths: &[&str], tunnels: &[&str]) -> Vec<RouteService> {
        let content = service_fn(|_| async { Ok(text_response(StatusCode::OK, "")) });
        let paths = paths.iter().map(|path| {
            let value = toml::Value::String((*path).to_owned());
            RouteService {
                path: value.try_into().expect("the path of a route"),
                strip: true,
                directory: true,
                relocate: true,
                takes_protocols: false,
                tunnels: tunnels.contains(path),
                content: Content::new(content),
                fields: ResponseFields::default(),
            }
        });
        let mut router = Router::default();
        router.add(&[], paths.collect(), ResponseFields::default());
        router.sites.remove(0).routes
    }

    /// The path of the chosen route and the rest; `Err` if the path is rejected.
    fn chosen(routes: &[RouteService], path: &str) -> Result<Option<(String, String)>, ()> {
        match choose(routes, path) {
            Choice::Route(route, rest) => {
                Ok(Some((route.path.as_str().to_owned(), rest.to_owned())))
            }
            Choice::None => Ok(None),
            Choice::Refused => Err(()),
        }
    }

    #[track_caller]
    fn leads(routes: &[RouteService], path: &str, route: &str, rest: &str) {
        let expected = Some((route.to_owned(), rest.to_owned()));
        assert_eq!(chosen(routes, path), Ok(expected), "{path}");
    }

    #[test]
    fn prefixes_end_at_segments() {
        let routes = routes(&["/", "/api", "/api/short"]);
        leads(&routes, "/x", "/", "/x");
        leads(&routes, "*", "/", "*");
        leads(&routes, "", "/", "");
        leads(&routes, "/api", "/api", "");
        leads(&routes, "/api/", "/api", "/");
        leads(&routes, "/api/x", "/api", "/x");
        leads(&routes, "/api/short/x", "/api/short", "/x");
        leads(&routes, "/apis", "/", "/apis");
        leads(&routes, "/x/api", "/", "/x/api");
        assert_eq!(chosen(&self::routes(&["/api"]), "*"), Ok(None));
    }

    #[test]
    fn no_spelling_avoids_a_route() {
        let routes = routes(&["/", "/admin"]);
        for path in [
            "//admin/x",
            "/%61dmin/x",
            "/admi%6E/x",
            "///%61%64%6d%69%6e//x",
        ] {
            let (route, rest) = chosen(&routes, path).unwrap().unwrap();
            assert_eq!(route, "/admin", "{path}");
            assert!(rest == "/x" || rest == "//x", "{path}: {rest}");
        }
        leads(&routes, "/%2561dmin/x", "/", "/%2561dmin/x");
    }

    #[test]
    fn paths_that_others_read_otherwise_are_refused() {
        let several = routes(&["/", "/api"]);
        let partial = routes(&["/api"]);
        let whole = routes(&["/"]);
        for path in [
            "/..",
            "/a/../b",
            "/a/.",
            "/a/%2e%2E/b",
            "/.%2e",
            "/api/..%2fadmin",
            "/api/..%5cadmin",
            "/api/..\\admin",
            "/api/..;/admin",
            "/api/..;x=1/admin",
            "/api/.%2e%3bx/admin",
            "/api%2fx",
            "/api/%00",
        ] {
            assert_eq!(chosen(&several, path), Err(()), "{path}");
            assert_eq!(chosen(&partial, path), Err(()), "{path}");
            // No path could be confused with another route's.
            leads(&whole, path, "/", path);
        }
        for path in ["/...", "/.well-known/x", "/a..b", "/%2e%2e%2e", "/a;b"] {
            leads(&several, path, "/", path);
        }
    }

    #[test]
    fn a_slash_may_be_within_a_segment_of_a_tunnel() {
        let routes = routes_with_tunnels(&["/", "/.well-known/masque"], &["/.well-known/masque"]);
        let scope = "/.well-known/masque/ip/10.0.0.0%2F8/*/";
        leads(&routes, scope, "/.well-known/masque", "/ip/10.0.0.0%2F8/*/");
        for path in [
            "/a%2Fb",
            "/.well-known%2Fmasque/ip/x/",
            "/.well-known/masque/ip/../x/",
        ] {
            assert_eq!(chosen(&routes, path), Err(()), "{path}");
        }
    }

    /// Segments that programs interpret differently, from which paths are built.
    fn path() -> impl Strategy<Value = String> {
        let piece = prop::sample::select(vec![
            "/", "//", "a", "%61", "b", "%2f", "%2F", "%5c", "\\", ".", "%2e", "..", ";", "%",
            "%00", "%ff", "x", "%252f", "/a", "/a/b",
        ]);
        prop::collection::vec(piece, 0..12).prop_map(|pieces| format!("/{}", pieces.concat()))
    }

    proptest! {
        /// A path and its canonical spelling have the same route, and a file look-up by the rest of the
        /// path stays below that route.
        #[test]
        fn the_route_of_a_path_is_that_of_its_meaning(path in path()) {
            let routes = routes(&["/", "/a", "/a/b", "/x"]);
            let Ok(Some((route, rest))) = chosen(&routes, &path) else { return Ok(()) };
            let meaning = RequestPath::parse(&path).unwrap();
            let plain = meaning.canonical();
            let (same, plain_rest) = chosen(&routes, &plain).unwrap().unwrap();
            prop_assert_eq!(&route, &same);
            let below = |rest: &str| {
                let rest = format!("/{}", rest.trim_start_matches('/'));
                RequestPath::parse(&rest).unwrap().canonical()
            };
            prop_assert_eq!(below(&rest), below(&plain_rest));
            let names: Vec<&[u8]> = meaning.segments().collect();
            let expected = match names[..] {
                [b"a", b"b", ..] => "/a/b",
                [b"a", ..] => "/a",
                [b"x", ..] => "/x",
                _ => "/",
            };
            prop_assert_eq!(route, expected);
        }
    }
}
