//! Requests for sessions on the server, and their acceptance.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, response};
use tokio::sync::oneshot;

use super::drive::drive;
use super::error::{SessionEnd, SessionRefused};
use super::session::Session;
use crate::h3::SendError;
use crate::udp::exchange::Exchange;

/// Fields of draft 2 by which clients list the drafts that they support and servers choose one
/// (draft-ietf-webtrans-http3-02, section 3.3).
const DRAFT_02: HeaderName = HeaderName::from_static("sec-webtransport-http3-draft02");
const DRAFT: HeaderName = HeaderName::from_static("sec-webtransport-http3-draft");

/// In the extensions of a request for a WebTransport session; axum handlers extract it with
/// `Extension<SessionRequest>`. The request's path names the resource, its Origin field the origin of
/// the client's code.
///
/// A service accepts by answering with 2xx, whose body is ignored, and gets the session from
/// [`SessionRequest::session`], in a separate task: it is available once the response was sent. Any
/// other status refuses. A session that is not taken is closed at once.
///
/// Clones share the request.
#[derive(Clone)]
pub struct SessionRequest {
    session: Arc<Mutex<Option<oneshot::Receiver<Session>>>>,
}

impl SessionRequest {
    /// Waits until the service has accepted, and returns the session; only to the first call.
    pub async fn session(&self) -> Result<Session, SessionRefused> {
        let session = {
            let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
            session.take()
        };
        session.ok_or(SessionRefused)?.await.or(Err(SessionRefused))
    }
}

impl fmt::Debug for SessionRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SessionRequest").finish_non_exhaustive()
    }
}

/// A request for a session that is not accepted yet. If it is dropped, the streams that wait for
/// the session are refused.
pub(super) struct Undecided(Option<Arc<Exchange>>);

impl Undecided {
    pub(super) fn new(exchange: &Arc<Exchange>) -> Self {
        Self(Some(Arc::clone(exchange)))
    }

    /// Its session.
    pub(super) fn accept(mut self, exchange: &Exchange) -> Session {
        self.0 = None;
        Session::new(exchange.http3.clone(), exchange.id)
    }
}

impl Drop for Undecided {
    fn drop(&mut self) {
        let Some(exchange) = &self.0 else { return };
        let id = exchange.id;
        exchange.http3.with_wakers(|_, quic, state, wakers| {
            let end = SessionEnd::ClosedHere;
            state.sessions.end(quic, id, end, wakers);
            state.sessions.discard(id);
        });
    }
}

/// A request for a session without an answer so far.
pub(in crate::udp) struct Asked {
    undecided: Undecided,
    session: oneshot::Sender<Session>,
    /// The client uses draft 2.
    is_draft02: bool,
}

impl Asked {
    /// The part for the service, and the part for the server.
    pub(in crate::udp) fn new(
        exchange: &Arc<Exchange>,
        headers: &HeaderMap,
    ) -> (SessionRequest, Self) {
        let (sender, receiver) = oneshot::channel();
        let request = SessionRequest {
            session: Arc::new(Mutex::new(Some(receiver))),
        };
        let asked = Self {
            undecided: Undecided::new(exchange),
            session: sender,
            is_draft02: headers.contains_key(&DRAFT_02),
        };
        (request, asked)
    }
}

/// Accepts: sends the head of the response, hands out the session and serves its request until the
/// end. `begun` is called once the response was sent.
pub(in crate::udp) async fn establish(
    exchange: &Exchange,
    asked: Asked,
    mut head: response::Parts,
    time_limit: Duration,
    begun: impl FnOnce(),
) -> Result<(), SendError> {
    if asked.is_draft02 {
        let chosen = HeaderValue::from_static("draft02");
        head.headers.insert(DRAFT, chosen);
    }
    exchange.respond(&head, &mut Bytes::new(), false)?;
    begun();
    // If it is not taken, it is closed when the handle is dropped.
    let _ = asked.session.send(asked.undecided.accept(exchange));
    drive(exchange, time_limit).await;
    Ok(())
}
