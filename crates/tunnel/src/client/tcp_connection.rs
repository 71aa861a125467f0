//! A connection to the proxy over TCP, before HTTP begins on it.

use std::fmt;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use swiftwater_http::tcp::ALPN_HTTP2;
use swiftwater_http::web::body::BoxError;
use tokio::net::{TcpStream, ToSocketAddrs};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::ClientConfig;
use tokio_rustls::rustls::pki_types::ServerName;

use super::tcp_tunnel::ByteStream;
use super::tls_alert::{ReceivedAlert, WithAlert};

/// A connection attempt over TCP.
pub type ConnectingTcp<'a> =
    Pin<Box<dyn Future<Output = Result<TcpConnection, BoxError>> + Send + 'a>>;

/// A byte stream to the proxy, secure already, and the version of HTTP that both ends agreed on.
pub struct TcpConnection {
    pub(super) stream: Box<dyn ByteStream>,
    pub(super) is_http2: bool,
    /// The alert of TLS that ends it.
    pub(super) alert: ReceivedAlert,
}

impl TcpConnection {
    /// A stream for HTTP/1.1.
    pub fn http1(stream: impl ByteStream + 'static) -> Self {
        Self {
            stream: Box::new(stream),
            is_http2: false,
            alert: ReceivedAlert::default(),
        }
    }

    /// A stream for HTTP/2.
    pub fn http2(stream: impl ByteStream + 'static) -> Self {
        Self {
            stream: Box::new(stream),
            is_http2: true,
            alert: ReceivedAlert::default(),
        }
    }

    /// Connects to a proxy by TCP and TLS; the version is that which the proxy chooses of the ALPN names in `tls`,
    /// HTTP/1.1 if it chooses none. Addresses of the name are tried one after the other. It has no time limit.
    pub async fn over_tls(
        host: &str,
        port: u16,
        tls: &Arc<ClientConfig>,
    ) -> Result<Self, BoxError> {
        Self::over_tls_to((host, port), host, tls).await
    }

    /// The same by `addresses` of the proxy `host`, tried one after the other.
    pub async fn over_tls_to(
        addresses: impl ToSocketAddrs,
        host: &str,
        tls: &Arc<ClientConfig>,
    ) -> Result<Self, BoxError> {
        let stream = TcpStream::connect(addresses).await?;
        stream.set_nodelay(true)?;
        Self::over_tls_within(stream, host, tls).await
    }

    /// The same within a byte stream that leads to the proxy `host`, such as a tunnel of another proxy.
    pub async fn over_tls_within(
        stream: impl ByteStream + 'static,
        host: &str,
        tls: &Arc<ClientConfig>,
    ) -> Result<Self, BoxError> {
        let name = ServerName::try_from(host.to_owned())?;
        let secure = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
        let secure = secure.await.map_err(|error: io::Error| error.to_string())?;
        let is_http2 = secure.get_ref().1.alpn_protocol() == Some(ALPN_HTTP2);
        let alert = ReceivedAlert::default();
        Ok(Self {
            stream: Box::new(WithAlert::new(secure, alert.clone())),
            is_http2,
            alert,
        })
    }
}

impl fmt::Debug for TcpConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpConnection")
            .field("is_http2", &self.is_http2)
            .finish_non_exhaustive()
    }
}
