//! A live stream: a server that sends the first video frame at once and then frames as they are
//! produced, and viewers with a player.
//!
//! A viewer opens a connection and a bidirectional stream, and sends a request: 16 bytes in network
//! order, the length of the first frame and the stream's rate in bit/s. The server sends the
//! stream, as pattern 0, without end.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use swiftwater_quic::{ClientConfig, ConnectionHandle, Event, ReadOutcome, StreamEvent};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, StreamId};

use super::player::{Player, Viewing};
use super::stream::{Sink, Source};
use crate::application::{Application, HostContext};
use crate::pattern::Pattern;

/// Time between frames: 25 a second.
pub const FRAME_INTERVAL: Duration = Duration::from_millis(40);

/// Length of a request.
const REQUEST_LEN: usize = 16;

/// The stream of one viewer.
#[derive(Debug)]
struct Feed {
    handle: ConnectionHandle,
    stream: StreamId,
    source: Source,
    first_frame: u64,
    rate: Bandwidth,
    begin: Instant,
    /// Frames after the first.
    frames: u32,
}

/// Serves live streams. Data that a viewer's network can't carry are queued; no frame is skipped.
#[derive(Debug, Default)]
pub struct LiveServer {
    requests: BTreeMap<(ConnectionHandle, StreamId), Vec<u8>>,
    /// By timer token; `None` when the viewer has left.
    feeds: Vec<Option<Feed>>,
    by_stream: BTreeMap<(ConnectionHandle, StreamId), usize>,
}

impl LiveServer {
    /// A server.
    pub fn new() -> Self {
        Self::default()
    }

    /// Viewers that are being served.
    pub fn viewers(&self) -> usize {
        self.by_stream.len()
    }

    fn read(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, id: StreamId) {
        let Some(connection) = host.connection(handle) else {
            return;
        };
        if self.by_stream.contains_key(&(handle, id)) {
            // Only the end of the request is still expected.
            let _ = connection.recv_stream(id).read(&mut [0; REQUEST_LEN]);
            return;
        }
        let request = self.requests.entry((handle, id)).or_default();
        while request.len() < REQUEST_LEN {
            let mut rest = [0; REQUEST_LEN];
            let missing = REQUEST_LEN - request.len();
            match connection.recv_stream(id).read(&mut rest[..missing]) {
                Ok(ReadOutcome::Data(len)) => request.extend_from_slice(&rest[..len]),
                _ => return,
            }
        }
        let number = |bytes: &[u8]| {
            bytes
                .iter()
                .fold(0, |all, byte| all << 8 | u64::from(*byte))
        };
        let first_frame = number(&request[..8]);
        let rate = Bandwidth::from_bps(number(&request[8..]));
        self.requests.remove(&(handle, id));
        self.by_stream.insert((handle, id), self.feeds.len());
        self.feeds.push(Some(Feed {
            handle,
            stream: id,
            source: Source::new(Pattern::new(0), None),
            first_frame,
            rate,
            begin: host.now(),
            frames: 0,
        }));
        self.feed(host, self.feeds.len() - 1);
    }

    /// Sends the data due by now to a viewer, and waits for the next frame.
    fn feed(&mut self, host: &mut HostContext<'_>, index: usize) {
        let Some(Some(feed)) = self.feeds.get_mut(index) else {
            return;
        };
        let now = host.now();
        let Some(connection) = host.connection(feed.handle) else {
            return;
        };
        let made = feed.rate.bytes_in(FRAME_INTERVAL * feed.frames);
        feed.source.allow(feed.first_frame + made);
        // An error means that the viewer has left, which is reported by an event.
        let _ = feed.source.pump(connection, feed.stream);
        feed.frames += 1;
        let next = feed.begin + FRAME_INTERVAL * feed.frames;
        host.set_timer(next.max(now), index as u64);
    }

    fn discard(&mut self, handle: ConnectionHandle) {
        self.requests.retain(|(of, _), _| *of != handle);
        for feed in &mut self.feeds {
            if let Some(gone) = feed.take_if(|feed| feed.handle == handle) {
                self.by_stream.remove(&(handle, gone.stream));
            }
        }
    }
}

impl Application for LiveServer {
    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        match event {
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                while let Some(id) = host.accept(handle, Dir::Bi) {
                    self.read(host, handle, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.read(host, handle, id),
            Event::Stream(StreamEvent::Writable { id }) => {
                let index = self.by_stream.get(&(handle, id));
                if let Some(Some(feed)) = index.and_then(|index| self.feeds.get_mut(*index))
                    && let Some(connection) = host.connection(handle)
                {
                    let _ = feed.source.pump(connection, id);
                }
            }
            Event::Closed { .. } => self.discard(handle),
            _ => {}
        }
    }

    fn on_timer(&mut self, host: &mut HostContext<'_>, token: u64) {
        self.feed(host, token as usize);
    }
}

/// Timer of the start.
const START: u64 = 0;
/// Timer of the end.
const STOP: u64 = 1;

/// Watches a live stream.
#[derive(Debug)]
pub struct LiveViewer {
    config: ClientConfig,
    remote: SocketAddr,
    start: Instant,
    stop: Option<Instant>,
    first_frame: ByteCount,
    rate: Bandwidth,
    handle: Option<ConnectionHandle>,
    stream: Option<StreamId>,
    sink: Sink,
    player: Player,
}

impl LiveViewer {
    /// Asks `remote` at `start` for a stream of this rate. The player starts with the first frame,
    /// and continues after a pause when it has `rebuffer` bytes.
    pub fn new(
        config: ClientConfig,
        remote: SocketAddr,
        start: Instant,
        rate: Bandwidth,
        (first_frame, rebuffer): (ByteCount, ByteCount),
    ) -> Self {
        Self {
            config,
            remote,
            start,
            stop: None,
            first_frame,
            rate,
            handle: None,
            stream: None,
            sink: Sink::new(Pattern::new(0)),
            player: Player::new(rate, first_frame, rebuffer),
        }
    }

    /// Closes the connection at `stop`.
    #[must_use]
    pub fn stop(mut self, stop: Option<Instant>) -> Self {
        self.stop = stop;
        self
    }

    /// Bytes of the stream that were received in order.
    pub fn bytes(&self) -> u64 {
        self.sink.received()
    }

    /// False if a byte differed from the sent one.
    pub fn is_intact(&self) -> bool {
        self.sink.is_intact()
    }

    /// Playback results up to `now`, or until it stopped.
    pub fn viewing(&self, now: Instant) -> Viewing {
        let until = self.stop.map_or(now, |stop| stop.min(now));
        self.player.viewing(self.start, until)
    }

    fn request(&mut self, host: &mut HostContext<'_>) {
        let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) else {
            return;
        };
        let Some(id) = connection.open(Dir::Bi) else {
            return;
        };
        let mut request = [0; REQUEST_LEN];
        request[..8].copy_from_slice(&self.first_frame.get().to_be_bytes());
        request[8..].copy_from_slice(&self.rate.as_bps().to_be_bytes());
        let mut stream = connection.send_stream(id);
        // The windows of a new stream have room for a request.
        let _ = stream.write(&request);
        let _ = stream.finish();
        self.stream = Some(id);
        // Registers for the event that reports data.
        self.read(host);
    }

    fn read(&mut self, host: &mut HostContext<'_>) {
        let now = host.now();
        let Some(connection) = self.handle.and_then(|handle| host.connection(handle)) else {
            return;
        };
        if let Some(id) = self.stream {
            // A reset or a lost connection ends the data, which is visible in the results.
            let _ = self.sink.drain(connection, id);
        }
        self.player.receive(now, self.sink.received());
    }
}

impl Application for LiveViewer {
    fn on_start(&mut self, host: &mut HostContext<'_>) {
        host.set_timer(self.start, START);
        if let Some(stop) = self.stop {
            host.set_timer(stop, STOP);
        }
    }

    fn on_event(&mut self, host: &mut HostContext<'_>, _handle: ConnectionHandle, event: Event) {
        match event {
            Event::Connected => self.request(host),
            Event::Stream(StreamEvent::Readable { .. }) => self.read(host),
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
