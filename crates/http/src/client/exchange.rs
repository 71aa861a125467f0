//! One request and its response over one connection, and the classification of failures.

use std::error::Error as _;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::time::Duration;

use http::header::HOST;
use http::{HeaderName, HeaderValue, Request, Response, Uri, Version, request};
use hyper::client::conn::TrySendError;
use hyper::client::conn::{http1, http2};
use swiftwater_net::quic::ConnectionError;
use tokio::time::{Instant, sleep_until};

use super::body::{Release, Source};
use super::error::Error;
use super::measurements::{ConnectionShare, QuicShare};
use super::origin::Origin;
use super::pool::Pool;
use super::protocol_choice::Protocol;
use super::quic::{EarlyResponse, Http3Link};
use super::request_content::RequestContent;
use super::retry::Fate;
use super::tcp::{TcpLink, TcpSender};
use super::tcp_share::{TcpShare, TcpStatisticsSource};
use super::timeouts::Phase;
use crate::h3::RequestError;
use crate::udp::ClientError;
use crate::web::body::Body;

/// RFC 7838, section 5.
const ALT_USED: HeaderName = HeaderName::from_static("alt-used");

/// A connection that a request may use: one of HTTP/3, HTTP/2 or HTTP/1.1.
pub(super) enum Link {
    Http3(Http3Link, Option<EarlyResponse>),
    Tcp(TcpLink),
}

impl Link {
    /// The request was already sent as early data (0-RTT).
    pub(super) fn is_early(&self) -> bool {
        matches!(self, Self::Http3(_, Some(_)))
    }
}

/// The response's head was received.
pub(super) struct Answer {
    pub(super) response: Response<Source>,
    pub(super) protocol: Protocol,
    pub(super) share: Option<ConnectionShare>,
    /// Over TCP that of the connection's handshake, if it was measured.
    pub(super) rtt: Option<Duration>,
    pub(super) release: Option<Release>,
    /// It answers a request sent as early data.
    pub(super) early: bool,
    /// It came from an alternative service.
    pub(super) alternative: bool,
}

/// No response was received.
pub(super) struct Failure {
    pub(super) fate: Fate,
    pub(super) error: Error,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        let fate = match &error {
            Error::Http3(error) => http3_fate(error),
            Error::Tcp(error) if is_refused(error) => Fate::Unprocessed,
            Error::Tcp(error) if is_connection_gone(error) => Fate::ConnectionGone,
            _ => Fate::Unknown,
        };
        Self { fate, error }
    }
}

fn http3_fate(error: &ClientError) -> Fate {
    match error {
        ClientError::Request(RequestError::GoingAway | RequestError::ConnectionLost(_))
        | ClientError::Unprocessed(_) => Fate::Unprocessed,
        ClientError::Connection(ConnectionError::Reset | ConnectionError::TimedOut) => {
            Fate::ConnectionGone
        }
        // A request that can't be encoded here can't be encoded for another connection.
        _ => Fate::Unknown,
    }
}

/// True if the server states that it did not process the stream (RFC 9113, section 8.7).
fn is_refused(error: &hyper::Error) -> bool {
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<h2::Error>() {
            return error.is_remote()
                && error.is_reset()
                && error.reason() == Some(h2::Reason::REFUSED_STREAM);
        }
        source = error.source();
    }
    false
}

/// True if the connection ended before there was a response. GOAWAY states that streams beyond the last one were not
/// processed, but hyper may report it for a request that it then sends.
fn is_connection_gone(error: &hyper::Error) -> bool {
    if error.is_incomplete_message() {
        return true;
    }
    let mut source = error.source();
    while let Some(error) = source {
        if let Some(error) = error.downcast_ref::<io::Error>() {
            // TLS reports an end without close_notify as the second of these.
            return matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset
                    | io::ErrorKind::UnexpectedEof
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::TimedOut
            );
        }
        let is_going_away = |error: &h2::Error| error.is_remote() && error.is_go_away();
        if error.downcast_ref::<h2::Error>().is_some_and(is_going_away) {
            return true;
        }
        source = error.source();
    }
    false
}

/// A request as the retry loop sees it.
pub(super) struct Outgoing<'a> {
    pub(super) head: &'a request::Parts,
    pub(super) upload: &'a RequestContent,
    pub(super) origin: &'a Origin,
    pub(super) pool: &'a Arc<Pool>,
    /// Present if the kernel is asked about TCP connections.
    pub(super) tcp_statistics: Option<&'a Arc<TcpStatisticsSource>>,
    /// Time limit for the response's head.
    pub(super) limit: Duration,
}

impl Outgoing<'_> {
    /// Sends the request over `link` and waits for the head of the response.
    pub(super) async fn send(&self, link: Link) -> Result<Answer, Failure> {
        match link {
            Link::Http3(link, early) => self.send_http3(link, early).await,
            // In memory of its own, so that requests over HTTP/3 are smaller.
            Link::Tcp(link) => Box::pin(self.send_tcp(link)).await,
        }
    }

    /// The request in its HTTP/3 form, to be sent as early data.
    pub(super) fn http3_request(&self, alternative: Option<&HeaderValue>) -> Request<Body> {
        let changed = alternative.map(|used| *self.head_for(used));
        let mut head = changed.unwrap_or_else(|| self.head.clone());
        head.version = Version::HTTP_3;
        Request::from_parts(head, self.upload.lend_at_once())
    }

    /// The head as it is sent to an alternative service, with this value of Alt-Used.
    fn head_for(&self, alternative: &HeaderValue) -> Box<request::Parts> {
        let mut head = Box::new(self.head.clone());
        head.headers.insert(ALT_USED, alternative.clone());
        head
    }

    async fn send_http3(
        &self,
        link: Http3Link,
        early: Option<EarlyResponse>,
    ) -> Result<Answer, Failure> {
        let is_early = early.is_some();
        let quic = if is_early {
            QuicShare::of_all(&link.sender)
        } else {
            QuicShare::begin(&link.sender)
        };
        let response = if let Some(response) = early {
            self.patiently(pin!(response)).await?
        } else {
            // HTTP/3 ignores the head's version.
            let changed = link.alternative.as_ref().map(|used| self.head_for(used));
            let head = changed.as_deref().unwrap_or(self.head);
            let response = pin!(link.sender.send_parts(head, self.upload.lend_at_once()));
            self.patiently(response).await?
        };
        let response = response.map_err(|error| Failure::from(Error::from(error)))?;
        Ok(Answer {
            response: response.map(Source::Http3),
            protocol: Protocol::Http3,
            share: Some(ConnectionShare::Quic(quic)),
            rtt: None,
            release: None,
            early: is_early,
            alternative: link.alternative.is_some(),
        })
    }

    async fn send_tcp(&self, link: TcpLink) -> Result<Answer, Failure> {
        let TcpLink { rtt, addresses, .. } = link;
        let statistics = self.tcp_statistics.zip(addresses.as_ref());
        let share = statistics.and_then(|(source, addresses)| TcpShare::begin(source, addresses));
        let share = share.map(|share| ConnectionShare::Tcp(Box::new(share)));
        let (response, protocol, release) = match link.sender {
            TcpSender::Http1(sender) => {
                let (response, sender) = self.send_http1(sender).await?;
                let release = Release {
                    pool: Arc::clone(self.pool),
                    origin: self.origin.clone(),
                    upload: self.upload.clone(),
                    link: Some(TcpLink {
                        sender: TcpSender::Http1(sender),
                        rtt,
                        addresses,
                    }),
                };
                (response, Protocol::Http1, Some(release))
            }
            TcpSender::Http2(sender) => {
                let response = self.send_http2(sender).await?;
                (response, Protocol::Http2, None)
            }
        };
        Ok(Answer {
            response: response.map(Source::Tcp),
            protocol,
            share,
            rtt,
            release,
            early: false,
            alternative: false,
        })
    }

    async fn send_http1(
        &self,
        mut sender: http1::SendRequest<Body>,
    ) -> Result<(Response<hyper::body::Incoming>, http1::SendRequest<Body>), Failure> {
        let mut head = self.head.clone();
        head.version = Version::HTTP_11;
        if !head.headers.contains_key(HOST) {
            let host = HeaderValue::from_str(host_and_port(&head.uri));
            let host =
                host.map_err(|_| Error::InvalidUri("the authority is not a valid field value"))?;
            head.headers.insert(HOST, host);
        }
        let target = head.uri.path_and_query().map_or("/", |path| path.as_str());
        head.uri = Uri::try_from(target).map_err(|_| Error::InvalidUri("the path"))?;
        sender
            .ready()
            .await
            .map_err(|error| never_sent(error.into()))?;
        let request = Request::from_parts(head, self.upload.lend());
        let response = self
            .patiently(pin!(sender.try_send_request(request)))
            .await?;
        Ok((response.map_err(of_try_send)?, sender))
    }

    async fn send_http2(
        &self,
        mut sender: http2::SendRequest<Body>,
    ) -> Result<Response<hyper::body::Incoming>, Failure> {
        let mut head = self.head.clone();
        head.version = Version::HTTP_2;
        head.headers.remove(HOST);
        head.uri = without_user_information(head.uri)?;
        self.patiently(pin!(sender.ready()))
            .await?
            .map_err(|error| never_sent(error.into()))?;
        let request = Request::from_parts(head, self.upload.lend());
        let response = self
            .patiently(pin!(sender.try_send_request(request)))
            .await?;
        response.map_err(of_try_send)
    }

    /// Runs `work`, unless the server neither takes nor sends anything for too long.
    async fn patiently<T>(
        &self,
        mut work: Pin<&mut impl Future<Output = T>>,
    ) -> Result<T, Failure> {
        let mut deadline = Instant::now() + self.limit;
        loop {
            tokio::select! {
                biased;
                done = &mut work => return Ok(done),
                () = sleep_until(deadline) => {}
            }
            // Time counts from the last content that was taken.
            let extended = self.upload.last_taken().map(|last| last + self.limit);
            match extended {
                Some(later) if later > Instant::now() => deadline = later,
                _ => return Err(Error::Timeout(Phase::Head).into()),
            }
        }
    }
}

/// The authority without user information, which is not sent (RFC 9110, section 4.2.4).
fn host_and_port(uri: &Uri) -> &str {
    let authority = uri.authority().map_or("", |it| it.as_str());
    authority.rsplit('@').next().unwrap_or_default()
}

/// `uri` for `:authority` (RFC 9113, section 8.3.1).
fn without_user_information(uri: Uri) -> Result<Uri, Error> {
    let host = host_and_port(&uri);
    if uri
        .authority()
        .is_none_or(|it| it.as_str().len() == host.len())
    {
        return Ok(uri);
    }
    let invalid = || Error::InvalidUri("the authority");
    let authority = host.parse().map_err(|_| invalid())?;
    let mut parts = uri.into_parts();
    parts.authority = Some(authority);
    Uri::from_parts(parts).map_err(|_| invalid())
}

fn never_sent(error: Error) -> Failure {
    Failure {
        fate: Fate::Unprocessed,
        error,
    }
}

fn of_try_send<T>(mut error: TrySendError<T>) -> Failure {
    let unsent = error.take_message().is_some();
    let error = Error::from(error.into_error());
    if unsent {
        never_sent(error)
    } else {
        error.into()
    }
}
