//! A web server and a client made by the façade: one service over three versions.

use std::time::Duration;

use axum::Router;
use axum::routing::{get, post};
use http::{Request, StatusCode, Version};
use http_body_util::{BodyExt, Full};
use swiftwater::http::client::{HttpClient, Policy};
use swiftwater::http::tcp::Certificates;
use swiftwater::{BuildError, Client, DevCertificate, Server, WebServer};
use tokio::sync::oneshot;

const GRACE: Duration = Duration::from_secs(10);

fn application() -> Router {
    let echo = async |content: String| content;
    Router::new()
        .route("/", get(async || "hello"))
        .route("/echo", post(echo))
}

fn server(certificate: &DevCertificate) -> WebServer {
    let server = Server::builder().dev_certificate(certificate);
    server.bind_web("127.0.0.1:0".parse().unwrap()).unwrap()
}

fn client(certificate: &DevCertificate, policy: Policy) -> HttpClient {
    let client = Client::builder().trust_only([certificate.certificate_der()]);
    client.http().unwrap().policy(policy).build().unwrap()
}

async fn ask(
    client: &HttpClient,
    request: Request<Full<bytes::Bytes>>,
) -> (Version, StatusCode, String) {
    let response = client.send(request).await.unwrap();
    let (head, body) = response.into_parts();
    let content = body.collect().await.unwrap().to_bytes();
    let text = String::from_utf8(content.to_vec()).unwrap();
    (head.version, head.status, text)
}

#[tokio::test]
async fn one_service_answers_over_quic_and_tcp_of_one_port() {
    let certificate = DevCertificate::generate(["localhost"]).unwrap();
    let server = server(&certificate);
    let port = server.local_addr().port();
    let (stop, stopped) = oneshot::channel::<()>();
    let stop_asked = async { stopped.await.unwrap() };
    let running = tokio::spawn(server.serve_until(application(), stop_asked, GRACE));

    for (policy, version) in [
        (Policy::Http3Only, Version::HTTP_3),
        (Policy::NoHttp3, Version::HTTP_2),
    ] {
        let client = client(&certificate, policy);
        let uri = |path: &str| format!("https://localhost:{port}{path}");
        let request = Request::get(uri("/")).body(Full::default()).unwrap();
        let hello = (version, StatusCode::OK, "hello".to_owned());
        assert_eq!(ask(&client, request).await, hello);
        let request = Request::post(uri("/echo")).body("there".into()).unwrap();
        assert_eq!(ask(&client, request).await.2, "there");
        let request = Request::get(uri("/no")).body(Full::default()).unwrap();
        assert_eq!(ask(&client, request).await.1, StatusCode::NOT_FOUND);
    }

    stop.send(()).unwrap();
    running.await.unwrap().unwrap();
    let client = client(&certificate, Policy::NoHttp3);
    let request = Request::get(format!("https://localhost:{port}/"));
    let request = request.body(Full::<bytes::Bytes>::default()).unwrap();
    assert!(client.send(request).await.is_err(), "nobody listens");
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_over_quic_and_tcp() {
    let [old, new] = [(); 2].map(|()| DevCertificate::generate(["localhost"]).unwrap());
    let pem = |it: &DevCertificate| {
        let (chain, key) = (it.certificate_pem(), it.private_key_pem());
        (chain.as_bytes().to_vec(), key.as_bytes().to_vec())
    };
    let (chain, key) = pem(&old);
    let certificates = std::sync::Arc::new(Certificates::from_pem(&chain, &key).unwrap());
    let server = Server::builder().certificate_resolver(certificates.clone());
    let server = server.bind_web("127.0.0.1:0".parse().unwrap()).unwrap();
    let uri = format!("https://localhost:{}/", server.local_addr().port());
    tokio::spawn(server.serve(application()));

    let request = || Request::get(&uri).body(Full::<bytes::Bytes>::default());
    for (shown, other) in [(&old, &new), (&new, &old)] {
        if std::ptr::eq(shown, &raw const new) {
            let (chain, key) = pem(&new);
            certificates.replace_from_pem(&chain, &key).unwrap();
        }
        for policy in [Policy::Http3Only, Policy::NoHttp3] {
            let trusting = client(shown, policy).send(request().unwrap()).await;
            assert_eq!(trusting.unwrap().status(), StatusCode::OK);
            let wary = client(other, policy).send(request().unwrap()).await;
            assert!(wary.is_err());
        }
    }
}

#[tokio::test]
async fn a_web_server_needs_its_certificate_itself() {
    let address = "127.0.0.1:0".parse().unwrap();
    let none = Server::builder().bind_web(address);
    assert!(matches!(none, Err(BuildError::NoCertificate)));
    let certificate = DevCertificate::generate(["localhost"]).unwrap();
    let tls = swiftwater::tls::ServerTls::from_dev_certificate(&certificate).unwrap();
    let quic_only = Server::builder().tls(tls).bind_web(address);
    assert!(matches!(quic_only, Err(BuildError::TlsForQuicOnly)));
    let broken = Server::builder().certificate_pem("no", "pem");
    let broken = broken.bind_web(address);
    assert!(matches!(broken, Err(BuildError::Certificate(_))));
}
