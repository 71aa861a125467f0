use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use swiftwater_quic::{ClientConfig, Endpoint, EndpointConfig};
use swiftwater_tls::{ClientTls, DevCertificate, EndpointSecrets};
use swiftwater_units::{Instant, PathId};

use super::*;
use crate::socket::{Socket, SocketBuffers};

const BUFFERS: SocketBuffers = SocketBuffers {
    send: 1 << 20,
    receive: 1 << 20,
};

/// The handle of a connection.
fn sender() -> ConnectionHandle {
    let secrets = Arc::new(EndpointSecrets::from_seed([1; 32]));
    let mut endpoint = Endpoint::new(EndpointConfig::new(secrets), None, [1; 32]);
    let certificate = DevCertificate::generate(["localhost"]).unwrap();
    let config = ClientConfig {
        crypto: Arc::new(ClientTls::with_roots([certificate.certificate_der()]).unwrap()),
        transport: Arc::default(),
    };
    let address = "127.0.0.1:9".parse().unwrap();
    let opened = endpoint.connect(Instant::ZERO, &config, address, "localhost");
    opened.unwrap().0
}

/// Sends what is in hand, and waits until it has left.
async fn flush(outgoing: &mut Outgoing, sockets: &WorkerSockets, counters: &IoCounters) {
    poll_fn(|cx| {
        outgoing.send(cx, sockets, counters);
        Poll::Ready(())
    })
    .await;
    poll_fn(|cx| {
        outgoing.retry(cx, sockets, counters, |_| {});
        if outgoing.is_blocked(SocketId::default()) {
            return Poll::Pending;
        }
        Poll::Ready(())
    })
    .await;
}

/// Sends `size` bytes in segments and returns the counters: sends, datagrams, errors.
async fn send(to: SocketAddr, size: usize, segment: usize) -> [u64; 3] {
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap(), BUFFERS).unwrap();
    let sockets = WorkerSockets::new(WorkerSocket::Udp(Arc::new(socket)));
    let counters = IoCounters::default();
    let mut outgoing = Outgoing::new();
    let filled = outgoing.fill(&sockets, sender(), |_, buffer| {
        for (n, datagram) in buffer[..size].chunks_mut(segment).enumerate() {
            datagram.fill(n as u8);
        }
        Some(Transmit {
            path: PathId::ZERO,
            destination: to,
            source_ip: None,
            socket: SocketId::default(),
            ecn: None,
            size,
            segment_size: (segment < size).then_some(segment),
        })
    });
    assert!(filled);
    flush(&mut outgoing, &sockets, &counters).await;
    [
        &counters.sends,
        &counters.datagrams_sent,
        &counters.send_errors,
    ]
    .map(|counter| counter.load(Ordering::Relaxed))
}

/// A batch that the system refuses goes out datagram by datagram.
#[tokio::test]
async fn refused_batches_are_taken_apart() {
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    // More segments than any kernel takes.
    let [_, datagrams, errors] = send(receiver.local_addr().unwrap(), 20_050, 100).await;
    assert_eq!((datagrams, errors), (201, 0));
    let mut buffer = [0; 2000];
    for n in 0..201 {
        let len = receiver.recv(&mut buffer).unwrap();
        assert_eq!(len, if n == 200 { 50 } else { 100 });
        assert_eq!(buffer[0], n as u8);
    }
}

/// Sockets don't fragment: what is larger than the interface takes is refused, and reported.
#[tokio::test]
async fn datagrams_larger_than_the_interface_are_reported() {
    let receiver = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let socket = Socket::bind("127.0.0.1:0".parse().unwrap(), BUFFERS).unwrap();
    let sockets = WorkerSockets::new(WorkerSocket::Udp(Arc::new(socket)));
    let counters = IoCounters::default();
    let mut outgoing = Outgoing::new();
    // More than any IPv4 packet holds.
    let size = MAX_UDP_PAYLOAD + 10;
    let destination = receiver.local_addr().unwrap();
    outgoing.fill(&sockets, sender(), |_, _| {
        Some(Transmit {
            path: PathId::ZERO,
            socket: SocketId::default(),
            destination,
            source_ip: None,
            ecn: None,
            size,
            segment_size: None,
        })
    });
    flush(&mut outgoing, &sockets, &counters).await;
    let failure = SendFailure {
        sender: sender(),
        reason: SendFailureReason::TooLarge(PathId::ZERO, size),
    };
    assert_eq!(outgoing.take_failure(), Some(failure));
    assert_eq!(outgoing.take_failure(), None);
}

/// What can't be sent is dropped and counted, not tried forever.
#[tokio::test]
async fn refused_datagrams_are_dropped() {
    let elsewhere = "[::1]:9".parse().unwrap();
    assert_eq!(send(elsewhere, 300, 100).await, [0, 0, 3]);
}
