//! A socket with tquic's endpoint.

use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use datagrams::{Inbox, Socket};
use job::SERVER_NAME;
use polled::{Failure, Role, Shared};
use tquic::{Config, PacketInfo};

use crate::handler::{Handler, Notes};
use crate::sender::Sender;

/// A socket with the connections on it.
pub(crate) struct Endpoint {
    socket: Rc<Socket>,
    inbox: Inbox,
    library: tquic::Endpoint,
    /// Where to connect to; a server accepts instead.
    server: Option<SocketAddr>,
    notes: Rc<Notes>,
    /// Those that were opened.
    opened: Vec<u64>,
}

impl Endpoint {
    /// One that connects to `server`, or accepts if there is none.
    pub(crate) fn new<R: Role + 'static>(
        socket: Socket,
        config: Config,
        server: Option<SocketAddr>,
        role: Shared<R>,
    ) -> Self {
        let socket = Rc::new(socket);
        let notes = Rc::<Notes>::default();
        let handler = Handler {
            role,
            notes: Rc::clone(&notes),
        };
        Self {
            inbox: Inbox::default(),
            library: tquic::Endpoint::new(
                Box::new(config),
                server.is_none(),
                Box::new(handler),
                Rc::new(Sender(Rc::clone(&socket))),
            ),
            socket,
            server,
            notes,
            opened: Vec::new(),
        }
    }

    /// Lets the library process its work, and closes connections after that.
    fn process(&mut self) -> Result<(), Failure> {
        self.library
            .process_connections()
            .map_err(Failure::library)?;
        let closing = self.notes.closing.take();
        if !closing.is_empty() {
            for number in closing {
                self.close_one(number);
            }
            self.library
                .process_connections()
                .map_err(Failure::library)?;
        }
        self.notes.failure.take().map_or(Ok(()), Err)
    }

    fn close_one(&mut self, number: u64) {
        if let Some(connection) = self.library.conn_get_mut(number) {
            // One that is over already needs nothing.
            let _ = connection.close(true, 0, b"");
        }
    }
}

impl polled::Endpoint for Endpoint {
    fn connect(&mut self) -> Result<(), Failure> {
        if let Some(server) = self.server {
            let local = self.socket.local();
            let number = self
                .library
                .connect(local, server, Some(SERVER_NAME), None, None, None)
                .map_err(Failure::library)?;
            self.opened.push(number);
        }
        self.process()
    }

    fn turn(&mut self, longest: Option<Duration>) -> Result<(), Failure> {
        let timeout = [longest, self.library.timeout()]
            .into_iter()
            .flatten()
            .min();
        self.socket
            .wait(timeout.map(|timeout| Instant::now() + timeout))?;
        let (dst, time) = (self.socket.local(), Instant::now());
        self.inbox.receive(&self.socket, |src, datagram| {
            // What is wrong with a datagram, the connection says itself.
            let _ = self.library.recv(datagram, &PacketInfo { src, dst, time });
        })?;
        self.library.on_timeout(time);
        self.process()
    }

    fn close(&mut self) -> Result<(), Failure> {
        for number in std::mem::take(&mut self.opened) {
            self.close_one(number);
        }
        self.process()
    }
}
