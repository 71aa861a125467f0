//! The application on both hosts of a pair: records events and serves transfers.

use std::cell::RefCell;
use std::rc::Rc;

use swiftwater_quic::{Connection, ConnectionHandle, Event, StreamEvent};
use swiftwater_units::{Dir, Side};

use super::transfers::Transfers;
use crate::application::{Application, HostContext};

/// The application of one side.
#[derive(Debug)]
pub(super) struct Driver {
    side: Side,
    board: Rc<RefCell<Transfers>>,
    connections: Vec<ConnectionHandle>,
    events: Vec<Event>,
}

impl Driver {
    pub(super) fn new(side: Side, board: Rc<RefCell<Transfers>>) -> Self {
        Self {
            side,
            board,
            connections: Vec::new(),
            events: Vec::new(),
        }
    }

    /// Records a connection; the first one is the main one.
    pub(super) fn adopt(&mut self, handle: ConnectionHandle) {
        if !self.connections.contains(&handle) {
            self.connections.push(handle);
        }
    }

    pub(super) fn connections(&self) -> &[ConnectionHandle] {
        &self.connections
    }

    pub(super) fn events(&self) -> &[Event] {
        &self.events
    }

    pub(super) fn take_events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Opens streams for transfers that wait for one.
    pub(super) fn open_waiting(&mut self, host: &mut HostContext<'_>) {
        if let Some(connection) = self.first(host) {
            self.board.borrow_mut().open(self.side, connection);
        }
    }

    fn first<'a>(&self, host: &'a mut HostContext<'_>) -> Option<&'a mut Connection> {
        host.connection(*self.connections.first()?)
    }

    /// Accepts the streams of transfers. Streams that tests open are accepted by tests, unless a
    /// transfer to the same side is in progress.
    fn accept(&mut self, host: &mut HostContext<'_>) {
        let now = host.now();
        let mut board = self.board.borrow_mut();
        let Some(connection) = self.first(host) else {
            return;
        };
        while board.expects(self.side)
            && let Some(id) = connection.accept(Dir::Uni)
        {
            board.read(now, id, connection);
        }
    }
}

impl Application for Driver {
    fn on_accept(&mut self, _: &mut HostContext<'_>, handle: ConnectionHandle) {
        self.adopt(handle);
    }

    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        self.adopt(handle);
        if self.connections.first() != Some(&handle) {
            return;
        }
        let now = host.now();
        match &event {
            Event::EarlyDataReady
            | Event::Connected
            | Event::Stream(StreamEvent::Available { dir: Dir::Uni }) => {
                self.open_waiting(host);
            }
            Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => self.accept(host),
            Event::Stream(StreamEvent::Readable { id }) if self.board.borrow().is_known(*id) => {
                if let Some(connection) = host.connection(handle) {
                    self.board.borrow_mut().read(now, *id, connection);
                }
            }
            Event::Stream(StreamEvent::Writable { id }) if self.board.borrow().is_known(*id) => {
                if let Some(connection) = host.connection(handle) {
                    self.board.borrow_mut().write(*id, connection);
                }
            }
            _ => {}
        }
        self.events.push(event);
    }
}
