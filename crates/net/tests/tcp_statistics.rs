//! What the kernel knows of TCP connections over the loopback interface.

use std::io::{Read, Write};
use std::net::{Ipv6Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use swiftwater_net::{TcpInspector, TcpStatistics};

struct Pair {
    listener: TcpListener,
    client: TcpStream,
    server: TcpStream,
}

impl Pair {
    fn to(listener: TcpListener, address: SocketAddr) -> Self {
        let client = TcpStream::connect(address).unwrap();
        let server = listener.accept().unwrap().0;
        Self {
            listener,
            client,
            server,
        }
    }

    fn at(address: &str) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        Self::to(listener, address)
    }

    fn send_up(&mut self, bytes: usize) {
        self.client.write_all(&vec![1; bytes]).unwrap();
        self.server.read_exact(&mut vec![0; bytes]).unwrap();
    }

    fn send_down(&mut self, bytes: usize) {
        self.server.write_all(&vec![1; bytes]).unwrap();
        self.client.read_exact(&mut vec![0; bytes]).unwrap();
    }
}

fn addresses(stream: &TcpStream) -> (SocketAddr, SocketAddr) {
    (stream.local_addr().unwrap(), stream.peer_addr().unwrap())
}

fn inspect(inspector: &mut TcpInspector, stream: &TcpStream) -> Option<TcpStatistics> {
    let (local, remote) = addresses(stream);
    inspector.inspect(local, remote).unwrap()
}

/// Sends known numbers of bytes both ways and compares both ends' counts.
fn check(mut pair: Pair) {
    let mut inspector = TcpInspector::open().unwrap();
    let before = inspect(&mut inspector, &pair.client).unwrap();
    assert_eq!((before.bytes_sent, before.bytes_received), (0, 0));
    pair.send_up(30_000);
    pair.send_down(20_000);

    let client = inspect(&mut inspector, &pair.client).unwrap();
    // A busy machine may have delayed an acknowledgement for too long.
    assert_eq!(client.bytes_sent - client.bytes_retransmitted, 30_000);
    assert_eq!(client.bytes_received, 20_000);
    assert!(client.data_segments_received > 0);
    assert!(client.out_of_order_segments_received < client.data_segments_received);
    let rtt = client.smoothed_rtt.unwrap();
    assert!(rtt > Duration::ZERO && rtt < Duration::from_secs(60));
    assert!(client.delivery_rate.is_some());

    let server = inspect(&mut inspector, &pair.server).unwrap();
    assert_eq!(server.bytes_sent - server.bytes_retransmitted, 20_000);
    assert_eq!(server.bytes_received, 30_000);
}

#[test]
fn both_ends_of_a_connection_have_their_counts() {
    check(Pair::at("127.0.0.1:0"));
}

#[test]
fn connections_over_ipv6_have_their_counts() {
    let Ok(listener) = TcpListener::bind((Ipv6Addr::LOCALHOST, 0)) else {
        return;
    };
    let address = listener.local_addr().unwrap();
    check(Pair::to(listener, address));
}

#[test]
fn ipv4_mapped_addresses_are_those_of_ipv4() {
    let Ok(socket) = Socket::new(Domain::IPV6, Type::STREAM, None) else {
        return;
    };
    socket.set_only_v6(false).unwrap();
    let any = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0));
    socket.bind(&any.into()).unwrap();
    socket.listen(1).unwrap();
    let listener = TcpListener::from(socket);
    let port = listener.local_addr().unwrap().port();
    let pair = Pair::to(listener, SocketAddr::from(([127, 0, 0, 1], port)));
    assert!(pair.server.local_addr().unwrap().is_ipv6());
    check(pair);
}

#[test]
fn a_closed_connection_is_not_known() {
    let mut inspector = TcpInspector::open().unwrap();
    let Pair {
        listener,
        mut client,
        mut server,
    } = Pair::at("127.0.0.1:0");
    let (ours, theirs) = (addresses(&client), addresses(&server));
    client.shutdown(Shutdown::Write).unwrap();
    server.read_exact(&mut [0]).unwrap_err();
    drop(server);
    client.read_exact(&mut [0]).unwrap_err();
    drop(client);
    // The listener at the server's address is still there.
    let limit = Instant::now() + Duration::from_secs(60);
    for (local, remote) in [ours, theirs] {
        while inspector.inspect(local, remote).unwrap().is_some() {
            assert!(Instant::now() < limit, "{local} is still known");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    drop(listener);
}

#[test]
fn addresses_without_a_connection_are_not_known() {
    let mut inspector = TcpInspector::open().unwrap();
    let pair = Pair::at("127.0.0.1:0");
    let (local, remote) = addresses(&pair.client);
    let nobody: SocketAddr = "192.0.2.1:9".parse().unwrap();
    assert_eq!(inspector.inspect(local, nobody).unwrap(), None);
    let server = pair.listener.local_addr().unwrap();
    assert_eq!(inspector.inspect(server, nobody).unwrap(), None);
    let other_family = SocketAddr::from((Ipv6Addr::LOCALHOST, remote.port()));
    assert_eq!(inspector.inspect(local, other_family).unwrap(), None);
    // One that is there is found afterwards.
    assert!(inspector.inspect(local, remote).unwrap().is_some());
}
