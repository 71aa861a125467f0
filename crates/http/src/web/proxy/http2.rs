//! HTTP/2 to the upstream (RFC 9113): requests share connections, of which there are as many as the upstream's limit of
//! concurrent streams requires.

use std::future::poll_fn;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::header::{CONNECTION, HOST};
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri, Version};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::connector::Connector;
use super::link::Link;
use super::upload::Upload;
use crate::web::body::BoxError;

/// Receive window of a response, bytes: what a slow client leaves in memory.
const STREAM_WINDOW: u32 = 128 * 1024;

/// Receive window of a connection, bytes: more than its slow responses usually hold, so that the others go on.
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;

/// Time between PINGs while requests are in progress, and for their answers.
const PING_INTERVAL: Duration = Duration::from_secs(20);

/// Why there is no response.
#[derive(Debug)]
pub(super) enum Failure {
    /// There is no connection.
    Connect(BoxError),
    /// The upstream chose HTTP/1.1: the request, and the connection.
    NotHttp2(Box<(Request<Upload>, Link)>),
    /// The request failed.
    Request(hyper::Error),
}

/// Connections to one upstream.
#[derive(Debug)]
pub(super) struct Http2 {
    connector: Connector,
    scheme: Scheme,
    connect_timeout: Duration,
    /// Bytes of the head of a response.
    header_size: u32,
    /// Locked while a connection is established, which the next requests can use.
    connections: Mutex<Vec<Shared>>,
}

/// A connection.
#[derive(Clone, Debug)]
struct Shared {
    sender: SendRequest<Upload>,
    /// Streams in progress.
    open: Arc<AtomicUsize>,
    /// Most streams that the upstream permits.
    most: Arc<AtomicUsize>,
}

/// A stream in progress, until the last clone is dropped. In the extensions of responses.
#[derive(Clone, Debug)]
pub(super) struct OpenStream(#[allow(dead_code, reason = "held for its end")] Arc<Counted>);

#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Shared {
    fn has_room(&self) -> bool {
        let most = self.most.load(Ordering::Relaxed).max(1);
        self.open.load(Ordering::Relaxed) < most
    }

    fn open(&self) -> OpenStream {
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenStream(Arc::new(Counted(Arc::clone(&self.open))))
    }
}

impl Http2 {
    /// Requests for URIs of `scheme` on connections of `connector`.
    pub(super) fn new(
        connector: Connector,
        scheme: Scheme,
        connect_timeout: Duration,
        header_size: usize,
    ) -> Self {
        Self {
            connector,
            scheme,
            connect_timeout,
            header_size: u32::try_from(header_size).unwrap_or(u32::MAX),
            connections: Mutex::default(),
        }
    }

    /// Sends `request`, which is one of HTTP/1.1 with `Host`. It is sent again, whatever its method, if the
    /// connection ended before any of it was sent.
    pub(super) async fn send(
        &self,
        mut request: Request<Upload>,
    ) -> Result<Response<Incoming>, Failure> {
        let mut may_repeat = true;
        loop {
            let (mut connection, is_new) = match self.connection().await {
                Ok(found) => found,
                Err(Connecting::Failed(error)) => return Err(Failure::Connect(error)),
                Err(Connecting::NotHttp2(link)) => {
                    return Err(Failure::NotHttp2(Box::new((request, link))));
                }
            };
            let stream = connection.open();
            request = self.convert(request);
            let mut error = match connection.sender.try_send_request(request).await {
                Ok(mut response) => {
                    response.extensions_mut().insert(stream);
                    return Ok(response);
                }
                Err(error) => error,
            };
            match error.take_message() {
                Some(unsent) if may_repeat && !is_new => request = unsent,
                _ => return Err(Failure::Request(error.into_error())),
            }
            may_repeat = false;
        }
    }

    /// A connection with room for a request, and whether it is new.
    async fn connection(&self) -> Result<(Shared, bool), Connecting> {
        let locked = timeout(self.connect_timeout, self.connections.lock()).await;
        let mut connections = locked.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))?;
        let mut kept_idle = false;
        connections.retain(|connection| {
            let is_idle = connection.open.load(Ordering::Relaxed) == 0;
            let is_spare = is_idle && std::mem::replace(&mut kept_idle, true);
            !connection.sender.is_closed() && !is_spare
        });
        if let Some(found) = connections.iter().find(|connection| connection.has_room()) {
            return Ok((found.clone(), false));
        }
        let link = self.connector.clone().connect().await?;
        if link.refuses_http2() {
            return Err(Connecting::NotHttp2(link));
        }
        let connection = self.begin(link).await?;
        connections.push(connection.clone());
        Ok((connection, true))
    }

    async fn begin(&self, link: Link) -> Result<Shared, BoxError> {
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(self.header_size)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_INTERVAL)
            .handshake(link)
            .await?;
        let most = Arc::new(AtomicUsize::new(connection.current_max_send_streams()));
        let noted = Arc::clone(&most);
        tokio::spawn(async move {
            let mut connection = Box::pin(connection);
            let ended = poll_fn(|cx| {
                let polled = connection.as_mut().poll(cx);
                noted.store(connection.current_max_send_streams(), Ordering::Relaxed);
                polled
            });
            if let Err(error) = ended.await {
                tracing::debug!(%error, "an HTTP/2 connection to an upstream failed");
            }
        });
        Ok(Shared {
            sender,
            open: Arc::default(),
            most,
        })
    }

    /// The host moves from its field to the URI (RFC 9113, section 8.3.1), and fields of the connection go.
    fn convert(&self, mut request: Request<Upload>) -> Request<Upload> {
        let headers = request.headers_mut();
        headers.remove(CONNECTION);
        let host = headers.remove(HOST);
        let host = host.and_then(|host| Authority::try_from(host.as_bytes()).ok());
        let mut parts = std::mem::take(request.uri_mut()).into_parts();
        parts.scheme = Some(self.scheme.clone());
        parts.authority = host.or(parts.authority);
        // Complete, with valid parts.
        *request.uri_mut() = Uri::from_parts(parts).unwrap_or_default();
        *request.version_mut() = Version::HTTP_2;
        request
    }
}

/// Why there is no connection.
enum Connecting {
    Failed(BoxError),
    NotHttp2(Link),
}

impl<E: Into<BoxError>> From<E> for Connecting {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Whether the upstream has certainly not processed the request that failed (RFC 9113, section 8.7).
pub(super) fn was_not_processed(error: &hyper::Error) -> bool {
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            return error.reason() == Some(h2::Reason::REFUSED_STREAM)
                || (error.is_go_away() && error.is_remote());
        }
        cause = error.source();
    }
    error.is_canceled()
}
