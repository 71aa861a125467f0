//! HTTP/2 to the upstream (RFC 9113): requests share connections, of which there are as many as the upstream's limit of
//! concurrent streams requires.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use http::header::{CONNECTION, HOST};
use http::uri::{Authority, Scheme};
use http::{Request, Response, Uri, Version};
use hyper::body::Incoming;
use hyper::client::conn::http2::{Builder, SendRequest};
use hyper::ext::Protocol;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::connector::Connector;
use super::link::Link;
use super::upload::Upload;
use crate::web::body::BoxError;

/// Receive window of a response, bytes: what a slow client leaves in memory.
const STREAM_WINDOW: u32 = 128 * 1024;

/// Receive window of a connection, bytes.
const CONNECTION_WINDOW: u32 = 16 * 1024 * 1024;

/// Most streams of a connection, whatever the upstream permits: as many as can each have a full window, so that responses
/// which clients do not read hold no others up.
const MOST_STREAMS: usize = (CONNECTION_WINDOW / STREAM_WINDOW) as usize;

/// How long an upstream may acknowledge nothing that was sent: a connection to one that is gone would otherwise get
/// requests for minutes. PING is no alternative: servers of gRPC close connections that send it often.
const SILENCE: Duration = Duration::from_secs(30);

/// How long a new upstream gets to say whether it takes extended CONNECT, and how often it is looked whether it did.
const SETTINGS: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(5);

/// Why there is no response.
#[derive(Debug)]
pub(super) enum Failure {
    /// There is no connection.
    Connect(BoxError),
    /// The upstream chose HTTP/1.1: the request, and the connection.
    NotHttp2(Box<(Request<Upload>, Link)>),
    /// It is extended CONNECT, which the upstream does not take.
    NoExtendedConnect,
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
    connections: Mutex<Connections>,
    /// A stream has ended, or an attempt to connect.
    changed: Arc<Notify>,
}

#[derive(Debug, Default)]
struct Connections {
    open: Vec<Shared>,
    /// Another one is established, which the next requests can use.
    is_connecting: bool,
}

/// An attempt to connect, until this is dropped.
struct Attempt<'a>(&'a Http2);

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        self.0.lock().is_connecting = false;
        self.0.changed.notify_waiters();
    }
}

/// A connection.
#[derive(Clone, Debug)]
struct Shared {
    sender: SendRequest<Upload>,
    /// Streams in progress.
    open: Arc<AtomicUsize>,
    settings: Arc<Settings>,
}

/// What the upstream's SETTINGS say, as of the last look. hyper reads them in a task of its own, and does not report
/// when they come.
#[derive(Debug)]
struct Settings {
    /// Most streams that the upstream permits.
    most: AtomicUsize,
    takes_extended_connect: AtomicBool,
    /// It did not say so in time.
    refuses_extended_connect: AtomicBool,
    look: Notify,
}

/// A stream in progress, until the last clone is dropped. In the extensions of responses.
#[derive(Clone, Debug)]
pub(super) struct OpenStream(#[allow(dead_code, reason = "held for its end")] Arc<Counted>);

#[derive(Debug)]
struct Counted {
    open: Arc<AtomicUsize>,
    changed: Arc<Notify>,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
        // There is room for one.
        self.changed.notify_one();
    }
}

impl Shared {
    fn has_room(&self) -> bool {
        let most = self.settings.most.load(Ordering::Relaxed);
        let most = most.clamp(1, MOST_STREAMS);
        self.open.load(Ordering::Relaxed) < most
    }

    /// Whether the upstream takes extended CONNECT; waits for its SETTINGS.
    async fn takes_extended_connect(&self) -> bool {
        let settings = &self.settings;
        let waited = timeout(SETTINGS, async {
            while !settings.takes_extended_connect.load(Ordering::Relaxed) {
                if self.sender.is_closed()
                    || settings.refuses_extended_connect.load(Ordering::Relaxed)
                {
                    return false;
                }
                settings.look.notify_one();
                sleep(LOOK).await;
            }
            true
        });
        waited.await.unwrap_or_else(|_| {
            (settings.refuses_extended_connect).store(true, Ordering::Relaxed);
            false
        })
    }

    fn open(&self, changed: &Arc<Notify>) -> OpenStream {
        self.open.fetch_add(1, Ordering::Relaxed);
        OpenStream(Arc::new(Counted {
            open: Arc::clone(&self.open),
            changed: Arc::clone(changed),
        }))
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
            connector: connector.give_up_after(SILENCE),
            scheme,
            connect_timeout,
            header_size: u32::try_from(header_size).unwrap_or(u32::MAX),
            connections: Mutex::default(),
            changed: Arc::default(),
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
            let (mut connection, stream, is_new) = match self.connection().await {
                Ok(found) => found,
                Err(Connecting::Failed(error)) => return Err(Failure::Connect(error)),
                Err(Connecting::NotHttp2(link)) => {
                    return Err(Failure::NotHttp2(Box::new((request, link))));
                }
            };
            if request.extensions().get::<Protocol>().is_some()
                && !connection.takes_extended_connect().await
            {
                return Err(Failure::NoExtendedConnect);
            }
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

    /// A connection with room for a request, the request's place on it, and whether it is new.
    async fn connection(&self) -> Result<(Shared, OpenStream, bool), Connecting> {
        let found = timeout(self.connect_timeout, self.find_or_attempt()).await;
        let _attempt = match found.map_err(|_| io::Error::from(io::ErrorKind::TimedOut))? {
            Found::Open(connection, stream) => return Ok((connection, stream, false)),
            Found::None(attempt) => attempt,
        };
        let link = self.connector.clone().connect().await?;
        if link.refuses_http2() {
            return Err(Connecting::NotHttp2(link));
        }
        let connection = self.begin(link).await?;
        let stream = connection.open(&self.changed);
        self.lock().open.push(connection.clone());
        Ok((connection, stream, true))
    }

    /// A connection with room, or else an attempt to be made. While there is another attempt, waits for its end or for room.
    async fn find_or_attempt(&self) -> Found<'_> {
        if let Some(found) = self.find() {
            return found;
        }
        loop {
            let mut changed = pin!(self.changed.notified());
            // What changes from now on is noticed.
            changed.as_mut().enable();
            if let Some(found) = self.find() {
                return found;
            }
            changed.await;
        }
    }

    fn find(&self) -> Option<Found<'_>> {
        let mut connections = self.lock();
        let mut kept_idle = false;
        connections.open.retain(|connection| {
            let is_idle = connection.open.load(Ordering::Relaxed) == 0;
            let is_open = !connection.sender.is_closed();
            is_open && !(is_idle && std::mem::replace(&mut kept_idle, true))
        });
        let found = connections.open.iter().find(|it| it.has_room());
        if let Some(found) = found {
            let stream = found.open(&self.changed);
            return Some(Found::Open(found.clone(), stream));
        }
        let is_first = !std::mem::replace(&mut connections.is_connecting, true);
        is_first.then(|| Found::None(Attempt(self)))
    }

    fn lock(&self) -> MutexGuard<'_, Connections> {
        (self.connections.lock()).unwrap_or_else(PoisonError::into_inner)
    }

    async fn begin(&self, link: Link) -> Result<Shared, BoxError> {
        let (sender, connection) = Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(self.header_size)
            .handshake(link)
            .await?;
        let settings = Arc::new(Settings {
            most: AtomicUsize::new(connection.current_max_send_streams()),
            takes_extended_connect: AtomicBool::new(false),
            refuses_extended_connect: AtomicBool::new(false),
            look: Notify::new(),
        });
        let noted = Arc::clone(&settings);
        tokio::spawn(async move {
            let mut connection = Box::pin(connection);
            let ended = loop {
                let ended = poll_fn(|cx| {
                    let polled = connection.as_mut().poll(cx);
                    let most = connection.current_max_send_streams();
                    noted.most.store(most, Ordering::Relaxed);
                    let takes = connection.is_extended_connect_protocol_enabled();
                    noted.takes_extended_connect.store(takes, Ordering::Relaxed);
                    polled
                });
                tokio::select! {
                    biased;
                    ended = ended => break ended,
                    () = noted.look.notified() => {}
                }
            };
            if let Err(error) = ended {
                tracing::debug!(%error, "an HTTP/2 connection to an upstream failed");
            }
        });
        Ok(Shared {
            sender,
            open: Arc::default(),
            settings,
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

/// What there is for a request.
enum Found<'a> {
    Open(Shared, OpenStream),
    None(Attempt<'a>),
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
