//! In what order a worker receives, wakes tasks and sends, shown by counts. Client and server share a thread, so that
//! what one sends in a turn is there at once when the other one's turn comes.

use std::sync::{Arc, Mutex};
use std::task::Waker;

use crate::loopback::{Pair, guard, noise};
use swiftwater_net::Application;
use swiftwater_net::quic::{Connection as Core, Event, ReadOutcome, StreamEvent, TransportConfig};
use swiftwater_units::{ByteCount, Dir, Instant};

/// Nothing but what the tests require is sent, and all of it at once.
fn transport() -> TransportConfig {
    TransportConfig {
        pacing: false,
        initial_window: Some(ByteCount::new(1 << 20)),
        mtu_discovery: None,
        ..TransportConfig::default()
    }
}

/// Sends back as many bytes as come, and notes what the connection had received and sent when it got them.
#[derive(Default)]
struct Answering {
    heard: Mutex<Vec<Heard>>,
}

#[derive(Clone, Copy, Debug)]
struct Heard {
    received: u64,
    sent: u64,
}

impl Application for Answering {
    fn on_event(&self, _: Instant, connection: &mut Core, event: &Event, _: &mut Vec<Waker>) {
        let id = match event {
            Event::Stream(StreamEvent::Opened { dir: Dir::Bi }) => connection.accept(Dir::Bi),
            Event::Stream(StreamEvent::Readable { id }) => Some(*id),
            _ => None,
        };
        let Some(id) = id else {
            return;
        };
        let stats = connection.stats();
        let mut read = false;
        let mut buf = [0; 4096];
        while let Ok(ReadOutcome::Data(n)) = connection.recv_stream(id).read(&mut buf) {
            connection.send_stream(id).write(&buf[..n]).unwrap();
            read = true;
        }
        if read {
            self.heard.lock().unwrap().push(Heard {
                received: stats.datagrams_received,
                sent: stats.datagrams_sent,
            });
        }
    }
}

#[tokio::test]
async fn an_application_answers_in_the_middle_of_a_batch() {
    guard(async {
        let pair = Pair::with(transport());
        let (client, server) = pair.connect().await;
        client.handshake_confirmed().await.unwrap();
        let application = Arc::new(Answering::default());
        server.host(Arc::clone(&application) as Arc<dyn Application>);
        let (mut send, mut recv) = client.open_bi().await.unwrap();
        // Some 30 datagrams.
        let data = noise(36_000, 1);
        let before = server.stats();
        send.write_all(&data).await.unwrap();
        let mut back = vec![0; data.len()];
        recv.read_exact(&mut back).await.unwrap();
        assert!(back == data);

        let heard = application.heard.lock().unwrap().clone();
        let mut last = Heard {
            received: before.datagrams_received,
            sent: before.datagrams_sent,
        };
        // Each half of what comes at once.
        let most = (server.stats().datagrams_received - before.datagrams_received).div_ceil(2);
        for now in &heard {
            assert!(now.received - last.received <= most, "{heard:?}");
            last = *now;
        }
        // What answers one part of a batch has left before the next part is delivered.
        for pair in heard.windows(2) {
            assert!(pair[1].sent > pair[0].sent, "{heard:?}");
        }
        assert!(heard.len() >= 2, "{heard:?}");
    })
    .await;
}

#[tokio::test]
async fn a_woken_reader_runs_before_the_worker_sends() {
    guard(async {
        const ROUNDS: u64 = 100;
        let pair = Pair::with(transport());
        let (client, server) = pair.connect().await;
        client.handshake_confirmed().await.unwrap();
        let answering = tokio::spawn(async move {
            let (mut send, mut recv) = server.accept_bi().await.unwrap();
            let mut request = [0; 3000];
            for _ in 0..=ROUNDS {
                recv.read_exact(&mut request).await.unwrap();
                send.write_all(b"!").await.unwrap();
            }
            server
        });
        let (mut send, mut recv) = client.open_bi().await.unwrap();
        // Three datagrams, which are to be acknowledged at once.
        let request = noise(3000, 1);
        let mut sent = 0;
        for round in 0..=ROUNDS {
            send.write_all(&request).await.unwrap();
            recv.read_exact(&mut [0]).await.unwrap();
            if round == 0 {
                sent = pair.server.stats().datagrams_sent;
            }
        }
        // An acknowledgement that doesn't wait for the answer is a datagram more for each of them. (A probe or
        // two, when the machine was busy with something else, are none of our business.)
        let sent = pair.server.stats().datagrams_sent - sent;
        assert!(
            sent < ROUNDS * 3 / 2,
            "{sent} datagrams for {ROUNDS} answers"
        );
        drop(answering.await.unwrap());
    })
    .await;
}
