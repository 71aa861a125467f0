//! An axum application and a plain tower service, each unchanged over HTTP/1.1, HTTP/2 and HTTP/3.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};

use axum::extract::{Path, Query, State};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use swiftwater_http::tcp::{ALPN_HTTP2, ALPN_HTTP11, TcpLimits};
use swiftwater_http::web::body::Body;
use tower::Service;

use crate::pair::Pair;
use crate::peers::{certificate, http1, http2, in_time, secure, tls};
use swiftwater_http::web::service::WebService;

/// The response: version, status, content.
type Answer = (Version, StatusCode, String);

async fn answer<B>(response: Response<B>) -> Answer
where
    B: http_body::Body,
    B::Error: std::fmt::Debug,
{
    let (head, body) = response.into_parts();
    let content = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(content.to_vec()).unwrap();
    (head.version, head.status, text)
}

/// The requests' answers over each of the three versions.
async fn over_all<S>(service: S, requests: &[Request<Full<Bytes>>]) -> [Vec<Answer>; 3]
where
    S: WebService + Sync,
{
    let (trusted, shown) = certificate();
    let server = secure(service.clone(), TcpLimits::default(), &shown).await;
    let address = server.local_addr();
    let mut answers = [const { Vec::new() }; 3];

    let mut first = http1(tls(address, &trusted, &[ALPN_HTTP11]).await).await;
    for request in requests {
        let mut request = request.clone();
        // As HTTP/1.1 has it: the path, and the host in a field.
        let host = request.uri().authority().unwrap().as_str().parse().unwrap();
        request.headers_mut().insert("host", host);
        let path = request.uri().path_and_query().unwrap().as_str();
        *request.uri_mut() = path.parse().unwrap();
        first.ready().await.unwrap();
        let response = first.send_request(request.map(Body::new)).await.unwrap();
        answers[0].push(answer(response).await);
    }
    let mut second = http2(tls(address, &trusted, &[ALPN_HTTP2]).await).await;
    for request in requests {
        let response = second
            .send_request(request.clone().map(Body::new))
            .await
            .unwrap();
        answers[1].push(answer(response).await);
    }
    let pair = Pair::new(service);
    let third = pair.connect().await;
    for request in requests {
        let response = third.send(request.clone()).await.unwrap();
        answers[2].push(answer(response).await);
    }
    answers
}

fn request(method: Method, path: &str, content: &'static str) -> Request<Full<Bytes>> {
    let kind = "application/json";
    Request::builder()
        .method(method)
        .uri(format!("https://localhost{path}"))
        .header("content-type", kind)
        .body(Full::new(Bytes::from_static(content.as_bytes())))
        .unwrap()
}

async fn add(
    State(total): State<Arc<AtomicU64>>,
    Json(numbers): Json<Vec<u64>>,
) -> Json<BTreeMap<&'static str, u64>> {
    let sum = numbers.iter().sum();
    total.fetch_add(sum, Ordering::SeqCst);
    Json(BTreeMap::from([("sum", sum)]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_axum_application_runs_unchanged() {
    let total = Arc::new(AtomicU64::new(0));
    let greet = |Path(name): Path<String>, Query(query): Query<BTreeMap<String, String>>| async move {
        format!("hello {name} {query:?}")
    };
    let application = Router::new()
        .route("/hello/{name}", get(greet))
        .route("/add", post(add))
        .with_state(Arc::clone(&total));
    let requests = [
        request(Method::GET, "/hello/ann%20b?x=1&y=%20", ""),
        request(Method::POST, "/add", "[1, 2, 3]"),
        request(Method::POST, "/add", "not JSON"),
        request(Method::GET, "/add", ""),
        request(Method::GET, "/nowhere", ""),
    ];
    let versions = [Version::HTTP_11, Version::HTTP_2, Version::HTTP_3];
    let all = in_time(Box::pin(over_all(application, &requests))).await;
    for (answers, version) in all.iter().zip(versions) {
        let statuses: Vec<u16> = answers.iter().map(|answer| answer.1.as_u16()).collect();
        assert_eq!(statuses, [200, 200, 400, 405, 404], "{version:?}");
        assert_eq!(answers[0].2, r#"hello ann b {"x": "1", "y": " "}"#);
        assert_eq!(answers[1].2, r#"{"sum":6}"#);
        assert!(
            answers.iter().all(|answer| answer.0 == version),
            "{version:?}"
        );
    }
    assert_eq!(total.load(Ordering::SeqCst), 18);
}

/// A service as tower defines it, with no framework around it.
#[derive(Clone, Debug)]
struct Reverse;

impl Service<Request<Body>> for Reverse {
    type Response = Response<Full<Bytes>>;
    type Error = Infallible;
    type Future =
        std::pin::Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        Box::pin(async {
            let content = request.into_body().collect().await;
            let mut response = Response::new(Full::default());
            match content {
                Ok(content) => {
                    let reversed: Vec<u8> = content.to_bytes().iter().rev().copied().collect();
                    *response.body_mut() = Full::from(reversed);
                }
                Err(_) => *response.status_mut() = StatusCode::BAD_REQUEST,
            }
            Ok(response)
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plain_tower_service_runs_unchanged() {
    let requests = [
        request(Method::POST, "/", "straight"),
        request(Method::PUT, "/anything", ""),
    ];
    for answers in in_time(Box::pin(over_all(Reverse, &requests))).await {
        let texts: Vec<&str> = answers.iter().map(|answer| answer.2.as_str()).collect();
        assert_eq!(texts, ["thgiarts", ""]);
    }
}
