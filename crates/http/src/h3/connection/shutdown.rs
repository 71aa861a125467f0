//! GOAWAY and graceful shutdown (RFC 9114, section 5.2).
//!
//! A server first sends a GOAWAY with the largest identifier, then, a round trip later, one with the
//! first request that it did not accept; requests in transit meanwhile are served. It closes the
//! connection when all requests are complete, and not before the last GOAWAY had time to arrive,
//! because it determines which requests a client can send on another connection. A client sends no
//! further requests and closes when its own are complete.

use std::time::Duration;

use swiftwater_quic as quic;
use swiftwater_units::{Dir, Instant, PathId, Side, StreamId};

use super::Connection;
use crate::h3::code::Code;
use crate::h3::error::Fault;
use crate::h3::event::Event;
use crate::h3::frame::{FrameType, put_int_frame};

/// The largest identifier of a request: content of the first GOAWAY, before the last request is
/// determined.
const LAST_REQUEST: u64 = (1 << 62) - 4;

/// Round-trip time assumed before the first sample (RFC 9002, section 6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// Default of max_ack_delay (RFC 9000, section 18.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

fn round_trip(quic: &quic::Connection) -> Duration {
    quic.smoothed_rtt(PathId::new(0)).unwrap_or(INITIAL_RTT)
}

/// State of the shutdown, in both directions.
#[derive(Debug, Default)]
pub(super) struct Shutdown {
    ours: Ours,
    /// Identifier in the peer's last GOAWAY.
    peer: Option<u64>,
    /// The first stream that the client has not opened yet (server only).
    next: Option<StreamId>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Ours {
    #[default]
    Open,
    /// The first GOAWAY was sent; the second follows at this time.
    Announced(Instant),
    /// No request from stream `end` on is accepted, and the connection stays open until `until`.
    Final { end: StreamId, until: Instant },
    /// Complete.
    Complete,
}

impl Shutdown {
    /// Records a request; false if it is beyond the last accepted one.
    pub(super) fn admit(&mut self, id: StreamId) -> bool {
        match self.ours {
            Ours::Final { end, .. } if id >= end => return false,
            Ours::Complete => return false,
            _ => {}
        }
        self.next = self
            .next
            .max(Some(StreamId::new(Side::Client, Dir::Bi, id.index() + 1)));
        true
    }

    /// True if the request of stream `id` was received already.
    pub(super) fn has_come(&self, id: StreamId) -> bool {
        self.next.is_some_and(|next| id < next)
    }

    /// When the second GOAWAY is due, or an idle connection may close.
    pub(super) fn deadline(&self, idle: bool) -> Option<Instant> {
        match self.ours {
            Ours::Announced(at) => Some(at),
            Ours::Final { until, .. } if idle => Some(until),
            _ => None,
        }
    }

    /// True if a client may send no more requests.
    pub(super) fn refuses_requests(&self) -> bool {
        self.peer.is_some() || self.ours != Ours::Open
    }
}

impl Connection {
    /// Ends the connection gracefully: no new requests are accepted, those in progress are completed,
    /// and then it is closed with H3_NO_ERROR ([`Event::ShutdownComplete`]). Further calls have no
    /// effect.
    pub fn shutdown(&mut self, now: Instant, quic: &mut quic::Connection) {
        if self.shutdown.ours != Ours::Open {
            return;
        }
        if !self.reports.ready {
            self.close(now, quic, Code::NO_ERROR, "");
            return;
        }
        if self.side.is_client() {
            // A client's GOAWAY has a push ID; there are no pushes.
            put_int_frame(self.own.control.out(), FrameType::GoAway, 0);
            let end = StreamId::new(Side::Client, Dir::Bi, 0);
            self.shutdown.ours = Ours::Final { end, until: now };
        } else {
            put_int_frame(self.own.control.out(), FrameType::GoAway, LAST_REQUEST);
            let rtt = round_trip(quic);
            // 1.25 round trips, so that requests sent before the GOAWAY was received have arrived.
            self.shutdown.ours = Ours::Announced(now + rtt + rtt / 4);
        }
        self.wrap_up(now, quic);
    }

    /// Requests sent before the client received the first GOAWAY have arrived by now.
    pub(super) fn send_final_goaway(&mut self, now: Instant, quic: &mut quic::Connection) {
        match self.shutdown.ours {
            Ours::Announced(at) if at <= now => {}
            _ => return,
        }
        let end = self
            .shutdown
            .next
            .unwrap_or(StreamId::new(Side::Client, Dir::Bi, 0));
        put_int_frame(self.own.control.out(), FrameType::GoAway, end.get());
        // Time for its loss and retransmission.
        let until = now + 3 * (round_trip(quic) + MAX_ACK_DELAY);
        self.shutdown.ours = Ours::Final { end, until };
        self.flush_own_streams(now, quic);
    }

    /// Closes once the last request is complete.
    pub(super) fn finish_shutdown(&mut self, now: Instant, quic: &mut quic::Connection) {
        let Ours::Final { until, .. } = self.shutdown.ours else {
            return;
        };
        if until <= now && self.requests.len() == 0 {
            self.shutdown.ours = Ours::Complete;
            self.report(Event::ShutdownComplete);
            quic.close(now, Code::NO_ERROR.0, b"");
        }
    }

    pub(super) fn on_goaway(
        &mut self,
        now: Instant,
        quic: &mut quic::Connection,
        id: u64,
    ) -> Result<(), Fault> {
        let error = |reason| Err(Fault::connection(Code::ID_ERROR, reason));
        if self.shutdown.peer.is_some_and(|earlier| id > earlier) {
            return error("GOAWAY identifier increased");
        }
        let first = StreamId::from_wire(id);
        let names_request = first.dir() == Dir::Bi && first.initiator() == Side::Client;
        if self.side.is_client() && !names_request {
            return error("GOAWAY identifier is not a request stream");
        }
        self.shutdown.peer = Some(id);
        self.report(Event::GoAway { id });
        if self.side.is_client() {
            self.give_up_unprocessed(now, quic, first);
        }
        Ok(())
    }

    /// The server did not and will not process the requests from `first` on.
    fn give_up_unprocessed(&mut self, now: Instant, quic: &mut quic::Connection, first: StreamId) {
        for id in self.requests.from(first) {
            self.abandon(quic, id, Code::REQUEST_CANCELLED);
            self.report(Event::Reset {
                id,
                code: Code::REQUEST_REJECTED,
                unprocessed: true,
            });
        }
        self.finish_shutdown(now, quic);
    }
}
