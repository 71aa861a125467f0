//! A local TCP address that leads to one target: each connection gets a tunnel of its own.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use super::datagram_relay::ForwardStats;
use super::listener::{Listener, ListenerCounters, ListenerLimits, ListenerStats, reset};
use super::tunnel_client::TunnelClient;
use crate::target::Target;

/// A forward of TCP from a local address.
#[derive(Debug)]
pub struct LocalTcpForward {
    listener: Listener,
    client: TunnelClient,
    target: Target,
    counters: Arc<ListenerCounters>,
}

impl LocalTcpForward {
    /// Binds `local`, whose connections are to lead to `target`.
    pub async fn bind(
        local: SocketAddr,
        client: TunnelClient,
        target: Target,
        limits: ListenerLimits,
    ) -> io::Result<Self> {
        Ok(Self {
            listener: Listener::bind(local, limits).await?,
            client,
            target,
            counters: Arc::default(),
        })
    }

    /// The address that it is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Counters so far.
    pub fn stats(&self) -> ListenerStats {
        self.counters.stats(ForwardStats::default())
    }

    /// Forwards until the future is dropped, or the socket fails.
    pub async fn run(&self) -> io::Error {
        let serve = |local, _| {
            let (client, target) = (self.client.clone(), self.target.clone());
            let counters = Arc::clone(&self.counters);
            async move {
                match client.open_tcp(&target).await {
                    Ok(tunnel) => counters.forward(local, &[], tunnel).await,
                    Err(error) => {
                        ListenerCounters::add(&counters.failed);
                        tracing::warn!(%target, %error, "no tunnel");
                        // TCP has no other way to say that there is no target.
                        reset(&local);
                    }
                }
            }
        };
        self.listener.run(&self.counters, serve).await
    }
}
