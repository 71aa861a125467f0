//! Calls as gRPC makes them, from clients of HTTP/2 and HTTP/3 through the proxy to an upstream of HTTP/2: messages
//! stream both ways at once, and trailers end them.

use std::convert::Infallible;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, Version};
use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt;
use swiftwater_http::tcp::{ALPN_HTTP2, RunningServer, TcpLimits};
use swiftwater_http::web::body::Body;
use swiftwater_http::web::proxy::{Proxy, ProxyOptions, Upstream};
use tower::service_fn;

use crate::pair::Pair;
use crate::peers::{Feeder, certificate, fed, http2, in_time, piece, plain, secure, tls};

/// Sends messages back, and `grpc-status: 0` after them; `/pkg.Service/Refused` gets trailers only.
async fn service(request: Request<Body>) -> Result<Response<Body>, Infallible> {
    assert_eq!(request.version(), Version::HTTP_2);
    assert_eq!(request.headers()["te"], "trailers");
    let is_refused = request.uri().path() == "/pkg.Service/Refused";
    let status = |number| {
        let mut trailers = HeaderMap::new();
        trailers.insert("grpc-status", HeaderValue::from_static(number));
        trailers
    };
    if is_refused {
        let mut response = Response::new(Body::empty());
        response.headers_mut().extend(status("7"));
        return Ok(response);
    }
    let body = request
        .into_body()
        .with_trailers(async move { Some(Ok(status("0"))) });
    Ok(Response::new(Body::new(body)))
}

async fn upstream() -> (RunningServer, Proxy) {
    let server = plain(service_fn(service), TcpLimits::default()).await;
    let url = format!("h2c://{}", server.local_addr());
    let proxy = Proxy::new(Upstream::parse(&url).unwrap(), ProxyOptions::default());
    (server, proxy)
}

fn call(method: &str) -> (Request<Body>, Feeder) {
    let (feeder, body) = fed();
    let request = Request::post(format!("https://localhost/pkg.Service/{method}"))
        .header("te", "trailers")
        .header("content-type", "application/grpc")
        .body(body)
        .unwrap();
    (request, feeder)
}

async fn converse<B>(response: Response<B>, feeder: Feeder)
where
    B: HttpBody<Data = Bytes, Error: std::fmt::Debug> + Unpin,
{
    assert_eq!(response.status(), StatusCode::OK);
    let mut body = response.into_body();
    for message in ["first", "second", "third"] {
        feeder.data(message);
        assert_eq!(piece(&mut body).await, message);
    }
    feeder.frame(Frame::data(Bytes::from(vec![1; 500_000])));
    drop(feeder);
    let rest = in_time(body.collect()).await.unwrap();
    assert_eq!(rest.trailers().unwrap()["grpc-status"], "0");
    assert_eq!(rest.to_bytes().len(), 500_000);
}

#[tokio::test]
async fn clients_of_http2_call() {
    let (_upstream, proxy) = upstream().await;
    let (trusted, shown) = certificate();
    let server = secure(proxy, TcpLimits::default(), &shown).await;
    let mut client = http2(tls(server.local_addr(), &trusted, &[ALPN_HTTP2]).await).await;
    let (request, feeder) = call("Method");
    converse(in_time(client.send_request(request)).await.unwrap(), feeder).await;
    let (request, _feeder) = call("Refused");
    let response = in_time(client.send_request(request)).await.unwrap();
    assert_eq!(response.headers()["grpc-status"], "7");
}

#[tokio::test]
async fn clients_of_http3_call() {
    let (_upstream, proxy) = upstream().await;
    let pair = Pair::new(proxy);
    let client = pair.connect().await;
    let (request, feeder) = call("Method");
    converse(in_time(client.send(request)).await.unwrap(), feeder).await;
    let (request, _feeder) = call("Refused");
    let response = in_time(client.send(request)).await.unwrap();
    assert_eq!(response.headers()["grpc-status"], "7");
}
