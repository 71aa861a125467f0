//! The layers: compression, Alt-Svc, early data, access log, metrics.

use crate::peers;

use std::convert::Infallible;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body_util::BodyExt;
use swiftwater_http::web::access_log::AccessLogLayer;
use swiftwater_http::web::alt_svc::AltSvcLayer;
use swiftwater_http::web::body::Body;
use swiftwater_http::web::compression::Compress;
use swiftwater_http::web::connection_info::{ConnectionInfo, Transport};
use swiftwater_http::web::early_data::{EarlyData, EarlyDataLayer};
use swiftwater_http::web::files::FileOptions;
use swiftwater_http::web::metrics::{MetricsLayer, PrometheusService, prometheus};
use tower::{Layer, Service, ServiceExt, service_fn};

use crate::site::{service, site, write};
use peers::{fed, piece};

fn request(method: &str, path: &str) -> Request<Body> {
    Request::builder()
        .method(method)
        .uri(path)
        .body(Body::empty())
        .unwrap()
}

fn with(mut request: Request<Body>, name: &'static str, value: &str) -> Request<Body> {
    let value = HeaderValue::from_str(value).unwrap();
    request.headers_mut().insert(name, value);
    request
}

async fn hello(_: Request<Body>) -> Result<Response<Body>, Infallible> {
    Ok(Response::new(Body::full("hello")))
}

#[tokio::test]
async fn text_is_compressed_as_the_client_prefers() {
    let root = site();
    let long = "many words, many words, ".repeat(500);
    write(&root.path().join("long.txt"), long.as_bytes());
    let files = service(&root, FileOptions::default());
    let service = Compress::default().layer(files);
    for (accept, coding, magic) in [
        ("gzip", "gzip", [0x1f, 0x8b].as_slice()),
        ("gzip;q=0.5, zstd", "zstd", &[0x28, 0xb5, 0x2f, 0xfd]),
        ("br", "br", &[]),
    ] {
        let request = with(request("GET", "/long.txt"), "accept-encoding", accept);
        let response = service.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()["content-encoding"], coding);
        assert_eq!(response.headers()["vary"], "accept-encoding");
        assert!(!response.headers().contains_key("content-length"));
        assert!(!response.headers().contains_key("accept-ranges"));
        let tag = response.headers()["etag"].to_str().unwrap().to_owned();
        assert!(tag.starts_with("W/\""), "{tag}");
        let content = response.into_body().collect().await.unwrap().to_bytes();
        assert!(content.len() * 10 < long.len());
        assert!(content.starts_with(magic));
        // The weak tag still validates that nothing changed.
        let again = with(with_accept("/long.txt", accept), "if-none-match", &tag);
        let response = service.clone().oneshot(again).await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_MODIFIED);
        // RFC 9110, sections 15.4.5 and 15.3.7.
        assert_eq!(response.headers()["vary"], "accept-encoding");
        let part = with(with_accept("/long.txt", accept), "range", "bytes=0-9");
        let response = service.clone().oneshot(part).await.unwrap();
        assert_eq!(response.status(), StatusCode::PARTIAL_CONTENT);
        assert_eq!(response.headers()["vary"], "accept-encoding");
    }
}

fn with_accept(path: &str, accept: &str) -> Request<Body> {
    with(request("GET", path), "accept-encoding", accept)
}

#[tokio::test]
async fn what_gains_nothing_is_left_alone() {
    let root = site();
    write(&root.path().join("long.txt"), &[b'a'; 5000]);
    write(&root.path().join("image.png"), &[b'a'; 5000]);
    write(&root.path().join("unknown.xyz1"), &[b'a'; 5000]);
    let files = service(&root, FileOptions::default());
    let service = Compress::default().layer(files);
    let get = |path: &str| with_accept(path, "gzip");
    for (case, status) in [
        (get("/letters.txt"), 200),
        (get("/image.png"), 200),
        (get("/unknown.xyz1"), 200),
        (with(get("/long.txt"), "range", "bytes=0-4000"), 206),
        (with(get("/long.txt"), "range", "bytes=0-1999,3000-"), 206),
        (request("GET", "/long.txt"), 200),
        (with_accept("/long.txt", "gzip;q=0"), 200),
    ] {
        let response = service.clone().oneshot(case).await.unwrap();
        assert_eq!(response.status(), status);
        assert!(!response.headers().contains_key("content-encoding"));
        let tag = response.headers()["etag"].to_str().unwrap();
        assert!(tag.starts_with('"'));
    }
}

#[tokio::test]
async fn services_may_forbid_compression() {
    for (name, value, coded) in [
        ("cache-control", "max-age=1", true),
        ("cache-control", "max-age=1, No-Transform", false),
        ("content-type", "text/event-stream", false),
        ("content-type", "application/ld+json; charset=utf-8", true),
        ("content-encoding", "br", true),
    ] {
        let inner = service_fn(move |_: Request<Body>| async move {
            let mut response = Response::new(Body::full(vec![b'a'; 5000]));
            let headers = response.headers_mut();
            headers.insert("content-type", HeaderValue::from_static("text/plain"));
            headers.insert(name, HeaderValue::from_static(value));
            Ok::<_, Infallible>(response)
        });
        let service = Compress::default().layer(inner);
        let response = service.oneshot(with_accept("/", "gzip")).await.unwrap();
        let coding = response.headers().contains_key("content-encoding");
        assert_eq!(coding, coded, "{name}: {value}");
        let collected = response.into_body().collect().await.unwrap().to_bytes();
        // What is coded already is passed on as it is.
        assert_eq!(collected.len() < 5000, coded && name != "content-encoding");
    }
}

#[tokio::test]
async fn older_versions_advertise_http3() {
    let layer = AltSvcLayer::new(8443, Duration::from_secs(86_400));
    let service = layer.layer(service_fn(hello));
    for (version, told) in [
        (Version::HTTP_11, true),
        (Version::HTTP_2, true),
        (Version::HTTP_3, false),
    ] {
        let mut request = request("GET", "/");
        *request.version_mut() = version;
        let response = service.clone().oneshot(request).await.unwrap();
        let value = response.headers().get("alt-svc");
        let value = value.map(|value| value.to_str().unwrap());
        assert_eq!(value, told.then_some("h3=\":8443\"; ma=86400"));
    }
    let own = layer.layer(service_fn(|_: Request<Body>| async {
        let response = Response::builder().header("alt-svc", "clear");
        Ok::<_, Infallible>(response.body(Body::empty()).unwrap())
    }));
    let response = own.oneshot(request("GET", "/")).await.unwrap();
    assert_eq!(response.headers().get_all("alt-svc").iter().count(), 1);
    assert_eq!(response.headers()["alt-svc"], "clear");
}

#[tokio::test]
async fn early_requests_must_be_safe() {
    let service = EarlyDataLayer.layer(service_fn(hello));
    for method in [Method::GET, Method::POST, Method::PUT, Method::DELETE] {
        let plain = request(method.as_str(), "/");
        let mut early = request(method.as_str(), "/");
        early.extensions_mut().insert(EarlyData);
        let told = with(request(method.as_str(), "/"), "early-data", "1");
        let nonsense = with(request(method.as_str(), "/"), "early-data", "0");
        for (request, early) in [
            (plain, false),
            (early, true),
            (told, true),
            (nonsense, false),
        ] {
            let response = service.clone().oneshot(request).await.unwrap();
            let expected = if early && method != Method::GET {
                StatusCode::TOO_EARLY
            } else {
                StatusCode::OK
            };
            assert_eq!(response.status(), expected, "{method} {early}");
        }
    }
}

/// Where a subscriber writes to.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Lines {
    fn take(&self) -> String {
        String::from_utf8(std::mem::take(&mut *self.0.lock().unwrap())).unwrap()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn each_request_leaves_one_line() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let mut get = request("GET", "/a/b?secret=1");
    get.extensions_mut().insert(ConnectionInfo {
        peer: "192.0.2.7:1234".parse().unwrap(),
        local: "192.0.2.1:443".parse().unwrap(),
        protocol: Transport::Tls,
        alpn: None,
        server_name: None,
        client_chain: None,
    });
    let service = AccessLogLayer::default().layer(service_fn(hello));
    let response = service.clone().oneshot(get).await.unwrap();
    assert_eq!(lines.take(), "", "the response has not ended");
    response.into_body().collect().await.unwrap();
    let line = lines.take();
    assert_eq!(line.lines().count(), 1);
    for field in [
        " access: ",
        "method=GET",
        "path=\"/a/b\"",
        "version=HTTP/1.1",
        "peer=192.0.2.7:1234",
        "status=200",
        "bytes=5",
        "time_us=",
        "ending=\"complete\"",
    ] {
        assert!(line.contains(field), "{field} is not in {line}");
    }
    let query = AccessLogLayer::default()
        .with_query()
        .layer(service_fn(hello));
    drop(query.oneshot(request("GET", "/a?b=c")).await.unwrap());
    let line = lines.take();
    assert!(line.contains("path=\"/a?b=c\"") && line.contains("ending=\"abandoned\""));
}

#[tokio::test]
async fn trailers_are_the_end_of_a_response() {
    let records = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&records);
    let log = AccessLogLayer::to(move |record| sink.lock().unwrap().push(record.ending()));
    let (feeder, body) = fed();
    let body = Mutex::new(Some(body));
    let inner = service_fn(move |_: Request<Body>| {
        let body = body.lock().unwrap().take().unwrap();
        async { Ok::<_, Infallible>(Response::new(body)) }
    });
    let response = log.layer(inner).oneshot(request("GET", "/")).await.unwrap();
    feeder.data("content");
    let trailers = [(
        http::HeaderName::from_static("grpc-status"),
        HeaderValue::from_static("0"),
    )];
    feeder.frame(http_body::Frame::trailers(trailers.into_iter().collect()));
    let mut body = response.into_body();
    assert_eq!(piece(&mut body).await, "content");
    assert!(body.frame().await.unwrap().unwrap().is_trailers());
    // Servers do not poll after trailers.
    drop(body);
    assert_eq!(*records.lock().unwrap(), ["complete"]);
}

#[tokio::test]
async fn what_has_no_response_is_logged_too() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_ansi(false)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    let never =
        service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, Infallible>>());
    let mut service = AccessLogLayer::default().layer(never);
    drop(service.call(request("GET", "/")));
    assert!(lines.take().contains("ending=\"unanswered\""));
    let broken = service_fn(|_: Request<Body>| async {
        let (feeder, body) = fed();
        feeder.data("half");
        feeder.fail("broken");
        Ok::<_, Infallible>(Response::new(body))
    });
    let service = AccessLogLayer::default().layer(broken);
    let response = service.oneshot(request("GET", "/")).await.unwrap();
    assert!(response.into_body().collect().await.is_err());
    let line = lines.take();
    assert!(
        line.contains("bytes=4") && line.contains("ending=\"failed\""),
        "{line}"
    );
}

#[test]
fn requests_are_counted_and_shown() {
    let recorder = prometheus().unwrap();
    let shown = PrometheusService::new(recorder.handle());
    let render = async || {
        let response = shown
            .clone()
            .oneshot(request("GET", "/metrics"))
            .await
            .unwrap();
        assert!(
            response.headers()["content-type"]
                .to_str()
                .unwrap()
                .starts_with("text/plain")
        );
        peers::text(response).await
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    metrics::with_local_recorder(&recorder, || {
        runtime.block_on(async {
            let service = MetricsLayer.layer(service_fn(hello));
            for method in ["GET", "GET", "POST", "BREW"] {
                let response = service.clone().oneshot(request(method, "/")).await.unwrap();
                response.into_body().collect().await.unwrap();
            }
            let streams = MetricsLayer.layer(service_fn(|request: Request<Body>| async {
                Ok::<_, Infallible>(Response::new(request.into_body()))
            }));
            let (feeder, body) = fed();
            feeder.data("1234567");
            let mut request = request("PUT", "/");
            *request.body_mut() = body;
            *request.version_mut() = Version::HTTP_3;
            let mut response = streams.oneshot(request).await.unwrap();
            piece(response.body_mut()).await;
            let during = render().await;
            assert!(during.contains("swiftwater_http_requests_in_flight 1\n"), "{during}");
            drop(response);
            let after = render().await;
            for line in [
                "swiftwater_http_requests_in_flight 0\n",
                "swiftwater_http_requests_total{version=\"1.1\",method=\"GET\",status=\"2xx\"} 2\n",
                "swiftwater_http_requests_total{version=\"1.1\",method=\"POST\",status=\"2xx\"} 1\n",
                "swiftwater_http_requests_total{version=\"1.1\",method=\"other\",status=\"2xx\"} 1\n",
                "swiftwater_http_requests_total{version=\"3\",method=\"PUT\",status=\"2xx\"} 1\n",
                "swiftwater_http_response_body_bytes_total{version=\"1.1\"} 20\n",
                "swiftwater_http_response_body_bytes_total{version=\"3\"} 7\n",
                "swiftwater_http_responses_abandoned_total{version=\"3\"} 1\n",
                "swiftwater_http_request_duration_seconds_count{version=\"1.1\"} 4\n",
                "swiftwater_http_request_duration_seconds_bucket{version=\"1.1\",le=\"60\"} 4\n",
            ] {
                assert!(after.contains(line), "{line} is not in {after}");
            }
        });
    });
}

#[tokio::test]
async fn counts_are_read_only() {
    let recorder = prometheus().unwrap();
    let service = PrometheusService::new(recorder.handle());
    let response = service.oneshot(request("POST", "/metrics")).await.unwrap();
    assert_eq!(response.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(response.headers()["allow"], "GET, HEAD");
}
