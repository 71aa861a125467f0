//! The relay of IP packets, between the kernel's own sockets.

#![cfg(all(target_os = "linux", feature = "tun"))]
use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_net::relay::tun::{IpProtocol, Policer, Site, TunError, TunRelay, TunRelayConfig};
use swiftwater_net::relay::{Relay, RelayConfig};
use swiftwater_units::Bandwidth;

/// Far longer than any wait takes.
const PATIENCE: Duration = Duration::from_secs(30);

/// A relay, or a line that says why there is none here.
fn start(config: &TunRelayConfig) -> Option<TunRelay> {
    match TunRelay::start(config) {
        Ok(relay) => Some(relay),
        Err(error @ (TunError::Namespace(_) | TunError::Device(_))) => {
            println!("skipped: {error}");
            None
        }
        Err(error) => panic!("{error}"),
    }
}

fn at<T: Send + 'static>(site: &Site, work: impl FnOnce() -> T + Send + 'static) -> T {
    site.spawn("test", work).unwrap().join().unwrap().unwrap()
}

/// An address of the site, any port.
fn any(site: &Site) -> SocketAddr {
    (site.address(), 0).into()
}

fn udp(site: &Site) -> UdpSocket {
    let address = any(site);
    let socket = at(site, move || UdpSocket::bind(address).unwrap());
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

fn noise(len: usize) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 24) as u8
    };
    (0..len).map(|_| next()).collect()
}

#[test]
fn tcp_of_the_kernel_crosses_a_lossy_link() {
    const SIZE: usize = 1 << 20;
    let link = LinkConfig::default()
        .rate(Bandwidth::from_mbps(100))
        .delay(Duration::from_millis(5))
        .loss(LossModel::Bernoulli(0.02));
    let config = TunRelayConfig {
        up: link.clone(),
        down: link,
        seed: 5,
    };
    let Some(relay) = start(&config) else { return };
    let address = any(relay.server());
    let listener = at(relay.server(), move || TcpListener::bind(address).unwrap());
    let server = listener.local_addr().unwrap();
    let sending = std::thread::spawn(move || {
        let (mut stream, peer) = listener.accept().unwrap();
        stream.write_all(&noise(SIZE)).unwrap();
        peer.ip()
    });
    let begin = Instant::now();
    let mut stream = at(relay.client(), move || TcpStream::connect(server).unwrap());
    assert!(begin.elapsed() >= Duration::from_millis(10), "a round trip");
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut arrived = Vec::new();
    stream.read_to_end(&mut arrived).unwrap();
    assert!(arrived == noise(SIZE));
    assert_eq!(
        sending.join().unwrap(),
        IpAddr::from(relay.client().address())
    );
    let counters = relay.stop();
    assert!(counters.down.dropped_random.packets.get() > 0);
    // No offloads: the link saw packets and not segments of 64 kB.
    let down = counters.down.enqueued;
    assert!(down.packets.get() > SIZE as u64 / 1500);
    assert!(down.bytes.get() > SIZE as u64);
    assert_eq!(counters.unsent, 0);
}

/// Sends `packets` numbered datagrams up, the last of them again and again until it comes; returns the
/// numbers that arrived before it.
fn survivors(
    sender: &UdpSocket,
    to: SocketAddr,
    receiver: UdpSocket,
    packets: u16,
) -> BTreeSet<u16> {
    let (told, done) = mpsc::channel();
    let receiving = std::thread::spawn(move || {
        let mut seen = BTreeSet::new();
        let mut buffer = [0; 100];
        loop {
            let (_, _) = receiver.recv_from(&mut buffer).unwrap();
            let number = u16::from_be_bytes([buffer[0], buffer[1]]);
            if number == packets {
                told.send(()).unwrap();
                return seen;
            }
            seen.insert(number);
        }
    });
    let datagram = |number: u16| {
        let mut datagram = [0; 100];
        datagram[..2].copy_from_slice(&number.to_be_bytes());
        datagram
    };
    for number in 0..packets {
        sender.send_to(&datagram(number), to).unwrap();
        // No faster than the sockets between take them.
        if number % 16 == 15 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    while done.try_recv().is_err() {
        sender.send_to(&datagram(packets), to).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    }
    receiving.join().unwrap()
}

/// The same packets meet the same fates on the relay of datagrams and on that of IP packets.
#[test]
fn impairments_are_those_of_the_udp_relay() {
    const PACKETS: u16 = 1000;
    let link = LinkConfig::default()
        .delay(Duration::from_millis(1))
        .loss(LossModel::Bernoulli(0.1));
    let config = TunRelayConfig {
        up: link.clone(),
        down: link.clone(),
        seed: 9,
    };
    let Some(relay) = start(&config) else { return };
    let receiver = udp(relay.server());
    let to = receiver.local_addr().unwrap();
    let below = survivors(&udp(relay.client()), to, receiver, PACKETS);
    let counters = relay.stop();

    let receiver = UdpSocket::bind("127.0.0.1:0").unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut above = RelayConfig::new(
        "127.0.0.1:0".parse().unwrap(),
        receiver.local_addr().unwrap(),
    );
    (above.up, above.down, above.seed) = (link.clone(), link, 9);
    let relay = Relay::start(above).unwrap();
    let sender = UdpSocket::bind("127.0.0.1:0").unwrap();
    let through = survivors(&sender, relay.local_addr(), receiver, PACKETS);
    let others = relay.stop();

    assert_eq!(below, through);
    let lost = usize::from(PACKETS) - below.len();
    assert!((50..200).contains(&lost), "{lost} of {PACKETS}");
    // Each packet counts the same on both: 100 bytes and the headers of UDP and IP.
    for up in [counters.up, others.up] {
        assert_eq!(up.enqueued.bytes.get(), 128 * up.enqueued.packets.get());
    }
    assert!(counters.up.dropped_random.packets.get() >= lost as u64);
}

#[test]
fn sites_see_each_other_and_nothing_else() {
    let Some(relay) = start(&TunRelayConfig::default()) else {
        return;
    };
    let (client, server) = (udp(relay.client()), udp(relay.server()));
    let (there, here) = (server.local_addr().unwrap(), client.local_addr().unwrap());
    client.send_to(b"ping", there).unwrap();
    let mut buffer = [0; 2000];
    assert_eq!(server.recv_from(&mut buffer).unwrap(), (4, here));
    // The largest packet passes in one piece, a larger one as fragments, and both arrive.
    for len in [1472, 1473] {
        server.send_to(&noise(len), here).unwrap();
        assert_eq!(client.recv_from(&mut buffer).unwrap(), (len, there));
        assert!(buffer[..len] == noise(len));
    }
    // There is no other network.
    let beyond = client.send_to(b"out", "192.0.2.1:9");
    assert_eq!(
        beyond.unwrap_err().kind(),
        std::io::ErrorKind::NetworkUnreachable
    );
    // Two relays have nothing in common.
    let other = start(&TunRelayConfig::default()).unwrap();
    assert_eq!(other.server().address(), relay.server().address());
    drop(other);
    let counters = relay.stop();
    assert_eq!(
        (
            counters.up.delivered.packets.get(),
            counters.down.delivered.packets.get()
        ),
        (1, 3)
    );
}

#[test]
fn mistakes_are_reported() {
    let mut config = TunRelayConfig::default();
    config.down.duplicate = 2.0;
    let error = TunRelay::start(&config).unwrap_err();
    assert!(matches!(error, TunError::Relay(_)), "{error}");
    assert!(error.to_string().contains("down"), "{error}");
}

#[test]
fn blocked_udp_does_not_keep_tcp_from_passing() {
    let Some(relay) = start(&TunRelayConfig::default()) else {
        return;
    };
    let (client, server) = (udp(relay.client()), udp(relay.server()));
    let to = server.local_addr().unwrap();
    let mut buffer = [0; 16];
    relay.police(IpProtocol::Udp, Policer::Block);
    client.send_to(b"lost", to).unwrap();
    let address = any(relay.server());
    let listener = at(relay.server(), move || TcpListener::bind(address).unwrap());
    let listening = listener.local_addr().unwrap();
    // What was sent before has reached the policer by now.
    let _stream = at(relay.client(), move || {
        TcpStream::connect(listening).unwrap()
    });
    relay.police(IpProtocol::Udp, Policer::Pass);
    client.send_to(b"passed", to).unwrap();
    let len = server.recv(&mut buffer).unwrap();
    assert_eq!(&buffer[..len], b"passed");
}
