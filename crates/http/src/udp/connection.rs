//! Handle of one HTTP/3 connection.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use swiftwater_net::Connection;
use swiftwater_net::quic::{self, ConnectionError};
use swiftwater_units::Instant;

use super::hosted::{End, Hosted, Incoming, State};
use super::webtransport::SessionLimits;
use crate::h3::{self, Code};

/// The QUIC connection and the engine on it. Clones share the connection, which is closed with the
/// last clone.
#[derive(Clone)]
pub(super) struct Http3(Arc<Handles>);

/// One of them for all clones: a request makes several.
struct Handles {
    connection: Connection,
    hosted: Arc<Hosted>,
}

impl Http3 {
    /// Attaches `engine` to `connection`.
    pub(super) fn new(
        connection: Connection,
        engine: h3::Connection,
        limits: SessionLimits,
    ) -> Self {
        let hosted = Arc::new(Hosted::new(engine, limits));
        connection.host(Arc::clone(&hosted) as _);
        Self(Arc::new(Handles { connection, hosted }))
    }

    pub(super) fn quic(&self) -> &Connection {
        &self.0.connection
    }

    /// Runs `act` on the engine and its connection, and wakes the tasks concerned.
    pub(super) fn with<R>(
        &self,
        act: impl FnOnce(Instant, &mut quic::Connection, &mut State) -> R,
    ) -> R {
        self.with_wakers(|now, quic, state, _| act(now, quic, state))
    }

    /// As [`Http3::with`], for actions that wake tasks themselves.
    pub(super) fn with_wakers<R>(
        &self,
        act: impl FnOnce(Instant, &mut quic::Connection, &mut State, &mut Vec<Waker>) -> R,
    ) -> R {
        let mut wakers: Vec<Waker> = Vec::new();
        let result = self.0.connection.with_core(|now, quic| {
            let mut state = self.0.hosted.lock();
            let result = act(now, quic, &mut state, &mut wakers);
            state.take_events(quic, &mut wakers);
            result
        });
        for waker in wakers {
            waker.wake();
        }
        result
    }

    /// Accesses the state shared by tasks. Unlike [`with`](Self::with) it doesn't wake the connection's
    /// worker.
    pub(super) fn state<R>(&self, look: impl FnOnce(&mut State) -> R) -> R {
        look(&mut self.0.hosted.lock())
    }

    /// Waits for requests and moves all there are to `arrived`, which is empty; false at the connection's end
    /// (server only).
    pub(super) async fn accept(&self, arrived: &mut VecDeque<Incoming>) -> bool {
        std::future::poll_fn(|cx| {
            let mut state = self.0.hosted.lock();
            if !state.incoming.is_empty() {
                std::mem::swap(&mut state.incoming, arrived);
                return Poll::Ready(true);
            }
            if state.ended.is_some() {
                return Poll::Ready(false);
            }
            state.acceptor = Some(cx.waker().clone());
            Poll::Pending
        })
        .await
    }

    /// Ready once the peer's settings were received, or never will be.
    pub(super) fn poll_settings(&self, cx: &Context<'_>) -> Poll<Result<(), ConnectionError>> {
        let mut state = self.0.hosted.lock();
        if let Some(end) = &state.ended {
            return Poll::Ready(Err(end.reason.clone()));
        }
        if state.engine.peer_settings().is_some() {
            return Poll::Ready(Ok(()));
        }
        state.openers.push(cx.waker().clone());
        Poll::Pending
    }

    /// Why the connection ended; `None` while it hasn't.
    pub(super) fn end(&self) -> Option<End> {
        self.0.hosted.lock().ended.clone()
    }

    /// Lets requests in progress complete, accepts no others, then closes.
    pub(super) fn shutdown(&self) {
        self.with_wakers(|now, quic, state, wakers| {
            state.engine.shutdown(now, quic);
            state.sessions.drain(true, wakers);
        });
    }

    /// Closes at once.
    pub(super) fn close(&self, code: Code, reason: &str) {
        self.with(|now, quic, state| state.engine.close(now, quic, code, reason));
    }
}
