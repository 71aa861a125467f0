//! What is served over HTTP: a directory, or what an upstream answers.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use http::{Request, Response, Version};
use swiftwater_http::web::alt_svc::AltSvcLayer;
use swiftwater_http::web::body::Body;
use swiftwater_http::web::compression::Compress;
use swiftwater_http::web::connection_info::ConnectionInfo;
use swiftwater_http::web::early_data::EarlyDataLayer;
use swiftwater_http::web::files::{FileOptions, FileService};
use swiftwater_http::web::observed_body::{Ending, ObservedBody};
use swiftwater_http::web::proxy::{Proxy, ProxyOptions};
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceBuilder, ServiceExt, service_fn};

use super::args::ServeArgs;
use super::log::{Line, report};
use crate::exit::{Exit, Failure};

/// Answers requests of any version of HTTP; never fails.
pub(super) type Content = BoxCloneSyncService<Request<Body>, Response<Body>, Infallible>;

/// How long clients may remember that HTTP/3 is spoken here.
const ALT_SVC_AGE: Duration = Duration::from_secs(24 * 3600);

/// What the flags ask for, with a line printed for each request.
pub(super) fn content(args: &ServeArgs) -> Result<Content, Failure> {
    if let Some(upstream) = &args.upstream {
        let proxy = Proxy::new(upstream.clone(), ProxyOptions::default());
        let layers = ServiceBuilder::new()
            .layer(Compress::default())
            .layer(EarlyDataLayer);
        return Ok(reported(layers.service(proxy), args.json));
    }
    let directory = args.directory.as_deref().unwrap_or_else(|| ".".as_ref());
    let options = FileOptions {
        listing: args.listing,
        spa_fallback: args.spa.clone(),
        ..FileOptions::default()
    };
    let files = FileService::new(directory, options)
        .map_err(|error| Failure::new(Exit::LocalFile, format_args!("cannot serve {error}")))?;
    let layers = ServiceBuilder::new().layer(Compress::default());
    Ok(reported(layers.service(files), args.json))
}

/// The same for TCP, whose clients learn that HTTP/3 is spoken on UDP port `port`.
pub(super) fn with_alt_svc(content: Content, port: u16) -> Content {
    let layers = ServiceBuilder::new().layer(AltSvcLayer::new(port, ALT_SVC_AGE));
    let service = layers.service(content);
    BoxCloneSyncService::new(service.map_response(|response: Response<_>| response.map(Body::new)))
}

/// `inner`, with a line printed when a response has ended.
fn reported<S, B>(inner: S, json: bool) -> Content
where
    S: Service<Request<Body>, Response = Response<B>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    S::Future: Send + 'static,
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<swiftwater_http::web::body::BoxError>,
{
    BoxCloneSyncService::new(service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move {
            let begin = Instant::now();
            let client = request.extensions().get::<ConnectionInfo>();
            let client = client.map(|connection| connection.peer);
            let method = request.method().clone();
            let path = request.uri().path().to_owned();
            let protocol = protocol_name(request.version());
            let Ok(response) = inner.oneshot(request).await;
            let status = response.status().as_u16();
            let tell = move |bytes, ending| {
                let Some(client) = client else { return };
                let error = match ending {
                    Ending::Complete => None,
                    Ending::Failed => Some("the content could not be read".to_owned()),
                    Ending::Abandoned => Some("the client went away".to_owned()),
                };
                let line = Line {
                    client,
                    protocol,
                    method: method.as_str(),
                    path: &path,
                    status: Some(status),
                    bytes,
                    elapsed: begin.elapsed(),
                    error,
                };
                report(&line, json);
            };
            Ok(response.map(|body| Body::new(ObservedBody::new(body, tell))))
        }
    }))
}

/// As in ALPN.
fn protocol_name(version: Version) -> &'static str {
    match version {
        Version::HTTP_3 => "h3",
        Version::HTTP_2 => "h2",
        Version::HTTP_11 => "http/1.1",
        _ => "http/1.0",
    }
}
