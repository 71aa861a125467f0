//! A server of HTTP/3, HTTP/2 and HTTP/1.1 on one port whose answers a test determines, and the
//! binary's `get` for it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(dead_code, reason = "each test file uses a part of this")]

use std::convert::Infallible;
use std::path::PathBuf;
use std::pin::Pin;
use std::process::Command;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response, request};
use http_body::Frame;
use http_body_util::BodyExt;
use swiftwater::{DevCertificate, Server};
use swiftwater_http::tcp::{Certificates, RunningServer, TcpServer, server_config};
use swiftwater_http::udp::{ALPN_HTTP3, H3Server};
use swiftwater_http::web::body::{Body, BoxError};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tower::service_fn;

use crate::support::swiftwater;

type Handler = Arc<dyn Fn(&request::Parts, Bytes) -> Response<Body> + Send + Sync>;

/// Runs until it is dropped.
pub(crate) struct Origin {
    pub(crate) port: u16,
    pub(crate) home: TempDir,
    _tcp: RunningServer,
    _runtime: Runtime,
}

impl Origin {
    /// `answer` gets the head of each request and its whole content.
    pub(crate) fn start(
        answer: impl Fn(&request::Parts, Bytes) -> Response<Body> + Send + Sync + 'static,
    ) -> Self {
        let answer: Handler = Arc::new(answer);
        let home = TempDir::new().unwrap();
        let certificate = DevCertificate::generate(["127.0.0.1"]).unwrap();
        std::fs::write(home.path().join("ca.pem"), certificate.certificate_pem()).unwrap();
        let runtime = Runtime::new().unwrap();
        let (port, tcp) = runtime.block_on(serve(&certificate, &answer));
        Self {
            port,
            home,
            _tcp: tcp,
            _runtime: runtime,
        }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("https://127.0.0.1:{}{path}", self.port)
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// A `get` of `path` that trusts the server, run in its home.
    pub(crate) fn get(&self, path: &str, flags: &[&str]) -> Command {
        let mut command = swiftwater();
        command
            .arg("get")
            .arg(self.url(path))
            .args(["--ca", "ca.pem"])
            .args(flags)
            .current_dir(self.home.path());
        command
    }
}

async fn serve(certificate: &DevCertificate, answer: &Handler) -> (u16, RunningServer) {
    // A port that is free for both.
    let (server, listener) = loop {
        let server = Server::builder()
            .dev_certificate(certificate)
            .alpn([ALPN_HTTP3])
            .bind("127.0.0.1:0".parse().unwrap())
            .unwrap();
        if let Ok(listener) = TcpListener::bind(server.local_addr()).await {
            break (server, listener);
        }
    };
    let port = server.local_addr().port();
    let answer = Arc::clone(answer);
    let service = service_fn(move |request: Request<Body>| {
        let answer = Arc::clone(&answer);
        async move {
            let (head, body) = request.into_parts();
            let content = body
                .collect()
                .await
                .map(http_body_util::Collected::to_bytes);
            Ok::<_, Infallible>(answer(&head, content.unwrap_or_default()))
        }
    });
    let chain = certificate.certificate_pem();
    let certificates =
        Certificates::from_pem(chain.as_bytes(), certificate.private_key_pem().as_bytes()).unwrap();
    let config = server_config(Arc::new(certificates)).unwrap();
    let tcp = TcpServer::tls(Arc::new(config)).serve(listener, service.clone());
    tokio::spawn(async move {
        let http3 = H3Server::default();
        while let Some(connection) = server.accept().await {
            let (http3, service) = (http3.clone(), service.clone());
            tokio::spawn(async move { http3.serve(connection, service).await });
        }
    });
    (port, tcp.unwrap())
}

/// Content that breaks off.
pub(crate) struct Broken {
    first: Option<Bytes>,
    until: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl Broken {
    /// `first` succeeds, and later requests fail once `file` has content.
    pub(crate) fn new(first: Bytes, file: PathBuf) -> Self {
        let until = async move {
            while std::fs::metadata(&file).map_or(0, |found| found.len()) == 0 {
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        Self {
            first: Some(first),
            until: Box::pin(until),
        }
    }
}

impl http_body::Body for Broken {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        if let Some(first) = self.first.take() {
            return Poll::Ready(Some(Ok(Frame::data(first))));
        }
        ready!(self.until.as_mut().poll(cx));
        Poll::Ready(Some(Err("broken".into())))
    }
}

/// The offset of a `Range` of the form `bytes=N-`.
pub(crate) fn range_begin(head: &request::Parts) -> Option<usize> {
    let range = head.headers.get("range")?.to_str().unwrap();
    let begin = range.strip_prefix("bytes=")?.strip_suffix('-')?;
    Some(begin.parse().unwrap())
}
