//! Servers and clients over loopback, for tests.

#![allow(dead_code, reason = "each test file uses a part")]

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body as HttpBody, Frame};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use swiftwater_http::tcp::{Certificates, RunningServer, TcpLimits, TcpServer, server_config};
use swiftwater_http::web::body::{Body, BoxError};
use swiftwater_http::web::service::WebService;
use swiftwater_tls::DevCertificate;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// Far longer than any test takes: reaching it means that a test hangs.
pub(crate) const TIME_LIMIT: Duration = Duration::from_secs(60);

/// `future`'s output, unless it hangs.
pub(crate) async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(TIME_LIMIT, future)
        .await
        .expect("something hangs")
}

/// Waits until `done`, which other tasks make true.
pub(crate) async fn until(done: impl Fn() -> bool) {
    in_time(async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}

/// A server without TLS at a free port.
pub(crate) async fn plain<S>(service: S, limits: TcpLimits) -> RunningServer
where
    S: WebService + Sync,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    TcpServer::plain()
        .limits(limits)
        .serve(listener, service)
        .unwrap()
}

/// A TLS server at a free port, whose certificate can be replaced.
pub(crate) async fn secure<S>(
    service: S,
    limits: TcpLimits,
    certificates: &Arc<Certificates>,
) -> RunningServer
where
    S: WebService + Sync,
{
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let config = server_config(Arc::clone(certificates) as _).unwrap();
    TcpServer::tls(Arc::new(config))
        .limits(limits)
        .serve(listener, service)
        .unwrap()
}

/// A fresh certificate for `localhost`, and what a server shows of it.
pub(crate) fn certificate() -> (DevCertificate, Arc<Certificates>) {
    let certificate = DevCertificate::generate(["localhost"]).unwrap();
    let shown = Certificates::from_pem(
        certificate.certificate_pem().as_bytes(),
        certificate.private_key_pem().as_bytes(),
    )
    .unwrap();
    (certificate, Arc::new(shown))
}

/// A TLS connection to `address` that trusts `certificate` and offers `alpn`.
pub(crate) async fn tls(
    address: SocketAddr,
    certificate: &DevCertificate,
    alpn: &[&[u8]],
) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(certificate.certificate_der()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let stream = TcpStream::connect(address).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
        .unwrap()
}

/// An HTTP/1.1 client on `stream`.
pub(crate) async fn http1<I>(stream: I) -> http1::SendRequest<Body>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (client, connection) = http1::handshake(TokioIo::new(stream)).await.unwrap();
    tokio::spawn(connection);
    client
}

/// An HTTP/2 client on `stream`.
pub(crate) async fn http2<I>(stream: I) -> http2::SendRequest<Body>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (client, connection) = http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
        .await
        .unwrap();
    tokio::spawn(connection);
    client
}

/// GET `path` without a body.
pub(crate) fn get(path: &str) -> Request<Body> {
    Request::get(path)
        .header("host", "localhost")
        .body(Body::empty())
        .unwrap()
}

/// The content of a response, as text.
pub(crate) async fn text<B>(response: Response<B>) -> String
where
    B: HttpBody<Data = Bytes>,
    B::Error: std::fmt::Debug,
{
    let content = in_time(response.into_body().collect()).await.unwrap();
    String::from_utf8(content.to_bytes().to_vec()).unwrap()
}

/// The next piece of data of a body.
pub(crate) async fn piece(
    body: &mut (impl HttpBody<Data = Bytes, Error: std::fmt::Debug> + Unpin),
) -> Bytes {
    let frame = in_time(body.frame()).await.unwrap().unwrap();
    frame.into_data().unwrap()
}

/// A body that a test feeds frame by frame.
pub(crate) struct Fed(mpsc::UnboundedReceiver<Result<Frame<Bytes>, BoxError>>);

/// The other end of a [`Fed`] body; dropped, it ends the body.
pub(crate) struct Feeder(mpsc::UnboundedSender<Result<Frame<Bytes>, BoxError>>);

impl Feeder {
    pub(crate) fn data(&self, data: &'static str) {
        self.frame(Frame::data(Bytes::from_static(data.as_bytes())));
    }

    pub(crate) fn frame(&self, frame: Frame<Bytes>) {
        self.0.send(Ok(frame)).unwrap();
    }

    pub(crate) fn fail(&self, error: impl Into<BoxError>) {
        self.0.send(Err(error.into())).unwrap();
    }

    /// Waits until the body was dropped.
    pub(crate) async fn closed(&self) {
        in_time(self.0.closed()).await;
    }
}

/// A body and the end that feeds it.
pub(crate) fn fed() -> (Feeder, Body) {
    let (sender, receiver) = mpsc::unbounded_channel();
    (Feeder(sender), Body::new(Fed(receiver)))
}

impl HttpBody for Fed {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.0.poll_recv(cx)
    }
}

/// An [`Incoming`] body is what hyper's clients give.
pub(crate) type Answer = Response<Incoming>;
