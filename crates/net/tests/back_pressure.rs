//! A reader that doesn't read blocks the writer, and neither end buffers more than its windows.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::loopback::{Pair, guard, noise};
use bytes::Bytes;
use swiftwater_net::quic::TransportConfig;
use swiftwater_net::{Connection, RecvStream};
use tokio::task::{JoinHandle, yield_now};

/// Windows that don't grow: of each stream, of the connection, and of the sender's buffer.
const STREAM: u64 = 64 << 10;
const CONNECTION: u64 = 160 << 10;
const SEND: u64 = 48 << 10;

const STREAMS: usize = 4;
/// Length of each stream.
const LENGTH: usize = 1 << 20;

fn transport() -> TransportConfig {
    TransportConfig {
        stream_receive_window: STREAM.into(),
        max_stream_receive_window: STREAM.into(),
        receive_window: CONNECTION.into(),
        max_receive_window: CONNECTION.into(),
        send_window: SEND.into(),
        ..TransportConfig::default()
    }
}

/// One writer a stream, and how much each has written so far.
struct Writers {
    written: Vec<Arc<AtomicU64>>,
    tasks: Vec<JoinHandle<()>>,
}

impl Writers {
    fn start(connection: &Connection, streams: usize) -> Self {
        let written: Vec<Arc<AtomicU64>> = (0..streams).map(|_| Arc::default()).collect();
        let tasks = written
            .iter()
            .enumerate()
            .map(|(n, written)| {
                let (connection, written) = (connection.clone(), Arc::clone(written));
                tokio::spawn(async move {
                    let data = noise(LENGTH, n as u64);
                    let mut send = connection.open_uni().await.unwrap();
                    let mut rest = &data[..];
                    while !rest.is_empty() {
                        // Small, so that every writer gets its share of the buffer.
                        let n = send.write(&rest[..rest.len().min(5000)]).await.unwrap();
                        rest = &rest[n..];
                        written.fetch_add(n as u64, Ordering::SeqCst);
                    }
                    send.finish().unwrap();
                    send.stopped().await.unwrap();
                })
            })
            .collect();
        Self { written, tasks }
    }

    fn written(&self) -> Vec<u64> {
        let load = |written: &Arc<AtomicU64>| written.load(Ordering::SeqCst);
        self.written.iter().map(load).collect()
    }

    fn total(&self) -> u64 {
        self.written().iter().sum()
    }
}

/// Both ends of a connection, under watch.
#[derive(Clone)]
struct Watched {
    sender: Connection,
    receiver: Connection,
    /// What the receiver may hold.
    window: u64,
}

impl Watched {
    /// What both ends hold now; fails if that is more than they may.
    fn held(&self) -> (u64, u64) {
        let sent = self.sender.stats().send_buffered.get();
        let received = self.receiver.stats().receive_buffered.get();
        assert!(sent <= SEND, "the sender holds {sent} bytes");
        assert!(
            received <= self.window,
            "the receiver holds {received} bytes"
        );
        (sent, received)
    }

    /// Waits until nothing moves any more and the receiver holds at least `received` bytes; returns
    /// what both hold then.
    async fn settle(&self, received: u64) -> (u64, u64) {
        loop {
            let before = self.held();
            round_trips(&self.sender, &self.receiver).await;
            if before == self.held() && before.1 >= received {
                return before;
            }
            yield_now().await;
        }
    }

    /// Reads the next `max` bytes of a stream, or to its end, in small pieces.
    async fn read(&self, recv: &mut RecvStream, max: usize) -> Vec<u8> {
        let mut data = Vec::new();
        while data.len() < max {
            let piece = recv.read_chunk(3000.min(max - data.len())).await.unwrap();
            self.held();
            let Some(piece) = piece else { break };
            data.extend_from_slice(&piece);
        }
        data
    }
}

/// Datagrams back and forth, each of which takes both workers through several turns: whatever else
/// could move has moved afterwards.
async fn round_trips(one: &Connection, other: &Connection) {
    for _ in 0..20 {
        one.send_datagram(Bytes::from_static(b"there"))
            .await
            .unwrap();
        other.read_datagram().await.unwrap();
        other
            .send_datagram(Bytes::from_static(b"and back"))
            .await
            .unwrap();
        one.read_datagram().await.unwrap();
    }
}

#[tokio::test]
async fn a_reader_that_stops_holds_the_writer() {
    guard(async {
        let pair = Pair::with(transport());
        let (sender, receiver) = pair.connect().await;
        let writers = Writers::start(&sender, 1);
        let watched = Watched {
            sender,
            receiver,
            window: STREAM,
        };
        // Nothing is read: one stream's window fills, and that is all.
        assert_eq!(watched.settle(STREAM).await, (0, STREAM));
        assert_eq!(writers.total(), STREAM);

        // The first part is read, and the reader stops again.
        let mut recv = watched.receiver.accept_uni().await.unwrap();
        let head = watched.read(&mut recv, STREAM as usize).await;
        // New credit comes when half a window was used.
        let (_, unread) = watched.settle(STREAM / 2).await;
        assert_eq!(writers.total(), STREAM + unread);

        let rest = watched.read(&mut recv, LENGTH).await;
        assert!([head, rest].concat() == noise(LENGTH, 0));
        for task in writers.tasks {
            task.await.unwrap();
        }
        assert_eq!(watched.settle(0).await, (0, 0));
        pair.shut_down().await;
    })
    .await;
}

/// Several streams that are not read share the connection's window and the sender's buffer.
#[tokio::test]
async fn unread_streams_fill_the_windows_and_no_more() {
    guard(async {
        let pair = Pair::with(transport());
        let (sender, receiver) = pair.connect().await;
        let writers = Writers::start(&sender, STREAMS);
        let watched = Watched {
            sender,
            receiver,
            window: CONNECTION,
        };
        let (unsent, unread) = watched.settle(CONNECTION).await;
        assert_eq!(unread, CONNECTION);
        // Writers are not woken for every byte of room.
        assert!(unsent > SEND / 2, "{unsent} bytes");
        assert_eq!(writers.total(), unsent + CONNECTION);
        let each = writers.written();
        assert!(each.iter().all(|written| *written <= STREAM), "{each:?}");

        let readers = (0..STREAMS).map(|_| {
            let watched = watched.clone();
            tokio::spawn(async move {
                let mut recv = watched.receiver.accept_uni().await.unwrap();
                let data = watched.read(&mut recv, LENGTH).await;
                // Streams are opened in the order of the writers, so the identifier shows it.
                assert!(data == noise(LENGTH, recv.id().index()), "{:?}", recv.id());
            })
        });
        for task in readers.collect::<Vec<_>>().into_iter().chain(writers.tasks) {
            task.await.unwrap();
        }
        assert_eq!(watched.settle(0).await, (0, 0));
        pair.shut_down().await;
    })
    .await;
}
