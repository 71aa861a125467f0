//! Packets on the addresses of a connection that are not of it: virtual connection IDs.

use std::sync::{Arc, Mutex};

use swiftwater_net::quic::TransportConfig;
use swiftwater_net::quic::wire::ConnectionId;
use swiftwater_net::{
    Connection, Endpoint, EndpointOptions, VirtualIdError, VirtualIdReceiver, VirtualPacket,
};
use tokio::net::UdpSocket;
use tokio::sync::mpsc;

use crate::loopback::{LOOPBACK, NAME, configs, endpoint_config, guard};

type Packets = mpsc::UnboundedReceiver<Vec<u8>>;

struct Receiver(Mutex<mpsc::UnboundedSender<Vec<u8>>>);

impl VirtualIdReceiver for Receiver {
    fn receive(&self, packets: &mut dyn Iterator<Item = VirtualPacket<'_>>) {
        for packet in packets {
            let sender = self.0.lock().unwrap();
            let _ = sender.send(packet.packet[1 + packet.id_len..].to_vec());
        }
    }
}

fn receiver() -> (Arc<Receiver>, Packets) {
    let (sender, packets) = mpsc::unbounded_channel();
    (Arc::new(Receiver(Mutex::new(sender))), packets)
}

/// A connection between endpoints, of which the server has so many workers: the client's end, and the server's.
async fn connected(workers: usize) -> (Endpoint, Endpoint, Connection, Connection) {
    let (server_config, client_config) = configs(TransportConfig::default());
    let options = EndpointOptions::new(endpoint_config(1), [1; 32]);
    let options = options.server(server_config).workers(workers);
    let server = Endpoint::bind(LOOPBACK.parse().unwrap(), options).unwrap();
    let client = Endpoint::client(LOOPBACK.parse().unwrap(), endpoint_config(2), [2; 32]).unwrap();
    let connecting = client.connect(&client_config, server.local_addr(), NAME);
    let near = connecting.unwrap().await.unwrap();
    let far = server.accept().await.unwrap();
    (server, client, near, far)
}

fn packet(id: ConnectionId, content: &[u8]) -> Vec<u8> {
    [&[0x40], id.as_bytes(), content].concat()
}

#[tokio::test]
async fn packets_leave_beside_the_connection_and_arrive_with_their_receiver() {
    guard(async {
        let (server, client, near, far) = connected(1).await;
        let (receiver_there, mut there) = receiver();
        let (receiver_here, mut here) = receiver();
        let issued = far.issue_virtual_id(receiver_there).unwrap();
        let chosen = ConnectionId::new(b"chosen by the peer").unwrap();
        let accepted = near.accept_virtual_id(chosen, receiver_here).unwrap();
        assert_eq!((issued.id().len(), accepted.id()), (8, chosen));
        // Several in one call, the last one shorter.
        let path = near.validated_path().unwrap();
        let packets = [
            packet(issued.id(), b"one."),
            packet(issued.id(), b"two."),
            packet(issued.id(), b"3"),
        ];
        near.send_beside(&path, &packets.concat(), packets[0].len(), None)
            .unwrap();
        for wanted in [&b"one."[..], b"two.", b"3"] {
            assert_eq!(there.recv().await.unwrap(), wanted);
        }
        far.handshake_confirmed().await.unwrap();
        let path = far.validated_path().unwrap();
        let back = packet(chosen, b"back");
        far.send_beside(&path, &back, back.len(), None).unwrap();
        assert_eq!(here.recv().await.unwrap(), b"back");
        assert_eq!(
            (
                server.stats().virtual_packets,
                client.stats().virtual_packets
            ),
            (3, 1)
        );
        // Without the handle the ID is unknown, and the connection goes on.
        drop(issued);
        near.send_beside(
            &near.validated_path().unwrap(),
            &packets[0],
            packets[0].len(),
            None,
        )
        .unwrap();
        let mut stream = near.open_uni().await.unwrap();
        stream.write_all(b"still here").await.unwrap();
        stream.finish().unwrap();
        let read = far
            .accept_uni()
            .await
            .unwrap()
            .read_to_end(100)
            .await
            .unwrap();
        assert_eq!(read, b"still here");
        assert_eq!(server.stats().virtual_packets, 3);
    })
    .await;
}

#[tokio::test]
async fn ids_that_conflict_are_refused() {
    guard(async {
        let (_server, _client, near, far) = connected(1).await;
        let issued = far.issue_virtual_id(receiver().0).unwrap();
        let longer = [issued.id().as_bytes(), b"more"].concat();
        for id in [
            issued.id().as_bytes(),
            &issued.id().as_bytes()[..5],
            &longer,
        ] {
            let id = ConnectionId::new(id).unwrap();
            let refused = far.accept_virtual_id(id, receiver().0);
            assert_eq!(refused.unwrap_err(), VirtualIdError::Conflict);
        }
        drop(near);
    })
    .await;
}

/// An ID that this endpoint issued leads to the worker of its connection, wherever a packet arrives.
#[cfg(any(target_os = "linux", target_os = "android"))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_find_the_worker_of_their_connection() {
    guard(async {
        let (server, _client, _near, far) = connected(2).await;
        let (receiver, mut packets) = receiver();
        let id = far.issue_virtual_id(receiver).unwrap();
        let content = [7; 40];
        // Each port falls to one of the workers: 20 of them to the same one once in half a million runs.
        for sent in 1..=20 {
            let socket = UdpSocket::bind(LOOPBACK).await.unwrap();
            let packet = packet(id.id(), &content);
            socket.send_to(&packet, server.local_addr()).await.unwrap();
            assert_eq!(packets.recv().await.unwrap(), content);
            assert!(server.stats().virtual_packets >= sent - 1);
        }
        assert!(server.stats().handed_over > 0);
    })
    .await;
}

#[tokio::test]
async fn nothing_leaves_beside_a_connection_that_is_over() {
    guard(async {
        let (_server, _client, near, far) = connected(1).await;
        assert!(near.has_udp_socket() && near.validated_path().is_some());
        far.close(0, b"");
        near.closed().await;
        assert!(near.validated_path().is_none());
    })
    .await;
}

/// Who keeps a connection that is over does not keep its port.
#[tokio::test]
async fn a_handle_of_a_connection_does_not_hold_the_socket() {
    guard(async {
        let (server, client, near, _far) = connected(1).await;
        let address = client.local_addr();
        near.close(0, b"");
        client.wait_idle().await;
        drop((client, server));
        let free = async {
            while UdpSocket::bind(address).await.is_err() {
                tokio::task::yield_now().await;
            }
        };
        free.await;
        assert!(near.validated_path().is_none());
    })
    .await;
}
