//! Requests and contents in one call each, over each version.

use std::convert::Infallible;

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use swiftwater_http::client::{
    ContentError, DEFAULT_CONTENT_LIMIT, Error, HttpClient, Policy, ResponseExt,
};
use swiftwater_http::web::body::Body;
use tower::service_fn;

use crate::client_world::{Tcp, Udp, World, guard};

const VERSIONS: [(Tcp, Policy); 3] = [
    (Tcp::Both, Policy::Http3Only),
    (Tcp::Both, Policy::NoHttp3),
    (Tcp::Http1, Policy::NoHttp3),
];

/// Returns the request as JSON; or as many bytes as the path states.
async fn mirror(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    let (head, body) = request.into_parts();
    let path = head.uri.path().trim_start_matches('/');
    if let Ok(length) = path.parse::<usize>() {
        if head.method == Method::HEAD {
            let response = Response::builder().header("content-length", length);
            return Ok(response.body(Body::empty()).unwrap());
        }
        return Ok(Response::new(Body::full(vec![b'x'; length])));
    }
    if path == "latin1" {
        return Ok(Response::new(Body::full(vec![0xe9])));
    }
    let content = body.collect().await.unwrap().to_bytes();
    let said = json!({
        "method": head.method.as_str(),
        "type": head.headers.get("content-type").map(|value| value.to_str().unwrap()),
        "content": String::from_utf8(content.to_vec()).unwrap(),
    });
    let mut response = Response::new(Body::full(said.to_string()));
    if path == "missing" {
        *response.status_mut() = StatusCode::NOT_FOUND;
    }
    Ok(response)
}

async fn over_each_version(check: impl AsyncFn(&World, HttpClient)) {
    guard(async {
        for (tcp, policy) in VERSIONS {
            let world = World::new(tcp, Udp::Http3, service_fn(mirror)).await;
            let client = world.client().policy(policy).build().unwrap();
            check(&world, client).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_method_has_its_call() {
    over_each_version(async |world, client| {
        let uri = world.uri("/what");
        let said = async |response: Result<_, Error>| -> Value {
            let response: Response<_> = response.unwrap();
            assert_eq!(response.status(), StatusCode::OK);
            response.json().await.unwrap()
        };
        let expected = |method: Method, content: &str, kind: Option<&str>| {
            json!({ "method": method.as_str(), "content": content, "type": kind })
        };
        assert_eq!(said(client.get(&uri).await).await, expected(Method::GET, "", None));
        assert_eq!(
            said(client.delete(uri.as_str()).await).await,
            expected(Method::DELETE, "", None)
        );
        assert_eq!(
            said(client.post(&uri, "text").await).await,
            expected(Method::POST, "text", None)
        );
        assert_eq!(
            said(client.put(&uri, b"bytes".to_vec()).await).await,
            expected(Method::PUT, "bytes", None)
        );
        assert_eq!(
            said(client.post_json(&uri, &[1, 2]).await).await,
            expected(Method::POST, "[1,2]", Some("application/json"))
        );
        let response = client.head(world.uri("/5")).await.unwrap();
        assert_eq!(response.headers()["content-length"], "5");
        assert_eq!(response.bytes().await.unwrap(), "");
        // A status is for the caller to judge.
        let response = client.get(world.uri("/missing")).await.unwrap();
        assert_eq!(response.status(), StatusCode::NOT_FOUND);
        assert!(response.text().await.unwrap().contains("GET"));
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn content_beyond_the_limit_is_an_error() {
    over_each_version(async |world, client| {
        let get = async |length: usize| client.get(world.uri(&format!("/{length}"))).await.unwrap();
        assert_eq!(
            get(100_000)
                .await
                .bytes_within(100_000)
                .await
                .unwrap()
                .len(),
            100_000
        );
        let error = get(100_000).await.bytes_within(99_999).await.unwrap_err();
        assert!(matches!(error, ContentError::TooLong(99_999)), "{error}");
        let error = get(DEFAULT_CONTENT_LIMIT + 1)
            .await
            .text()
            .await
            .unwrap_err();
        assert!(
            matches!(error, ContentError::TooLong(DEFAULT_CONTENT_LIMIT)),
            "{error}"
        );
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_as_expected_is_an_error() {
    over_each_version(async |world, client| {
        let response = client.get(world.uri("/latin1")).await.unwrap();
        assert!(matches!(response.text().await, Err(ContentError::Text(_))));
        let response = client.get(world.uri("/3")).await.unwrap();
        let error = response.json::<Value>().await.unwrap_err();
        assert!(matches!(error, ContentError::Json(_)), "{error}");
        let error = client.get("https://host name/").await.unwrap_err();
        assert!(matches!(error, Error::InvalidUri(_)), "{error}");
        let unnamed = std::collections::BTreeMap::from([([1, 2], 3)]);
        let error = client
            .post_json(world.uri("/"), &unnamed)
            .await
            .unwrap_err();
        assert!(matches!(error, Error::Json(_)), "{error}");
    })
    .await;
}
