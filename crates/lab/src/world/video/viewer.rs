//! The viewer: sends the request, receives, and records when frames are complete.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use swiftwater_media::Frame;
use swiftwater_quic::{ClientConfig, ConnectionHandle, Event, ReadOutcome, StreamEvent};
use swiftwater_sim::{Application, HostContext};
use swiftwater_units::{Dir, Instant, StreamId};

use super::wire::Incoming;

/// Timer of the start.
const START: u64 = 0;
/// Timer of the end.
const STOP: u64 = 1;

/// Bytes read at once.
const READ_LEN: usize = 1 << 15;

/// Watches a live stream.
#[derive(Debug)]
pub(in crate::world) struct VideoViewer {
    config: ClientConfig,
    remote: SocketAddr,
    start: Instant,
    stop: Option<Instant>,
    handle: Option<ConnectionHandle>,
    /// Streams with frames.
    streams: BTreeMap<StreamId, Incoming>,
    arrivals: Vec<(Instant, Frame)>,
    /// When the single stream with all frames ended.
    ended: Option<Instant>,
    bytes: u64,
    broken: bool,
    buffer: Vec<u8>,
}

impl VideoViewer {
    /// Sends the request to `remote` at `start`.
    pub(in crate::world) fn new(config: ClientConfig, remote: SocketAddr, start: Instant) -> Self {
        Self {
            config,
            remote,
            start,
            stop: None,
            handle: None,
            streams: BTreeMap::new(),
            arrivals: Vec::new(),
            ended: None,
            bytes: 0,
            broken: false,
            buffer: vec![0; READ_LEN],
        }
    }

    /// Closes the connection at `stop`.
    #[must_use]
    pub(in crate::world) fn stop(mut self, stop: Option<Instant>) -> Self {
        self.stop = stop;
        self
    }

    /// Bytes of streams that were received in order, headers of frames included.
    pub(in crate::world) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// False if a byte differed from the sent one.
    pub(in crate::world) fn is_intact(&self) -> bool {
        !self.broken
    }

    /// Time of the request.
    pub(super) fn start(&self) -> Instant {
        self.start
    }

    /// When it leaves, if before `end`.
    pub(super) fn until(&self, end: Instant) -> Instant {
        self.stop.map_or(end, |stop| stop.min(end))
    }

    /// When frames were complete, in order of time.
    pub(in crate::world) fn arrivals(&self) -> &[(Instant, Frame)] {
        &self.arrivals
    }

    /// When the stream ended, if it did.
    pub(super) fn ended(&self) -> Option<Instant> {
        self.ended
    }

    fn request(&mut self, host: &mut HostContext<'_>) {
        let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) else {
            return;
        };
        let Some(id) = connection.open(Dir::Bi) else {
            return;
        };
        let mut stream = connection.send_stream(id);
        // The windows of a new stream have room for a request.
        let _ = stream.write(&[0]);
        let _ = stream.finish();
        self.streams.insert(id, Incoming::default());
        // Registers for the event that reports data.
        self.read(host, id);
    }

    fn read(&mut self, host: &mut HostContext<'_>, id: StreamId) {
        let now = host.now();
        let connection = self.handle.and_then(|handle| host.connection(handle));
        let (Some(connection), Some(incoming)) = (connection, self.streams.get_mut(&id)) else {
            return;
        };
        let mut stream = connection.recv_stream(id);
        let open = loop {
            match stream.read(&mut self.buffer) {
                Ok(ReadOutcome::Data(len)) => {
                    self.bytes += len as u64;
                    let arrivals = &mut self.arrivals;
                    incoming.push(&self.buffer[..len], |frame| arrivals.push((now, frame)));
                }
                Ok(ReadOutcome::Blocked) => break true,
                Ok(ReadOutcome::Finished) => {
                    self.broken |= !incoming.is_between_frames();
                    if id.dir() == Dir::Bi {
                        self.ended = Some(now);
                    }
                    break false;
                }
                // An abandoned frame, or the end of the connection.
                Err(_) => break false,
            }
        };
        self.broken |= !incoming.is_intact();
        if !open {
            self.streams.remove(&id);
        }
    }
}

impl Application for VideoViewer {
    fn on_start(&mut self, host: &mut HostContext<'_>) {
        host.set_timer(self.start, START);
        if let Some(stop) = self.stop {
            host.set_timer(stop, STOP);
        }
    }

    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        match event {
            Event::Connected => self.request(host),
            Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                while let Some(id) = host.accept(handle, Dir::Uni) {
                    self.streams.insert(id, Incoming::default());
                    self.read(host, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(host, id),
            _ => {}
        }
    }

    fn on_timer(&mut self, host: &mut HostContext<'_>, token: u64) {
        let now = host.now();
        if token == STOP {
            if let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) {
                connection.close(now, 0, b"stop");
            }
        } else if self.stop.is_none_or(|stop| stop > now) {
            self.handle = host.connect_to_server(&self.config, self.remote);
        }
    }
}
