//! A client's connection, and the loop that drives it.

use std::collections::BTreeMap;
use std::error::Error;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use quiche::h3::{self, Event, Header};
use quiche::{Config, Connection, RecvInfo};
use serde_json::{Value, json};
use swiftwater_interop_peers_quiche::{Outgoing, fresh_cid, issue_cids, log_keys};
use swiftwater_interop_program::http::{Crc, NAME};

use crate::{field, http_over, value};

/// Time limit of a waiting loop.
const PATIENCE: Duration = Duration::from_secs(50);

/// A response being received.
#[derive(Default)]
pub(crate) struct Answer {
    pub(crate) head: Option<Vec<Header>>,
    trailers: Option<Vec<Header>>,
    pub(crate) bytes: usize,
    crc: Crc,
    pub(crate) over: bool,
}

impl Answer {
    /// The reported part of it.
    pub(crate) fn told(&self) -> Value {
        let head = self.head.as_deref().unwrap_or_default();
        let status = value(head, ":status").and_then(|text| text.parse::<u16>().ok());
        let trailers = self.trailers.as_deref().unwrap_or_default();
        json!({
            "status": status,
            "bytes": self.bytes,
            "crc": self.crc.value(),
            "trailer": value(trailers, "x-trailer"),
        })
    }
}

/// A connection with its requests.
pub(crate) struct Link {
    pub(crate) connection: Connection,
    http: Option<h3::Connection>,
    socket: UdpSocket,
    local: SocketAddr,
    poll: Poll,
    outgoing: Outgoing,
    pub(crate) answers: BTreeMap<u64, Answer>,
}

impl Link {
    /// Connects; with `session`, requests may follow at once.
    pub(crate) fn new(
        server: SocketAddr,
        config: &mut Config,
        session: Option<&[u8]>,
    ) -> Result<Self, Box<dyn Error>> {
        let mut socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0).into())?;
        let local = socket.local_addr()?;
        let poll = Poll::new()?;
        poll.registry()
            .register(&mut socket, Token(0), Interest::READABLE)?;
        let cid = fresh_cid().map_err(|_| "no randomness")?;
        let mut connection = quiche::connect(Some(NAME), &cid, local, server, config)?;
        log_keys(&mut connection)?;
        if let Some(session) = session {
            connection.set_session(session)?;
        }
        let mut link = Self {
            connection,
            http: None,
            socket,
            local,
            poll,
            outgoing: Outgoing::default(),
            answers: BTreeMap::new(),
        };
        link.flush()?;
        let is_early = session.is_some() && link.connection.is_in_early_data();
        if !is_early {
            link.until("a handshake", |link| link.connection.is_established())?;
        }
        link.http = Some(http_over(&mut link.connection)?);
        Ok(link)
    }

    pub(crate) fn flush(&mut self) -> Result<(), Box<dyn Error>> {
        let socket = &self.socket;
        self.outgoing
            .flush(&mut self.connection, |_| Some(socket))?;
        Ok(())
    }

    /// Turns until something is so.
    pub(crate) fn until(
        &mut self,
        what: &str,
        is_so: impl Fn(&Self) -> bool,
    ) -> Result<(), Box<dyn Error>> {
        let end = Instant::now() + PATIENCE;
        while !is_so(self) {
            if Instant::now() > end {
                return Err(format!("waited in vain for {what}").into());
            }
            self.turn(PATIENCE)?;
        }
        Ok(())
    }

    /// Goes on for a while, or until the connection is over.
    pub(crate) fn linger(&mut self, time: Duration) -> Result<(), Box<dyn Error>> {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            if self.is_over() {
                break;
            }
            self.turn(left)?;
        }
        Ok(())
    }

    pub(crate) fn is_over(&self) -> bool {
        self.connection.is_closed() || self.connection.is_draining()
    }

    /// Sends, waits, receives.
    fn turn(&mut self, limit: Duration) -> Result<(), Box<dyn Error>> {
        self.flush()?;
        let due = self.connection.timeout().unwrap_or(limit).min(limit);
        let mut events = Events::with_capacity(8);
        self.poll.poll(&mut events, Some(due))?;
        if self.connection.timeout().is_some_and(|left| left.is_zero()) {
            self.connection.on_timeout();
        }
        self.receive()?;
        if self.connection.is_established() {
            issue_cids(&mut self.connection);
        }
        self.events()?;
        self.flush()?;
        if self.connection.is_closed() {
            let why = (self.connection.peer_error(), self.connection.local_error());
            return Err(format!("connection ended: {why:?}").into());
        }
        Ok(())
    }

    fn receive(&mut self) -> Result<(), Box<dyn Error>> {
        let mut buffer = vec![0; 65_535];
        loop {
            match self.socket.recv_from(&mut buffer) {
                Ok((size, from)) => {
                    let to = self.local;
                    let info = RecvInfo { from, to };
                    if let Err(error) = self.connection.recv(&mut buffer[..size], info) {
                        eprintln!("receiving: {error}");
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn events(&mut self) -> Result<(), Box<dyn Error>> {
        let Some(http) = &mut self.http else {
            return Ok(());
        };
        let mut block = vec![0; 65_535];
        loop {
            let (stream, event) = match http.poll(&mut self.connection) {
                Ok(happened) => happened,
                Err(h3::Error::Done) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let answer = self.answers.get_mut(&stream);
            match event {
                Event::Headers { list, .. } => {
                    if let Some(answer) = answer {
                        let place = match answer.head {
                            None => &mut answer.head,
                            Some(_) => &mut answer.trailers,
                        };
                        *place = Some(list);
                    }
                }
                Event::Data => {
                    let mut discarded = Answer::default();
                    let answer = answer.unwrap_or(&mut discarded);
                    while let Ok(size) = http.recv_body(&mut self.connection, stream, &mut block) {
                        answer.bytes += size;
                        answer.crc.feed(&block[..size]);
                    }
                }
                Event::Finished => {
                    if let Some(answer) = answer {
                        answer.over = true;
                    }
                }
                Event::Reset(code) if answer.is_some() => {
                    return Err(format!("stream {stream} was reset with {code:#x}").into());
                }
                Event::Reset(_) | Event::PriorityUpdate | Event::GoAway => {}
            }
        }
    }

    /// Sends a request once there is room; `None` if the server is going away.
    pub(crate) fn try_request(
        &mut self,
        method: &str,
        path: &str,
        more: &[Header],
        end: bool,
    ) -> Result<Option<u64>, Box<dyn Error>> {
        let mut list = vec![
            field(":method", method),
            field(":scheme", "https"),
            field(":authority", NAME),
            field(":path", path),
        ];
        list.extend_from_slice(more);
        let end_of_patience = Instant::now() + PATIENCE;
        loop {
            let http = self.http.as_mut().ok_or("no HTTP/3 yet")?;
            match http.send_request(&mut self.connection, &list, end) {
                Ok(stream) => {
                    self.answers.insert(stream, Answer::default());
                    self.flush()?;
                    return Ok(Some(stream));
                }
                Err(
                    h3::Error::StreamBlocked
                    | h3::Error::TransportError(quiche::Error::StreamLimit),
                ) if Instant::now() < end_of_patience => self.turn(PATIENCE)?,
                // What quiche says after GOAWAY.
                Err(h3::Error::FrameUnexpected) => return Ok(None),
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub(crate) fn request(
        &mut self,
        method: &str,
        path: &str,
        more: &[Header],
        end: bool,
    ) -> Result<u64, Box<dyn Error>> {
        let stream = self.try_request(method, path, more, end)?;
        stream.ok_or_else(|| "the server is going away".into())
    }

    /// Sends content, and the end of the request if it is the last.
    pub(crate) fn send(
        &mut self,
        stream: u64,
        mut data: &[u8],
        last: bool,
    ) -> Result<(), Box<dyn Error>> {
        loop {
            let http = self.http.as_mut().ok_or("no HTTP/3 yet")?;
            match http.send_body(&mut self.connection, stream, data, last) {
                Ok(size) => data = &data[size..],
                Err(h3::Error::Done) => self.turn(PATIENCE)?,
                Err(error) => return Err(error.into()),
            }
            if data.is_empty() {
                return self.flush();
            }
        }
    }

    pub(crate) fn send_trailers(
        &mut self,
        stream: u64,
        trailers: &[Header],
    ) -> Result<(), Box<dyn Error>> {
        loop {
            let http = self.http.as_mut().ok_or("no HTTP/3 yet")?;
            let sent =
                http.send_additional_headers(&mut self.connection, stream, trailers, true, true);
            match sent {
                Ok(()) => return self.flush(),
                Err(h3::Error::StreamBlocked) => self.turn(PATIENCE)?,
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Reads until so much was received.
    pub(crate) fn read(&mut self, stream: u64, size: usize) -> Result<(), Box<dyn Error>> {
        let has_come = |link: &Self| link.answers.get(&stream).is_some_and(|it| it.bytes >= size);
        self.until("content", has_come)
    }

    /// Reads to the end, and returns the response.
    pub(crate) fn finish(&mut self, stream: u64) -> Result<Answer, Box<dyn Error>> {
        let is_over = |link: &Self| link.answers.get(&stream).is_some_and(|it| it.over);
        self.until("a response", is_over)?;
        self.answers
            .remove(&stream)
            .ok_or_else(|| "no such response".into())
    }
}
