//! The client's end of one HTTP connection.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use http::header::HOST;
use http::uri::Scheme;
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body::Body;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use swiftwater::{Connection, ConnectionStats};
use swiftwater_http::h3;
use swiftwater_http::udp::SendRequest;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, Error as TlsError};

use crate::exit::{Exit, Failure};
use crate::perf::args::PerfProtocol;
use crate::perf::zeroes::Zeroes;
use crate::transport::resolve;

/// Receive windows of HTTP/2, bytes: per stream, and per connection.
const HTTP2_WINDOW: u32 = 16 << 20;

/// The handle that sends requests.
pub(in crate::perf) enum Link {
    Http3(SendRequest),
    Http2(http2::SendRequest<Zeroes>),
    Http1(http1::SendRequest<Zeroes>),
}

/// A request that is sent repeatedly.
#[derive(Clone, Debug)]
pub(in crate::perf) struct PerfRequest {
    uri: Uri,
    /// For HTTP/1.1, whose targets don't contain the host.
    host: Option<HeaderValue>,
    up: u64,
    down: u64,
}

impl PerfRequest {
    /// `up` bytes of content to `authority`; the response has `down` bytes.
    pub(in crate::perf) fn new(
        protocol: PerfProtocol,
        authority: &str,
        up: u64,
        down: u64,
    ) -> Result<Self, Failure> {
        let path = format!("/bytes/{down}");
        let wrong = |error: &dyn fmt::Display| Failure::new(Exit::Usage, error);
        let (uri, host) = if protocol == PerfProtocol::H1 {
            let host = HeaderValue::from_str(authority).map_err(|error| wrong(&error))?;
            (path.parse().map_err(|error| wrong(&error))?, Some(host))
        } else {
            let uri = Uri::builder().scheme(Scheme::HTTPS).authority(authority);
            let uri = uri.path_and_query(path).build();
            (uri.map_err(|error| wrong(&error))?, None)
        };
        Ok(Self {
            uri,
            host,
            up,
            down,
        })
    }

    fn request(&self) -> Request<Zeroes> {
        let mut request = Request::new(Zeroes::new(self.up));
        *request.uri_mut() = self.uri.clone();
        if self.up > 0 {
            *request.method_mut() = Method::POST;
        }
        if let Some(host) = &self.host {
            request.headers_mut().insert(HOST, host.clone());
        }
        request
    }

    /// Reads the response; fails if it isn't the expected one.
    async fn check<B>(&self, response: Response<B>) -> Result<(), Failure>
    where
        B: Body<Data = Bytes> + Unpin,
        B::Error: fmt::Display,
    {
        let (head, mut body) = response.into_parts();
        let mut received = 0;
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            let frame = frame.map_err(broken)?;
            received += frame.data_ref().map_or(0, |data| data.len() as u64);
        }
        if head.status != StatusCode::OK {
            let status = head.status;
            let text = format!("the server answered {status}; is it 'swiftwater perf server'?");
            return Err(Failure::new(Exit::Differs, text));
        }
        if received != self.down {
            let wanted = self.down;
            let text = format!("requested {wanted} bytes, but the server sent {received}");
            return Err(Failure::new(Exit::Differs, text));
        }
        Ok(())
    }
}

impl Link {
    /// Starts HTTP/3 on a QUIC connection.
    pub(in crate::perf) fn http3(connection: Connection) -> Self {
        Self::Http3(SendRequest::new(connection, h3::Config::default()))
    }

    /// Connects over TCP; `tls` offers only `protocol` in ALPN.
    pub(in crate::perf) async fn tcp(
        tls: &Arc<ClientConfig>,
        host: &str,
        port: u16,
        protocol: PerfProtocol,
    ) -> Result<Self, Failure> {
        let stream = secure(tls, host, port).await?;
        if stream.get_ref().1.alpn_protocol() != Some(protocol.alpn()) {
            let text = format!("the server doesn't support {}", protocol.name());
            return Err(Failure::new(Exit::Connection, text));
        }
        let stream = TokioIo::new(stream);
        if protocol == PerfProtocol::H1 {
            let (sender, connection) = http1::handshake(stream).await.map_err(broken)?;
            run(connection);
            return Ok(Self::Http1(sender));
        }
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .initial_stream_window_size(HTTP2_WINDOW)
            .initial_connection_window_size(HTTP2_WINDOW)
            .handshake(stream)
            .await
            .map_err(broken)?;
        run(connection);
        Ok(Self::Http2(sender))
    }

    /// Another handle of the same connection; `None` if it carries one request at a time.
    pub(in crate::perf) fn share(&self) -> Option<Self> {
        match self {
            Self::Http3(sender) => Some(Self::Http3(sender.clone())),
            Self::Http2(sender) => Some(Self::Http2(sender.clone())),
            Self::Http1(_) => None,
        }
    }

    /// Makes the request and reads the whole response.
    pub(in crate::perf) async fn request(&mut self, ask: &PerfRequest) -> Result<(), Failure> {
        match self {
            Self::Http3(sender) => {
                let response = sender.send(ask.request()).await.map_err(broken)?;
                ask.check(response).await
            }
            Self::Http2(sender) => {
                sender.ready().await.map_err(broken)?;
                let response = sender.send_request(ask.request()).await.map_err(broken)?;
                ask.check(response).await
            }
            Self::Http1(sender) => {
                sender.ready().await.map_err(broken)?;
                let response = sender.send_request(ask.request()).await.map_err(broken)?;
                ask.check(response).await
            }
        }
    }

    /// Statistics of the QUIC connection, if there is one.
    pub(in crate::perf) fn stats(&self) -> Option<ConnectionStats> {
        match self {
            Self::Http3(sender) => Some(sender.stats()),
            Self::Http2(_) | Self::Http1(_) => None,
        }
    }
}

async fn secure(
    tls: &Arc<ClientConfig>,
    host: &str,
    port: u16,
) -> Result<TlsStream<TcpStream>, Failure> {
    let target = format!("cannot connect to TCP port {port} of {host}");
    let no_connection = |error: &dyn fmt::Display| {
        Failure::new(Exit::Connection, format_args!("{target}: {error}"))
    };
    let addresses = resolve(host, port).await?;
    let stream = TcpStream::connect(addresses.as_slice()).await;
    let stream = stream.map_err(|error| no_connection(&error))?;
    stream.set_nodelay(true)?;
    let name = ServerName::try_from(host.to_owned()).map_err(|error| no_connection(&error))?;
    let secure = TlsConnector::from(Arc::clone(tls)).connect(name, stream);
    secure.await.map_err(|error| {
        let cause = error.get_ref();
        let exit = match cause.and_then(|cause| cause.downcast_ref::<TlsError>()) {
            Some(_) => Exit::Certificate,
            None => Exit::Connection,
        };
        Failure::new(exit, format_args!("{target}: {error}"))
    })
}

/// Drives a connection of hyper until all handles are dropped.
fn run<E: fmt::Display>(connection: impl Future<Output = Result<(), E>> + Send + 'static) {
    tokio::spawn(async move {
        if let Err(error) = connection.await {
            tracing::debug!(%error, "a connection failed");
        }
    });
}

fn broken(error: impl fmt::Display) -> Failure {
    Failure::new(Exit::Connection, error)
}
