//! GOAWAY and graceful shutdown (RFC 9114, section 5.2).
//!
//! A server first says that it is going away, then, a round trip later, which requests it still took;
//! requests that were on their way meanwhile are served. It closes when all are done, and not before
//! the last word had time to arrive: a client has to know which requests it can send elsewhere. A
//! client asks for no more and closes when its requests are done.

use std::time::Duration;

use swiftwater_quic as quic;
use swiftwater_units::{Dir, Instant, PathId, Side, StreamId};

use super::Connection;
use crate::h3::code::Code;
use crate::h3::error::Fault;
use crate::h3::event::Event;
use crate::h3::frame::{FrameType, put_int_frame};

/// The largest identifier of a request: what a server says that does not know yet which is the last.
const LAST_REQUEST: u64 = (1 << 62) - 4;

/// Round trip assumed before one was measured (RFC 9002, section 6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// How long peers hold back acknowledgements unless they say otherwise (RFC 9000, section 18.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

fn round_trip(quic: &quic::Connection) -> Duration {
    quic.smoothed_rtt(PathId::new(0)).unwrap_or(INITIAL_RTT)
}

/// How far going away has come, at both ends.
#[derive(Debug, Default)]
pub(super) struct Shutdown {
    ours: Ours,
    /// What the peer's GOAWAY said last.
    peer: Option<u64>,
    /// The first stream that the client has not opened yet (server only).
    next: Option<StreamId>,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Ours {
    #[default]
    Open,
    /// The first GOAWAY was sent; the last follows at this time.
    Announced(Instant),
    /// Nothing more is accepted from stream `end` on, and the connection stays until `until`.
    Final { end: StreamId, until: Instant },
    /// All is done.
    Complete,
}

impl Shutdown {
    /// Notes that a request came; false if it came after the last that is taken.
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

    /// True if the request of stream `id` has come already.
    pub(super) fn has_come(&self, id: StreamId) -> bool {
        self.next.is_some_and(|next| id < next)
    }

    /// When the last GOAWAY is due, or an idle connection may close.
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
    /// Ends the connection gracefully: no new requests, those under way are completed, and then it is
    /// closed with H3_NO_ERROR ([`Event::ShutdownComplete`]). Calling it again changes nothing.
    pub fn shutdown(&mut self, now: Instant, quic: &mut quic::Connection) {
        if self.shutdown.ours != Ours::Open {
            return;
        }
        if !self.told.ready {
            self.close(now, quic, Code::NO_ERROR, "");
            return;
        }
        if self.side.is_client() {
            // The number is of pushes, of which there are none.
            put_int_frame(self.own.control.out(), FrameType::GoAway, 0);
            let end = StreamId::new(Side::Client, Dir::Bi, 0);
            self.shutdown.ours = Ours::Final { end, until: now };
        } else {
            put_int_frame(self.own.control.out(), FrameType::GoAway, LAST_REQUEST);
            let rtt = round_trip(quic);
            // A quarter more, so that requests sent before the GOAWAY was read are here.
            self.shutdown.ours = Ours::Announced(now + rtt + rtt / 4);
        }
        self.wrap_up(now, quic);
    }

    /// The requests of clients that did not know yet have come by now.
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
        // Time for it to be lost and sent again.
        let until = now + 3 * (round_trip(quic) + MAX_ACK_DELAY);
        self.shutdown.ours = Ours::Final { end, until };
        self.flush_own_streams(now, quic);
    }

    /// Closes once the last request is done.
    pub(super) fn finish_shutdown(&mut self, now: Instant, quic: &mut quic::Connection) {
        let Ours::Final { until, .. } = self.shutdown.ours else {
            return;
        };
        if until <= now && self.requests.len() == 0 {
            self.shutdown.ours = Ours::Complete;
            self.tell(Event::ShutdownComplete);
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
            return error("GOAWAY went up");
        }
        let first = StreamId::from_wire(id);
        let names_request = first.dir() == Dir::Bi && first.initiator() == Side::Client;
        if self.side.is_client() && !names_request {
            return error("GOAWAY for a stream that is no request");
        }
        self.shutdown.peer = Some(id);
        self.tell(Event::GoAway { id });
        if self.side.is_client() {
            self.give_up_unprocessed(now, quic, first);
        }
        Ok(())
    }

    /// The server did not and will not process the requests from `first` on.
    fn give_up_unprocessed(&mut self, now: Instant, quic: &mut quic::Connection, first: StreamId) {
        for id in self.requests.from(first) {
            self.abandon(quic, id, Code::REQUEST_CANCELLED);
            self.tell(Event::Reset {
                id,
                code: Code::REQUEST_REJECTED,
                unprocessed: true,
            });
        }
        self.finish_shutdown(now, quic);
    }
}
