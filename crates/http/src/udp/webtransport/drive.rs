//! The task of a session's CONNECT request: capsules in both directions (draft-ietf-webtrans-http3,
//! sections 4.7 and 5), and the end.

use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::timeout;

use super::error::SessionEnd;
use super::session_state::Order;
use crate::h3::capsule::{Capsule, CapsuleReader, capsule_type};
use crate::h3::webtransport::{close_session, closed_session, drain_session};
use crate::h3::{BodyError, Code, MessagePart};
use crate::udp::content;
use crate::udp::exchange::Exchange;

/// Largest capsule that is read, bytes; longer ones are skipped.
const MAX_CAPSULE: u64 = 16 << 10;

/// Next event of a session's request.
enum Step {
    /// A part of the peer's data stream.
    Read(Result<MessagePart, BodyError>),
    /// The peer sent STOP_SENDING for this end's data stream.
    Abandoned,
    Order(Order),
}

/// How a session ends.
enum Ending {
    /// The peer closed it.
    ByPeer(SessionEnd),
    /// This end closed it.
    ByUs(u32, String),
    /// The request ended otherwise.
    Gone(SessionEnd),
    /// The peer violated the protocol: the request is reset with this code.
    Fault(Code),
}

/// Serves a session's request until both have ended. If the peer neither reads nor sends the end
/// within `time_limit`, the request is reset.
pub(super) async fn drive(exchange: &Exchange, time_limit: Duration) {
    let driven = Driven(exchange);
    match run(exchange, time_limit).await {
        Ending::ByPeer(end) => {
            driven.end(end);
            let _ = exchange.finish();
            await_end(exchange, time_limit, true).await;
        }
        Ending::ByUs(code, reason) => {
            if send_capsule(exchange, &close_session(code, &reason), time_limit).await {
                let _ = exchange.finish();
                await_end(exchange, time_limit, false).await;
            } else {
                exchange.cancel(Code::WEBTRANSPORT_SESSION_GONE);
            }
        }
        Ending::Gone(end) => {
            driven.end(end);
            exchange.cancel(Code::WEBTRANSPORT_SESSION_GONE);
        }
        Ending::Fault(code) => {
            driven.end(SessionEnd::Broken(code));
            exchange.cancel(code);
        }
    }
}

async fn run(exchange: &Exchange, time_limit: Duration) -> Ending {
    let mut reader = CapsuleReader::new(MAX_CAPSULE);
    loop {
        // Reading comes first: a peer that closes the session may send STOP_SENDING right after.
        let step = tokio::select! {
            biased;
            read = std::future::poll_fn(|cx| exchange.poll_read(cx)) => Step::Read(read),
            order = std::future::poll_fn(|cx| poll_order(exchange, cx)) => Step::Order(order),
            () = exchange.abandoned() => Step::Abandoned,
        };
        let ending = match step {
            Step::Read(Ok(MessagePart::Data(data))) => on_data(exchange, &mut reader, data),
            Step::Read(Ok(MessagePart::Trailers(_) | MessagePart::Blocked)) => None,
            Step::Read(Ok(MessagePart::End)) if reader.finish().is_err() => {
                Some(Ending::Fault(Code::MESSAGE_ERROR))
            }
            // An end without a capsule counts as code 0 without a reason.
            Step::Read(Ok(MessagePart::End)) => Some(Ending::ByPeer(SessionEnd::Closed {
                code: 0,
                reason: String::new(),
            })),
            Step::Read(Err(error)) => Some(Ending::Gone(why(exchange, &error))),
            Step::Abandoned => Some(Ending::Gone(abandoned(exchange))),
            Step::Order(Order::Close(code, reason)) => Some(Ending::ByUs(code, reason)),
            Step::Order(Order::Drain) => {
                let sent = send_capsule(exchange, &drain_session(), time_limit).await;
                (!sent).then_some(Ending::Fault(Code::WEBTRANSPORT_SESSION_GONE))
            }
        };
        if let Some(ending) = ending {
            return ending;
        }
    }
}

/// Processes the peer's capsules.
fn on_data(exchange: &Exchange, reader: &mut CapsuleReader, mut data: Bytes) -> Option<Ending> {
    while let Some(capsule) = reader.next(&mut data) {
        match capsule.capsule_type {
            capsule_type::CLOSE_WEBTRANSPORT_SESSION => {
                // Data after the closing capsule, or data that can't be parsed, are malformed.
                return Some(match closed_session(&capsule) {
                    Some((code, reason)) if data.is_empty() => {
                        Ending::ByPeer(SessionEnd::Closed { code, reason })
                    }
                    _ => Ending::Fault(Code::MESSAGE_ERROR),
                });
            }
            capsule_type::DRAIN_WEBTRANSPORT_SESSION => {
                exchange.http3.with_wakers(|_, _, state, wakers| {
                    if let Some(live) = state.sessions.session(exchange.id) {
                        live.drain(wakers);
                    }
                });
            }
            capsule_type::DATAGRAM => exchange.http3.with_wakers(|_, _, state, wakers| {
                let payload = capsule.value;
                state.sessions.on_datagram(exchange.id, payload, wakers);
            }),
            _ => {}
        }
    }
    let passed_over = reader.passed_over() == Some(capsule_type::CLOSE_WEBTRANSPORT_SESSION);
    passed_over.then_some(Ending::Fault(Code::MESSAGE_ERROR))
}

/// Performs the requests of the handles.
fn poll_order(exchange: &Exchange, cx: &Context<'_>) -> Poll<Order> {
    exchange.http3.with(|_, _, state| {
        let Some(live) = state.sessions.session(exchange.id) else {
            return Poll::Pending;
        };
        if let Some(order) = live.orders.pop_front() {
            return Poll::Ready(order);
        }
        live.driver = Some(cx.waker().clone());
        Poll::Pending
    })
}

/// Sends a capsule; false if that can't be done.
async fn send_capsule(exchange: &Exchange, capsule: &Capsule, time_limit: Duration) -> bool {
    let mut bytes = Vec::new();
    capsule.encode(&mut bytes);
    let sent = content::write(exchange, bytes.into(), false, Some(time_limit)).await;
    sent.is_ok()
}

/// The session has ended; only the end of the peer's data stream may follow if the peer closed the
/// session (`closed`).
async fn await_end(exchange: &Exchange, time_limit: Duration, closed: bool) {
    let ended = timeout(time_limit, async {
        loop {
            match std::future::poll_fn(|cx| exchange.poll_read(cx)).await {
                Ok(MessagePart::End) | Err(_) => return,
                Ok(MessagePart::Data(_)) if closed => return exchange.cancel(Code::MESSAGE_ERROR),
                Ok(_) => {}
            }
        }
    });
    if ended.await.is_err() {
        exchange.stop(Code::WEBTRANSPORT_SESSION_GONE);
    }
}

/// Why the peer's data stream can't be read.
fn why(exchange: &Exchange, error: &BodyError) -> SessionEnd {
    match error {
        BodyError::Reset(code) => SessionEnd::Broken(*code),
        BodyError::Fault(fault) if !fault.ends_connection => SessionEnd::Broken(fault.code),
        BodyError::ConnectionLost(reason) => reason.clone().into(),
        BodyError::Fault(_) | BodyError::Closed => abandoned(exchange),
    }
}

/// The engine's report of the request's end.
fn abandoned(exchange: &Exchange) -> SessionEnd {
    if let Some(end) = exchange.http3.end() {
        return end.reason.into();
    }
    let code = exchange.given_up_with();
    SessionEnd::Broken(code.unwrap_or(Code::REQUEST_CANCELLED))
}

/// The task of a session's request. Dropping it ends the session.
struct Driven<'a>(&'a Exchange);

impl Driven<'_> {
    fn end(&self, end: SessionEnd) {
        let Self(exchange) = self;
        exchange.http3.with_wakers(|_, quic, state, wakers| {
            state.sessions.end(quic, exchange.id, end, wakers);
        });
    }
}

impl Drop for Driven<'_> {
    fn drop(&mut self) {
        // The task may have been aborted.
        self.end(SessionEnd::ClosedHere);
        let Self(exchange) = self;
        exchange.http3.with(|_, _, state| {
            if let Some(live) = state.sessions.session(exchange.id) {
                live.is_driven = false;
            }
            state.sessions.discard(exchange.id);
        });
    }
}
