//! The connections of a socket, and which of them a datagram belongs to.

use std::net::SocketAddr;
use std::time::Instant;

use datagrams::Timers;
use job::SERVER_NAME;
use polled::Failure;
use quiche::{Config, ConnectionId, Header, RecvInfo, Type};
use rustc_hash::FxHashMap;
use slab::Slab;

use crate::connection::{Connection, Id};

/// Bytes of our connection IDs.
const ID_LEN: usize = size_of::<Id>();

/// Set in the first byte of long headers (RFC 9000, section 17).
const LONG: u8 = 0x80;

/// The connections of a socket.
pub(crate) struct Table {
    local: SocketAddr,
    config: Config,
    /// Connections are paced.
    paced: bool,
    /// Where to connect to; a server accepts instead.
    server: Option<SocketAddr>,
    connections: Slab<Connection>,
    /// By our connection ID.
    routes: FxHashMap<Id, usize>,
    /// By the connection ID that a client made up.
    guesses: FxHashMap<Box<[u8]>, usize>,
    timers: Timers,
    /// Those on which something has happened.
    touched: Vec<usize>,
}

impl Table {
    pub(crate) fn new(
        local: SocketAddr,
        config: Config,
        paced: bool,
        server: Option<SocketAddr>,
    ) -> Self {
        Self {
            local,
            config,
            paced,
            server,
            connections: Slab::new(),
            routes: FxHashMap::default(),
            guesses: FxHashMap::default(),
            timers: Timers::default(),
            touched: Vec::new(),
        }
    }

    /// Starts to connect to the server.
    pub(crate) fn connect(&mut self) -> Result<(), Failure> {
        let Some(server) = self.server else {
            return Ok(());
        };
        let id = rand::random::<Id>();
        let library = quiche::connect_with_buffer_factory(
            Some(SERVER_NAME),
            &ConnectionId::from_ref(&id),
            self.local,
            server,
            &mut self.config,
        )
        .map_err(Failure::library)?;
        let number = self.insert(Connection::new(library, server, id, self.paced));
        self.touch(number);
        Ok(())
    }

    /// Hands a datagram to its connection. A server opens one if it is a client's first.
    pub(crate) fn deliver(&mut self, from: SocketAddr, datagram: &mut [u8]) {
        let Some(number) = self.find(from, datagram) else {
            return;
        };
        let info = RecvInfo {
            from,
            to: self.local,
        };
        self.connections[number].receive(datagram, info);
        self.touch(number);
    }

    /// Handles the connections whose timers have expired.
    pub(crate) fn expire(&mut self, now: Instant) {
        while let Some(number) = self.timers.expired(now) {
            if let Some(connection) = self.connections.get_mut(number) {
                connection.expire(now);
                self.touch(number);
            }
        }
    }

    /// Time of the next timer of any connection.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.touched.is_empty() {
            self.timers.next()
        } else {
            Some(Instant::now())
        }
    }

    /// Has `deal` deal with each connection on which something has happened. Returns the numbers of those that
    /// are over after that.
    pub(crate) fn deal(
        &mut self,
        mut deal: impl FnMut(u64, &mut Connection) -> Result<(), Failure>,
    ) -> Result<Vec<u64>, Failure> {
        let mut over = Vec::new();
        while let Some(number) = self.touched.pop() {
            let connection = &mut self.connections[number];
            connection.touched = false;
            deal(number as u64, connection)?;
            if connection.is_established()
                && let Some(guess) = connection.guess.take()
            {
                self.guesses.remove(&guess);
            }
            if connection.is_over() {
                self.remove(number);
                over.push(number as u64);
            } else {
                self.timers.set(number, connection.deadline());
            }
        }
        Ok(over)
    }

    /// Has each connection touched.
    pub(crate) fn touch_all(&mut self, mut meanwhile: impl FnMut(&mut Connection)) {
        let all: Vec<usize> = self.connections.iter().map(|(number, _)| number).collect();
        for number in all {
            meanwhile(&mut self.connections[number]);
            self.touch(number);
        }
    }

    fn find(&mut self, from: SocketAddr, datagram: &mut [u8]) -> Option<usize> {
        if datagram.first()? & LONG == 0 {
            let id = Id::try_from(datagram.get(1..=ID_LEN)?).ok()?;
            return self.routes.get(&id).copied();
        }
        let header = Header::from_slice(datagram, ID_LEN).ok()?;
        let known = match Id::try_from(&*header.dcid) {
            Ok(id) => self.routes.get(&id).copied(),
            Err(_) => None,
        };
        known
            .or_else(|| self.guesses.get(&*header.dcid).copied())
            .or_else(|| self.accept(from, &header))
    }

    fn accept(&mut self, from: SocketAddr, header: &Header<'_>) -> Option<usize> {
        if self.server.is_some() || header.ty != Type::Initial {
            return None;
        }
        let id = rand::random::<Id>();
        let library = quiche::accept_with_buf_factory(
            &ConnectionId::from_ref(&id),
            None,
            self.local,
            from,
            &mut self.config,
        )
        .ok()?;
        let guess: Box<[u8]> = header.dcid.to_vec().into();
        let mut connection = Connection::new(library, from, id, self.paced);
        connection.guess = Some(guess.clone());
        let number = self.insert(connection);
        self.guesses.insert(guess, number);
        Some(number)
    }

    fn insert(&mut self, connection: Connection) -> usize {
        let id = connection.id;
        let number = self.connections.insert(connection);
        self.routes.insert(id, number);
        number
    }

    fn remove(&mut self, number: usize) {
        let connection = self.connections.remove(number);
        self.routes.remove(&connection.id);
        if let Some(guess) = connection.guess {
            self.guesses.remove(&guess);
        }
    }

    fn touch(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        if !std::mem::replace(&mut connection.touched, true) {
            self.touched.push(number);
        }
    }
}
