//! Streams between two endpoints on loopback.

use std::time::Duration;

use crate::loopback::{Pair, echo, guard, noise};
use swiftwater_net::quic::{ReadError, TransportConfig, WriteError};
use swiftwater_net::{Connection, ReadExactError, ReadToEndError};
use swiftwater_units::Bandwidth;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

async fn round_trip(connection: &Connection, data: Vec<u8>) {
    let (mut send, mut recv) = connection.open_bi().await.unwrap();
    let expected = data.clone();
    let writer = tokio::spawn(async move {
        send.write_all(&data).await.unwrap();
        send.finish().unwrap();
        assert_eq!(send.stopped().await, Ok(None));
    });
    let received = recv.read_to_end(expected.len()).await.unwrap();
    assert!(received == expected, "the echo differs");
    writer.await.unwrap();
}

async fn echoes_a_megabyte() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        tokio::spawn(echo(server));
        round_trip(&client, noise(3 << 20, 7)).await;
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn echo_on_many_threads() {
    echoes_a_megabyte().await;
}

#[tokio::test]
async fn echo_on_one_thread() {
    echoes_a_megabyte().await;
}

#[tokio::test]
async fn the_last_bytes_bring_the_end() {
    guard(async {
        let pair = Pair::with(TransportConfig {
            stream_receive_window: 4_000_u64.into(),
            max_stream_receive_window: 4_000_u64.into(),
            ..TransportConfig::default()
        });
        let (client, server) = pair.connect().await;
        // Nothing, what fits at once, and what waits for credit several times.
        for len in [0, 100, 50_000] {
            let data = noise(len, 5);
            let mut send = client.open_uni().await.unwrap();
            let (sent, received) = tokio::join!(send.write_last(&data), async {
                let mut recv = server.accept_uni().await.unwrap();
                recv.read_to_end(len).await.unwrap()
            });
            assert_eq!(sent, Ok(()));
            assert!(received == data, "{len} bytes");
            assert_eq!(send.write(b"more").await, Err(WriteError::Closed));
        }
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn empty_stream_ends_at_once() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let mut send = client.open_uni().await.unwrap();
        send.finish().unwrap();
        let mut recv = server.accept_uni().await.unwrap();
        assert_eq!(recv.read(&mut [0; 8]).await, Ok(None));
        // The end stays the end.
        assert_eq!(recv.read(&mut [0; 8]).await, Ok(None));
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn chunks_and_io_traits() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let data = noise(300_000, 3);
        let chunk = bytes::Bytes::from(data.clone());
        let writer = tokio::spawn(async move {
            let mut send = client.open_uni().await.unwrap();
            send.write_chunk(chunk.slice(..100_000)).await.unwrap();
            AsyncWriteExt::write_all(&mut send, &chunk[100_000..])
                .await
                .unwrap();
            send.shutdown().await.unwrap();
            send.shutdown().await.unwrap();
            send.stopped().await.unwrap();
            client
        });
        let mut recv = server.accept_uni().await.unwrap();
        let mut head = vec![0; 1000];
        recv.read_exact(&mut head).await.unwrap();
        let second = recv.read_chunk(10).await.unwrap().unwrap();
        assert!((1..=10).contains(&second.len()));
        assert!(recv.read_chunk(0).await.unwrap().unwrap().is_empty());
        let mut rest = Vec::new();
        AsyncReadExt::read_to_end(&mut recv, &mut rest)
            .await
            .unwrap();
        assert!([&head[..], &second[..], &rest[..]].concat() == data);
        writer.await.unwrap();
        pair.shut_down().await;
    })
    .await;
}

/// Bytes that are lent come in order, and those that the reader isn't done with come again.
#[tokio::test]
async fn bytes_can_be_read_where_they_lie() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let data = noise(200_000, 5);
        let mut send = client.open_uni().await.unwrap();
        let writing = tokio::spawn({
            let data = data.clone();
            async move {
                send.write_all(&data).await.unwrap();
                send.finish().unwrap();
                send
            }
        });
        let mut recv = server.accept_uni().await.unwrap();
        let mut received = Vec::new();
        let mut left = Vec::new();
        loop {
            let done = recv.read_with(|lent| {
                assert!(lent.starts_with(&left), "what was left comes again");
                let done = lent.len().div_ceil(2);
                received.extend_from_slice(&lent[..done]);
                left = lent[done..].to_vec();
                done
            });
            match done.await.unwrap() {
                Some(done) => assert!(done > 0),
                None => break,
            }
        }
        assert!(received == data);
        assert_eq!(recv.read_with(<[u8]>::len).await, Ok(None));
        drop(writing.await.unwrap());
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn a_chunk_is_as_large_as_its_content() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let data = noise(200_000, 4);
        let mut send = client.open_uni().await.unwrap();
        let writing = tokio::spawn({
            let data = data.clone();
            async move {
                send.write_all(&data).await.unwrap();
                send.finish().unwrap();
                send
            }
        });
        let mut recv = server.accept_uni().await.unwrap();
        let mut received = Vec::new();
        while let Some(chunk) = recv.read_chunk(usize::MAX).await.unwrap() {
            assert!(!chunk.is_empty());
            received.extend_from_slice(&chunk);
            let chunk = chunk.try_into_mut().expect("it has no other owner");
            assert_eq!(chunk.capacity(), chunk.len());
        }
        assert!(received == data);
        assert_eq!(recv.read_chunk(10).await, Ok(None), "the end stays the end");
        drop(writing.await.unwrap());
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn a_waiting_chunk_reader_is_woken_and_gets_the_end() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"1").await.unwrap();
        let mut recv = server.accept_uni().await.unwrap();
        assert_eq!(&recv.read_chunk(9).await.unwrap().unwrap()[..], b"1");
        {
            let mut waiting = Box::pin(recv.read_chunk(9));
            tokio::select! {
                biased;
                _ = &mut waiting => panic!("there is nothing to read"),
                () = tokio::task::yield_now() => {}
            }
            send.write_all(b"2").await.unwrap();
            assert_eq!(&waiting.await.unwrap().unwrap()[..], b"2");
        }
        client.close(7, b"");
        let lost = recv.read_chunk(9).await.unwrap_err();
        assert!(matches!(lost, ReadError::ConnectionLost(_)), "{lost}");
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn too_long_and_too_short() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        for _ in 0..2 {
            let mut send = client.open_uni().await.unwrap();
            send.write_all(&[1; 100]).await.unwrap();
            // Dropped: finished.
        }
        let mut recv = server.accept_uni().await.unwrap();
        assert_eq!(
            recv.read_to_end(99).await,
            Err(ReadToEndError::TooLong { limit: 99 })
        );
        let mut recv = server.accept_uni().await.unwrap();
        let read = recv.read_exact(&mut [0; 101]).await;
        assert_eq!(read, Err(ReadExactError::FinishedEarly { read: 100 }));
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn exactly_the_limit_is_not_too_long() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(&[1; 100]).await.unwrap();
        send.finish().unwrap();
        let mut recv = server.accept_uni().await.unwrap();
        assert_eq!(recv.read_to_end(100).await, Ok(vec![1; 100]));
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn reset_reaches_the_reader() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"half of it").await.unwrap();
        let mut recv = server.accept_uni().await.unwrap();
        recv.read_exact(&mut [0; 10]).await.unwrap();
        send.reset(77).unwrap();
        assert_eq!(recv.read(&mut [0; 8]).await, Err(ReadError::Reset(77)));
        assert_eq!(send.write(b"more").await, Err(WriteError::Closed));
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn stop_reaches_the_writer() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"unwanted").await.unwrap();
        let mut recv = server.accept_uni().await.unwrap();
        recv.stop(5).unwrap();
        assert_eq!(send.stopped().await, Ok(Some(5)));
        assert_eq!(send.write(b"more").await, Err(WriteError::Stopped(5)));
        assert_eq!(recv.read(&mut [0; 8]).await, Err(ReadError::Closed));
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn dropping_a_reader_stops_the_writer() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let mut send = client.open_uni().await.unwrap();
        send.write_all(b"unwanted").await.unwrap();
        drop(server.accept_uni().await.unwrap());
        assert_eq!(send.stopped().await, Ok(Some(0)));
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_streams() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        tokio::spawn(echo(server));
        let tasks: Vec<_> = (0..1000)
            .map(|n| {
                let client = client.clone();
                tokio::spawn(
                    async move { round_trip(&client, noise(1 + n % 5000, n as u64)).await },
                )
            })
            .collect();
        for task in tasks {
            task.await.unwrap();
        }
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn opening_waits_for_the_peers_limit() {
    guard(async {
        let transport = TransportConfig {
            max_concurrent_uni_streams: 2,
            ..TransportConfig::default()
        };
        let pair = Pair::with(transport);
        let (client, server) = pair.connect().await;
        let first = client.open_uni().await.unwrap();
        let _second = client.open_uni().await.unwrap();
        let mut third = Box::pin(client.open_uni());
        tokio::select! {
            biased;
            opened = &mut third => panic!("the limit is 2, yet {opened:?}"),
            () = tokio::task::yield_now() => {}
        }
        // Its end makes room for another.
        drop(first);
        let mut recv = server.accept_uni().await.unwrap();
        assert_eq!(recv.read_to_end(0).await, Ok(vec![]));
        drop(recv);
        third.await.unwrap();
        pair.shut_down().await;
    })
    .await;
}

/// Futures that are dropped while they wait lose nothing.
#[tokio::test]
async fn dropped_futures_lose_nothing() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let (mut send, mut recv) = {
            // Cancel accepting, then accept.
            tokio::select! {
                biased;
                _ = server.accept_bi() => panic!("no stream was opened"),
                () = tokio::task::yield_now() => {}
            }
            client.open_bi().await.unwrap()
        };
        let data = noise(200_000, 11);
        let expected = data.clone();
        let echoing = tokio::spawn(echo(server));
        let writer = tokio::spawn(async move {
            let mut rest = &data[..];
            while !rest.is_empty() {
                tokio::select! {
                    biased;
                    () = tokio::task::yield_now() => {}
                    n = send.write(&rest[..rest.len().min(7000)]) => rest = &rest[n.unwrap()..],
                }
            }
            send.finish().unwrap();
            send
        });
        let mut received = Vec::new();
        let mut buffer = vec![0; 3000];
        loop {
            tokio::select! {
                biased;
                () = tokio::task::yield_now() => {}
                n = recv.read(&mut buffer) => match n.unwrap() {
                    Some(n) => received.extend_from_slice(&buffer[..n]),
                    None => break,
                },
            }
        }
        assert!(received == expected);
        drop(writer.await.unwrap());
        pair.shut_down().await;
        echoing.await.unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_partial_reset_delivers_its_reliable_size() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let data = noise(200_000, 5);
        let mut send = client.open_uni().await.unwrap();
        send.write_all(&data).await.unwrap();
        send.reset_at(7, 50_000).unwrap();
        assert_eq!(send.write(b"x").await, Err(WriteError::Closed));
        // Dropping the handle does not end the stream another way.
        drop(send);
        let mut recv = server.accept_uni().await.unwrap();
        let mut read = vec![0; 50_000];
        recv.read_exact(&mut read).await.unwrap();
        assert!(read == data[..50_000]);
        let end = loop {
            match recv.read(&mut read).await {
                Ok(Some(_)) => {}
                end => break end,
            }
        };
        assert_eq!(end, Err(ReadError::Reset(7)));
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn an_expired_stream_is_reported_to_writer_and_reader() {
    guard(async {
        // The reader takes nothing, so that the stream can't end before it expires.
        let pair = Pair::with(TransportConfig {
            stream_receive_window: 10_000.into(),
            max_stream_receive_window: 10_000.into(),
            ..TransportConfig::default()
        });
        let (client, server) = pair.connect().await;
        let data = noise(20_000, 5);
        let mut send = client.open_uni().await.unwrap();
        send.expire_after(Duration::from_millis(50), 9, 100)
            .unwrap();
        let error = send.write_all(&data).await;
        assert_eq!(error, Err(WriteError::Closed));
        assert_eq!(send.stopped().await, Ok(Some(9)));
        assert!(send.is_expired());
        let mut recv = server.accept_uni().await.unwrap();
        let mut header = [0; 100];
        recv.read_exact(&mut header).await.unwrap();
        assert!(header == data[..100]);
        let rest = recv.read_to_end(100_000).await;
        assert_eq!(rest, Err(ReadToEndError::Read(ReadError::Reset(9))));
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn a_limit_on_receiving_holds_the_peer_back_until_it_is_lifted() {
    guard(async {
        let pair = Pair::with(TransportConfig {
            // At this rate the transfer would take a day.
            receive_rate: Some(Bandwidth::from_kbps(1)),
            ..TransportConfig::default()
        });
        let (client, server) = pair.connect().await;
        let data = noise(3 << 20, 5);
        let expected = data.clone();
        let writer = tokio::spawn(async move {
            let mut send = client.open_uni().await.unwrap();
            send.write_all(&data).await.unwrap();
            send.finish().unwrap();
            send.stopped().await.unwrap();
        });
        let mut recv = server.accept_uni().await.unwrap();
        let mut first = vec![0; 10_000];
        recv.read_exact(&mut first).await.unwrap();
        assert!(server.stats().stream_bytes_received.get() < 100_000);
        server.set_receive_rate(None);
        let rest = recv.read_to_end(expected.len()).await.unwrap();
        assert!([first, rest].concat() == expected);
        writer.await.unwrap();
        pair.shut_down().await;
    })
    .await;
}
