//! The requests under way, each a bidirectional stream of the client's.

use std::collections::BTreeMap;

use http::Method;
use swiftwater_units::{Instant, Side, StreamId};

use crate::h3::priority::Priority;
use crate::h3::receiving::{Progress, Receives, Receiving};
use crate::h3::sending::Sending;

/// One request and its response.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) receiving: Receiving,
    pub(super) sending: Sending,
    pub(super) priority: Priority,
    /// We chose the priority ourselves: the client's wishes don't count any more.
    pub(super) own_priority: bool,
    /// The application knows of it.
    pub(super) told: bool,
    /// A part of it came as early data.
    pub(super) early: bool,
    /// It asks for, or is, a tunnel: its content is no message's.
    pub(super) is_connect: bool,
    /// It asks for a WebTransport session.
    pub(super) is_session: bool,
}

impl Request {
    pub(super) fn received(sessions: bool) -> Self {
        Self::new(Receives::Request, sessions)
    }

    pub(super) fn sent(method: Method) -> Self {
        let is_connect = method == Method::CONNECT;
        Self {
            told: true,
            is_connect,
            ..Self::new(Receives::Response(method), false)
        }
    }

    fn new(receives: Receives, sessions: bool) -> Self {
        Self {
            receiving: Receiving::new(receives, sessions),
            sending: Sending::new(),
            priority: Priority::default(),
            own_priority: false,
            told: false,
            early: false,
            is_connect: false,
            is_session: false,
        }
    }

    /// The head is not complete, or not decoded.
    pub(super) fn awaits_head(&self) -> bool {
        matches!(
            self.receiving.progress,
            Progress::Head | Progress::HeadBlocked
        )
    }

    fn is_over(&self) -> bool {
        self.receiving.is_over() && self.sending.is_over()
    }
}

/// All of them, and which heads are awaited.
#[derive(Debug, Default)]
pub(super) struct Requests {
    open: BTreeMap<StreamId, Request>,
    /// When the heads of requests must be complete. Requests come in the order of their identifiers,
    /// so the first entry is the one that is due first.
    awaited: BTreeMap<StreamId, Instant>,
}

impl Requests {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn insert(&mut self, id: StreamId, request: Request) {
        self.open.insert(id, request);
    }

    pub(super) fn get(&self, id: StreamId) -> Option<&Request> {
        self.open.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: StreamId) -> Option<&mut Request> {
        self.open.get_mut(&id)
    }

    pub(super) fn remove(&mut self, id: StreamId) -> Option<Request> {
        self.awaited.remove(&id);
        self.open.remove(&id)
    }

    /// Forgets the request if nothing is left to be done for it.
    pub(super) fn remove_if_over(&mut self, id: StreamId) -> Option<Request> {
        if self.get(id)?.is_over() {
            return self.remove(id);
        }
        None
    }

    /// The connection is over. What came of a response before that can still be read, but for trailers
    /// that wait for the QPACK table: nothing fills it any more. Requests can't be answered any more.
    pub(super) fn end(&mut self, side: Side) {
        self.awaited.clear();
        self.open.retain(|_, request| {
            request.sending.give_up();
            let waits = request.awaits_head() || request.receiving.awaits_trailers();
            side.is_client() && !waits && !request.is_over()
        });
    }

    /// The requests from stream `id` on.
    pub(super) fn from(&self, id: StreamId) -> Vec<StreamId> {
        self.open.range(id..).map(|(&id, _)| id).collect()
    }

    pub(super) fn await_head(&mut self, id: StreamId, until: Instant) {
        self.awaited.insert(id, until);
    }

    pub(super) fn head_came(&mut self, id: StreamId) {
        self.awaited.remove(&id);
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.awaited.first_key_value().map(|(_, &until)| until)
    }

    /// A request whose head is late.
    pub(super) fn pop_late(&mut self, now: Instant) -> Option<StreamId> {
        let (&id, &until) = self.awaited.first_key_value()?;
        if until > now {
            return None;
        }
        self.awaited.remove(&id);
        Some(id)
    }
}
