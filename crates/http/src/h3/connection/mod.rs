//! The engine: HTTP/3 at one end of one QUIC connection (RFC 9114).
//!
//! The connection owns its parts and moves facts between them: `setup` opens the unidirectional
//! streams of this end, `peer_streams` reads those of the other end, `incoming` turns request streams into
//! messages, `messages` is the application's interface, `shutdown` handles GOAWAY. Bytes stay in
//! the transport's buffers until they are read.

mod cancellation;
mod compression;
mod control;
mod datagrams;
mod early;
mod incoming;
mod keep_alive;
mod messages;
mod outgoing;
mod peer_streams;
mod priorities;
mod requests;
mod sessions;
mod setup;
mod shutdown;

use std::collections::{BTreeMap, VecDeque};

use swiftwater_quic as quic;
use swiftwater_quic::StreamEvent;
use swiftwater_units::{Dir, Instant, Side, StreamId};

pub use self::messages::MessagePart;

use self::compression::Compression;
use self::outgoing::OwnStreams;
use self::peer_streams::PeerStreams;
use self::requests::Requests;
use self::sessions::Sessions;
use self::shutdown::Shutdown;
use super::budget::Budget;
use super::code::Code;
use super::config::Config;
use super::datagram::{DatagramKeys, EarlyDatagrams};
use super::error::Fault;
use super::event::Event;
use super::priority::Priority;
use super::settings::Settings;
use super::stats::Stats;

/// HTTP/3 at one end of one QUIC connection, sans-I/O.
///
/// # Contract
///
/// The driver passes every event of the QUIC connection to [`Connection::on_event`], in order, and
/// calls [`Connection::on_timeout`] when [`Connection::timeout`] is reached. After each of these and
/// after each call of the application it drains [`Connection::poll_event`], then drives the QUIC
/// connection. Events are edge-triggered: `Readable` and `Writable` follow a read or write that was
/// blocked.
///
/// A request takes memory until the peer's message was read to its end or stopped, and this end's
/// was acknowledged, reset or stopped.
#[derive(Debug)]
pub struct Connection {
    side: Side,
    config: Config,
    own: OwnStreams,
    peer: PeerStreams,
    requests: Requests,
    compression: Compression,
    shutdown: Shutdown,
    budgets: Budgets,
    /// PRIORITY_UPDATE frames received before their request.
    priorities: BTreeMap<StreamId, Priority>,
    early_datagrams: EarlyDatagrams,
    datagram_keys: DatagramKeys,
    sessions: Sessions,
    reports: Reports,
}

/// Rate limits of costly actions of the peer.
#[derive(Debug)]
struct Budgets {
    cancelled: Budget,
    unknown_streams: Budget,
}

/// Events not yet polled.
#[derive(Debug, Default)]
struct Reports {
    events: VecDeque<Event>,
    stats: Stats,
    ready: bool,
    /// The end of the QUIC connection was processed.
    closed: bool,
    /// Why this end closed the connection.
    fault: Option<Fault>,
    /// A request was refused by the stream limit, so its increase must be reported.
    wants_requests: bool,
}

impl Connection {
    /// The client's end of a connection.
    pub fn client(config: Config) -> Self {
        Self::new(Side::Client, config)
    }

    /// The server's end of a connection.
    pub fn server(config: Config) -> Self {
        Self::new(Side::Server, config)
    }

    fn new(side: Side, config: Config) -> Self {
        let limits = &config.limits;
        let budgets = Budgets {
            cancelled: Budget::new(
                limits.max_cancelled_requests,
                limits.cancelled_requests_per_second,
            ),
            unknown_streams: Budget::new(limits.max_unknown_streams, 1),
        };
        Self {
            side,
            own: OwnStreams::default(),
            peer: PeerStreams::default(),
            requests: Requests::default(),
            compression: Compression::new(&config),
            shutdown: Shutdown::default(),
            budgets,
            priorities: BTreeMap::new(),
            early_datagrams: EarlyDatagrams::default(),
            datagram_keys: DatagramKeys::default(),
            sessions: Sessions::default(),
            reports: Reports::default(),
            config,
        }
    }

    /// Processes an event of the QUIC connection.
    pub fn on_event(&mut self, now: Instant, quic: &mut quic::Connection, event: &quic::Event) {
        if self.reports.closed {
            return;
        }
        match event {
            quic::Event::EarlyDataReady => self.on_ready(now, quic),
            quic::Event::Connected => {
                self.on_ready(now, quic);
                self.on_connected(now, quic);
            }
            quic::Event::EarlyData(outcome) => self.on_early_data(*outcome),
            quic::Event::Stream(event) if self.reports.fault.is_none() => {
                self.on_stream_event(now, quic, *event);
                if quic.has_stream_events() {
                    // What they lead to is sent together, after the last of them.
                    return;
                }
            }
            quic::Event::DatagramReceived if self.reports.fault.is_none() => {
                self.on_datagrams(now, quic);
            }
            quic::Event::DatagramsUnblocked => self.report(Event::DatagramsUnblocked),
            quic::Event::DatagramFate { key, fate } => {
                if let Some((id, key)) = self.datagram_keys.remove(*key) {
                    let fate = *fate;
                    self.report(Event::DatagramFate { id, key, fate });
                }
            }
            quic::Event::Closed { reason } => {
                self.report(Event::Closed {
                    reason: reason.clone(),
                });
                self.reports.closed = true;
                self.requests.end(self.side);
            }
            _ => {}
        }
        self.wrap_up(now, quic);
    }

    fn on_stream_event(&mut self, now: Instant, quic: &mut quic::Connection, event: StreamEvent) {
        match event {
            StreamEvent::Opened { dir: Dir::Bi } => self.accept_requests(now, quic),
            StreamEvent::Opened { dir: Dir::Uni } => self.accept_peer_streams(now, quic),
            StreamEvent::Readable { id } if id.dir() == Dir::Uni => {
                self.read_peer_stream(now, quic, id);
            }
            StreamEvent::Readable { id } => self.on_readable(now, quic, id),
            StreamEvent::Writable { id } => self.on_writable(now, quic, id),
            StreamEvent::Finished { id } => self.on_finished(now, quic, id),
            StreamEvent::Stopped { id, code } => self.on_stopped(now, quic, id, Code(code)),
            StreamEvent::Available { dir: Dir::Uni } => self.open_own_streams(now, quic),
            StreamEvent::Available { dir: Dir::Bi } if self.reports.wants_requests => {
                self.reports.wants_requests = false;
                self.report(Event::RequestsAvailable);
            }
            _ => {}
        }
    }

    /// The next event, `None` if there is none.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.reports.events.pop_front()
    }

    /// When [`Connection::on_timeout`] must be called, if at all.
    pub fn timeout(&self) -> Option<Instant> {
        if self.reports.closed || self.reports.fault.is_some() {
            return None;
        }
        let heads = self.requests.next_deadline();
        let goaway = self.shutdown.deadline(self.requests.len() == 0);
        heads.into_iter().chain(goaway).min()
    }

    /// Performs what is due by `now`.
    pub fn on_timeout(&mut self, now: Instant, quic: &mut quic::Connection) {
        if self.reports.closed || self.reports.fault.is_some() {
            return;
        }
        self.refuse_slow_heads(now, quic);
        self.send_final_goaway(now, quic);
        self.wrap_up(now, quic);
    }

    /// Closes the connection with `code` and a reason phrase; requests end in their present state.
    pub fn close(&mut self, now: Instant, quic: &mut quic::Connection, code: Code, reason: &str) {
        quic.close(now, code.0, reason.as_bytes());
    }

    /// The peer's settings, once received.
    pub fn peer_settings(&self) -> Option<&Settings> {
        self.peer.settings.as_ref()
    }

    /// The protocol violation of the peer that closed the connection, if that is the cause.
    pub fn fault(&self) -> Option<Fault> {
        self.reports.fault
    }

    /// Counters.
    pub fn stats(&self) -> Stats {
        self.reports.stats
    }

    /// Requests in progress.
    pub fn open_requests(&self) -> usize {
        self.requests.len()
    }

    /// The role of this end.
    pub fn side(&self) -> Side {
        self.side
    }

    /// The end of the connection is the last event: readers of data received before get the error from
    /// their reads.
    fn report(&mut self, event: Event) {
        if !self.reports.closed {
            self.reports.events.push_back(event);
        }
    }

    /// After every input: sends instructions, and closes a connection whose shutdown is complete.
    fn wrap_up(&mut self, now: Instant, quic: &mut quic::Connection) {
        if self.reports.closed || self.reports.fault.is_some() {
            return;
        }
        self.send_instructions(now, quic);
        self.finish_shutdown(now, quic);
        self.keep_alive(quic);
    }

    /// The peer violated the protocol: closes the connection.
    fn fail(&mut self, now: Instant, quic: &mut quic::Connection, fault: Fault) {
        if self.reports.fault.is_none() {
            self.reports.fault = Some(fault);
            quic.close(now, fault.code.0, fault.reason.as_bytes());
        }
    }

    /// Acts on a fault that may be a connection error.
    fn check(&mut self, now: Instant, quic: &mut quic::Connection, result: Result<(), Fault>) {
        if let Err(fault) = result {
            self.fail(now, quic, fault);
        }
    }
}
