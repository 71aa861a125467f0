//! The requests in progress, each on a client-initiated bidirectional stream.

use std::collections::BTreeMap;

use http::Method;
use rustc_hash::FxHashMap;
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
    /// The application has set the priority: signals of the client are ignored.
    pub(super) own_priority: bool,
    /// The request was reported to the application.
    pub(super) reported: bool,
    /// A part of it was received as early data.
    pub(super) early: bool,
    /// It requests, or is, a CONNECT tunnel: its DATA frames carry no message content.
    pub(super) is_connect: bool,
    /// It requests a WebTransport session.
    pub(super) is_session: bool,
}

impl Request {
    pub(super) fn received(sessions: bool) -> Self {
        Self::new(Receives::Request, sessions)
    }

    pub(super) fn sent(method: Method) -> Self {
        let is_connect = method == Method::CONNECT;
        Self {
            reported: true,
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
            reported: false,
            early: false,
            is_connect: false,
            is_session: false,
        }
    }

    /// The head is incomplete, or not decoded.
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

/// All requests, and the deadlines of incomplete heads.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// Few at a time, as many as the limit of streams; nothing depends on their order here.
    open: FxHashMap<StreamId, Request>,
    /// Deadlines of the heads of requests. Requests come in the order of their identifiers, so the
    /// first entry is the one that is due first.
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

    /// Removes the request if it is complete in both directions.
    pub(super) fn remove_if_over(&mut self, id: StreamId) -> Option<Request> {
        if self.get(id)?.is_over() {
            return self.remove(id);
        }
        None
    }

    /// The connection is closed. Data of responses received before can still be read, except trailers
    /// that are blocked on the QPACK table, which gets no further insertions. Requests can't be
    /// answered any more.
    pub(super) fn end(&mut self, side: Side) {
        self.awaited.clear();
        self.open.retain(|_, request| {
            request.sending.give_up();
            let waits = request.awaits_head() || request.receiving.awaits_trailers();
            side.is_client() && !waits && !request.is_over()
        });
    }

    /// The requests from stream `id` on, in order.
    pub(super) fn from(&self, id: StreamId) -> Vec<StreamId> {
        let mut ids: Vec<_> = self
            .open
            .keys()
            .copied()
            .filter(|&open| open >= id)
            .collect();
        ids.sort_unstable();
        ids
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

    /// A request whose head is overdue.
    pub(super) fn pop_late(&mut self, now: Instant) -> Option<StreamId> {
        let (&id, &until) = self.awaited.first_key_value()?;
        if until > now {
            return None;
        }
        self.awaited.remove(&id);
        Some(id)
    }
}
