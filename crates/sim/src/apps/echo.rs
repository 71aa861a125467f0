//! Echo application.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};
use swiftwater_quic::{ConnectionHandle, Event, ReadOutcome, StreamEvent};
use swiftwater_units::{Dir, StreamId};

use crate::application::{Application, HostContext};

/// Most bytes of one stream buffered while they can't be written back.
const HELD_LEN: usize = 1 << 16;

#[derive(Debug, Default)]
struct Held {
    data: Bytes,
    ended: bool,
}

/// Writes what it reads from each bidirectional stream back to it, and returns datagrams.
#[derive(Debug, Default)]
pub struct Echo {
    streams: BTreeMap<(ConnectionHandle, StreamId), Held>,
}

impl Echo {
    /// An echo.
    pub fn new() -> Self {
        Self::default()
    }

    fn pass(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, id: StreamId) {
        let Some(connection) = host.connection(handle) else {
            return;
        };
        let held = self.streams.entry((handle, id)).or_default();
        loop {
            if !held.data.is_empty() {
                match connection.send_stream(id).write_chunk(&mut held.data) {
                    Ok(_) if held.data.is_empty() => {}
                    // Blocked: an event reports when to continue. Or stopped, or closed.
                    Ok(_) | Err(_) => return,
                }
            }
            if held.ended {
                let _ = connection.send_stream(id).finish();
                self.streams.remove(&(handle, id));
                return;
            }
            let mut buffer = BytesMut::zeroed(HELD_LEN);
            match connection.recv_stream(id).read(&mut buffer) {
                Ok(ReadOutcome::Data(len)) => {
                    buffer.truncate(len);
                    held.data = buffer.freeze();
                }
                Ok(ReadOutcome::Finished) => held.ended = true,
                Ok(ReadOutcome::Blocked) => return,
                Err(_) => {
                    self.streams.remove(&(handle, id));
                    return;
                }
            }
        }
    }
}

impl Application for Echo {
    fn on_event(&mut self, host: &mut HostContext<'_>, handle: ConnectionHandle, event: Event) {
        match event {
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                while let Some(id) = host.accept(handle, Dir::Bi) {
                    self.pass(host, handle, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id } | StreamEvent::Writable { id })
                if id.dir() == Dir::Bi =>
            {
                self.pass(host, handle, id);
            }
            Event::DatagramReceived => {
                if let Some(connection) = host.connection(handle) {
                    while let Some(datagram) = connection.recv_datagram() {
                        // Datagrams are unreliable: without room in the queue they are dropped.
                        let _ = connection.send_datagram(datagram);
                    }
                }
            }
            _ => {}
        }
    }
}
