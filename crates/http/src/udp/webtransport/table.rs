//! The sessions of one connection and their streams, under the lock of the engine: and the effect of
//! events of the engine and the transport on them.

use std::collections::BTreeMap;
use std::task::Waker;

use bytes::Bytes;
use swiftwater_net::quic::{self, ConnectionError, DatagramFate, StreamEvent};
use swiftwater_units::{Dir, StreamId};

use super::error::SessionEnd;
use super::limits::SessionLimits;
use super::session_state::{Order, SessionState};
use crate::h3::Code;

/// The receiving half of a stream.
#[derive(Debug)]
pub(super) struct Receiving {
    session: StreamId,
    pub(super) reader: Option<Waker>,
}

/// How the sending of a stream ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum SendEnd {
    /// The peer has acknowledged everything.
    Acknowledged,
    /// The peer stopped reading.
    Stopped(Code),
    /// This end reset it.
    Reset,
}

/// The sending half of a stream.
#[derive(Debug)]
pub(super) struct Sending {
    session: StreamId,
    pub(super) writer: Option<Waker>,
    pub(super) end_waiter: Option<Waker>,
    pub(super) end: Option<SendEnd>,
    /// The application has a handle. After it is dropped, written data may still be in delivery;
    /// they are lost if the session ends.
    pub(super) is_held: bool,
}

/// All sessions and streams.
#[derive(Debug)]
pub(in crate::udp) struct Table {
    limits: SessionLimits,
    sessions: BTreeMap<StreamId, SessionState>,
    receiving: BTreeMap<StreamId, Receiving>,
    sending: BTreeMap<StreamId, Sending>,
    /// Tasks that wait for the peer's stream limit.
    pub(super) openers: [Vec<Waker>; 2],
    /// Tasks that wait for room in the datagram queue.
    pub(super) datagram_writers: Vec<Waker>,
    /// All sessions should end.
    draining: bool,
}

impl Table {
    pub(in crate::udp) fn new(limits: SessionLimits) -> Self {
        Self {
            limits,
            sessions: BTreeMap::new(),
            receiving: BTreeMap::new(),
            sending: BTreeMap::new(),
            openers: [Vec::new(), Vec::new()],
            datagram_writers: Vec::new(),
            draining: false,
        }
    }

    /// A request for a session was received or sent.
    pub(in crate::udp) fn begin(&mut self, session: StreamId) {
        let live = self.sessions.entry(session).or_default();
        if self.draining {
            live.draining = true;
            live.orders.push_back(Order::Drain);
        }
    }

    pub(super) fn session(&mut self, session: StreamId) -> Option<&mut SessionState> {
        self.sessions.get_mut(&session)
    }

    /// Removes a session that has neither handle nor task.
    pub(super) fn discard(&mut self, session: StreamId) {
        let gone = |live: &SessionState| !live.is_held && !live.is_driven;
        if self.sessions.get(&session).is_some_and(gone) {
            self.sessions.remove(&session);
        }
    }

    /// The peer opened a stream of a session.
    pub(in crate::udp) fn on_session_stream(
        &mut self,
        quic: &mut quic::Connection,
        session: StreamId,
        id: StreamId,
        wakers: &mut Vec<Waker>,
    ) {
        let live = self.sessions.get_mut(&session);
        let Some(live) = live.filter(|live| live.end.is_none()) else {
            return give_up(quic, id, Code::WEBTRANSPORT_SESSION_GONE);
        };
        if !live.push_stream(id, &self.limits) {
            return give_up(quic, id, Code::WEBTRANSPORT_BUFFERED_STREAM_REJECTED);
        }
        wakers.append(&mut live.acceptors[id.dir() as usize]);
        self.begin_receiving(session, id);
        if id.dir() == Dir::Bi {
            self.begin_sending(session, id);
        }
    }

    /// Adds a half that can be read.
    pub(super) fn begin_receiving(&mut self, session: StreamId, id: StreamId) {
        let reader = None;
        self.receiving.insert(id, Receiving { session, reader });
    }

    /// Adds a half that can be written.
    pub(super) fn begin_sending(&mut self, session: StreamId, id: StreamId) {
        let sending = Sending {
            session,
            writer: None,
            end_waiter: None,
            end: None,
            is_held: true,
        };
        self.sending.insert(id, sending);
    }

    /// `None` once the session has ended.
    pub(super) fn receiving(&mut self, id: StreamId) -> Option<&mut Receiving> {
        self.receiving.get_mut(&id)
    }

    /// `None` once the session has ended.
    pub(super) fn sending(&mut self, id: StreamId) -> Option<&mut Sending> {
        self.sending.get_mut(&id)
    }

    /// The application dropped a half; true if the session was still open.
    pub(super) fn release_receiving(&mut self, id: StreamId) -> bool {
        self.receiving.remove(&id).is_some()
    }

    /// The application dropped a half, which stays until its data are delivered; true if the
    /// session was still open.
    pub(super) fn release_sending(&mut self, id: StreamId) -> bool {
        let Some(sending) = self.sending.get_mut(&id) else {
            return false;
        };
        sending.is_held = false;
        if sending.end.is_some() {
            self.sending.remove(&id);
        }
        true
    }

    /// All data of a half are delivered or lost.
    pub(super) fn discard_sending(&mut self, id: StreamId) {
        self.sending.remove(&id);
    }

    /// An event on a stream, which may belong to a session.
    pub(in crate::udp) fn on_stream_event(&mut self, event: StreamEvent, wakers: &mut Vec<Waker>) {
        match event {
            StreamEvent::Readable { id } => {
                let half = self.receiving.get_mut(&id);
                wakers.extend(half.and_then(|half| half.reader.take()));
            }
            StreamEvent::Writable { id } => {
                let half = self.sending.get_mut(&id);
                wakers.extend(half.and_then(|half| half.writer.take()));
            }
            StreamEvent::Finished { id } => self.note_end(id, SendEnd::Acknowledged, wakers),
            StreamEvent::Stopped { id, code } => {
                self.note_end(id, SendEnd::Stopped(Code(code)), wakers);
            }
            StreamEvent::Available { dir } => wakers.append(&mut self.openers[dir as usize]),
            _ => {}
        }
    }

    fn note_end(&mut self, id: StreamId, end: SendEnd, wakers: &mut Vec<Waker>) {
        let Some(half) = self.sending.get_mut(&id) else {
            return;
        };
        half.end.get_or_insert(end);
        wakers.extend(half.writer.take());
        wakers.extend(half.end_waiter.take());
        if !half.is_held {
            self.sending.remove(&id);
        }
    }

    /// A datagram of a request was received, which may belong to a session.
    pub(in crate::udp) fn on_datagram(
        &mut self,
        session: StreamId,
        payload: Bytes,
        wakers: &mut Vec<Waker>,
    ) {
        let live = self.sessions.get_mut(&session);
        if let Some(live) = live.filter(|live| live.end.is_none()) {
            let max_bytes = self.limits.max_waiting_datagrams;
            live.datagrams.push(payload, max_bytes, wakers);
        }
    }

    /// The fate of a datagram with a key, which may belong to a session.
    pub(in crate::udp) fn on_datagram_fate(
        &mut self,
        session: StreamId,
        key: u64,
        fate: DatagramFate,
        wakers: &mut Vec<Waker>,
    ) {
        let live = self.sessions.get_mut(&session);
        if let Some(live) = live.filter(|live| live.end.is_none()) {
            live.datagrams.push_fate(key, fate, wakers);
        }
    }

    pub(in crate::udp) fn on_datagrams_unblocked(&mut self, wakers: &mut Vec<Waker>) {
        wakers.append(&mut self.datagram_writers);
    }

    /// The connection is shutting down, so its sessions should end. With `notify` a capsule is sent
    /// to the peers; not needed if the peer started the shutdown.
    pub(in crate::udp) fn drain(&mut self, notify: bool, wakers: &mut Vec<Waker>) {
        self.draining |= notify;
        for live in self.sessions.values_mut() {
            if notify {
                live.order(Order::Drain, wakers);
            }
            live.drain(wakers);
        }
    }

    /// A session has ended: its streams are reset (section 6 of the draft).
    pub(super) fn end(
        &mut self,
        quic: &mut quic::Connection,
        session: StreamId,
        end: SessionEnd,
        wakers: &mut Vec<Waker>,
    ) {
        let Some(live) = self.sessions.get_mut(&session) else {
            return;
        };
        live.finish(end, wakers);
        let code = Code::WEBTRANSPORT_SESSION_GONE;
        self.receiving.retain(|&id, half| {
            let other = half.session != session;
            if !other {
                let _ = quic.recv_stream(id).stop(code.0);
                wakers.extend(half.reader.take());
            }
            other
        });
        self.sending.retain(|&id, half| {
            let other = half.session != session;
            if !other {
                let _ = quic.send_stream(id).reset(code.0);
                wakers.extend(half.writer.take());
                wakers.extend(half.end_waiter.take());
            }
            other
        });
        for openers in &mut self.openers {
            wakers.append(openers);
        }
        wakers.append(&mut self.datagram_writers);
    }

    /// The connection has ended, and all sessions with it.
    pub(in crate::udp) fn on_closed(&mut self, reason: &ConnectionError, wakers: &mut Vec<Waker>) {
        for live in self.sessions.values_mut() {
            live.finish(SessionEnd::ConnectionLost(reason.clone()), wakers);
        }
        for half in std::mem::take(&mut self.receiving).into_values() {
            wakers.extend(half.reader);
        }
        for half in std::mem::take(&mut self.sending).into_values() {
            wakers.extend(half.writer);
            wakers.extend(half.end_waiter);
        }
        for openers in &mut self.openers {
            wakers.append(openers);
        }
        wakers.append(&mut self.datagram_writers);
    }
}

/// Stops and resets a stream in the directions that it has.
fn give_up(quic: &mut quic::Connection, id: StreamId, code: Code) {
    let _ = quic.recv_stream(id).stop(code.0);
    let _ = quic.send_stream(id).reset(code.0);
}
