//! Who doesn't read holds up who writes, and neither end keeps more than its windows.

#![allow(clippy::unwrap_used, reason = "a failed set-up fails the test")]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use common::{Pair, guard, noise};
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

/// What both ends hold now; fails if that is more than they may.
fn held(sender: &Connection, receiver: &Connection) -> (u64, u64) {
    let sent = sender.stats().send_buffered.get();
    let received = receiver.stats().receive_buffered.get();
    assert!(sent <= SEND, "the sender holds {sent} bytes");
    assert!(
        received <= CONNECTION,
        "the receiver holds {received} bytes"
    );
    (sent, received)
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
        let (client, server) = pair.connect().await;
        let writers = Writers::start(&client, 1);
        // Nobody reads: one stream's window fills, and that is all.
        while held(&client, &server) != (0, STREAM) {
            yield_now().await;
        }
        assert_eq!(writers.total(), STREAM);
        round_trips(&client, &server).await;
        assert_eq!(held(&client, &server), (0, STREAM));
        assert_eq!(writers.total(), STREAM);

        // The first part is read, and the reader stops again.
        let mut recv = server.accept_uni().await.unwrap();
        let mut head = vec![0; STREAM as usize];
        recv.read_exact(&mut head).await.unwrap();
        while held(&client, &server) != (0, STREAM) {
            yield_now().await;
        }
        round_trips(&client, &server).await;
        assert_eq!(held(&client, &server), (0, STREAM));
        assert_eq!(writers.total(), 2 * STREAM);

        let rest = recv.read_to_end(LENGTH).await.unwrap();
        assert!([head, rest].concat() == noise(LENGTH, 0));
        for task in writers.tasks {
            task.await.unwrap();
        }
        assert_eq!(held(&client, &server), (0, 0));
        pair.shut_down().await;
    })
    .await;
}

/// Reads a whole stream piece by piece, and watches the memory of both ends meanwhile.
async fn read_watched(recv: &mut RecvStream, client: &Connection, server: &Connection) -> Vec<u8> {
    let mut data = Vec::new();
    while let Some(chunk) = recv.read_chunk(3000).await.unwrap() {
        held(client, server);
        data.extend_from_slice(&chunk);
    }
    data
}

/// Several streams that nobody reads share the connection's window and the sender's buffer.
#[tokio::test]
async fn unread_streams_fill_the_windows_and_no_more() {
    guard(async {
        let pair = Pair::with(transport());
        let (client, server) = pair.connect().await;
        let writers = Writers::start(&client, STREAMS);
        while held(&client, &server) != (SEND, CONNECTION) {
            yield_now().await;
        }
        round_trips(&client, &server).await;
        assert_eq!(held(&client, &server), (SEND, CONNECTION));
        assert_eq!(writers.total(), SEND + CONNECTION);
        let each = writers.written();
        assert!(each.iter().all(|written| *written <= STREAM), "{each:?}");

        let readers: Vec<_> = (0..STREAMS)
            .map(|_| {
                let (client, server) = (client.clone(), server.clone());
                tokio::spawn(async move {
                    let mut recv = server.accept_uni().await.unwrap();
                    let data = read_watched(&mut recv, &client, &server).await;
                    // Streams are opened in the order of the writers, so the identifier tells.
                    assert!(data == noise(LENGTH, recv.id().index()), "{:?}", recv.id());
                })
            })
            .collect();
        for task in readers.into_iter().chain(writers.tasks) {
            task.await.unwrap();
        }
        assert_eq!(held(&client, &server), (0, 0));
        pair.shut_down().await;
    })
    .await;
}
