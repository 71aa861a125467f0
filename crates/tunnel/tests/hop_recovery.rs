//! The loss recovery policy of the connection between client and proxy, for what streams carry in tunnels.

use std::net::SocketAddr;
use std::time::Duration;

use swiftwater_link::{LinkConfig, LossModel};
use swiftwater_net::quic::TransportConfig;
use swiftwater_net::relay::{Relay, RelayConfig};
use swiftwater_policies::by_name;
use swiftwater_tunnel::client::{Connect, TunnelClient};
use swiftwater_tunnel::proxy::TunnelProxy;
use swiftwater_tunnel::target::Template;

use crate::stage::{Connector, NAME, Stage, config, content, guard, sent_back, tcp_echo, token};

/// A stage whose both ends have this policy, and a connector over a link that loses a tenth of the packets each way.
fn lossy(policy: &str) -> (Stage, Relay, Connector) {
    let transport = TransportConfig {
        initial_max_datagram_size: 1252,
        policies: by_name(policy).unwrap(),
        ..TransportConfig::default()
    };
    let stage = Stage::over(transport, TunnelProxy::new(config()));
    let any = SocketAddr::from(([127, 0, 0, 1], 0));
    let mut through = RelayConfig::new(any, stage.server_end.local_addr());
    let link = LinkConfig::default()
        .delay(Duration::from_millis(50))
        .loss(LossModel::Bernoulli(0.1));
    (through.up, through.down) = (link.clone(), link);
    let relay = Relay::start(through).unwrap();
    let connector = stage.connector_to(relay.local_addr());
    (stage, relay, connector)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tunnel_for_tcp_has_the_copies_of_autorec() {
    guard(async {
        for (policy, has_copies) in [("arq", false), ("autorec", true)] {
            let (_stage, _relay, connector) = lossy(policy);
            // The connection of the tunnel, to look at.
            let connection = connector.connect().await.unwrap();
            let target = tcp_echo().await;
            let template = Template::new(NAME).unwrap();
            let client = TunnelClient::new(template, Some(&token()), Fixed(connection.clone()));
            let tunnel = client.open_tcp(&target).await.unwrap();
            let content = content(300_000);
            assert!(sent_back(tunnel, &content).await == content, "{policy}");
            let repair = connection.connection().stats().repair;
            assert!(repair.lost_data > 0, "{policy}");
            assert_eq!(repair.replicas_sent > 0, has_copies, "{policy}");
        }
    })
    .await;
}

/// A connection that is there.
struct Fixed(swiftwater_http::udp::SendRequest);

impl Connect for Fixed {
    fn connect(&self) -> swiftwater_tunnel::client::Connecting<'_> {
        let connection = self.0.clone();
        Box::pin(async move { Ok(connection) })
    }
}
