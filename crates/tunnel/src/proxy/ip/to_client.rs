//! What a tunnel sends to its client: packets in datagrams or capsules, addresses and routes in capsules.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::channel::Sender;
use swiftwater_http::udp::connect::HttpDatagrams;
use swiftwater_http::web::body::BoxError;
use tokio::time::timeout;

use super::tunnel::IpTunnelEnd;
use crate::context::{self, ContextId};
use crate::ip::{
    IcmpError, IpCapsule, LINK_PROBE_DATAGRAMS, MAX_PACKET, PADDING_OF_PROXY, decrement_hop_limit,
    padding,
};
use crate::proxy::capsules;
use crate::proxy::stats::{Counters, Dropped, Passed};
use crate::proxy::to_client::{deadline, send_datagram};
use crate::tecc::MAX_QUEUE_DELAY;

/// How long a client may leave addresses and routes unread.
const UNREAD: Duration = Duration::from_secs(10);

/// The way to one client.
pub(super) struct ToClient {
    datagrams: Option<HttpDatagrams>,
    content: Sender<Bytes, BoxError>,
    counters: Arc<Counters>,
}

impl ToClient {
    pub(super) fn new(
        datagrams: Option<HttpDatagrams>,
        content: Sender<Bytes, BoxError>,
        counters: Arc<Counters>,
    ) -> Self {
        Self {
            datagrams,
            content,
            counters,
        }
    }

    /// Whether there may be datagrams below HTTP.
    pub(super) fn is_http3(&self) -> bool {
        self.datagrams.is_some()
    }

    /// The largest packet that the link carries in a datagram at present, bytes; `None` if packets are in capsules.
    pub(super) fn mtu(&self) -> Option<usize> {
        let size = self.datagrams.as_ref()?.max_size()?;
        Some(size.saturating_sub(ContextId::UDP.size()))
    }

    /// Forwards a packet of the network: takes one from its hop limit (RFC 9484, section 7.1), and sends it, or counts
    /// why not. An error is for the packet's sender.
    pub(super) fn forward(&mut self, packet: &[u8]) -> Result<(), IcmpError> {
        let mut datagram = context::encode(ContextId::UDP, packet);
        if !decrement_hop_limit(&mut datagram[ContextId::UDP.size()..]) {
            self.counters.on_drop(Dropped::Unknown, 1);
            return Err(IcmpError::TimeExceeded);
        }
        match self.send(datagram) {
            Ok(()) => {
                let mut passed = Passed::default();
                passed.add(packet, Ok(()));
                self.counters.on_passed_to_client(&passed);
                Ok(())
            }
            Err(dropped) => {
                self.counters.on_drop(dropped, 1);
                match dropped {
                    Dropped::Large => Err(IcmpError::TooBig {
                        mtu: self.mtu().unwrap_or(MAX_PACKET),
                    }),
                    _ => Ok(()),
                }
            }
        }
    }

    /// Sends a packet of the proxy itself.
    pub(super) fn send_own(&mut self, packet: &[u8]) {
        if let Err(dropped) = self.send(context::encode(ContextId::UDP, packet)) {
            self.counters.on_drop(dropped, 1);
        }
    }

    /// Sends padding, so that the connection looks what its path carries.
    pub(super) fn probe_link(&mut self) {
        let Some(datagrams) = &self.datagrams else {
            return;
        };
        let size = datagrams.max_size().unwrap_or_default();
        for _ in 0..LINK_PROBE_DATAGRAMS {
            // As any other it may be lost.
            let _ = datagrams.try_send(&padding(PADDING_OF_PROXY, size));
        }
    }

    /// It never waits, as for UDP.
    fn send(&mut self, datagram: Vec<u8>) -> Result<(), Dropped> {
        if let Some(datagrams) = &self.datagrams
            && datagrams.max_size().is_some()
        {
            let until = datagrams.connection().now() + MAX_QUEUE_DELAY;
            datagrams.send_batch(|batch| send_datagram(batch, [&[], &datagram], deadline(until)))
        } else {
            let frame = Frame::data(capsules::encode(datagram));
            self.content.try_send(frame).map_err(|_| Dropped::Full)
        }
    }

    /// Sends addresses or routes.
    pub(super) async fn send_capsule(&mut self, capsule: &IpCapsule) -> Result<(), IpTunnelEnd> {
        let sent = timeout(UNREAD, self.content.send_data(capsule.to_bytes())).await;
        match sent {
            Ok(Ok(())) => Ok(()),
            _ => Err(IpTunnelEnd::ClientGone),
        }
    }

    /// Resets the client's stream.
    pub(super) fn abort(self, why: BoxError) {
        self.content.abort(why);
    }
}
