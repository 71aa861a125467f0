//! A downloader on quiche over `hq-interop`. Prints one JSON object about its connections.

use std::collections::HashMap;
use std::error::Error;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use clap::Parser;
use mio::net::UdpSocket;
use mio::{Events, Interest, Poll, Token};
use quiche::{Config, Connection, RecvInfo};
use swiftwater_interop_peers_quiche::{Outgoing, config, fresh_cid, issue_cids, log_keys};
use swiftwater_interop_program::arguments::{
    ClientArguments, MIGRATE_AFTER, Round, Suite, TICKET_WAIT, local_address, refuse,
    second_address,
};
use swiftwater_interop_program::hq::Url;
use swiftwater_interop_program::report::Report;

/// What BoringSSL calls `ssl_early_data_accepted`.
const EARLY_ACCEPTED: u32 = 2;

#[derive(Parser)]
struct Command {
    #[command(flatten)]
    arguments: ClientArguments,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments = Command::parse().arguments;
    let lacking = [
        ("starts no key update", arguments.key_update),
        (
            "leaves no choice of version",
            arguments.quic_version.is_some(),
        ),
        (
            "leaves no choice of cipher suite",
            arguments.suite != Suite::Any,
        ),
        ("has no version 2", arguments.v2),
    ];
    refuse("quiche", &lacking);
    let mut config = config()?;
    config.load_verify_locations_from_file(&arguments.ca.to_string_lossy())?;
    config.verify_peer(true);
    if arguments.zero_rtt {
        config.enable_early_data();
    }
    let start = Instant::now();
    let mut report = Report::default();
    let mut session = None;
    for round in arguments.rounds() {
        let mut visit = Visit::new(&arguments, &round, &mut config, session.as_deref())?;
        visit.run(&mut report, start)?;
        session = visit.connection.session().map(<[u8]>::to_vec);
    }
    println!("{report}");
    Ok(())
}

/// One connection and its downloads.
struct Visit<'a> {
    arguments: &'a ClientArguments,
    round: &'a Round,
    server: SocketAddr,
    connection: Connection,
    /// The second one is for migration.
    sockets: Vec<(UdpSocket, SocketAddr)>,
    poll: Poll,
    outgoing: Outgoing,
    waiting: Vec<Url>,
    /// The request that was only sent in part: its stream and the rest.
    rest: Option<(u64, String)>,
    /// What the streams have brought.
    running: HashMap<u64, (Url, Vec<u8>)>,
    received: u64,
    /// Still to be done.
    migrate: bool,
    begun: Instant,
}

impl<'a> Visit<'a> {
    fn new(
        arguments: &'a ClientArguments,
        round: &'a Round,
        config: &mut Config,
        session: Option<&[u8]>,
    ) -> Result<Self, Box<dyn Error>> {
        let server = arguments.urls[0].address()?;
        // It compares with names only, never with the IP addresses of a certificate.
        let host = match arguments.urls[0].host.as_str() {
            address if address.parse::<IpAddr>().is_ok() => "localhost",
            name => name,
        };
        let mut sockets = vec![bind(local_toward(server))?];
        if arguments.migrate {
            sockets.push(bind(second_address(server))?);
        }
        let poll = Poll::new()?;
        for (index, (socket, _)) in sockets.iter_mut().enumerate() {
            poll.registry()
                .register(socket, Token(index), Interest::READABLE)?;
        }
        let cid = fresh_cid().map_err(|_| "no randomness")?;
        let mut connection = quiche::connect(Some(host), &cid, sockets[0].1, server, config)?;
        log_keys(&mut connection)?;
        if arguments.resume || arguments.zero_rtt {
            if let Some(session) = session {
                connection.set_session(session)?;
            } else if round.early {
                return Err("there is no session".into());
            }
        }
        Ok(Self {
            arguments,
            round,
            server,
            connection,
            sockets,
            poll,
            outgoing: Outgoing::default(),
            waiting: round.urls.iter().rev().cloned().collect(),
            rest: None,
            running: HashMap::new(),
            received: 0,
            migrate: arguments.migrate,
            begun: Instant::now(),
        })
    }

    /// Brings the files and closes.
    fn run(&mut self, report: &mut Report, start: Instant) -> Result<(), Box<dyn Error>> {
        let mut established = false;
        let mut early_sent = false;
        self.flush()?;
        if self.round.early {
            // Requests follow the ClientHello at once.
            self.request()?;
            early_sent = !self.running.is_empty();
        }
        loop {
            self.flush()?;
            self.wait(self.connection.timeout())?;
            self.receive()?;
            if self.connection.is_closed() {
                let why = (self.connection.peer_error(), self.connection.local_error());
                return Err(format!("connection ended: {why:?}").into());
            }
            if self.connection.is_established() {
                if !established {
                    established = true;
                    report.handshake = self.begun.elapsed();
                    if early_sent {
                        report.early_accepted =
                            Some(self.connection.early_data_reason() == EARLY_ACCEPTED);
                    }
                }
                issue_cids(&mut self.connection);
                self.request()?;
            }
            self.read(report)?;
            self.migrate()?;
            if self.waiting.is_empty() && self.running.is_empty() {
                break;
            }
        }
        report.elapsed = start.elapsed();
        if self.arguments.resume || self.arguments.zero_rtt {
            self.linger(TICKET_WAIT)?;
        }
        let _ = self.connection.close(true, 0, b"");
        self.flush()
    }

    /// Continues for a while, for late packets.
    fn linger(&mut self, time: Duration) -> Result<(), Box<dyn Error>> {
        let end = Instant::now() + time;
        while let Some(left) = end.checked_duration_since(Instant::now()) {
            let due = self.connection.timeout().unwrap_or(left);
            self.wait(Some(due.min(left)))?;
            self.receive()?;
            self.flush()?;
        }
        Ok(())
    }

    fn wait(&mut self, time: Option<Duration>) -> Result<(), Box<dyn Error>> {
        let mut events = Events::with_capacity(8);
        self.poll.poll(&mut events, time)?;
        if self.connection.timeout().is_some_and(|left| left.is_zero()) {
            self.connection.on_timeout();
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Box<dyn Error>> {
        let sockets = &self.sockets;
        let find = |from| sockets.iter().find(|(_, local)| *local == from);
        self.outgoing
            .flush(&mut self.connection, |from| find(from).map(|(it, _)| it))?;
        Ok(())
    }

    fn receive(&mut self) -> Result<(), Box<dyn Error>> {
        let mut buffer = vec![0; 65_535];
        for (socket, local) in &self.sockets {
            loop {
                match socket.recv_from(&mut buffer) {
                    Ok((size, from)) => {
                        let info = RecvInfo { from, to: *local };
                        if let Err(error) = self.connection.recv(&mut buffer[..size], info) {
                            eprintln!("receiving: {error}");
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                    Err(error) => return Err(error.into()),
                }
            }
        }
        Ok(())
    }

    /// Sends as many requests as the server allows streams, and the windows bytes.
    fn request(&mut self) -> Result<(), Box<dyn Error>> {
        loop {
            let (stream, request) = match (self.rest.take(), self.waiting.last()) {
                (Some(rest), _) => rest,
                (None, Some(url)) => {
                    let done = self.round.urls.len() - self.waiting.len();
                    (4 * u64::try_from(done)?, format!("GET {}\r\n", url.path))
                }
                (None, None) => return Ok(()),
            };
            let sent = self
                .connection
                .stream_send(stream, request.as_bytes(), true);
            let size = match sent {
                Ok(size) => size,
                Err(quiche::Error::StreamLimit | quiche::Error::Done) => 0,
                Err(error) => return Err(error.into()),
            };
            let begun = self.running.contains_key(&stream);
            if !begun && sent.is_ok() {
                if let Some(url) = self.waiting.pop() {
                    self.running.insert(stream, (url, Vec::new()));
                }
            }
            if size < request.len() {
                if begun || sent.is_ok() {
                    self.rest = Some((stream, request[size..].to_owned()));
                }
                return Ok(());
            }
        }
    }

    /// Reads received data of the streams, and stores complete files.
    fn read(&mut self, report: &mut Report) -> Result<(), Box<dyn Error>> {
        let mut buffer = vec![0; 65_535];
        for stream in self.connection.readable() {
            loop {
                let (size, end) = match self.connection.stream_recv(stream, &mut buffer) {
                    Ok(got) => got,
                    Err(quiche::Error::Done) => break,
                    Err(error) => return Err(format!("stream {stream}: {error}").into()),
                };
                let Some((_, content)) = self.running.get_mut(&stream) else {
                    break;
                };
                content.extend_from_slice(&buffer[..size]);
                self.received += u64::try_from(size)?;
                if end {
                    if let Some((url, content)) = self.running.remove(&stream) {
                        std::fs::write(self.arguments.out.join(url.file_name()), &content)?;
                        report.files += 1;
                        report.bytes += u64::try_from(content.len())?;
                    }
                    break;
                }
            }
        }
        Ok(())
    }

    /// Moves to the second address when it is time.
    fn migrate(&mut self) -> Result<(), Box<dyn Error>> {
        if self.migrate && self.received >= MIGRATE_AFTER && self.connection.available_dcids() > 0 {
            self.migrate = false;
            self.connection.migrate(self.sockets[1].1, self.server)?;
        }
        Ok(())
    }
}

/// A distinct local address: quiche needs the start of a path.
fn local_toward(server: SocketAddr) -> SocketAddr {
    match server {
        SocketAddr::V4(address) if address.ip().is_loopback() => (Ipv4Addr::LOCALHOST, 0).into(),
        SocketAddr::V6(address) if address.ip().is_loopback() => (*address.ip(), 0).into(),
        _ => local_address(server),
    }
}

fn bind(address: SocketAddr) -> Result<(UdpSocket, SocketAddr), Box<dyn Error>> {
    let socket = UdpSocket::bind(address)?;
    let local = socket.local_addr()?;
    Ok((socket, local))
}
