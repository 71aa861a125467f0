//! One service over HTTP/3, HTTP/2 and HTTP/1.1, on one port number.

use std::future::{Future, pending};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_http::tcp::{
    MinTls, RunningServer, TcpLimits, TcpServer, server_config, server_config_with_clients,
};
use swiftwater_http::udp::{ALPN_HTTP3, H3Server};
use swiftwater_http::web::alt_svc::AltSvcLayer;
use swiftwater_http::web::response_budget::ResponseBudget;
use swiftwater_http::web::service::WebService;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::Layer;

use crate::error::BuildError;
use crate::server::{Server, ServerBuilder};

/// How long clients may cache the advertisement of HTTP/3 (RFC 7838, section 3.1).
const ALT_SVC_MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// Attempts with an OS-chosen port: one that is free for UDP may be in use for TCP.
const PORT_ATTEMPTS: usize = 20;

/// A web server: HTTP/3 on UDP, HTTP/2 and HTTP/1.1 over TLS on the TCP port of the same number, for
/// any [`tower::Service`], such as a router of axum. Created by [`ServerBuilder::bind_web`].
///
/// HTTP/3 is advertised to clients over TCP (`Alt-Svc`). Each request carries a
/// [`ConnectionInfo`](swiftwater_http::web::connection_info::ConnectionInfo) in its extensions.
///
/// ```
/// use axum::{Router, routing::get};
/// use swiftwater::{DevCertificate, Server};
///
/// #[tokio::main]
/// async fn main() -> Result<(), Box<dyn std::error::Error>> {
///     let certificate = DevCertificate::generate(["localhost"])?;
///     let app = Router::new().route("/", get(async || "Hello over whichever version"));
///     let server = Server::builder()
///         .dev_certificate(&certificate)
///         .bind_web("127.0.0.1:0".parse()?)?;
///     println!("https://localhost:{}", server.local_addr().port());
/// #   let stop = std::future::ready(());
///     // Or `server.serve(app).await`, forever.
///     server.serve_until(app, stop, std::time::Duration::from_secs(10)).await?;
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct WebServer {
    quic: Server,
    listener: TcpListener,
    tcp: TcpServer,
    http3: H3Server,
}

impl ServerBuilder {
    /// Binds UDP and TCP at the same address and port, for a web server; with port 0 one that is free
    /// for both is chosen. Must be called inside a tokio runtime.
    ///
    /// ALPN names are set here. The certificate must not come from [`ServerBuilder::tls`], because
    /// the TCP side needs it, too. With [`ServerBuilder::certificate_resolver`] it can be replaced
    /// later.
    pub fn bind_web(self, address: SocketAddr) -> Result<WebServer, BuildError> {
        let certificates = self.certificates()?;
        let shown = Arc::clone(&certificates);
        let tls = match self.clients() {
            Some(clients) => server_config_with_clients(shown, MinTls::Tls13, clients),
            None => server_config(shown),
        };
        let tls = tls.map_err(BuildError::TlsOverTcp)?;
        let builder = self.certificate_resolver(certificates).alpn([ALPN_HTTP3]);
        let mut attempts = 1;
        let (quic, listener) = loop {
            let quic = builder.clone().bind(address)?;
            match listen(quic.local_addr()) {
                Ok(listener) => break (quic, listener),
                Err(_) if address.port() == 0 && attempts < PORT_ATTEMPTS => attempts += 1,
                Err(source) => {
                    let address = quic.local_addr();
                    return Err(BuildError::Tcp { address, source });
                }
            }
        };
        // One budget for both.
        let response_budget = ResponseBudget::default();
        let http3 = H3Server::default().response_budget(response_budget.clone());
        let limits = TcpLimits {
            response_budget,
            share_by_address: true,
            ..TcpLimits::default()
        };
        Ok(WebServer {
            quic,
            listener,
            tcp: TcpServer::tls(Arc::new(tls)).limits(limits),
            http3,
        })
    }
}

fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let listener = std::net::TcpListener::bind(address)?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

impl WebServer {
    /// The address of both sockets.
    pub fn local_addr(&self) -> SocketAddr {
        self.quic.local_addr()
    }

    /// The QUIC side, for statistics and a change of certificates.
    pub fn quic(&self) -> &Server {
        &self.quic
    }

    /// The configuration of HTTP/3: limits, rates, settings.
    #[must_use]
    pub fn http3(mut self, http3: H3Server) -> Self {
        self.http3 = http3;
        self
    }

    /// TcpLimits on clients over TCP.
    #[must_use]
    pub fn tcp_limits(mut self, limits: TcpLimits) -> Self {
        self.tcp = self.tcp.limits(limits);
        self
    }

    /// Serves until the future is dropped, which cuts requests in progress.
    pub async fn serve<S>(self, service: S) -> io::Result<()>
    where
        S: WebService + Sync,
    {
        self.serve_until(service, pending(), Duration::ZERO).await
    }

    /// Serves until `stop` is ready; then accepts no more requests and gives those in progress
    /// `grace` to complete. It is signalled to clients (GOAWAY of HTTP/3 and HTTP/2, `Connection:
    /// close` of HTTP/1.1).
    pub async fn serve_until<S>(
        self,
        service: S,
        stop: impl Future<Output = ()>,
        grace: Duration,
    ) -> io::Result<()>
    where
        S: WebService + Sync,
    {
        let port = self.local_addr().port();
        let advertised = AltSvcLayer::new(port, ALT_SVC_MAX_AGE).layer(service.clone());
        let tcp = self.tcp.serve(self.listener, advertised)?;
        let mut connections = JoinSet::new();
        let mut stop = std::pin::pin!(stop);
        loop {
            tokio::select! {
                connection = self.quic.accept() => {
                    let Some(connection) = connection else { break };
                    let (http3, service) = (self.http3.clone(), service.clone());
                    connections.spawn(async move { http3.serve(connection, service).await });
                }
                // The result of a single connection is not reported here.
                Some(_) = connections.join_next() => {}
                () = &mut stop => break,
            }
        }
        self.quic.endpoint().set_server_config(None);
        self.http3.drain();
        drain(connections, tcp, grace).await;
        self.quic.close().await;
        Ok(())
    }
}

/// Waits for requests in progress on both sides, at most for `grace`.
async fn drain<T: 'static>(mut connections: JoinSet<T>, tcp: RunningServer, grace: Duration) {
    let over_quic = timeout(grace, async {
        while connections.join_next().await.is_some() {}
    });
    // Remaining connections are cut.
    let _ = tokio::join!(over_quic, tcp.drain(grace));
}
