//! Requests for tunnels over HTTP/2, where they share a connection, and over HTTP/1.1, where each becomes one.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HOST, UPGRADE};
use http::uri::{Authority, PathAndQuery};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri, Version, response};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::ext::Protocol;
use hyper::upgrade::Upgraded;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use swiftwater_http::web::body::BoxError;
use tokio::sync::watch;
use tokio::time::{Instant, interval};

use super::error::{ConnectError, OpenError, check_answer};
use super::tcp_connection::TcpConnection;
use super::tls_alert::ReceivedAlert;
use super::tunnel_client::Connect;

/// How long the proxy gets to say that it takes extended CONNECT, with its first SETTINGS.
const SETTINGS: Duration = Duration::from_secs(5);

/// How often it is looked whether it did.
const LOOK: Duration = Duration::from_millis(5);

/// Bytes that the proxy may send ahead on a stream of HTTP/2, and on all.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 4 << 20;

/// How often a connection of HTTP/2 is tested, and how long the proxy gets to answer.
const PING_INTERVAL: Duration = Duration::from_secs(15);
const PING_TIMEOUT: Duration = Duration::from_secs(20);

/// The stream that a request became.
pub(super) type UpgradedStream = TokioIo<Upgraded>;

type Body = Empty<Bytes>;

/// The connection over TCP in use.
pub(super) enum TcpLink {
    Http2 {
        sender: http2::SendRequest<Body>,
        /// Whether the proxy takes extended CONNECT, once that is known.
        extended: watch::Receiver<Option<bool>>,
        alert: ReceivedAlert,
    },
    /// The connection for the first tunnel; further tunnels have connections of their own.
    Http1(Mutex<Option<TcpConnection>>),
}

impl TcpLink {
    pub(super) async fn begin(connection: TcpConnection) -> Result<Self, BoxError> {
        if !connection.is_http2 {
            return Ok(Self::Http1(Mutex::new(Some(connection))));
        }
        let alert = connection.alert;
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .handshake(TokioIo::new(connection.stream))
            .await?;
        let (note, extended) = watch::channel(None);
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            let until = Instant::now() + SETTINGS;
            // hyper reads SETTINGS in a task of its own, and does not report when they come.
            let mut look = interval(LOOK);
            let ended = poll_fn(|cx| {
                let polled = connection.as_mut().poll(cx);
                while note.borrow().is_none() {
                    let enabled = connection.is_extended_connect_protocol_enabled();
                    if enabled || Instant::now() >= until {
                        note.send_replace(Some(enabled));
                    } else if look.poll_tick(cx).is_pending() {
                        break;
                    }
                }
                polled
            });
            if let Err(error) = ended.await {
                tracing::debug!(%error, "an HTTP/2 connection to the proxy failed");
            }
        });
        Ok(Self::Http2 {
            sender,
            extended,
            alert,
        })
    }

    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Http2 { sender, .. } => sender.is_closed(),
            Self::Http1(_) => false,
        }
    }

    pub(super) fn version(&self) -> Version {
        match self {
            Self::Http2 { .. } => Version::HTTP_2,
            Self::Http1(_) => Version::HTTP_11,
        }
    }

    /// Asks for a tunnel of `protocol`, for UDP or IP; `request` has the URI of the target and the fields. Returns the
    /// fields of the answer and the stream of capsules.
    pub(super) async fn open_capsules(
        &self,
        connector: &dyn Connect,
        protocol: &'static str,
        mut request: Request<()>,
    ) -> Result<(response::Parts, UpgradedStream), OpenError> {
        match self {
            Self::Http2 {
                sender,
                extended,
                alert,
            } => {
                let mut extended = extended.clone();
                let known = extended.wait_for(Option::is_some).await;
                if !known.is_ok_and(|known| *known == Some(true)) {
                    return Err(alert.or(OpenError::NoExtendedConnect));
                }
                *request.method_mut() = Method::CONNECT;
                let protocol = Protocol::from_static(protocol);
                request.extensions_mut().insert(protocol);
                let answer = send_http2(sender, alert, request).await?;
                let accepts = answer.status().is_success();
                upgraded(answer, accepts).await
            }
            Self::Http1(first) => {
                let host = host_of(request.uri())?;
                let path = request.uri().path_and_query().map(PathAndQuery::as_str);
                *request.uri_mut() = path.unwrap_or("/").parse().map_err(http::Error::from)?;
                let headers = request.headers_mut();
                headers.insert(HOST, host);
                headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
                headers.insert(UPGRADE, HeaderValue::from_static(protocol));
                let answer = send_http1(first, connector, request).await?;
                let named = answer.headers().get(UPGRADE);
                let is_named = named
                    .is_some_and(|name| name.as_bytes().eq_ignore_ascii_case(protocol.as_bytes()));
                let accepts = answer.status() == StatusCode::SWITCHING_PROTOCOLS && is_named;
                upgraded(answer, accepts).await
            }
        }
    }

    /// Asks for a tunnel for TCP; the URI of `request` is the target.
    pub(super) async fn open_tcp(
        &self,
        connector: &dyn Connect,
        mut request: Request<()>,
    ) -> Result<(response::Parts, UpgradedStream), OpenError> {
        let answer = match self {
            Self::Http2 { sender, alert, .. } => send_http2(sender, alert, request).await?,
            Self::Http1(first) => {
                let host = host_of(request.uri())?;
                request.headers_mut().insert(HOST, host);
                send_http1(first, connector, request).await?
            }
        };
        let accepts = answer.status().is_success();
        upgraded(answer, accepts).await
    }
}

fn host_of(uri: &Uri) -> Result<HeaderValue, OpenError> {
    let authority = uri.authority().map_or("", Authority::as_str);
    let value = HeaderValue::from_str(authority);
    value.map_err(|error| OpenError::Request(error.into()))
}

async fn send_http2(
    sender: &http2::SendRequest<Body>,
    alert: &ReceivedAlert,
    request: Request<()>,
) -> Result<Response<Incoming>, OpenError> {
    let mut sender = sender.clone();
    let answer = async {
        sender.ready().await?;
        sender.send_request(request.map(|()| Empty::new())).await
    };
    answer.await.map_err(|error| alert.or(error))
}

async fn send_http1(
    first: &Mutex<Option<TcpConnection>>,
    connector: &dyn Connect,
    request: Request<()>,
) -> Result<Response<Incoming>, OpenError> {
    let kept = first.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(connection) = kept {
        let alert = connection.alert.clone();
        let answer = exchange_http1(connection, request.clone()).await;
        // The proxy may have closed it because it was unused.
        let is_stale = match &answer {
            Ok(answer) => answer.status() == StatusCode::REQUEST_TIMEOUT,
            Err(error) => !error.is_parse(),
        };
        if !is_stale {
            return answer.map_err(|error| alert.or(error));
        }
    }
    let connection = connector.connect_tcp().await.map_err(ConnectError)?;
    if connection.is_http2 {
        let why = "the proxy took HTTP/1.1 before, and HTTP/2 now";
        return Err(ConnectError(why.into()).into());
    }
    let alert = connection.alert.clone();
    let answer = exchange_http1(connection, request).await;
    answer.map_err(|error| alert.or(error))
}

async fn exchange_http1(
    connection: TcpConnection,
    request: Request<()>,
) -> hyper::Result<Response<Incoming>> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(connection.stream)).await?;
    tokio::spawn(async move {
        if let Err(error) = connection.with_upgrades().await {
            tracing::debug!(%error, "an HTTP/1.1 connection to the proxy failed");
        }
    });
    let request = request.map(|()| Body::new());
    sender.send_request(request).await
}

/// The stream that an accepted request became, or the refusal.
async fn upgraded(
    mut answer: Response<Incoming>,
    accepts: bool,
) -> Result<(response::Parts, UpgradedStream), OpenError> {
    check_answer(accepts, answer.status(), answer.headers())?;
    let upgraded = hyper::upgrade::on(&mut answer).await?;
    Ok((answer.into_parts().0, TokioIo::new(upgraded)))
}
