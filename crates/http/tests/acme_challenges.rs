//! How servers prove to a certificate authority that they have a name, over TLS and over HTTP.

use std::sync::Arc;

use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use swiftwater_http::tcp::{
    ALPN_ACME_TLS, RunningServer, TcpLimits, TcpServer, TlsAlpnChallenges, server_config,
};
use swiftwater_http::web::body::{Body, text_response};
use swiftwater_http::web::http_challenge::HttpChallenges;
use swiftwater_tls::DevCertificate;
use tokio::io::AsyncReadExt as _;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tower::{Layer as _, ServiceExt as _, service_fn};

use crate::peers::{certificate, in_time};

/// A TLS server that answers these validations, with a certificate for `localhost`.
async fn server(challenges: &TlsAlpnChallenges) -> (RunningServer, DevCertificate) {
    let (own, shown) = certificate();
    let mut config = server_config(shown).unwrap();
    challenges.apply(&mut config);
    let service = service_fn(async |_: Request<Body>| {
        Ok::<_, std::convert::Infallible>(text_response(StatusCode::OK, ""))
    });
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = TcpServer::tls(Arc::new(config)).limits(TcpLimits::default());
    (server.serve(listener, service).unwrap(), own)
}

/// A connection that asks for `name`, offers `alpn` and trusts `trusted` only.
async fn connect(
    server: &RunningServer,
    name: &str,
    alpn: &[&[u8]],
    trusted: &DevCertificate,
) -> std::io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(trusted.certificate_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider);
    let config = config
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap();
    let mut config = config.with_root_certificates(roots).with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let stream = TcpStream::connect(server.local_addr()).await?;
    let name = ServerName::try_from(name.to_owned()).unwrap();
    in_time(TlsConnector::from(Arc::new(config)).connect(name, stream)).await
}

#[tokio::test]
async fn a_validation_gets_its_certificate_and_then_the_end() {
    let challenges = TlsAlpnChallenges::default();
    let (server, own) = server(&challenges).await;
    let proof = DevCertificate::generate(["a.example"]).unwrap();
    challenges
        .set(
            "A.example",
            proof.certificate_der(),
            proof.private_key_der(),
        )
        .unwrap();
    let mut stream = connect(&server, "a.example", &[ALPN_ACME_TLS], &proof)
        .await
        .unwrap();
    assert_eq!(stream.get_ref().1.alpn_protocol(), Some(ALPN_ACME_TLS));
    let mut rest = Vec::new();
    in_time(stream.read_to_end(&mut rest)).await.unwrap();
    assert!(rest.is_empty());
    // Other names have no validation, and other clients never see it.
    assert!(
        connect(&server, "b.example", &[ALPN_ACME_TLS], &proof)
            .await
            .is_err()
    );
    for alpn in [&[b"h2" as &[u8]][..], &[ALPN_ACME_TLS, b"http/1.1"], &[]] {
        assert!(connect(&server, "a.example", alpn, &proof).await.is_err());
        let usual = connect(&server, "localhost", alpn, &own).await.unwrap();
        assert_ne!(usual.get_ref().1.alpn_protocol(), Some(ALPN_ACME_TLS));
    }
    challenges.remove("a.EXAMPLE");
    assert!(
        connect(&server, "a.example", &[ALPN_ACME_TLS], &proof)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn requests_of_a_validation_are_answered_and_others_passed_on() {
    let challenges = HttpChallenges::default();
    challenges.set("token", "token.thumbprint");
    let others = service_fn(async |_: Request<Body>| {
        let response: Response<Body> = text_response(StatusCode::NOT_FOUND, "others");
        Ok::<_, std::convert::Infallible>(response)
    });
    let service = challenges.layer(others);
    let ask = async |method: Method, path: &str| {
        let request = Request::builder().method(method).uri(path);
        let request = request.body(Body::empty()).unwrap();
        let response = service.clone().oneshot(request).await.unwrap();
        let status = response.status();
        let content = response.into_body().collect().await.unwrap().to_bytes();
        (status, content)
    };
    let path = "/.well-known/acme-challenge/token";
    let (status, content) = ask(Method::GET, path).await;
    assert_eq!(
        (status, &content[..]),
        (StatusCode::OK, &b"token.thumbprint"[..])
    );
    for (method, path) in [
        (Method::POST, path),
        (Method::GET, "/.well-known/acme-challenge/"),
        (Method::GET, "/.well-known/acme-challenge/other"),
        (Method::GET, "/.well-known/acme-challenge/token/x"),
        (Method::GET, "/token"),
    ] {
        assert_eq!(ask(method, path).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    challenges.remove("token");
    assert_eq!(ask(Method::GET, path).await.0, StatusCode::NOT_FOUND);
}
