//! The tunnel of one target: opened in the background, used once it is there.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_net::{Carried, CarriedContent};
use tokio::select;
use tokio::time::{Instant, sleep_until};

use super::carrier::Flows;
use crate::client::REFUSED_FOR;
use crate::client::error::{MIN_QUIC_DATAGRAM, OpenError};
use crate::client::tunnel_client::TunnelClient;
use crate::client::udp_tunnel::{FromTunnel, UdpSender};
use crate::target::Target;

/// Payloads that wait for a tunnel to open; more are dropped.
pub(super) const MAX_WAITING: usize = 64;

/// For so long the connection to the proxy may find out what its path carries. It is noticed at the next repetition of a
/// client's first packet, which come 1, 3 and 7 s after it (RFC 9002, section 6.2).
const SMALL_FOR: Duration = Duration::from_millis(1500);

/// A tunnel without datagrams ends after this time.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// The tunnel of a target, as those who send see it.
pub(super) enum Flow {
    /// It is being opened. Payloads wait.
    Opening(VecDeque<Vec<u8>>),
    /// It is open.
    Open {
        /// Sends into it.
        sender: UdpSender,
        /// Something was sent since it was last looked at.
        is_used: bool,
        /// When a datagram that QUIC can't make smaller did not fit for the first time.
        is_small_since: Option<Instant>,
    },
    /// It could not be opened.
    Refused {
        /// Why.
        error: Arc<OpenError>,
        /// When.
        at: Instant,
    },
}

impl Flow {
    /// Why connections can't use the tunnel, if that is known.
    pub(super) fn failure(&self) -> Option<Arc<OpenError>> {
        match self {
            // An older refusal shows nothing of the tunnel that is asked for now.
            Self::Refused { error, at } => (at.elapsed() < REFUSED_FOR).then(|| Arc::clone(error)),
            Self::Open {
                sender,
                is_small_since: Some(since),
                ..
            } => {
                let max_payload = sender.max_payload();
                let is_small = max_payload < MIN_QUIC_DATAGRAM && since.elapsed() >= SMALL_FOR;
                is_small.then(|| Arc::new(OpenError::SmallDatagrams { max_payload }))
            }
            Self::Open { .. } | Self::Opening(_) => None,
        }
    }
}

/// Opens a tunnel, and takes what comes out of it until it ends.
pub(super) async fn run(
    client: TunnelClient,
    flows: Arc<Flows>,
    target: Target,
    remote: SocketAddr,
) {
    if let Err(error) = pass(&client, &flows, &target, remote).await {
        tracing::debug!(%target, %error, "no tunnel");
        flows.refuse(remote, error);
    } else {
        flows.end(remote);
    }
}

async fn pass(
    client: &TunnelClient,
    flows: &Flows,
    target: &Target,
    remote: SocketAddr,
) -> Result<(), OpenError> {
    let opening = client.begin(target).await?;
    // The first flight of QUIC goes ahead of the answer.
    for payload in flows.take_waiting(remote) {
        opening.send(&payload);
    }
    let mut tunnel = opening.opened().await?;
    flows.open(remote, tunnel.sender());
    let mut last = Instant::now();
    let mut is_answered = false;
    loop {
        let arrived = select! {
            arrived = tunnel.recv_any() => arrived,
            () = flows.endpoint_gone() => return Ok(()),
            () = sleep_until(last + IDLE_TIMEOUT) => {
                if !flows.take_use(remote) {
                    return Ok(());
                }
                last = Instant::now();
                continue;
            }
        };
        let content = match arrived {
            Ok(FromTunnel::Payload { payload, number }) => CarriedContent::Datagram {
                payload,
                tag: number,
            },
            Ok(FromTunnel::Report(report)) => CarriedContent::Report(report),
            Err(end) => {
                tracing::debug!(%target, %end, "tunnel ended");
                return if is_answered {
                    Ok(())
                } else {
                    Err(OpenError::Unanswered)
                };
            }
        };
        is_answered |= matches!(content, CarriedContent::Datagram { .. });
        last = Instant::now();
        if flows.arrived(Carried { remote, content }).await.is_err() {
            // The endpoint is gone.
            return Ok(());
        }
    }
}
