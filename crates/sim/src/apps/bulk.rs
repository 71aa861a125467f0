//! Bulk transfers: one stream from a client to a server, without end or of a given size.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use swiftwater_quic::{
    ClientConfig, ConnectionError, ConnectionHandle, ConnectionStats, Event, StreamEvent,
};
use swiftwater_units::{Dir, Instant, StreamId};

use super::stream::{Sink, Source};
use crate::application::{Application, HostContext};
use crate::pattern::Pattern;

/// Timer of the start.
const START: u64 = 0;
/// Timer of the samples.
const SAMPLE: u64 = 1;
/// Timer of the end.
const STOP: u64 = 2;

/// Smoothed round-trip times of a connection, of all its paths, sampled at fixed intervals: the mean is one over
/// time.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RttSamples {
    sum: Duration,
    count: u32,
}

impl RttSamples {
    fn add(&mut self, rtt: Duration) {
        self.sum += rtt;
        self.count += 1;
    }

    /// Mean over time; `None` without samples.
    pub fn mean(&self) -> Option<Duration> {
        self.sum.checked_div(self.count)
    }
}

/// Opens a connection at a given time and sends a pattern over one stream. Closes the connection
/// once all data are acknowledged, or at a given time.
#[derive(Debug)]
pub struct BulkSender {
    config: ClientConfig,
    remote: SocketAddr,
    start: Instant,
    stop: Option<Instant>,
    sample_every: Option<Duration>,
    source: Source,
    handle: Option<ConnectionHandle>,
    stream: Option<StreamId>,
    acknowledged: Option<Instant>,
    error: Option<ConnectionError>,
    rtt: RttSamples,
}

impl BulkSender {
    /// Sends `bytes` of pattern 0, or without end, to `remote`, with the handshake at `start`.
    pub fn new(
        config: ClientConfig,
        remote: SocketAddr,
        start: Instant,
        bytes: Option<u64>,
    ) -> Self {
        Self {
            config,
            remote,
            start,
            stop: None,
            sample_every: Some(Duration::from_millis(10)),
            source: Source::new(Pattern::new(0), bytes),
            handle: None,
            stream: None,
            acknowledged: None,
            error: None,
            rtt: RttSamples::default(),
        }
    }

    /// Closes the connection at `stop`, with data in flight discarded.
    #[must_use]
    pub fn stop(mut self, stop: Option<Instant>) -> Self {
        self.stop = stop;
        self
    }

    /// Takes round-trip time samples at this interval, or none with `None`; default 10 ms.
    #[must_use]
    pub fn sample_rtt(mut self, every: Option<Duration>) -> Self {
        self.sample_every = every;
        self
    }

    /// The connection, once opened.
    pub fn handle(&self) -> Option<ConnectionHandle> {
        self.handle
    }

    /// When the handshake starts.
    pub fn start(&self) -> Instant {
        self.start
    }

    /// When the last byte was acknowledged.
    pub fn acknowledged(&self) -> Option<Instant> {
        self.acknowledged
    }

    /// Why the connection ended, unless it completed or was stopped.
    pub fn error(&self) -> Option<&ConnectionError> {
        self.error.as_ref()
    }

    /// Round-trip times from the handshake to the end.
    pub fn rtt(&self) -> &RttSamples {
        &self.rtt
    }

    /// Statistics of the connection, if it exists.
    pub fn stats(&self, host: &HostContext<'_>) -> Option<ConnectionStats> {
        Some(host.view(self.handle?)?.stats())
    }

    fn pump(&mut self, host: &mut HostContext<'_>) {
        let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) else {
            return;
        };
        if self.stream.is_none() {
            self.stream = connection.open(Dir::Uni);
        }
        if let Some(id) = self.stream {
            // An error means that the connection is closed, which is reported by an event.
            let _ = self.source.pump(connection, id);
        }
    }

    fn sample(&mut self, host: &mut HostContext<'_>) {
        let Some(connection) = self.handle.and_then(|handle| host.view(handle)) else {
            return;
        };
        if connection.is_closed() {
            return;
        }
        for rtt in (connection.open_paths()).filter_map(|path| connection.smoothed_rtt(path)) {
            self.rtt.add(rtt);
        }
        if let Some(interval) = self.sample_every {
            host.set_timer(host.now() + interval, SAMPLE);
        }
    }

    fn begin(&mut self, host: &mut HostContext<'_>) {
        self.handle = host.connect_to_server(&self.config, self.remote);
    }

    fn end(&self, host: &mut HostContext<'_>) {
        let now = host.now();
        if let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) {
            connection.close(now, 0, b"stop");
        }
    }
}

impl Application for BulkSender {
    fn on_start(&mut self, host: &mut HostContext<'_>) {
        host.set_timer(self.start, START);
        if let Some(stop) = self.stop {
            host.set_timer(stop, STOP);
        }
    }

    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        match event {
            Event::Connected => {
                self.pump(host);
                if self.sample_every.is_some() {
                    self.sample(host);
                }
            }
            Event::Stream(StreamEvent::Writable { .. } | StreamEvent::Available { .. }) => {
                self.pump(host);
            }
            Event::Stream(StreamEvent::Finished { .. }) => {
                self.acknowledged = Some(host.now());
                let now = host.now();
                if let Some(connection) = host.connection(handle) {
                    connection.close(now, 0, b"done");
                }
            }
            Event::Closed { reason } if self.acknowledged.is_none() => {
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
            _ => self.sample(host),
        }
    }
}

/// Data received on one stream.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Received {
    /// Bytes handed to the application, in order.
    pub bytes: u64,
    /// True if all of them were correct.
    pub intact: bool,
    /// When the first byte was read.
    pub first_byte: Option<Instant>,
    /// When the end of the stream was read.
    pub finish: Option<Instant>,
}

/// Reads and checks every stream that clients open, as data arrive.
#[derive(Debug, Default)]
pub struct BulkReceiver {
    streams: BTreeMap<(ConnectionHandle, StreamId), (Sink, Received)>,
}

impl BulkReceiver {
    /// A receiver that expects pattern 0 on each stream.
    pub fn new() -> Self {
        Self::default()
    }

    /// Received data, by connection and stream.
    pub fn received(&self) -> impl Iterator<Item = &Received> {
        self.streams.values().map(|(_, received)| received)
    }

    /// Bytes handed to the application in order, of all streams.
    pub fn bytes(&self) -> u64 {
        self.received().map(|received| received.bytes).sum()
    }

    /// False if a byte differed from the sent one.
    pub fn is_intact(&self) -> bool {
        self.received().all(|received| received.intact)
    }

    fn read(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, id: StreamId) {
        let now = host.now();
        let Some(connection) = host.connection(handle) else {
            return;
        };
        let (sink, received) = self.streams.entry((handle, id)).or_insert_with(|| {
            let received = Received {
                bytes: 0,
                intact: true,
                first_byte: None,
                finish: None,
            };
            (Sink::new(Pattern::new(0)), received)
        });
        // A reset or a lost connection leaves the stream unfinished, which is visible in the
        // results.
        let _ = sink.drain(connection, id);
        received.bytes = sink.received();
        received.intact = sink.is_intact();
        if received.bytes > 0 {
            received.first_byte.get_or_insert(now);
        }
        if sink.is_finished() {
            received.finish.get_or_insert(now);
        }
    }
}

impl Application for BulkReceiver {
    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        match event {
            Event::Stream(StreamEvent::Opened { dir }) => {
                while let Some(id) = host.accept(handle, dir) {
                    self.read(host, handle, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(host, handle, id),
            _ => {}
        }
    }
}
