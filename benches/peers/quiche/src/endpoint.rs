//! A socket with connections.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use datagrams::{Inbox, Socket};
use job::{ClientArguments, ServerArguments, Settings};
use polled::{Failure, Streams};
use quiche::Config;

use crate::events::Events;
use crate::settings;
use crate::table::Table;

/// A socket with the connections on it.
pub(crate) struct Endpoint<E> {
    socket: Socket,
    inbox: Inbox,
    table: Table,
    /// Bytes of a full datagram.
    size: usize,
    /// Where bursts are put together.
    room: Vec<u8>,
    events: E,
}

impl<E: Events> Endpoint<E> {
    /// One that accepts connections.
    pub(crate) fn server(arguments: &ServerArguments, events: E) -> Result<Self, Failure> {
        let config = settings::server(arguments).map_err(Failure::library)?;
        let socket = Socket::bind(arguments.listen, arguments.settings.tuned)?;
        Ok(Self::new(socket, config, arguments.settings, None, events))
    }

    /// One that connects.
    pub(crate) fn client(arguments: &ClientArguments, events: E) -> Result<Self, Failure> {
        let config = settings::client(arguments).map_err(Failure::library)?;
        let socket = Socket::bind(arguments.local(), arguments.settings.tuned)?;
        let server = Some(arguments.connect);
        Ok(Self::new(
            socket,
            config,
            arguments.settings,
            server,
            events,
        ))
    }

    /// One that connects to `server`, or accepts if there is none.
    fn new(
        socket: Socket,
        config: Config,
        settings: Settings,
        server: Option<SocketAddr>,
        events: E,
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
            events,
        }
    }

    fn deal(&mut self) -> Result<(), Failure> {
        let over = self.table.deal(|number, connection| {
            if connection.is_established() {
                self.events.progress(number, connection)?;
            }
            connection.flush(&self.socket, self.size, &mut self.room)
        })?;
        for number in over {
            self.events.closed(number)?;
        }
        Ok(())
    }
}

impl<E: Events> polled::Endpoint for Endpoint<E> {
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
