//! Forwarded packets that are lost while the connection to the proxy works: the client has to notice by itself.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use swiftwater_net::quic::TransportConfig;
use swiftwater_net::relay::{Direction, Filter, Relay, RelayConfig};
use swiftwater_tunnel::forwarding::Transform;

use crate::forwarding::http3_client;
use crate::stage::{Stage, content, get_with, guard, origin};

/// A filter that drops what passes beside the connection, in both directions, while `is_on`: packets with short headers
/// whose destination is not an ID that the handshake of the connection has shown.
fn without_forwarded_packets(is_on: Arc<AtomicBool>) -> Filter {
    // The connection ID of the receiver in each direction: the source of the other one's long headers.
    let mut ids: [Vec<u8>; 2] = Default::default();
    Box::new(move |direction, datagram| {
        let place = usize::from(direction == Direction::Up);
        if datagram[0] & 0x80 != 0 {
            let source = 6 + usize::from(datagram[5]);
            let len = usize::from(datagram[source]);
            ids[1 - place] = datagram[source + 1..][..len].to_vec();
            return true;
        }
        datagram[1..].starts_with(&ids[place]) || !is_on.load(Ordering::Relaxed)
    })
}

/// Packets beside the connection are lost, in both directions, and nothing else is: the client goes back to the tunnel.
/// Once they pass again, it forwards again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_lost_beside_the_connection_passes_through_it() {
    guard(async {
        let stage = Stage::new();
        let any = "127.0.0.1:0".parse().unwrap();
        let relay = Relay::start(RelayConfig::new(any, stage.server_end.local_addr())).unwrap();
        let is_blocked = Arc::new(AtomicBool::new(false));
        relay.set_filter(Some(without_forwarded_packets(Arc::clone(&is_blocked))));
        let content = Bytes::from(content(300_000));
        let (origin, config) = origin(content.clone(), TransportConfig::default());
        let (proxy, to) = (relay.local_addr(), origin.local_addr());
        let transform = Transform::Scramble;
        let (_endpoint, client) = http3_client(&stage, proxy, transform, (to, &config)).await;
        let forwarded = || stage.proxy.stats().forwarded_to_targets;
        assert_eq!(get_with(&client).await, content);
        assert!(forwarded() > 0);
        assert_eq!(relay.counters().filtered, 0);

        is_blocked.store(true, Ordering::Relaxed);
        assert_eq!(get_with(&client).await, content);
        let filtered = relay.counters().filtered;
        assert!(filtered > 3, "{filtered} packets were lost");

        is_blocked.store(false, Ordering::Relaxed);
        let before = forwarded();
        while forwarded() == before {
            assert_eq!(get_with(&client).await, content);
            // A pause of a second or more is over only after it.
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        assert_eq!(stage.proxy.stats().opened, 1, "the tunnel is the same");
    })
    .await;
}
