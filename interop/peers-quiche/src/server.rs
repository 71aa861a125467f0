//! A listening socket and its connections, for any application protocol.

use std::collections::HashMap;
use std::error::Error;
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use quiche::{Config, Connection, ConnectionId, Header, MAX_CONN_ID_LEN, RecvInfo, Type};
use ring::hmac;
use ring::rand::SystemRandom;

use crate::{Outgoing, fresh_cid, issue_cids, log_keys};

/// What a server does with one connection.
pub trait Session {
    /// Processes received data, and writes data to the connection; called repeatedly.
    fn drive(&mut self, connection: &mut Connection);
}

/// A client's connection.
struct Client<S> {
    connection: Connection,
    session: S,
    announced: bool,
}

struct Server<M, S> {
    retry: bool,
    config: Config,
    socket: UdpSocket,
    local: SocketAddr,
    token_key: hmac::Key,
    make: M,
    clients: Vec<Client<S>>,
    /// The client of each connection ID.
    routes: HashMap<ConnectionId<'static>, usize>,
    outgoing: Outgoing,
}

/// Serves at `listen` until the program is ended, each connection with a session that `make` makes.
pub fn serve<S: Session>(
    listen: SocketAddr,
    retry: bool,
    config: Config,
    make: impl Fn() -> S,
) -> Result<(), Box<dyn Error>> {
    let mut socket = UdpSocket::bind(listen)?;
    let mut poll = Poll::new()?;
    poll.registry()
        .register(&mut socket, Token(0), Interest::READABLE)?;
    let local = socket.local_addr()?;
    println!("listening on {local}");
    let token_key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new())
        .map_err(|_| "no randomness")?;
    let mut server = Server {
        retry,
        config,
        socket,
        local,
        token_key,
        make,
        clients: Vec::new(),
        routes: HashMap::new(),
        outgoing: Outgoing::default(),
    };
    let mut events = Events::with_capacity(16);
    loop {
        let timeouts = server
            .clients
            .iter()
            .filter_map(|it| it.connection.timeout());
        poll.poll(&mut events, timeouts.min())?;
        server.receive()?;
        server.drive()?;
    }
}

impl<M: Fn() -> S, S: Session> Server<M, S> {
    /// Takes everything from the socket.
    fn receive(&mut self) -> Result<(), Box<dyn Error>> {
        let mut buffer = vec![0; 65_535];
        loop {
            match self.socket.recv_from(&mut buffer) {
                Ok((size, from)) => self.datagram(&mut buffer[..size], from)?,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                // A client's port was closed.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn datagram(&mut self, datagram: &mut [u8], from: SocketAddr) -> Result<(), Box<dyn Error>> {
        let Ok(header) = Header::from_slice(datagram, MAX_CONN_ID_LEN) else {
            return Ok(());
        };
        let known = self.routes.get(&header.dcid).copied();
        let index = match known {
            Some(index) => index,
            None => match self.admit(&header, datagram.len(), from)? {
                Some(index) => index,
                None => return Ok(()),
            },
        };
        let to = self.local;
        let client = &mut self.clients[index];
        if let Err(error) = client.connection.recv(datagram, RecvInfo { from, to }) {
            println!("receiving: {error}");
        }
        if known.is_none() && client.connection.stats().recv == 0 {
            // The packet was not authentic. quiche has taken the client's connection ID from it
            // nevertheless, and would never accept the real one.
            self.clients.pop();
            self.routes.retain(|_, other| *other != index);
        }
        Ok(())
    }

    /// The entry of a new client, if it is one and is accepted.
    fn admit(
        &mut self,
        header: &Header,
        size: usize,
        from: SocketAddr,
    ) -> Result<Option<usize>, Box<dyn Error>> {
        if size < quiche::MIN_CLIENT_INITIAL_LEN || header.version == 0 {
            return Ok(None);
        }
        let mut out = [0; 1500];
        if header.ty != Type::Short && !quiche::version_is_supported(header.version) {
            let size = quiche::negotiate_version(&header.scid, &header.dcid, &mut out)?;
            let _ = self.socket.send_to(&out[..size], from);
            return Ok(None);
        }
        if header.ty != Type::Initial {
            return Ok(None);
        }
        let no_cid = |_| "no randomness";
        let mut own = fresh_cid().map_err(no_cid)?;
        let mut original = None;
        if self.retry {
            let token = header.token.clone().unwrap_or_default();
            if token.is_empty() {
                let token = self.mint(&header.dcid, from);
                let version = header.version;
                let size =
                    quiche::retry(&header.scid, &header.dcid, &own, &token, version, &mut out)?;
                let _ = self.socket.send_to(&out[..size], from);
                return Ok(None);
            }
            let Some(first) = self.check(&token, from) else {
                return Ok(None);
            };
            original = Some(first);
            // The one from the Retry packet.
            own = header.dcid.clone().into_owned();
        }
        let mut connection =
            quiche::accept(&own, original.as_ref(), self.local, from, &mut self.config)?;
        log_keys(&mut connection)?;
        let index = self.clients.len();
        self.routes.insert(own, index);
        self.routes.insert(header.dcid.clone().into_owned(), index);
        self.clients.push(Client {
            connection,
            session: (self.make)(),
            announced: false,
        });
        Ok(Some(index))
    }

    /// A token that proves `from`: a tag over address and connection ID, then the connection ID.
    fn mint(&self, original: &[u8], from: SocketAddr) -> Vec<u8> {
        let mut token = self.tag(original, from.ip()).as_ref().to_vec();
        token.extend_from_slice(original);
        token
    }

    fn check(&self, token: &[u8], from: SocketAddr) -> Option<ConnectionId<'static>> {
        let (tag, original) = token.split_at_checked(32)?;
        let right = self.tag(original, from.ip());
        (right.as_ref() == tag).then(|| ConnectionId::from_vec(original.to_vec()))
    }

    fn tag(&self, original: &[u8], ip: IpAddr) -> hmac::Tag {
        let mut context = hmac::Context::with_key(&self.token_key);
        context.update(ip.to_string().as_bytes());
        context.update(original);
        context.sign()
    }

    /// Lets every connection process its due timers.
    fn drive(&mut self) -> Result<(), Box<dyn Error>> {
        for (index, client) in self.clients.iter_mut().enumerate() {
            if client.connection.is_closed() {
                continue;
            }
            if client
                .connection
                .timeout()
                .is_some_and(|left| left.is_zero())
            {
                client.connection.on_timeout();
            }
            client.session.drive(&mut client.connection);
            if client.connection.is_established() {
                for cid in issue_cids(&mut client.connection) {
                    self.routes.insert(cid, index);
                }
            }
            let socket = &self.socket;
            self.outgoing
                .flush(&mut client.connection, |_| Some(socket))?;
            client.announce();
        }
        Ok(())
    }
}

impl<S> Client<S> {
    /// Tells how the connection ended, once.
    fn announce(&mut self) {
        let over = self.connection.is_draining() || self.connection.is_closed();
        if !over || self.announced {
            return;
        }
        self.announced = true;
        match self.connection.peer_error() {
            Some(error) => println!("connection ended: {:#x}", error.error_code),
            None => println!("connection failed: {:?}", self.connection.local_error()),
        }
    }
}
