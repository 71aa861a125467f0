//! One tunnel: IP packets between a client and the network, in both directions, until the end.

use std::future::pending;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::channel::Sender;
use swiftwater_http::h3::capsule::{CapsuleReader, capsule_type};
use swiftwater_http::udp::connect::HttpDatagrams;
use swiftwater_http::web::body::{Body, BoxError, MalformedMessage};
use thiserror::Error;
use tokio::select;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::icmp_budget::IcmpBudget;
use super::packet_dispatcher::{PacketDispatcher, Registration};
use super::rules::PacketRules;
use super::to_client::ToClient;
use super::tunnel_addresses::TunnelAddresses;
use crate::context::{self, ContextId};
use crate::ip::{
    CapsuleError, IcmpError, IpCapsule, IpHeader, LINK_PROBE_INTERVAL, LINK_PROBING,
    MAX_IP_CAPSULE, MAX_PACKET, MIN_IPV6_MTU, PADDING_OF_CLIENT, is_ip_capsule,
};
use crate::proxy::content::Content;
use crate::proxy::stats::{Counters, Dropped};
use crate::proxy::usage::TunnelPermit;
use crate::proxy::user_budget::{Direction, UserBudget};

/// What a tunnel needs.
pub(super) struct IpTunnel {
    pub(super) dispatcher: Arc<PacketDispatcher>,
    pub(super) registration: Registration,
    pub(super) rules: PacketRules,
    /// Datagrams below HTTP; `None` with HTTP versions that have none.
    pub(super) datagrams: Option<HttpDatagrams>,
    /// Content for the client: capsules.
    pub(super) to_client: Sender<Bytes, BoxError>,
    /// Content from the client: capsules.
    pub(super) from_client: Body,
    /// What the user may pass; `None` without a limit.
    pub(super) budget: Option<Arc<UserBudget>>,
    pub(super) counters: Arc<Counters>,
}

/// Why a tunnel ended.
#[derive(Clone, Copy, Debug, Error)]
pub(super) enum IpTunnelEnd {
    /// The client ended its content.
    #[error("the client ended it")]
    Finished,
    /// The client reset the request, or its connection is gone, or does not read.
    #[error("the client is gone")]
    ClientGone,
    /// The client's content ends within a capsule.
    #[error("the content ends within a capsule")]
    Truncated,
    /// A datagram can't be an IP packet, or addresses are too many.
    #[error("a capsule is too large")]
    Large,
    /// A capsule is malformed.
    #[error(transparent)]
    Capsule(#[from] CapsuleError),
    /// The link does not carry IPv6 (RFC 9484, section 7.2).
    #[error(
        "the connection to the client carries packets of {mtu} bytes only, and IPv6 needs {MIN_IPV6_MTU}"
    )]
    SmallLink {
        /// The largest packet that it carries, bytes.
        mtu: usize,
    },
    /// The device for packets failed.
    #[error("the device for packets failed")]
    Device,
}

impl IpTunnelEnd {
    /// Why the client sees a reset; `None` for an orderly end.
    fn failure(self) -> Option<BoxError> {
        match self {
            Self::Finished => None,
            Self::Truncated | Self::Large | Self::Capsule(_) => Some(MalformedMessage.into()),
            _ => Some(self.into()),
        }
    }
}

impl IpTunnel {
    /// Forwards until the end. The client sees an orderly end, or after an error a reset.
    pub(super) async fn run(self, permit: TunnelPermit) -> IpTunnelEnd {
        let counters = Arc::clone(&self.counters);
        counters.on_open();
        let Registration { lease, mut packets } = self.registration;
        let mut tunnel = Forwarding {
            addresses: TunnelAddresses::new(lease.addresses()),
            client: ToClient::new(
                self.datagrams.clone(),
                self.to_client,
                Arc::clone(&counters),
            ),
            dispatcher: self.dispatcher,
            rules: self.rules,
            icmp: IcmpBudget::new(),
            budget: self.budget,
            opened_at: Instant::now(),
            counters: Arc::clone(&counters),
        };
        let inputs = Inputs {
            packets: &mut packets,
            datagrams: self.datagrams.as_ref(),
            content: Content::new(self.from_client),
        };
        let Err(end) = tunnel.forward(inputs).await;
        if let Some(why) = end.failure() {
            tunnel.client.abort(why);
        }
        drop(lease);
        drop(permit);
        counters.on_close();
        end
    }
}

/// What a tunnel receives.
struct Inputs<'a> {
    packets: &'a mut tokio::sync::mpsc::Receiver<Bytes>,
    datagrams: Option<&'a HttpDatagrams>,
    content: Content,
}

/// The state of a tunnel.
struct Forwarding {
    addresses: TunnelAddresses,
    client: ToClient,
    dispatcher: Arc<PacketDispatcher>,
    rules: PacketRules,
    icmp: IcmpBudget,
    budget: Option<Arc<UserBudget>>,
    opened_at: Instant,
    counters: Arc<Counters>,
}

impl Forwarding {
    async fn forward(
        &mut self,
        inputs: Inputs<'_>,
    ) -> Result<std::convert::Infallible, IpTunnelEnd> {
        let Inputs {
            packets,
            datagrams,
            mut content,
        } = inputs;
        let routes = IpCapsule::RouteAdvertisement(self.rules.routes());
        self.client.send_capsule(&routes).await?;
        if !self.addresses.is_empty() {
            self.client.send_capsule(&self.addresses.current()).await?;
        }
        let longest = MAX_IP_CAPSULE.max(MAX_PACKET + ContextId::UDP.size());
        let mut capsules = CapsuleReader::new(longest as u64);
        let mut look = interval(LINK_PROBE_INTERVAL);
        look.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            select! {
                _ = look.tick(), if self.addresses.is_waiting() => self.look_at_link().await?,
                packet = packets.recv() => {
                    let packet = packet.ok_or(IpTunnelEnd::Device)?;
                    self.forward_to_client(&packet)?;
                }
                datagram = next_datagram(datagrams) => {
                    let datagram = datagram.ok_or(IpTunnelEnd::ClientGone)?;
                    self.forward_to_network(datagram);
                }
                piece = content.next() => match piece {
                    Some(Ok(mut piece)) => self.take_capsules(&mut capsules, &mut piece).await?,
                    Some(Err(())) => return Err(IpTunnelEnd::ClientGone),
                    None => {
                        let whole = capsules.finish();
                        return Err(whole.map_or(IpTunnelEnd::Truncated, |()| IpTunnelEnd::Finished));
                    }
                },
            }
        }
    }

    /// Assigns the address of IPv6 if the link carries its packets, or gives it up after a while.
    async fn look_at_link(&mut self) -> Result<(), IpTunnelEnd> {
        let is_late = self.opened_at.elapsed() >= LINK_PROBING;
        // Without datagrams it carries all, and the client's SETTINGS may still be on their way.
        let mtu = match self.client.mtu() {
            None if self.client.is_http3() && !is_late => 0,
            mtu => mtu.unwrap_or(MAX_PACKET),
        };
        if mtu >= MIN_IPV6_MTU {
            self.addresses.assign_waiting();
            return self.client.send_capsule(&self.addresses.current()).await;
        }
        if !is_late {
            self.client.probe_link();
            return Ok(());
        }
        if self.addresses.is_empty() {
            return Err(IpTunnelEnd::SmallLink { mtu });
        }
        tracing::info!(
            mtu,
            "a tunnel has no IPv6: the connection to its client carries too small packets"
        );
        match self.addresses.refuse_waiting() {
            Some(refusal) => self.client.send_capsule(&refusal).await,
            None => Ok(()),
        }
    }

    /// A packet of the network.
    fn forward_to_client(&mut self, packet: &[u8]) -> Result<(), IpTunnelEnd> {
        let Ok(header) = IpHeader::parse(packet) else {
            self.counters.on_drop(Dropped::Unknown, 1);
            return Ok(());
        };
        if !self.addresses.contain(header.destination) || !self.rules.permit_to_client(&header) {
            self.counters.on_drop(Dropped::Forbidden, 1);
            return Ok(());
        }
        if !self.is_within_limit(Direction::ToClient, packet) {
            return Ok(());
        }
        let Err(error) = self.client.forward(packet) else {
            return Ok(());
        };
        match error {
            IcmpError::TooBig { mtu } if header.source.is_ipv6() && mtu < MIN_IPV6_MTU => {
                return Err(IpTunnelEnd::SmallLink { mtu });
            }
            _ => {}
        }
        if let Some(message) = self.icmp_about(error, packet, &header) {
            // As all ICMP it may be lost.
            let _ = self.dispatcher.send(&message);
        }
        Ok(())
    }

    /// An HTTP datagram of the client.
    fn forward_to_network(&mut self, datagram: Bytes) {
        let packet = match context::decode(datagram) {
            // Context 0 is whole packets (RFC 9484, section 6).
            Some((ContextId::UDP, packet)) => packet,
            // The client looks what its link carries.
            Some((PADDING_OF_CLIENT, _)) => return,
            _ => return self.counters.on_drop(Dropped::Unknown, 1),
        };
        let Ok(header) = IpHeader::parse(&packet) else {
            return self.counters.on_drop(Dropped::Unknown, 1);
        };
        // BCP 38.
        if !self.addresses.contain(header.source) {
            return self.counters.on_drop(Dropped::Forbidden, 1);
        }
        if !self.rules.permit_to_target(&header) {
            self.counters.on_drop(Dropped::Forbidden, 1);
            if let Some(message) = self.icmp_about(IcmpError::Prohibited, &packet, &header) {
                self.client.send_own(&message);
            }
            return;
        }
        if !self.is_within_limit(Direction::ToTarget, &packet) {
            return;
        }
        match self.dispatcher.send(&packet) {
            Ok(()) => self.counters.on_datagrams_to_target(1, packet.len()),
            Err(_) => self.counters.on_drop(Dropped::Full, 1),
        }
    }

    /// Whether the user may pass a packet; counts one that does not.
    fn is_within_limit(&self, direction: Direction, packet: &[u8]) -> bool {
        let mut budget = self.budget.iter();
        let admits = budget.all(|budget| budget.admit(direction, packet.len()));
        if !admits {
            self.counters.on_drop(Dropped::OverLimit, 1);
        }
        admits
    }

    fn icmp_about(
        &mut self,
        error: IcmpError,
        packet: &[u8],
        header: &IpHeader,
    ) -> Option<Vec<u8>> {
        let own = self.dispatcher.own_address(header.source)?;
        let message = error.about(packet, own)?;
        let is_admitted = self.icmp.admit(self.opened_at.elapsed());
        is_admitted.then_some(message)
    }

    async fn take_capsules(
        &mut self,
        capsules: &mut CapsuleReader,
        piece: &mut Bytes,
    ) -> Result<(), IpTunnelEnd> {
        while let Some(capsule) = capsules.next(piece) {
            if capsule.capsule_type == capsule_type::DATAGRAM {
                self.forward_to_network(capsule.value);
                continue;
            }
            if let Some(IpCapsule::AddressRequest(requests)) = IpCapsule::decode(&capsule)? {
                let answer = self.addresses.answer(&requests);
                self.client.send_capsule(&answer).await?;
            }
            // Addresses and routes of the client are of no use here: the network has its own.
        }
        let is_ours = |kind| kind == capsule_type::DATAGRAM || is_ip_capsule(kind);
        match capsules.passed_over() {
            Some(kind) if is_ours(kind) => Err(IpTunnelEnd::Large),
            _ => Ok(()),
        }
    }
}

async fn next_datagram(datagrams: Option<&HttpDatagrams>) -> Option<Bytes> {
    match datagrams {
        Some(datagrams) => datagrams.recv().await.ok(),
        None => pending().await,
    }
}
