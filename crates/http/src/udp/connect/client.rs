//! Client side of CONNECT requests, extended and not.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response};

use super::datagrams::HttpDatagrams;
use crate::h3::{BodyError, Code, ConnectProtocol, MessagePart, RequestError, SendError};
use crate::udp::client::{Cancelled, ClientError, SendRequest};
use crate::udp::exchange::{Exchange, Outcome};

impl SendRequest {
    /// Sends an extended CONNECT request for `protocol` (RFC 9220); `request` has its URI and fields, its method
    /// is ignored.
    ///
    /// Waits for the server's SETTINGS, and while the server's stream limit is reached; not for the response.
    pub async fn connect(
        &self,
        protocol: ConnectProtocol,
        request: Request<()>,
    ) -> Result<PendingConnect, ClientError> {
        let (mut head, ()) = request.into_parts();
        head.extensions.insert(protocol);
        std::future::poll_fn(|cx| self.http3.poll_settings(cx)).await?;
        Ok(self.begin_connect(head).await?)
    }

    /// Sends a CONNECT request (RFC 9114, section 4.4); the URI of `request` is the host and the port that the
    /// server is to connect to, its method is ignored.
    ///
    /// Waits while the server's stream limit is reached; not for the response.
    pub async fn connect_host(&self, request: Request<()>) -> Result<PendingConnect, ClientError> {
        let (mut head, ()) = request.into_parts();
        head.extensions.remove::<ConnectProtocol>();
        Ok(self.begin_connect(head).await?)
    }

    async fn begin_connect(
        &self,
        mut head: http::request::Parts,
    ) -> Result<PendingConnect, RequestError> {
        head.method = Method::CONNECT;
        let id = self
            .begin_with(&head, &mut Bytes::new(), false, |state, id| {
                state.flows.begin(id);
            })
            .await?;
        let exchange = Arc::new(Exchange::new(self.http3.clone(), id));
        Ok(PendingConnect {
            cancelled: Cancelled(Some(Arc::clone(&exchange))),
            datagrams: HttpDatagrams::new(self.http3.clone(), id),
            exchange,
        })
    }
}

/// A CONNECT request without a response so far. Dropping it cancels the request.
pub struct PendingConnect {
    exchange: Arc<Exchange>,
    datagrams: HttpDatagrams,
    cancelled: Cancelled,
}

impl PendingConnect {
    /// The datagrams of the request, which may be sent before the response.
    pub fn datagrams(&self) -> &HttpDatagrams {
        &self.datagrams
    }

    /// Waits for the head of the response. Its body is the content in both directions if the status is 2xx; a
    /// response with another status has content only from the server.
    pub async fn response(self) -> Result<Response<ConnectContent>, ClientError> {
        match self.exchange.answer().await {
            Outcome::Answer(answer) => {
                self.cancelled.disarm();
                let send = SendContent {
                    exchange: Arc::clone(&self.exchange),
                    is_finished: false,
                };
                let receive = RecvContent {
                    exchange: self.exchange,
                    is_over: answer.end,
                };
                let content = ConnectContent { send, receive };
                Ok(Response::from_parts(*answer.head, content))
            }
            Outcome::Broken(broken) if broken.unprocessed => {
                Err(ClientError::Unprocessed(broken.code))
            }
            Outcome::Broken(broken) => Err(ClientError::Reset(broken.code)),
            Outcome::Lost => Err(self.exchange.end_of_connection().into()),
        }
    }
}

impl fmt::Debug for PendingConnect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingConnect")
            .field("id", &self.exchange.id)
            .finish_non_exhaustive()
    }
}

/// The content of a CONNECT request and of its response: a stream of bytes in each direction.
#[derive(Debug)]
pub struct ConnectContent {
    /// To the server.
    pub send: SendContent,
    /// From the server.
    pub receive: RecvContent,
}

/// The content of a CONNECT request. If it is dropped before [`SendContent::finish`], the stream is
/// reset with H3_REQUEST_CANCELLED.
pub struct SendContent {
    pub(super) exchange: Arc<Exchange>,
    pub(super) is_finished: bool,
}

impl SendContent {
    /// Writes `data`; waits while flow control or the send buffer hold it back.
    pub async fn write(&mut self, mut data: Bytes) -> Result<(), SendError> {
        std::future::poll_fn(|cx| self.exchange.poll_write(cx, &mut data, false)).await
    }

    /// Ends the content.
    pub fn finish(&mut self) -> Result<(), SendError> {
        self.is_finished = true;
        self.exchange.finish()
    }
}

impl Drop for SendContent {
    fn drop(&mut self) {
        if !self.is_finished {
            self.exchange.reset(Code::REQUEST_CANCELLED);
        }
    }
}

impl fmt::Debug for SendContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendContent")
            .field("id", &self.exchange.id)
            .finish_non_exhaustive()
    }
}

/// The content of the response to a CONNECT request. If it is dropped before the end, the server is
/// asked to stop.
pub struct RecvContent {
    pub(super) exchange: Arc<Exchange>,
    pub(super) is_over: bool,
}

impl RecvContent {
    /// The next bytes; `None` at the end. Trailers are ignored.
    pub async fn read(&mut self) -> Result<Option<Bytes>, BodyError> {
        while !self.is_over {
            match std::future::poll_fn(|cx| self.exchange.poll_read(cx)).await {
                Ok(MessagePart::Data(data)) => return Ok(Some(data)),
                Ok(MessagePart::Trailers(_) | MessagePart::Blocked) => {}
                Ok(MessagePart::End) => self.is_over = true,
                Err(error) => {
                    self.is_over = true;
                    return Err(error);
                }
            }
        }
        Ok(None)
    }
}

impl Drop for RecvContent {
    fn drop(&mut self) {
        if !self.is_over {
            self.exchange.stop(Code::REQUEST_CANCELLED);
        }
    }
}

impl fmt::Debug for RecvContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvContent")
            .field("id", &self.exchange.id)
            .finish_non_exhaustive()
    }
}
