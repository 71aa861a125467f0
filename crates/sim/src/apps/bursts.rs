//! A source with alternating bursts and pauses: constant rate (one burst without end) or on/off, at
//! a given rate or as fast as possible.

use std::net::SocketAddr;
use std::ops::Range;
use std::time::Duration;

use swiftwater_quic::{ClientConfig, ConnectionError, ConnectionHandle, Event, StreamEvent};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, StreamId};

use super::stream::Source;
use crate::application::{Application, HostContext};
use crate::pattern::Pattern;

/// Timer of the start.
const START: u64 = 0;
/// Timer of the end.
const STOP: u64 = 1;
/// Timer of the next write.
const WRITE: u64 = 2;

/// Least interval of writes.
const TICK: Duration = Duration::from_millis(1);
/// With a rate, writes have at least about this size: a packet.
const WRITE_LEN: u64 = 1_200;

/// Opens a connection at a given time and writes a pattern to one stream during bursts.
///
/// With a rate, data are written at that rate during a burst (every millisecond, or about a packet
/// at a time if that is longer); data that the network can't carry are queued in the stream and sent
/// later, also in pauses. Without a rate, during a burst the stream always has somewhat more than a
/// congestion window to send, so that little is left when the burst ends.
pub struct BurstSender {
    config: ClientConfig,
    remote: SocketAddr,
    start: Instant,
    stop: Option<Instant>,
    rate: Option<Bandwidth>,
    bursts: Box<dyn Iterator<Item = Range<Instant>>>,
    /// The present burst, or the next one.
    burst: Option<Range<Instant>>,
    /// Bytes permitted by earlier bursts.
    before: u64,
    source: Source,
    handle: Option<ConnectionHandle>,
    stream: Option<StreamId>,
    error: Option<ConnectionError>,
}

impl BurstSender {
    /// Sends pattern 0 to `remote` in `bursts`, which are in the order of time and don't overlap, at
    /// `rate` or as fast as possible. The handshake begins at `start`.
    pub fn new(
        config: ClientConfig,
        remote: SocketAddr,
        start: Instant,
        rate: Option<Bandwidth>,
        bursts: impl Iterator<Item = Range<Instant>> + 'static,
    ) -> Self {
        Self {
            config,
            remote,
            start,
            stop: None,
            rate,
            bursts: Box::new(bursts),
            burst: None,
            before: 0,
            source: Source::new(Pattern::new(0), None),
            handle: None,
            stream: None,
            error: None,
        }
    }

    /// One burst from `start` on without end.
    pub fn constant_rate(
        config: ClientConfig,
        remote: SocketAddr,
        start: Instant,
        rate: Bandwidth,
    ) -> Self {
        let always = start..Instant::FAR_FUTURE;
        Self::new(config, remote, start, Some(rate), std::iter::once(always))
    }

    /// Closes the connection at `stop`, with data in flight discarded.
    #[must_use]
    pub fn stop(mut self, stop: Option<Instant>) -> Self {
        self.stop = stop;
        self
    }

    /// The connection, once opened.
    pub fn handle(&self) -> Option<ConnectionHandle> {
        self.handle
    }

    /// Bytes that the stream has accepted.
    pub fn written(&self) -> u64 {
        self.source.written()
    }

    /// Why the connection ended, unless it was stopped.
    pub fn error(&self) -> Option<&ConnectionError> {
        self.error.as_ref()
    }

    /// Writes the bytes permitted now, and sets the timer for the next write.
    fn write(&mut self, host: &mut HostContext<'_>) {
        let now = host.now();
        while let Some(burst) = self.burst.take_if(|burst| burst.end <= now) {
            self.before = self.allowed_by(&burst, burst.end);
            self.burst = self.bursts.next();
        }
        let Some(burst) = self.burst.clone() else {
            self.pump(host, self.before);
            return;
        };
        if now < burst.start {
            self.pump(host, self.before);
            host.set_timer(burst.start, WRITE);
            return;
        }
        let allowed = match self.rate {
            Some(_) => self.allowed_by(&burst, now),
            None => self.enough(host),
        };
        self.pump(host, allowed);
        let interval = self.rate.map_or(TICK, |rate| {
            // A rate of zero never permits a byte.
            rate.time_to_send(WRITE_LEN).max(TICK)
        });
        host.set_timer(burst.end.min(now + interval), WRITE);
    }

    /// Bytes that may be written up to `time` within `burst`.
    fn allowed_by(&self, burst: &Range<Instant>, time: Instant) -> u64 {
        match self.rate {
            Some(rate) => self.before + rate.bytes_in(time - burst.start),
            None => self.source.written(),
        }
    }

    /// Bytes that must have been written so that sending continues until the next write: a window,
    /// and the bytes sent between two writes.
    fn enough(&self, host: &HostContext<'_>) -> u64 {
        let connection = self.handle.and_then(|handle| host.view(handle));
        let stats = connection.map(swiftwater_quic::Connection::stats);
        let Some(stats) = stats else {
            return self.source.written();
        };
        let (mut wanted, mut in_flight) = (ByteCount::ZERO, ByteCount::ZERO);
        for path in &stats.paths {
            let rtt = path.smoothed_rtt.max(Duration::from_nanos(1));
            let scale = 1.0 + TICK.as_secs_f64() / rtt.as_secs_f64();
            wanted += path.cwnd.scaled(scale);
            in_flight += path.bytes_in_flight;
        }
        let unsent = stats.send_buffered - in_flight;
        self.source.written() + (wanted - unsent).get()
    }

    fn pump(&mut self, host: &mut HostContext<'_>, allowed: u64) {
        let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) else {
            return;
        };
        if let Some(id) = self.stream {
            self.source.allow(allowed);
            // An error means that the connection is closed, which is reported by an event.
            let _ = self.source.pump(connection, id);
        }
    }

    fn begin(&mut self, host: &mut HostContext<'_>) {
        self.handle = host.connect_to_server(&self.config, self.remote);
    }

    fn end(&mut self, host: &mut HostContext<'_>) {
        let now = host.now();
        self.burst = None;
        self.stream = None;
        if let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) {
            connection.close(now, 0, b"stop");
        }
    }
}

impl std::fmt::Debug for BurstSender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BurstSender")
            .field("start", &self.start)
            .field("rate", &self.rate)
            .field("burst", &self.burst)
            .field("written", &self.source.written())
            .finish_non_exhaustive()
    }
}

impl Application for BurstSender {
    fn on_start(&mut self, host: &mut HostContext<'_>) {
        host.set_timer(self.start, START);
        if let Some(stop) = self.stop {
            host.set_timer(stop, STOP);
        }
    }

    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        match event {
            Event::Connected => {
                let connection = host.connection(handle);
                self.stream = connection.and_then(|connection| connection.open(Dir::Uni));
                self.burst = self.bursts.next();
                self.write(host);
            }
            // With a rate, more bytes than the stream accepted may be due.
            Event::Stream(StreamEvent::Writable { id }) => {
                if let Some(connection) = host.connection(handle) {
                    let _ = self.source.pump(connection, id);
                }
            }
            Event::Closed { reason } => {
                self.burst = None;
                self.stream = None;
                let stopped = self.stop.is_some_and(|stop| host.now() >= stop);
                self.error = (!stopped).then_some(reason);
            }
            _ => {}
        }
    }

    fn on_timer(&mut self, host: &mut HostContext<'_>, token: u64) {
        match token {
            START if self.stop.is_some_and(|stop| stop <= host.now()) => {}
            START => self.begin(host),
            STOP => self.end(host),
            _ if self.stream.is_some() => self.write(host),
            _ => {}
        }
    }
}
