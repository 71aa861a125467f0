//! Datagrams with options: keys, deadlines and the fates that are reported.

use std::time::Duration;

use crate::loopback::{Pair, guard};
use bytes::Bytes;
use swiftwater_net::quic::{DatagramFate, DatagramOptions};

#[tokio::test]
async fn the_fates_of_datagrams_with_keys_are_reported() {
    guard(async {
        let pair = Pair::new();
        let (client, server) = pair.connect().await;
        let data = Bytes::from_static(b"numbered");
        let options = DatagramOptions::default();
        let in_time = client.now() + Duration::from_secs(60);
        // Without a key: no fate.
        client.send_datagram(data.clone()).await.unwrap();
        let urgent = options.with_urgency(0).with_deadline(in_time).with_key(8);
        client
            .send_datagram_with(data.clone(), urgent)
            .await
            .unwrap();
        assert_eq!(server.read_datagram().await.unwrap(), data);
        assert_eq!(server.read_datagram().await.unwrap(), data);
        let fate = client.read_datagram_fate().await.unwrap();
        assert_eq!(fate, (8, DatagramFate::Acknowledged));
        // A deadline that has come already: it is never sent.
        let late = options.with_deadline(client.now()).with_key(9);
        client.try_send_datagram_with(data.clone(), late).unwrap();
        let fate = client.read_datagram_fate().await.unwrap();
        assert_eq!(fate, (9, DatagramFate::Expired));
        let last = options.with_key(10);
        client.send_datagram_with(data.clone(), last).await.unwrap();
        assert_eq!(server.read_datagram().await.unwrap(), data);
        let fate = client.read_datagram_fate().await.unwrap();
        assert_eq!(fate, (10, DatagramFate::Acknowledged));
        pair.shut_down().await;
    })
    .await;
}

#[tokio::test]
async fn fates_are_kept_in_a_bounded_queue_and_read_before_the_end() {
    guard(async {
        let pair = Pair::new();
        let (client, _server) = pair.connect().await;
        let sent = 5_000;
        for key in 0..sent {
            let options = DatagramOptions::default()
                .with_deadline(client.now())
                .with_key(key);
            client
                .send_datagram_with(Bytes::new(), options)
                .await
                .unwrap();
        }
        // By then all have expired.
        let mut done = client.open_uni().await.unwrap();
        done.finish().unwrap();
        assert_eq!(done.stopped().await, Ok(None));
        client.close(0, b"");
        let mut keys = Vec::new();
        while let Ok((key, _)) = client.read_datagram_fate().await {
            keys.push(key);
        }
        assert_eq!(keys.len(), 4_096);
        assert!(
            keys.contains(&(sent - 1)) && !keys.contains(&0),
            "the newest are kept"
        );
        pair.shut_down().await;
    })
    .await;
}
