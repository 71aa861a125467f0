//! Requests for sessions, as services see them, and what becomes of them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, response};
use tokio::sync::oneshot;

use super::drive::drive;
use super::error::{SessionEnd, SessionRefused};
use super::session::Session;
use crate::h3::SendError;
use crate::udp::exchange::Exchange;

/// How clients of draft 2 say which drafts they speak, and how servers choose
/// (draft-ietf-webtrans-http3-02, section 3.3).
const DRAFT_02: HeaderName = HeaderName::from_static("sec-webtransport-http3-draft02");
const DRAFT: HeaderName = HeaderName::from_static("sec-webtransport-http3-draft");

/// In the extensions of a request that asks for a WebTransport session, which axum handlers find with
/// `Extension<SessionRequest>`. The request's path says what for, its Origin field who asks.
///
/// A service accepts by answering with 2xx, whose body counts for nothing, and gets the session from
/// [`SessionRequest::session`], in a task of its own: it is there once the response was sent. Any other
/// answer refuses. If nobody takes the session, it is closed at once.
///
/// Clones are handles of the same.
#[derive(Clone)]
pub struct SessionRequest {
    session: Arc<Mutex<Option<oneshot::Receiver<Session>>>>,
}

impl SessionRequest {
    /// Waits until the service has accepted, and yields the session; only once, to the first who asks.
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

/// A request for a session that nobody has accepted yet. If that never happens, what waits for the
/// session is refused.
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
            state.sessions.forget(id);
        });
    }
}

/// A request for a session that has no answer yet.
pub(in crate::udp) struct Asked {
    undecided: Undecided,
    session: oneshot::Sender<Session>,
    /// The client speaks draft 2.
    is_draft02: bool,
}

impl Asked {
    /// What the service is handed, and what stays here.
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

/// Accepts: sends the head of the response, hands out the session and stays with its request until the
/// end. `begun` is called once the request has its answer.
pub(in crate::udp) async fn establish(
    exchange: &Exchange,
    asked: Asked,
    mut head: response::Parts,
    patience: Duration,
    begun: impl FnOnce(),
) -> Result<(), SendError> {
    if asked.is_draft02 {
        let chosen = HeaderValue::from_static("draft02");
        head.headers.insert(DRAFT, chosen);
    }
    exchange.respond(&head, false)?;
    begun();
    // If nobody wants it, it is closed as the handle goes.
    let _ = asked.session.send(asked.undecided.accept(exchange));
    drive(exchange, patience).await;
    Ok(())
}
