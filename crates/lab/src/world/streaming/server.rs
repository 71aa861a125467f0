//! The server: answers requests for chunks and ranges.

use std::collections::BTreeMap;

use swiftwater_quic::policy::ResponseStart;
use swiftwater_quic::{ConnectionHandle, Event, RangeHints, ReadOutcome, StreamEvent};
use swiftwater_sim::apps::Source;
use swiftwater_sim::{Application, HostContext};
use swiftwater_units::{ByteCount, Dir, StreamId};

use super::wire::{REQUEST_LEN, Request};

/// A request, as far as it has arrived, and then its response.
#[derive(Debug, Default)]
struct Answer {
    request: Vec<u8>,
    response: Option<Source>,
}

/// Sends what is requested, and announces the size of each response to its transport.
#[derive(Debug, Default)]
pub(in crate::world) struct StreamingServer {
    answers: BTreeMap<(ConnectionHandle, StreamId), Answer>,
}

impl StreamingServer {
    /// A server without requests.
    pub(in crate::world) fn new() -> Self {
        Self::default()
    }

    fn serve(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, id: StreamId) {
        let now = host.now();
        let Some(connection) = host.connection(handle) else {
            return;
        };
        let answer = self.answers.entry((handle, id)).or_default();
        while answer.response.is_none() {
            let mut rest = [0; REQUEST_LEN];
            let missing = REQUEST_LEN - answer.request.len();
            match connection.recv_stream(id).read(&mut rest[..missing]) {
                Ok(ReadOutcome::Data(len)) => answer.request.extend_from_slice(&rest[..len]),
                Ok(ReadOutcome::Blocked) => return,
                Ok(ReadOutcome::Finished) | Err(_) => {
                    self.answers.remove(&(handle, id));
                    return;
                }
            }
            let Some(request) = Request::decode(&answer.request) else {
                continue;
            };
            answer.response = Some(Source::new(request.pattern(), Some(request.bytes)));
            let start = ResponseStart {
                stream: id,
                bytes: ByteCount::new(request.bytes),
                requested_at: now,
            };
            connection.update_hints(now, |hints| hints.response = Some(start));
            if request.first_frame > 0 {
                let hints = RangeHints::default().as_first_frame();
                // The stream was opened just now, and takes hints unless the connection is lost.
                let _ = (connection.send_stream(id)).set_range_hints(0..request.first_frame, hints);
            }
        }
        let Some(response) = &mut answer.response else {
            return;
        };
        // An error means that the viewer does not want it any more.
        if response.pump(connection, id).is_err() || response.is_finished() {
            self.answers.remove(&(handle, id));
        }
    }
}

impl Application for StreamingServer {
    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        match event {
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                while let Some(id) = host.accept(handle, Dir::Bi) {
                    self.serve(host, handle, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id } | StreamEvent::Writable { id })
                if self.answers.contains_key(&(handle, id)) =>
            {
                self.serve(host, handle, id);
            }
            _ => {}
        }
    }
}
