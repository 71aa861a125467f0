//! The server: encodes and sends. One server has one viewer.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use swiftwater_media::{Frame, FrameSource};
use swiftwater_quic::{Connection, ConnectionHandle, Event, Priority, ReadOutcome, StreamEvent};
use swiftwater_sim::{Application, HostContext};
use swiftwater_units::{Dir, Instant, StreamId};

use super::wire::Outgoing;
use crate::scenario::{VideoMode, VideoSpec};

/// Timer of the next frame. Other tokens are indices of frames, plus one, that may have to be
/// abandoned.
const NEXT_FRAME: u64 = 0;

/// Error code of the reset of a frame's stream.
const TOO_LATE: u64 = 1;

/// Sends a live stream to the first viewer that requests it.
#[derive(Debug)]
pub(in crate::world) struct VideoServer {
    mode: VideoMode,
    deadline: Option<Duration>,
    abandon: bool,
    source: Box<dyn FrameSource>,
    /// The viewer, and the stream of its request.
    viewer: Option<(ConnectionHandle, StreamId)>,
    /// When the first frame was encoded; `None` before the request.
    epoch: Option<Instant>,
    /// The frame to encode next.
    next: Option<Frame>,
    encoded: Vec<Frame>,
    /// Frames that wait for space on the viewer's stream.
    waiting: VecDeque<Outgoing>,
    /// Frames whose streams the viewer has not acknowledged, by index, with what is not written yet.
    under_way: BTreeMap<u64, (StreamId, Option<Outgoing>)>,
    by_stream: BTreeMap<StreamId, u64>,
    /// Frames that were abandoned.
    abandoned: u64,
    gone: bool,
}

impl VideoServer {
    /// A server of frames of `source`.
    pub(in crate::world) fn new(spec: &VideoSpec, source: Box<dyn FrameSource>) -> Self {
        Self {
            mode: spec.mode,
            deadline: spec.deadline,
            abandon: spec.abandon,
            source,
            viewer: None,
            epoch: None,
            next: None,
            encoded: Vec::new(),
            waiting: VecDeque::new(),
            under_way: BTreeMap::new(),
            by_stream: BTreeMap::new(),
            abandoned: 0,
            gone: false,
        }
    }

    /// When the stream's time started; `None` before the request.
    pub(super) fn epoch(&self) -> Option<Instant> {
        self.epoch
    }

    /// The frames encoded so far.
    pub(super) fn encoded(&self) -> &[Frame] {
        &self.encoded
    }

    /// Frames whose streams were reset because they could not be in time any more.
    pub(super) fn abandoned(&self) -> u64 {
        self.abandoned
    }

    /// The viewer's request arrives.
    fn begin(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, id: StreamId) {
        let Some(connection) = host.connection(handle) else {
            return;
        };
        let read = connection.recv_stream(id).read(&mut [0; 16]);
        if !matches!(read, Ok(ReadOutcome::Data(_))) {
            return;
        }
        // Registers for the event of the end of the request.
        let _ = connection.recv_stream(id).read(&mut [0; 16]);
        if self.epoch.is_some() {
            return;
        }
        self.viewer = Some((handle, id));
        self.epoch = Some(host.now());
        self.next = self.source.next_frame();
        self.encode(host);
    }

    /// Encodes and sends the frames due, and waits for the next one.
    fn encode(&mut self, host: &mut HostContext<'_>) {
        let (Some(epoch), Some((handle, _))) = (self.epoch, self.viewer) else {
            return;
        };
        let now = host.now();
        while let Some(frame) = self.next.filter(|frame| epoch + frame.at <= now) {
            if self.gone {
                return;
            }
            self.encoded.push(frame);
            self.next = self.source.next_frame();
            let Some(connection) = host.connection(handle) else {
                return;
            };
            match self.mode {
                VideoMode::Stream => self.waiting.push_back(Outgoing::new(&frame)),
                VideoMode::Frames => {
                    if let Some(at) = self.open_frame(connection, &frame, epoch) {
                        host.set_timer(at, frame.index + 1);
                    }
                }
            }
        }
        if let Some(connection) = host.connection(handle) {
            self.pump(connection);
        }
        if let Some(frame) = self.next {
            host.set_timer(epoch + frame.at, NEXT_FRAME);
        }
    }

    /// Writes pending data to the viewer's stream, and ends it after the last frame.
    fn pump(&mut self, connection: &mut Connection) {
        let Some((_, id)) = self.viewer.filter(|_| self.mode == VideoMode::Stream) else {
            return;
        };
        let mut stream = connection.send_stream(id);
        while let Some(frame) = self.waiting.front_mut() {
            // An error means that the viewer has left, which is reported by an event.
            if !matches!(frame.pump(&mut stream), Ok(true)) {
                return;
            }
            self.waiting.pop_front();
        }
        if self.next.is_none() {
            let _ = stream.finish();
        }
    }

    /// Sends a frame on a separate stream, older frames first. Returns when to check whether it can
    /// still be in time.
    fn open_frame(
        &mut self,
        connection: &mut Connection,
        frame: &Frame,
        epoch: Instant,
    ) -> Option<Instant> {
        // The viewer's stream limit exceeds the possible number of concurrent frames; otherwise the
        // frame is missed.
        let id = connection.open(Dir::Uni)?;
        let due = self.deadline.map(|deadline| epoch + frame.at + deadline);
        let mut stream = connection.send_stream(id);
        // On a newly opened stream they can only fail with the connection, which is reported by an
        // event.
        let _ = stream.set_priority(Priority::new(3, false));
        let _ = stream.set_deadline(due);
        self.by_stream.insert(id, frame.index);
        let outgoing = Some(Outgoing::new(frame));
        self.under_way.insert(frame.index, (id, outgoing));
        self.pump_frame(connection, frame.index);
        let due = due.filter(|_| self.abandon)?;
        Some(last_chance(connection, due))
    }

    fn pump_frame(&mut self, connection: &mut Connection, index: u64) {
        if let Some((id, outgoing)) = self.under_way.get_mut(&index)
            && let Some(frame) = outgoing
        {
            let mut stream = connection.send_stream(*id);
            if matches!(frame.pump(&mut stream), Ok(true)) {
                let _ = stream.finish();
                *outgoing = None;
            }
        }
    }

    /// Abandons a frame that can't be in time any more.
    fn abandon(&mut self, host: &mut HostContext<'_>, index: u64) {
        let now = host.now();
        let (Some(epoch), Some((handle, _)), Some(deadline)) =
            (self.epoch, self.viewer, self.deadline)
        else {
            return;
        };
        let Some((id, _)) = self.under_way.get(&index) else {
            return;
        };
        let id = *id;
        let at = usize::try_from(index).ok();
        let Some(frame) = at.and_then(|at| self.encoded.get(at)) else {
            return;
        };
        let due = epoch + frame.at + deadline;
        let Some(connection) = host.connection(handle) else {
            return;
        };
        let again = last_chance(connection, due);
        if again > now {
            host.set_timer(again, index + 1);
            return;
        }
        let _ = connection.send_stream(id).reset(TOO_LATE);
        self.abandoned += 1;
        self.discard(id);
        // Frames that refer to it can't be shown: the viewer would request a key frame.
        self.source.force_key_frame();
    }

    fn discard(&mut self, id: StreamId) {
        if let Some(index) = self.by_stream.remove(&id) {
            self.under_way.remove(&index);
        }
    }
}

/// The first time at which data sent can't arrive by `due` any more: half the smallest round-trip
/// time of any path before it, and a nanosecond.
fn last_chance(connection: &Connection, due: Instant) -> Instant {
    let paths = connection.open_paths();
    let stats = paths.filter_map(|path| connection.path_stats(path));
    let measured = stats.map(|path| path.min_rtt).filter(|rtt| !rtt.is_zero());
    let min_rtt = measured.min().unwrap_or_default();
    let late = due + Duration::from_nanos(1);
    Instant::from_nanos(
        late.as_nanos()
            .saturating_sub((min_rtt / 2).as_nanos() as u64),
    )
}

impl Application for VideoServer {
    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        match event {
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                while let Some(id) = host.accept(handle, Dir::Bi) {
                    self.begin(host, handle, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => self.begin(host, handle, id),
            Event::Stream(StreamEvent::Writable { id }) => {
                let Some(connection) = host.connection(handle) else {
                    return;
                };
                match self.by_stream.get(&id) {
                    Some(index) => self.pump_frame(connection, *index),
                    None => self.pump(connection),
                }
            }
            Event::Stream(StreamEvent::Finished { id }) => self.discard(id),
            Event::Closed { .. } => {
                self.gone |= self.viewer.is_some_and(|(viewer, _)| viewer == handle);
            }
            _ => {}
        }
    }

    fn on_timer(&mut self, host: &mut HostContext<'_>, token: u64) {
        match token {
            NEXT_FRAME => self.encode(host),
            index => self.abandon(host, index - 1),
        }
    }
}
