//! A hundred thousand datagrams and more over loopback from clients that never go on, while one that was there
//! before is served, and another one gets in.

use crate::watchdog;

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::loopback::{NAME, Pair, configs, echo, endpoint_config, guard};
use swiftwater_net::EndpointOptions;
use swiftwater_net::quic::{ClientConfig, Endpoint, RetryPolicy, TransportConfig};

/// Datagrams at least: the flood goes on until the newcomers are connected.
const FLOOD: usize = 100_000;
/// Sockets that send them, each with a port of its own and, where the system has them, on addresses
/// of 127.0.0.0/8.
const SOURCES: usize = 100;
/// Datagrams between two pauses: what a socket's buffer holds.
const BURST: usize = 50;
/// Between two bursts: some 40,000 datagrams a second, which leaves a busy machine time to read those of the others.
const PAUSE: Duration = Duration::from_millis(1);
/// How long a handshake may take whose datagrams find the socket's buffer full.
const PATIENCE: Duration = Duration::from_secs(30);
/// Half-open connections before the server asks for a token.
const HALF_OPEN: usize = 100;

/// First datagrams of as many clients.
fn first_packets(config: &ClientConfig, server: SocketAddr, count: usize) -> Vec<Vec<u8>> {
    let mut endpoint = Endpoint::new(endpoint_config(9), None, [9; 32]);
    let now = swiftwater_units::Instant::ZERO;
    let mut buf = vec![0; 1500];
    (0..count)
        .map(|_| {
            let connecting = endpoint.connect(now, config, server, NAME);
            let (_, mut connection) = connecting.unwrap();
            let transmit = connection.poll_transmit(now, 1, &mut buf).unwrap();
            buf[..transmit.size].to_vec()
        })
        .collect()
}

fn sources() -> Vec<UdpSocket> {
    (0..SOURCES)
        .map(|n| {
            let address = format!("127.0.0.{}:0", 2 + n % 20);
            let socket = UdpSocket::bind(address).or_else(|_| UdpSocket::bind("127.0.0.1:0"));
            let socket = socket.unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        })
        .collect()
}

/// Sends the flood from a thread of its own, until it is `enough`; the answers are not read. Returns how many datagrams
/// there were, and how many left.
fn flood(
    server: SocketAddr,
    packets: &[Vec<u8>],
    sources: &[UdpSocket],
    enough: &AtomicBool,
) -> (usize, usize) {
    let (mut n, mut sent) = (0, 0);
    while n < FLOOD || !enough.load(Ordering::Acquire) {
        let datagram = &packets[n / SOURCES % packets.len()];
        sent += usize::from(sources[n % SOURCES].send_to(datagram, server).is_ok());
        if n % BURST == BURST - 1 {
            std::thread::sleep(PAUSE);
        }
        n += 1;
    }
    (n, sent)
}

/// Ends the flood when the test ends, also by a failure: the runtime waits for the thread of the flood.
struct StopOnDrop(Arc<AtomicBool>);

impl StopOnDrop {
    fn stop(&self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.stop();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_first_packets_starves_no_connection() {
    guard(async {
        let (mut server, client) = configs(TransportConfig {
            handshake_timeout: PATIENCE,
            ..TransportConfig::default()
        });
        server.retry = RetryPolicy::Above(HALF_OPEN);
        let options = EndpointOptions::new(endpoint_config(1), [1; 32]).server(server);
        let pair = {
            let _watched = watchdog::enter();
            Arc::new(Pair::on("127.0.0.1:0", "127.0.0.1:0", options, client))
        };
        let accepting = pair.server.clone();
        let acceptor = tokio::spawn(async move {
            while let Some(connection) = accepting.accept().await {
                tokio::spawn(echo(connection));
            }
        });
        let address = pair.server.local_addr();
        let connecting = pair.client.connect(&pair.config, address, NAME);
        let bystander = connecting.unwrap().await.unwrap();
        let packets = first_packets(&pair.config, address, FLOOD / SOURCES);
        let over = Arc::new(AtomicBool::new(false));
        let enough = StopOnDrop(Arc::new(AtomicBool::new(false)));
        let flooding = {
            let (over, enough) = (Arc::clone(&over), Arc::clone(&enough.0));
            tokio::task::spawn_blocking(move || {
                let sent = flood(address, &packets, &sources(), &enough);
                over.store(true, Ordering::Release);
                sent
            })
        };
        // As long as the flood lasts: a stream after the other, each echoed.
        let (mut echoes, mut newcomers) = (0, 0);
        while !over.load(Ordering::Acquire) {
            let (mut send, mut recv) = bystander.open_bi().await.unwrap();
            send.write_all(&[7; 1000]).await.unwrap();
            send.finish().unwrap();
            assert_eq!(recv.read_to_end(1000).await.unwrap(), [7; 1000]);
            echoes += 1;
            if newcomers < 3 {
                let connecting = pair.client.connect(&pair.config, address, NAME);
                connecting.unwrap().await.unwrap();
                newcomers += 1;
                if newcomers == 3 {
                    enough.stop();
                }
            }
        }
        let (all, sent) = flooding.await.unwrap();
        assert!(sent > all / 2, "only {sent} datagrams could be sent");
        assert!(echoes > 0 && newcomers == 3, "{echoes} {newcomers}");
        let stats = pair.server.stats().routing;
        println!("{sent} sent, {stats:?}, {echoes} echoes");
        // No more than allowed are half open, and the others were sent a Retry, as far as the
        // system did not drop them.
        assert!(stats.accepted <= HALF_OPEN as u64 + 1 + 4, "{stats:?}");
        assert!(stats.retries_sent > FLOOD as u64 / 10, "{stats:?}");
        acceptor.abort();
        drop(bystander);
    })
    .await;
}
