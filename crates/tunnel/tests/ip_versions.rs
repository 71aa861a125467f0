//! Tunnels for IP packets over HTTP/2 and HTTP/1.1, where packets are in capsules.

use std::net::{IpAddr, SocketAddr};

use http::Version;
use swiftwater_http::tcp::TcpServer;
use swiftwater_tunnel::client::{
    Connect, Connecting, ConnectingTcp, FromIpTunnel, HttpVersions, TcpConnection, TunnelClient,
};
use swiftwater_tunnel::ip::{MAX_PACKET, Scope};
use swiftwater_tunnel::policy::Prefix;
use swiftwater_tunnel::proxy::{IpNetwork, SystemResolver, TunnelProxy};
use swiftwater_tunnel::target::Template;
use tokio::net::{TcpListener, TcpStream};

use crate::network::Network;
use crate::packets::packet;
use crate::stage::{NAME, config, guard, token};

struct OverTcp {
    proxy: SocketAddr,
    version: Version,
}

impl Connect for OverTcp {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async { Err("nobody answers".into()) })
    }

    fn versions(&self) -> HttpVersions {
        HttpVersions::Tcp
    }

    fn connect_tcp(&self) -> ConnectingTcp<'_> {
        Box::pin(async {
            let stream = TcpStream::connect(self.proxy).await?;
            Ok(match self.version {
                Version::HTTP_2 => TcpConnection::http2(stream),
                _ => TcpConnection::http1(stream),
            })
        })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn packets_of_both_versions_pass_in_capsules() {
    guard(async {
        let mut config = config();
        let allowed = ["198.51.100.0/24", "2001:db8:1::/48"];
        config.policy.allowed = allowed.map(|text| text.parse().unwrap()).to_vec();
        let pools: [Prefix; 2] = ["10.9.0.0/24", "fd00:9::/64"].map(|text| text.parse().unwrap());
        let network = IpNetwork::new(Network::echo(), &pools).unwrap();
        let proxy = TunnelProxy::with_network(config, SystemResolver, &network);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = TcpServer::plain().serve(listener, proxy.clone()).unwrap();
        for (closed, version) in (1..).zip([Version::HTTP_2, Version::HTTP_11]) {
            let connector = OverTcp {
                proxy: server.local_addr(),
                version,
            };
            let template = Template::new(NAME).unwrap();
            let client = TunnelClient::new(template, Some(&token()), connector);
            let mut tunnel = client.open_ip(&Scope::ANY).await.unwrap();
            while tunnel.sender().addresses().len() < 2 {
                tunnel.recv().await.unwrap();
            }
            assert_eq!(tunnel.sender().max_packet(), MAX_PACKET);
            let own = tunnel.sender().addresses();
            let peers: [IpAddr; 2] =
                ["198.51.100.2", "2001:db8:1::2"].map(|text| text.parse().unwrap());
            for (from, to) in own.iter().map(Prefix::address).zip(peers) {
                for len in [1, 1400, 9000] {
                    let content = vec![len as u8; len];
                    let sent = packet(from, to, 17, 64, &content);
                    tunnel.send(&sent).await.unwrap();
                    let received = loop {
                        if let FromIpTunnel::Packet(packet) = tunnel.recv().await.unwrap() {
                            break packet;
                        }
                    };
                    assert_eq!(received, packet(to, from, 17, 62, &content), "{version:?}");
                }
            }
            let wanted = ["0.0.0.0/32".parse().unwrap()];
            let id = tunnel.sender().request(&wanted).await.unwrap()[0];
            loop {
                if let FromIpTunnel::Addresses(addresses) = tunnel.recv().await.unwrap() {
                    assert!(addresses.iter().any(|entry| entry.request_id == id));
                    break;
                }
            }
            drop(tunnel);
            while proxy.stats().closed < closed {
                tokio::task::yield_now().await;
            }
        }
    })
    .await;
}
