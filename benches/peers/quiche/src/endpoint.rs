//! A socket with connections.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use datagrams::{Inbox, Socket};
use job::Settings;
use polled::{Failure, Role, Shared, Streams};
use quiche::Config;

use crate::table::Table;

/// A socket with the connections on it.
pub(crate) struct Endpoint<R> {
    socket: Socket,
    inbox: Inbox,
    table: Table,
    /// Bytes of a full datagram.
    size: usize,
    /// Where bursts are put together.
    room: Vec<u8>,
    role: Shared<R>,
}

impl<R: Role> Endpoint<R> {
    /// One that connects to `server`, or accepts if there is none.
    pub(crate) fn new(
        socket: Socket,
        config: Config,
        settings: Settings,
        server: Option<SocketAddr>,
        role: Shared<R>,
    ) -> Self {
        let size = usize::from(settings.mtu);
        Self {
            inbox: Inbox::default(),
            table: Table::new(
                socket.local(),
                config,
                settings.controller.is_some(),
                server,
            ),
            size,
            room: vec![0; socket.max_burst(size) * size],
            socket,
            role,
        }
    }

    fn deal(&mut self) -> Result<(), Failure> {
        let over = self.table.deal(|number, connection| {
            connection.tell(number, &self.role)?;
            connection.flush(&self.socket, self.size, &mut self.room)
        })?;
        for number in over {
            self.role.borrow_mut().closed(number)?;
        }
        Ok(())
    }
}

impl<R: Role> polled::Endpoint for Endpoint<R> {
    fn connect(&mut self) -> Result<(), Failure> {
        self.table.connect()
    }

    fn turn(&mut self, longest: Option<Duration>) -> Result<(), Failure> {
        let longest = longest.map(|longest| Instant::now() + longest);
        let deadline = [longest, self.table.deadline()].into_iter().flatten().min();
        self.socket.wait(deadline)?;
        self.inbox.receive(&self.socket, |from, datagram| {
            self.table.deliver(from, datagram);
        })?;
        self.table.expire(Instant::now());
        self.deal()
    }

    fn close(&mut self) -> Result<(), Failure> {
        self.table.touch_all(Streams::close);
        self.deal()
    }
}
