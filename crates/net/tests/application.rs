//! A protocol that runs on connections inside their worker.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::task::Waker;
use std::time::Duration;

use swiftwater_net::Application;
use swiftwater_net::quic::{Connection as Core, Event, ReadOutcome, StreamEvent};
use swiftwater_units::{Dir, Instant, StreamId};

use crate::loopback::{Pair, guard, noise};

/// Sends back what comes on streams, and closes with code 77 a while after the second was opened.
#[derive(Default)]
struct Echo {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What could not be sent yet, and whether that is all.
    waiting: BTreeMap<StreamId, (Vec<u8>, bool)>,
    ends_at: Option<Instant>,
    closed: bool,
}

impl State {
    fn read(&mut self, connection: &mut Core, id: StreamId) {
        let (waiting, ended) = self.waiting.entry(id).or_default();
        let mut buf = [0; 4096];
        while !*ended {
            match connection.recv_stream(id).read(&mut buf).unwrap() {
                ReadOutcome::Data(n) => waiting.extend_from_slice(&buf[..n]),
                ReadOutcome::Finished => *ended = true,
                ReadOutcome::Blocked => break,
            }
        }
        self.write(connection, id);
    }

    fn write(&mut self, connection: &mut Core, id: StreamId) {
        let Some((waiting, ended)) = self.waiting.get_mut(&id) else {
            return;
        };
        let written = connection.send_stream(id).write(waiting).unwrap();
        waiting.drain(..written);
        if *ended && waiting.is_empty() {
            connection.send_stream(id).finish().unwrap();
            self.waiting.remove(&id);
        }
    }
}

impl Application for Echo {
    fn on_event(&self, now: Instant, connection: &mut Core, event: &Event, _: &mut Vec<Waker>) {
        let mut state = self.state.lock().unwrap();
        match event {
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => {
                while let Some(id) = connection.accept(Dir::Bi) {
                    if id.index() > 0 {
                        state.ends_at = Some(now + Duration::from_millis(20));
                    }
                    state.read(connection, id);
                }
            }
            Event::Stream(StreamEvent::Readable { id }) => state.read(connection, *id),
            Event::Stream(StreamEvent::Writable { id }) => state.write(connection, *id),
            Event::Closed { .. } => state.closed = true,
            _ => {}
        }
    }

    fn next_timeout(&self) -> Option<Instant> {
        let state = self.state.lock().unwrap();
        state.ends_at.filter(|_| !state.closed)
    }

    fn on_timeout(&self, now: Instant, connection: &mut Core, _: &mut Vec<Waker>) {
        connection.close(now, 77, b"time is over");
    }
}

#[tokio::test]
async fn a_protocol_answers_from_inside_the_worker() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let data = noise(1_000_000, 3);
        let (mut send, mut recv) = client.open_bi().await.unwrap();
        // Some of it arrives before there is a handle for it.
        send.write_all(&data[..5_000]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
        server.host(Arc::new(Echo::default()));
        let sender = tokio::spawn({
            let data = data.clone();
            async move {
                send.write_all(&data[5_000..]).await.unwrap();
                send.finish().unwrap();
            }
        });
        let back = recv.read_to_end(data.len()).await.unwrap();
        assert!(back == data);
        sender.await.unwrap();
        // Its own timer fires.
        let (mut send, _recv) = client.open_bi().await.unwrap();
        send.write_all(b"!").await.unwrap();
        let reason = client.closed().await.to_string();
        assert!(reason.contains("code 77: time is over"), "{reason}");
    })
    .await;
}

#[tokio::test]
async fn what_is_done_from_outside_leaves_at_once() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let id = client.with_core(|_, core| {
            let id = core.open(Dir::Uni).unwrap();
            core.send_stream(id).write(b"hello").unwrap();
            core.send_stream(id).finish().unwrap();
            id
        });
        let mut recv = server.accept_uni().await.unwrap();
        assert_eq!(recv.id(), id);
        assert_eq!(recv.read_to_end(10).await.unwrap(), b"hello");
    })
    .await;
}
