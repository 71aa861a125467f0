//! One request and its response, as used by tasks.

use std::task::{Context, Poll};

use bytes::Bytes;
use http::{HeaderMap, response};
use swiftwater_net::quic::ConnectionError;
use swiftwater_units::StreamId;

use super::connection::Http3;
use super::hosted::{Answer, Broken, Held, State};
use crate::h3::{BodyError, Code, MessagePart, SendError};

/// A request's stream. After the last holder is dropped, events of the stream are no longer
/// recorded.
pub(super) struct Exchange {
    pub(super) http3: Http3,
    pub(super) id: StreamId,
}

/// Progress of the peer in reading what is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intake {
    /// Bytes acknowledged on the connection so far.
    pub(super) acknowledged: u64,
    /// Requests in progress on it.
    pub(super) requests: u64,
    /// Flow control blocks this stream at present.
    pub(super) is_held_back: bool,
}

/// Result of waiting for a response.
pub(super) enum Outcome {
    Answer(Answer),
    Broken(Broken),
    /// With the connection.
    Lost,
}

impl Exchange {
    pub(super) fn new(http3: Http3, id: StreamId) -> Self {
        Self { http3, id }
    }

    fn held<R>(&self, state: &mut State, act: impl FnOnce(&mut Held) -> R) -> R {
        act(state.held.entry(self.id).or_default())
    }

    /// The next part of the peer's content.
    pub(super) fn poll_read(&self, cx: &Context<'_>) -> Poll<Result<MessagePart, BodyError>> {
        self.http3.with(|now, quic, state| {
            match state.engine.read_body(now, quic, self.id) {
                Ok(MessagePart::Blocked) => {
                    self.held(state, |held| held.reader = Some(cx.waker().clone()));
                    Poll::Pending
                }
                // A stream that was reset is already removed from the engine.
                Err(BodyError::Closed) => Poll::Ready(Err(self.explain(state))),
                other => Poll::Ready(other),
            }
        })
    }

    fn explain(&self, state: &mut State) -> BodyError {
        if let Some(end) = &state.ended {
            return match end.fault {
                Some(fault) => fault.into(),
                None => end.reason.clone().into(),
            };
        }
        let broken = self.held(state, |held| held.broken);
        broken.map_or(BodyError::Closed, |broken| BodyError::Reset(broken.code))
    }

    /// Writes `data` to the transport; ready once all of it is accepted, and the end too if it is the
    /// `last`.
    pub(super) fn poll_write(
        &self,
        cx: &Context<'_>,
        data: &mut Bytes,
        last: bool,
    ) -> Poll<Result<(), SendError>> {
        self.http3.with(|_, quic, state| {
            while !data.is_empty() {
                let taken = state.engine.write_data(quic, self.id, data)?;
                if taken == 0 || !data.is_empty() {
                    self.held(state, |held| held.writer = Some(cx.waker().clone()));
                    return Poll::Pending;
                }
            }
            if last {
                state.engine.finish(quic, self.id)?;
            }
            Poll::Ready(Ok(()))
        })
    }

    /// Ready once the transport accepts content.
    pub(super) fn poll_room(&self, cx: &Context<'_>) -> Poll<Result<(), SendError>> {
        self.http3.with(|_, quic, state| {
            if state.engine.has_room(quic, self.id)? {
                return Poll::Ready(Ok(()));
            }
            self.held(state, |held| held.writer = Some(cx.waker().clone()));
            Poll::Pending
        })
    }

    /// Progress of the peer in reading what is sent.
    pub(super) fn intake(&self) -> Intake {
        self.http3.with(|_, quic, state| {
            let path = quic.stats().paths.into_iter().next();
            Intake {
                acknowledged: path.map_or(0, |path| path.delivered.get()),
                requests: state.engine.open_requests() as u64,
                is_held_back: quic
                    .send_stream(self.id)
                    .credit()
                    .is_ok_and(|credit| credit == 0),
            }
        })
    }

    pub(super) fn write_trailers(&self, trailers: &HeaderMap) -> Result<(), SendError> {
        self.http3
            .with(|now, quic, state| state.engine.write_trailers(now, quic, self.id, trailers))
    }

    pub(super) fn finish(&self) -> Result<(), SendError> {
        self.http3
            .with(|_, quic, state| state.engine.finish(quic, self.id))
    }

    /// Sends a response's head, what of `data` the transport accepts, and the end if nothing remains and `last`.
    pub(super) fn respond(
        &self,
        head: &response::Parts,
        data: &mut Bytes,
        last: bool,
    ) -> Result<(), SendError> {
        self.http3.with(|now, quic, state| {
            (state.engine).respond_with(now, quic, self.id, head, data, last)
        })
    }

    /// Resets this end's message.
    pub(super) fn reset(&self, code: Code) {
        self.http3
            .with(|now, quic, state| state.engine.reset(now, quic, self.id, code));
    }

    /// Stops reading the peer's message.
    pub(super) fn stop(&self, code: Code) {
        self.http3
            .with(|now, quic, state| state.engine.stop(now, quic, self.id, code));
    }

    /// Cancels both directions.
    pub(super) fn cancel(&self, code: Code) {
        self.http3
            .with(|now, quic, state| state.engine.cancel(now, quic, self.id, code));
    }

    /// Waits until the peer no longer needs the exchange.
    pub(super) async fn abandoned(&self) {
        std::future::poll_fn(|cx| {
            self.http3.state(|state| {
                if state.ended.is_some() {
                    return Poll::Ready(());
                }
                self.held(state, |held| {
                    if held.broken.is_some() || held.stopped.is_some() {
                        return Poll::Ready(());
                    }
                    held.watcher = Some(cx.waker().clone());
                    Poll::Pending
                })
            })
        })
        .await;
    }

    /// The code with which the peer reset or stopped the exchange.
    pub(super) fn given_up_with(&self) -> Option<Code> {
        self.http3.with(|_, _, state| {
            self.held(state, |held| {
                let broken = held.broken.map(|broken| broken.code);
                broken.or(held.stopped)
            })
        })
    }

    /// Waits for the head of the response.
    pub(super) async fn answer(&self) -> Outcome {
        std::future::poll_fn(|cx| {
            self.http3.state(|state| {
                let ended = state.ended.is_some();
                self.held(state, |held| {
                    if let Some(answer) = held.answer.take() {
                        Poll::Ready(Outcome::Answer(answer))
                    } else if let Some(broken) = held.broken {
                        Poll::Ready(Outcome::Broken(broken))
                    } else if ended {
                        Poll::Ready(Outcome::Lost)
                    } else {
                        held.watcher = Some(cx.waker().clone());
                        Poll::Pending
                    }
                })
            })
        })
        .await
    }

    /// Why the connection ended.
    pub(super) fn end_of_connection(&self) -> ConnectionError {
        let end = self.http3.end();
        end.map_or(ConnectionError::TimedOut, |end| end.reason)
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let id = self.id;
        self.http3.state(|state| state.held.remove(&id));
    }
}
