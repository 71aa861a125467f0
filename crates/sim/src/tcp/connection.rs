//! A TCP connection: joins handshake, sender and receiver, and reads and writes segments.
//!
//! Takes time as an argument and does no I/O: datagrams go in through [`Connection::on_datagram`] and
//! come out of [`Connection::poll_transmit`], until that returns false; then [`Connection::next_timer`]
//! is when [`Connection::on_timer`] has to be called.

use std::collections::VecDeque;
use std::ops::Range;
use std::time::Duration;

use swiftwater_units::Instant;

use super::byte_queue::ByteQueue;
use super::config::Config;
use super::event::{ConnectionError, Event};
use super::handshake::{Handshake, SynTimeout};
use super::header::Expected;
use super::receiver::{Receiver, ReceiverStats};
use super::segment::{Acknowledgement, Segment};
use super::sender::Sender;
use super::ticks::Ticks;

/// How long repetitions of FIN are answered (`TCP_TIMEWAIT_LEN`).
const LINGER: Duration = Duration::from_secs(60);

#[derive(Clone, Debug)]
enum State {
    /// SYN or SYN-ACK is sent.
    Opening(Handshake),
    Established,
    /// Ended or failed.
    Over,
}

/// One end of a connection.
#[derive(Clone, Debug)]
pub struct Connection {
    config: Config,
    is_client: bool,
    state: State,
    sender: Option<Box<Sender>>,
    receiver: Receiver,
    /// Segments received with data.
    data_segments: u64,
    /// Round trip as the receiver knows it: from an acknowledgement to the data that return its
    /// timestamp, smoothed.
    peer_rtt: Option<Duration>,
    last_echo: u32,
    outgoing: ByteQueue,
    incoming: ByteQueue,
    /// The application will write no more.
    finished: bool,
    /// Offset of the peer's FIN.
    peer_end: Option<u64>,
    has_told_end: bool,
    peer_window: u64,
    /// Timestamp to return, and the end of what was acknowledged last (RFC 7323, section 4.3).
    recent: u32,
    last_acked: u64,
    owes_ack: bool,
    /// Acknowledgements to send as they are: one for each segment that called for it at once.
    acks: VecDeque<Acknowledgement>,
    aborts: bool,
    wants_room: bool,
    /// Both streams ended; repetitions of the peer's FIN are answered until then.
    linger_until: Option<Instant>,
    events: VecDeque<Event>,
}

impl Connection {
    /// A client's connection, whose SYN is to be sent now.
    pub fn connect(now: Instant, config: &Config) -> Self {
        Self::new(config, true, Handshake::client(now, config))
    }

    /// A server's connection, for a datagram with a SYN; `None` if it is something else.
    pub fn accept(now: Instant, config: &Config, datagram: &[u8]) -> Option<Self> {
        let (segment, _) = Segment::decode(datagram, Expected::default())?;
        if !segment.syn || segment.ack.is_some() || segment.reset {
            return None;
        }
        let mut connection = Self::new(config, false, Handshake::server(now, config));
        connection.recent = segment.timestamp;
        Some(connection)
    }

    /// Whether a datagram is an intact segment that is answered with a reset if there is no connection.
    pub fn calls_for_reset(datagram: &[u8]) -> bool {
        let segment = Segment::decode(datagram, Expected::default());
        segment.is_some_and(|(segment, _)| !segment.reset)
    }

    fn new(config: &Config, is_client: bool, handshake: Handshake) -> Self {
        Self {
            config: config.clone(),
            is_client,
            state: State::Opening(handshake),
            sender: None,
            receiver: Receiver::new(config.receive_window)
                .growing_to(config.max_receive_window)
                .with_delay(config.delayed_ack, Ticks::new(config.tick)),
            data_segments: 0,
            peer_rtt: None,
            last_echo: 0,
            outgoing: ByteQueue::new(),
            incoming: ByteQueue::new(),
            finished: false,
            peer_end: None,
            has_told_end: false,
            peer_window: 0,
            recent: 0,
            last_acked: 0,
            owes_ack: false,
            acks: VecDeque::new(),
            aborts: false,
            wants_room: false,
            linger_until: None,
            events: VecDeque::new(),
        }
    }

    /// What happened since the last call.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Whether the handshake is complete and the connection has not ended.
    pub fn is_established(&self) -> bool {
        matches!(self.state, State::Established)
    }

    /// Whether the connection ended or failed.
    pub fn is_over(&self) -> bool {
        matches!(self.state, State::Over) && !self.aborts
    }

    /// The sending half, once the handshake is complete.
    pub fn sender(&self) -> Option<&Sender> {
        self.sender.as_deref()
    }

    /// What was received.
    pub fn received(&self) -> ReceiverStats {
        ReceiverStats {
            bytes: self.receiver.next(),
            data_segments: self.data_segments,
            out_of_order: self.receiver.out_of_order(),
        }
    }

    /// The smoothed round trip of what this end sent, the handshake included (`tcpi_rtt`); absent before the first
    /// sample.
    pub fn smoothed_rtt(&self) -> Option<Duration> {
        self.sender.as_ref()?.timeout().smoothed()
    }

    /// Bytes that may be written: as Linux sizes the send buffer, a window in flight and one behind it.
    pub fn writable(&self) -> u64 {
        let Some(sender) = self.sender.as_ref().filter(|_| self.is_established()) else {
            return 0;
        };
        let limit = (sender.window().get() * super::MSS).max(16 * 1024);
        limit.saturating_sub(sender.unsent())
    }

    /// Appends bytes to the stream, in full: [`Connection::writable`] is what should be written at once.
    /// After [`Connection::finish`] nothing is written.
    pub fn write(&mut self, bytes: &[u8]) {
        if self.finished {
            return;
        }
        self.outgoing.push(bytes);
        if let Some(sender) = &mut self.sender {
            sender.write(bytes.len() as u64);
            sender.set_more_follows(false);
        }
    }

    /// Asks for [`Event::Writable`] when there is room.
    pub fn want_room(&mut self) {
        self.wants_room = true;
        if let Some(sender) = &mut self.sender {
            sender.set_more_follows(true);
        }
    }

    /// Ends the own stream.
    pub fn finish(&mut self) {
        self.finished = true;
        if let Some(sender) = &mut self.sender {
            sender.finish();
        }
    }

    /// Aborts the connection: the peer gets a reset.
    pub fn abort(&mut self) {
        self.aborts = !matches!(self.state, State::Over);
        self.state = State::Over;
    }

    /// Appends the bytes that arrived in order, at most `max`, to `out`; returns their number.
    pub fn read(&mut self, now: Instant, max: usize, out: &mut Vec<u8>) -> usize {
        let mut range = self.receiver.read_up_to(now, max as u64);
        if let Some(end) = self.peer_end {
            range.end = range.end.min(end);
        }
        if let Some(rtt) = self.peer_rtt {
            self.receiver.adapt(now, rtt);
        }
        self.incoming.copy(range.clone(), out);
        self.incoming.advance(range.end);
        (range.end.saturating_sub(range.start)) as usize
    }

    /// When [`Connection::on_timer`] has to be called.
    pub fn next_timer(&self) -> Option<Instant> {
        match &self.state {
            State::Opening(handshake) => Some(handshake.next_timer()),
            State::Established => {
                let sender = self.sender.as_ref().and_then(|sender| sender.next_timer());
                let timers = [sender, self.receiver.next_timer(), self.linger_until];
                timers.into_iter().flatten().min()
            }
            State::Over => None,
        }
    }

    /// A timer may have expired.
    pub fn on_timer(&mut self, now: Instant) {
        match &mut self.state {
            State::Opening(handshake) => {
                if handshake.next_timer() <= now && handshake.on_timer(now) == SynTimeout::GiveUp {
                    self.fail(ConnectionError::NoAnswer);
                }
            }
            State::Established => {
                if self.linger_until.is_some_and(|at| at <= now) {
                    self.state = State::Over;
                } else if let Some(sender) = &mut self.sender {
                    sender.on_timer(now);
                    if sender.timeouts_in_row() > self.config.retries {
                        self.fail(ConnectionError::TimedOut);
                    }
                }
            }
            State::Over => {}
        }
    }

    fn fail(&mut self, error: ConnectionError) {
        self.state = State::Over;
        self.events.push_back(Event::Failed(error));
    }

    /// A datagram with a segment arrived. A damaged one is ignored.
    pub fn on_datagram(&mut self, now: Instant, datagram: &[u8]) {
        let expected = Expected {
            incoming: self.receiver.next(),
            outgoing: self.sender.as_ref().map_or(0, |sender| sender.acked()),
        };
        let Some((segment, header)) = Segment::decode(datagram, expected) else {
            return;
        };
        if matches!(self.state, State::Over) {
            return;
        }
        if segment.reset {
            self.fail(ConnectionError::Reset);
            return;
        }
        self.on_segment(now, &segment, &datagram[header..]);
    }

    fn on_segment(&mut self, now: Instant, segment: &Segment, payload: &[u8]) {
        if segment.span().start <= self.last_acked {
            self.recent = segment.timestamp;
        }
        let echo = from_timestamp(segment.echo);
        if let State::Opening(handshake) = &mut self.state {
            let answers = segment.ack.is_some() && segment.syn == self.is_client;
            if !answers {
                if segment.syn && !self.is_client {
                    handshake.repeat(now);
                }
                return;
            }
            let rtt = handshake.rtt(now, echo);
            self.establish(now, rtt, segment);
        } else if segment.syn {
            // The peer's acknowledgement of the handshake was lost.
            self.owes_ack = true;
            return;
        }
        if let Some(ack) = &segment.ack {
            self.on_ack(now, ack, echo, !segment.span().is_empty());
        }
        if payload.len() as u64 >= super::MSS
            && segment.echo != self.last_echo
            && let Some(echo) = echo
        {
            // Of the packets that return one timestamp, only the first tells the round trip.
            self.last_echo = segment.echo;
            let sample = now.saturating_since(echo);
            let rtt = self.peer_rtt.unwrap_or(sample);
            self.peer_rtt = Some(rtt * 7 / 8 + sample / 8);
        }
        self.on_payload(now, segment, payload);
        self.close_if_done(now);
    }

    fn establish(&mut self, now: Instant, rtt: Option<Duration>, segment: &Segment) {
        self.peer_window = segment.ack.as_ref().map_or(0, |ack| ack.window);
        let mut config = self.config.clone();
        if let State::Opening(handshake) = &self.state
            && handshake.is_congested()
        {
            // RFC 6298, section 5.7.
            config.initial_window = 1;
        }
        let mut sender = Box::new(Sender::new(now, &config, rtt, self.peer_window));
        sender.write(self.outgoing.end());
        if self.finished {
            sender.finish();
        }
        self.sender = Some(sender);
        self.state = State::Established;
        self.owes_ack = self.is_client;
        self.events.push_back(Event::Connected);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        ack: &Acknowledgement,
        echo: Option<Instant>,
        has_payload: bool,
    ) {
        let Some(sender) = &mut self.sender else {
            return;
        };
        sender.on_ack(now, ack, echo, has_payload);
        self.outgoing.advance(sender.acked());
        if self.wants_room && self.writable() > 0 {
            self.wants_room = false;
            self.events.push_back(Event::Writable);
        }
    }

    fn on_payload(&mut self, now: Instant, segment: &Segment, payload: &[u8]) {
        self.data_segments += u64::from(!payload.is_empty());
        let span = segment.span();
        if span.is_empty() {
            return;
        }
        if segment.fin {
            self.peer_end.get_or_insert(segment.payload.end);
        }
        if let Some(sender) = &self.sender {
            self.receiver.after_pause(now, sender.timeout().timeout());
        }
        let before = self.receiver.next();
        let kept = span.start.max(before)..segment.payload.end.min(self.receiver.end());
        self.receiver.on_payload(now, span);
        let at = (kept.start - segment.payload.start) as usize;
        let to = kept.end.saturating_sub(segment.payload.start) as usize;
        if let Some(bytes) = payload.get(at..to) {
            self.incoming.insert(kept.start, bytes);
        }
        let next = self.receiver.next();
        if next > before {
            let end = self.peer_end.unwrap_or(u64::MAX);
            if before < end {
                self.events.push_back(Event::Readable);
            }
            if next > end && !self.has_told_end {
                self.has_told_end = true;
                self.events.push_back(Event::PeerFinished);
            }
            if segment.push {
                self.receiver.on_pushed(now);
            }
        }
        self.acks.extend(self.receiver.poll_ack(now));
    }

    fn close_if_done(&mut self, now: Instant) {
        let sent_all = self.sender.as_ref().is_some_and(|sender| sender.is_done());
        if sent_all && self.has_told_end && self.linger_until.is_none() {
            self.linger_until = Some(now + LINGER);
            self.events.push_back(Event::Closed);
        }
    }

    /// Appends the next datagram to `out`; false if there is none now.
    pub fn poll_transmit(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        match &mut self.state {
            State::Opening(handshake) => {
                if !handshake.take_due() {
                    return false;
                }
                let ack = (!self.is_client).then(|| self.receiver.acknowledge());
                let segment = Segment {
                    syn: true,
                    ack,
                    timestamp: to_timestamp(now),
                    echo: self.recent,
                    ..Segment::default()
                };
                segment.encode(&[], out);
                true
            }
            State::Established => self.transmit_established(now, out),
            State::Over => {
                if !std::mem::take(&mut self.aborts) {
                    return false;
                }
                reset_segment(now).encode(&[], out);
                true
            }
        }
    }

    fn transmit_established(&mut self, now: Instant, out: &mut Vec<u8>) -> bool {
        let Some(sender) = &mut self.sender else {
            return false;
        };
        // Acknowledgements that are due leave before data, as from the kernel's soft interrupt.
        if let Some(ack) = self.acks.pop_front() {
            let next = sender.sent();
            self.send(now, next..next, (false, false), ack, out);
            return true;
        }
        if self.owes_ack || self.receiver.next_timer().is_some_and(|at| at <= now) {
            let next = sender.sent();
            let ack = self.take_ack();
            self.send(now, next..next, (false, false), ack, out);
            return true;
        }
        if let Some(range) = sender.poll(now) {
            let written = sender.written();
            let fin = range.end > written;
            let push = range.end >= written;
            self.receiver.on_data_sent(now);
            let range = range.start..range.end.min(written);
            let ack = self.take_ack();
            self.send(now, range, (fin, push), ack, out);
            return true;
        }
        if sender.take_window_probe() {
            let at = sender.acked().saturating_sub(1);
            let ack = self.take_ack();
            self.send(now, at..at + 1, (false, false), ack, out);
            return true;
        }
        if self.wants_room && self.writable() > 0 {
            self.wants_room = false;
            self.events.push_back(Event::Writable);
        }
        self.close_if_done(now);
        false
    }

    fn take_ack(&mut self) -> Acknowledgement {
        self.owes_ack = false;
        self.receiver.acknowledge()
    }

    fn send(
        &mut self,
        now: Instant,
        range: Range<u64>,
        (fin, push): (bool, bool),
        ack: Acknowledgement,
        out: &mut Vec<u8>,
    ) {
        let mut payload = Vec::with_capacity((range.end - range.start) as usize);
        self.outgoing.copy(range.clone(), &mut payload);
        // A probe of the window repeats a byte that is gone; the peer drops it.
        payload.resize((range.end - range.start) as usize, 0);
        self.last_acked = ack.next;
        let segment = Segment {
            fin,
            push,
            payload: range,
            ack: Some(ack),
            timestamp: to_timestamp(now),
            echo: self.recent,
            ..Segment::default()
        };
        segment.encode(&payload, out);
    }
}

/// The answer to a segment of a connection that does not exist.
pub fn reset_segment(now: Instant) -> Segment {
    Segment {
        reset: true,
        timestamp: to_timestamp(now),
        ..Segment::default()
    }
}

/// Milliseconds, never 0, which says that there is none.
fn to_timestamp(now: Instant) -> u32 {
    let millis = now.saturating_since(Instant::ZERO).as_millis();
    millis as u32 | u32::from(millis == 0)
}

fn from_timestamp(echo: u32) -> Option<Instant> {
    (echo > 0).then(|| Instant::from_millis(u64::from(echo)))
}
