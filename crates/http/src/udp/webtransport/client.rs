//! Client side of the WebTransport session request.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, response};

use super::drive::drive;
use super::error::OpenSessionError;
use super::request::Undecided;
use super::session::Session;
use crate::h3::ConnectProtocol;
use crate::udp::client::{Cancelled, SendRequest};
use crate::udp::exchange::{Exchange, Outcome};

/// How long a server may leave the end of a session unread, or unanswered.
const TIME_LIMIT: Duration = Duration::from_secs(10);

/// The value of `:protocol` that servers of all drafts accept.
const PROTOCOL: &str = "webtransport";

impl SendRequest {
    /// Requests a WebTransport session; `request` has its URI and fields such as Origin, its method
    /// is ignored. Returns the session and the head of the response.
    ///
    /// Waits for the server's SETTINGS. The connection's configuration must set
    /// [`webtransport_sessions`](crate::h3::Config::webtransport_sessions). The session is served by a
    /// task of the runtime; dropping the future cancels the request.
    pub async fn open_session(
        &self,
        request: Request<()>,
    ) -> Result<(Session, response::Parts), OpenSessionError> {
        let (mut head, ()) = request.into_parts();
        head.method = Method::CONNECT;
        if let Some(protocol) = ConnectProtocol::new(PROTOCOL) {
            head.extensions.insert(protocol);
        }
        self.settings_came().await?;
        let id = self
            .begin_with(&head, &mut Bytes::new(), false, |state, id| {
                state.sessions.begin(id);
            })
            .await?;
        let exchange = Arc::new(Exchange::new(self.http3.clone(), id));
        let cancelled = Cancelled(Some(Arc::clone(&exchange)));
        let undecided = Undecided::new(&exchange);
        let answer = match exchange.answer().await {
            Outcome::Answer(answer) => answer,
            Outcome::Broken(broken) => return Err(OpenSessionError::Reset(broken.code)),
            Outcome::Lost => return Err(exchange.end_of_connection().into()),
        };
        if !answer.head.status.is_success() {
            return Err(OpenSessionError::Refused(answer.head.status));
        }
        cancelled.disarm();
        let session = undecided.accept(&exchange);
        tokio::spawn(async move { drive(&exchange, TIME_LIMIT).await });
        Ok((session, *answer.head))
    }

    /// Waits until the server's settings are known.
    async fn settings_came(&self) -> Result<(), OpenSessionError> {
        std::future::poll_fn(|cx| self.http3.poll_settings(cx))
            .await
            .map_err(OpenSessionError::ConnectionLost)
    }
}
