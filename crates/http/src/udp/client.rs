//! Client handle of one HTTP/3 connection.

use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use http::{Request, Response, request};
use http_body::Body as _;
use swiftwater_net::Connection;
use swiftwater_net::quic::{ConnectionError, ConnectionStats};
use swiftwater_units::StreamId;
use thiserror::Error;

use super::body::RecvBody;
use super::connection::Http3;
use super::content::{self, Beginning};
use super::exchange::{Exchange, Outcome};
use super::hosted::State;
use super::webtransport::SessionLimits;
use crate::h3::{self, Code, RequestError};
use crate::web::body::{Body, BoxError};

/// Why a request got no response.
#[derive(Clone, Debug, Error)]
#[non_exhaustive]
pub enum ClientError {
    /// It was never sent.
    #[error(transparent)]
    Request(#[from] RequestError),
    /// The server did not process it: it may be sent again on another connection, whatever its
    /// method (RFC 9114, sections 4.1.1 and 5.2).
    #[error("the server did not process the request ({0})")]
    Unprocessed(Code),
    /// The server reset the request, perhaps after processing some of it.
    #[error("the server reset the request with {0}")]
    Reset(Code),
    /// The connection ended first.
    #[error(transparent)]
    Connection(#[from] ConnectionError),
}

impl ClientError {
    /// True if the server has certainly not processed the request.
    pub fn is_unprocessed(&self) -> bool {
        matches!(self, Self::Request(_) | Self::Unprocessed(_))
    }
}

/// A client's end of an HTTP/3 connection. Clones share the connection, which is closed when the
/// last clone and the last response body are dropped.
#[derive(Clone)]
pub struct SendRequest {
    pub(super) http3: Http3,
}

impl SendRequest {
    /// Starts HTTP/3 on `connection`, a client connection with the ALPN name `h3`. Requests may be
    /// sent at once, as early data if the connection permits it.
    pub fn new(connection: Connection, config: h3::Config) -> Self {
        let engine = h3::Connection::client(config);
        let http3 = Http3::new(connection, engine, SessionLimits::default());
        Self { http3 }
    }

    /// Sends `request` and returns when the head of the response was received; its content is read
    /// from the body. The request's own content is sent by a task of the runtime.
    ///
    /// Waits while the server's stream limit is reached. Dropping the future cancels the request.
    pub async fn send<B>(&self, request: Request<B>) -> Result<Response<RecvBody>, ClientError>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let (head, body) = request.into_parts();
        self.send_parts(&head, Body::new(body)).await
    }

    /// As [`SendRequest::send`], without a copy of the head where the caller keeps it.
    pub(crate) async fn send_parts(
        &self,
        head: &request::Parts,
        mut body: Body,
    ) -> Result<Response<RecvBody>, ClientError> {
        let mut beginning = Beginning::default();
        let is_empty = body.is_end_stream();
        if !is_empty {
            beginning = Beginning::of(Pin::new(&mut body)).await;
        }
        let end = is_empty || beginning.is_last;
        let begun = self.begin_with(head, &mut beginning.data, end, |_, _| {});
        let id = begun.await?;
        let exchange = Arc::new(Exchange::new(self.http3.clone(), id));
        let cancelled = Cancelled(Some(Arc::clone(&exchange)));
        if !is_empty && !beginning.is_sent() {
            let exchange = Arc::clone(&exchange);
            tokio::spawn(async move {
                let sent = content::send(&exchange, beginning, Pin::new(&mut body), None).await;
                if let Err(error) = sent {
                    tracing::debug!(%error, "the content of a request was not sent to its end");
                }
            });
        }
        let outcome = exchange.answer().await;
        cancelled.disarm();
        match outcome {
            Outcome::Answer(answer) => {
                let body = if answer.end {
                    RecvBody::whole(answer.content)
                } else {
                    RecvBody::new(exchange, &answer.head.headers, Code::REQUEST_CANCELLED)
                };
                Ok(Response::from_parts(*answer.head, body))
            }
            Outcome::Broken(broken) if broken.unprocessed => {
                Err(ClientError::Unprocessed(broken.code))
            }
            Outcome::Broken(broken) => Err(ClientError::Reset(broken.code)),
            Outcome::Lost => Err(exchange.end_of_connection().into()),
        }
    }

    /// Sends a request's head, what of `content` the transport accepts, and the end if nothing remains and it is to `end`
    /// then; `begun` is called before an event of the request can come.
    pub(super) async fn begin_with(
        &self,
        head: &request::Parts,
        content: &mut Bytes,
        end: bool,
        mut begun: impl FnMut(&mut State, StreamId),
    ) -> Result<StreamId, RequestError> {
        std::future::poll_fn(|cx| {
            self.http3.with(|now, quic, state| {
                match (state.engine).send_request_with(now, quic, head, content, end) {
                    Ok(id) => {
                        state.held.entry(id).or_default();
                        begun(state, id);
                        Poll::Ready(Ok(id))
                    }
                    Err(RequestError::Blocked | RequestError::NotReady) => {
                        state.openers.push(cx.waker().clone());
                        Poll::Pending
                    }
                    Err(error) => Poll::Ready(Err(error)),
                }
            })
        })
        .await
    }

    /// True if the connection accepts no more requests: it ended, or the server sent GOAWAY.
    pub fn is_closed(&self) -> bool {
        self.http3
            .state(|state| state.going_away || state.ended.is_some())
    }

    /// Requests in progress.
    pub fn open_requests(&self) -> usize {
        self.http3.state(|state| state.engine.open_requests())
    }

    /// The server's settings, once received: to be stored with the TLS session for early data.
    pub fn peer_settings(&self) -> Option<h3::Settings> {
        self.http3
            .state(|state| state.engine.peer_settings().copied())
    }

    /// The server's settings, once: to be asked for after each response.
    pub(crate) fn take_peer_settings(&self) -> Option<h3::Settings> {
        self.http3.state(|state| {
            if state.settings_taken {
                return None;
            }
            let settings = state.engine.peer_settings().copied();
            state.settings_taken = settings.is_some();
            settings
        })
    }

    /// Counters and measurements of the QUIC connection.
    pub fn stats(&self) -> ConnectionStats {
        self.http3.quic().stats()
    }

    /// The QUIC connection, for operations of the transport.
    pub fn connection(&self) -> &Connection {
        self.http3.quic()
    }

    /// Sends no more requests, lets those in progress complete, then closes.
    pub fn shutdown(&self) {
        self.http3.shutdown();
    }

    /// Closes at once; requests in progress are lost.
    pub fn close(&self) {
        self.http3.close(Code::NO_ERROR, "");
    }
}

impl std::fmt::Debug for SendRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SendRequest")
            .field("peer", &self.http3.quic().remote_address())
            .finish_non_exhaustive()
    }
}

/// Cancels a request whose caller was dropped before the response was received.
pub(super) struct Cancelled(pub(super) Option<Arc<Exchange>>);

impl Cancelled {
    pub(super) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for Cancelled {
    fn drop(&mut self) {
        if let Some(exchange) = &self.0 {
            exchange.cancel(Code::REQUEST_CANCELLED);
        }
    }
}
