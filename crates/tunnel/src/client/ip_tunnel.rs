//! A tunnel for IP packets at the client (RFC 9484).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex as StdMutex, MutexGuard, PoisonError};

use bytes::Bytes;
use swiftwater_http::h3::capsule::{Capsule, CapsuleReader, capsule_type};
use swiftwater_http::udp::connect::{HttpDatagrams, PendingConnect, SendContent};
use swiftwater_wire::VarInt;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep_until, timeout};

use super::capsule_stream::{self, CapsuleSender};
use super::content::Content;
use super::error::{OpenError, SendPacketError, TunnelError, check_answer};
use super::tcp_link::UpgradedStream;
use super::udp_tunnel::next_datagram;
use crate::context::{self, ContextId};
use crate::ip::{
    AssignedAddress, IcmpError, IpCapsule, IpHeader, LINK_PROBE_DATAGRAMS, LINK_PROBE_INTERVAL,
    LINK_PROBING, MAX_IP_CAPSULE, MAX_PACKET, MIN_IPV6_MTU, PADDING_OF_CLIENT, RequestedAddress,
    Routes, decrement_hop_limit, padding,
};
use crate::policy::Prefix;

/// IP packets through a proxy. The tunnel ends when it and its senders are dropped.
///
/// The proxy assigns addresses and advertises routes after its answer, and may change them: [`recv`](Self::recv) says
/// when, and has to be called for them to arrive. Until then no packet can be sent.
#[derive(Debug)]
pub struct IpTunnel {
    sender: IpSender,
    /// `None` over TCP, where all are capsules.
    datagrams: Option<HttpDatagrams>,
    content: Content,
    capsules: CapsuleReader,
    /// Received in capsules, not read yet.
    waiting: VecDeque<FromIpTunnel>,
    /// There is an address of IPv6, and it is not known whether the connection carries its packets.
    probing: Option<LinkProbing>,
}

#[derive(Clone, Copy, Debug)]
struct LinkProbing {
    next: Instant,
    until: Instant,
}

/// What comes out of a tunnel.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum FromIpTunnel {
    /// An IP packet for an address of the tunnel.
    Packet(Bytes),
    /// All addresses that the tunnel now has, and refusals of requests.
    Addresses(Vec<AssignedAddress>),
    /// All routes that the tunnel now has.
    Routes(Routes),
}

/// Sends into a tunnel. Clones share it.
#[derive(Clone, Debug)]
pub struct IpSender {
    way: Way,
    network: Arc<StdMutex<Network>>,
}

/// What the proxy has said.
#[derive(Debug, Default)]
struct Network {
    addresses: Vec<Prefix>,
    routes: Routes,
    /// The identifier of the last request for an address.
    last_request: u32,
}

#[derive(Clone, Debug)]
enum Way {
    Http3 {
        datagrams: HttpDatagrams,
        content: Arc<Mutex<SendContent>>,
    },
    Capsules(CapsuleSender),
}

impl IpTunnel {
    pub(super) async fn over_http3(pending: PendingConnect) -> Result<Self, OpenError> {
        let datagrams = pending.datagrams().clone();
        let (head, content) = pending.response().await?.into_parts();
        check_answer(head.status.is_success(), head.status, &head.headers)?;
        let way = Way::Http3 {
            datagrams: datagrams.clone(),
            content: Arc::new(Mutex::new(content.send)),
        };
        let content = Content::Http3(content.receive);
        Ok(Self::new(way, Some(datagrams), content))
    }

    pub(super) fn over_tcp(stream: UpgradedStream) -> Self {
        let (sender, queue) = capsule_stream::queue();
        let content = Content::Stream(queue.begin(stream));
        Self::new(Way::Capsules(sender), None, content)
    }

    fn new(way: Way, datagrams: Option<HttpDatagrams>, content: Content) -> Self {
        let longest = MAX_IP_CAPSULE.max(MAX_PACKET + ContextId::UDP.size());
        Self {
            sender: IpSender {
                way,
                network: Arc::default(),
            },
            datagrams,
            content,
            capsules: CapsuleReader::new(longest as u64),
            waiting: VecDeque::new(),
            probing: None,
        }
    }

    /// A handle that sends.
    pub fn sender(&self) -> IpSender {
        self.sender.clone()
    }

    /// Sends a packet: see [`IpSender::send`].
    pub async fn send(&self, packet: &[u8]) -> Result<(), SendPacketError> {
        self.sender.send(packet).await
    }

    /// The next packet, or change of addresses or routes. Dropping the future loses nothing. Packets for other
    /// addresses are dropped. After an error the tunnel is of no use.
    pub async fn recv(&mut self) -> Result<FromIpTunnel, TunnelError> {
        loop {
            if let Some(next) = self.waiting.pop_front() {
                return Ok(next);
            }
            let probing = self.probing;
            tokio::select! {
                biased;
                // Addresses come before the packets for them.
                piece = self.content.read() => {
                    let Some(mut piece) = piece? else {
                        let whole = self.capsules.finish();
                        return Err(whole.map_or(TunnelError::Malformed, |()| TunnelError::Ended));
                    };
                    self.take_capsules(&mut piece)?;
                }
                datagram = next_datagram(self.datagrams.as_ref()) => match datagram {
                    Ok(datagram) => {
                        if let Some(packet) = self.packet_of(datagram) {
                            return Ok(FromIpTunnel::Packet(packet));
                        }
                    }
                    // The content says why.
                    Err(_) => return Err(self.content.end().await),
                },
                () = next_probe(probing), if probing.is_some() => self.probe_link()?,
            }
        }
    }

    /// Waits until the proxy has assigned an address and advertised routes, and, with an address of IPv6, the connection
    /// is known to carry packets of 1280 bytes. Packets that come before are lost.
    pub async fn configured(&mut self) -> Result<(), TunnelError> {
        while !self.is_configured() {
            // What is received is no news when only the connection is waited for.
            if let Ok(received) = timeout(LINK_PROBE_INTERVAL, self.recv()).await {
                received?;
            }
        }
        Ok(())
    }

    fn is_configured(&self) -> bool {
        let network = self.sender.network();
        let has_routes = !network.routes.as_slice().is_empty();
        has_routes && !network.addresses.is_empty() && self.probing.is_none()
    }

    /// Looks whether the connection carries packets of IPv6, and fails if it took too long to.
    fn probe_link(&mut self) -> Result<(), TunnelError> {
        let mtu = self.sender.max_packet();
        if mtu >= MIN_IPV6_MTU {
            self.probing = None;
        } else if let Some(probing) = &mut self.probing {
            let now = Instant::now();
            if now >= probing.until {
                return Err(TunnelError::SmallLink { mtu });
            }
            probing.next = now + LINK_PROBE_INTERVAL;
            let Some(datagrams) = &self.datagrams else {
                return Ok(());
            };
            let size = datagrams.max_size().unwrap_or_default();
            for _ in 0..LINK_PROBE_DATAGRAMS {
                // As any other it may be lost.
                let _ = datagrams.try_send(&padding(PADDING_OF_CLIENT, size));
            }
        }
        Ok(())
    }

    /// A packet for an address of the tunnel; `None` for anything else.
    fn packet_of(&self, datagram: Bytes) -> Option<Bytes> {
        let (context, packet) = context::decode(datagram)?;
        if context != ContextId::UDP {
            return None;
        }
        let header = IpHeader::parse(&packet).ok()?;
        let network = self.sender.network();
        let mut addresses = network.addresses.iter();
        addresses
            .any(|prefix| prefix.contains(header.destination))
            .then_some(packet)
    }

    fn take_capsules(&mut self, piece: &mut Bytes) -> Result<(), TunnelError> {
        while let Some(capsule) = self.capsules.next(piece) {
            if capsule.capsule_type == capsule_type::DATAGRAM {
                let packet = self.packet_of(capsule.value);
                self.waiting.extend(packet.map(FromIpTunnel::Packet));
                continue;
            }
            match IpCapsule::decode(&capsule)? {
                Some(IpCapsule::AddressAssign(addresses)) => self.on_addresses(addresses),
                Some(IpCapsule::RouteAdvertisement(routes)) => {
                    self.sender.network().routes = routes.clone();
                    self.waiting.push_back(FromIpTunnel::Routes(routes));
                }
                // A proxy that wants an address of the client's network gets none.
                Some(IpCapsule::AddressRequest(_)) | None => {}
            }
        }
        Ok(())
    }

    fn on_addresses(&mut self, addresses: Vec<AssignedAddress>) {
        let assigned = addresses.iter().filter(|entry| !entry.is_refusal());
        let prefixes: Vec<Prefix> = assigned.map(|entry| entry.prefix).collect();
        let has_ipv6 = prefixes.iter().any(|prefix| prefix.address().is_ipv6());
        if has_ipv6 {
            self.probing.get_or_insert_with(|| {
                let next = Instant::now();
                let until = next + LINK_PROBING;
                LinkProbing { next, until }
            });
        } else {
            self.probing = None;
        }
        self.sender.network().addresses = prefixes;
        self.waiting.push_back(FromIpTunnel::Addresses(addresses));
    }
}

async fn next_probe(probing: Option<LinkProbing>) {
    match probing {
        Some(probing) => sleep_until(probing.next).await,
        None => std::future::pending().await,
    }
}

impl IpSender {
    /// Forwards a packet to the proxy, unreliably: takes one from its hop limit (RFC 9484, section 7.1), and waits while
    /// the queue to the proxy is full. Over HTTP/2 and HTTP/1.1 it is dropped if the queue is full
    /// ([`TunnelError::Full`]).
    ///
    /// Its source has to be an address of the tunnel, and its destination within the routes.
    pub async fn send(&self, packet: &[u8]) -> Result<(), SendPacketError> {
        let header = IpHeader::parse(packet)?;
        self.check(&header)?;
        let mut datagram = context::encode(ContextId::UDP, packet);
        if !decrement_hop_limit(&mut datagram[ContextId::UDP.size()..]) {
            return Err(refused(IcmpError::TimeExceeded, packet, &header));
        }
        let mtu = self.max_packet();
        if packet.len() > mtu {
            return Err(refused(IcmpError::TooBig { mtu }, packet, &header));
        }
        match &self.way {
            Way::Capsules(sender) => sender.try_send(datagram)?,
            Way::Http3 { datagrams, .. } if datagrams.max_size().is_some() => {
                let sent = datagrams.send(&datagram).await;
                sent.map_err(TunnelError::from)?;
            }
            Way::Http3 { .. } => self.write(&Capsule::datagram(datagram.into())).await?,
        }
        Ok(())
    }

    /// Asks the proxy for addresses, such as those of these prefixes: all zeros for any of a length. The answer comes
    /// with [`FromIpTunnel::Addresses`]. Returns the identifiers of the requests, in order.
    pub async fn request(&self, wanted: &[Prefix]) -> Result<Vec<VarInt>, TunnelError> {
        let mut requests = Vec::with_capacity(wanted.len());
        for &prefix in wanted {
            let mut network = self.network();
            network.last_request = network.last_request.wrapping_add(1).max(1);
            let request_id = VarInt::from_u32(network.last_request);
            let prefix = Prefix::new(prefix.first(), prefix.length()).unwrap_or(prefix);
            requests.push(RequestedAddress { request_id, prefix });
        }
        let ids = requests.iter().map(|request| request.request_id).collect();
        if !requests.is_empty() {
            self.write(&IpCapsule::AddressRequest(requests).encode())
                .await?;
        }
        Ok(ids)
    }

    /// The prefixes that packets may come from.
    pub fn addresses(&self) -> Vec<Prefix> {
        self.network().addresses.clone()
    }

    /// The destinations that packets may go to.
    pub fn routes(&self) -> Routes {
        self.network().routes.clone()
    }

    /// The largest packet that fits at present, bytes: the MTU of the tunnel. It grows while the connection to the proxy
    /// finds out what its path carries.
    pub fn max_packet(&self) -> usize {
        let size = match &self.way {
            Way::Http3 { datagrams, .. } => datagrams.max_size(),
            Way::Capsules(_) => None,
        };
        size.map_or(MAX_PACKET, |size| {
            size.saturating_sub(ContextId::UDP.size())
        })
    }

    fn check(&self, header: &IpHeader) -> Result<(), SendPacketError> {
        let network = self.network();
        let mut addresses = network.addresses.iter();
        if !addresses.any(|prefix| prefix.contains(header.source)) {
            return Err(SendPacketError::Source);
        }
        let is_routed = network.routes.allow(header.destination, header.protocol);
        is_routed.then_some(()).ok_or(SendPacketError::NoRoute)
    }

    async fn write(&self, capsule: &Capsule) -> Result<(), TunnelError> {
        match &self.way {
            Way::Capsules(sender) => sender.try_send_reliably(capsule),
            Way::Http3 { content, .. } => {
                let mut encoded = Vec::with_capacity(capsule.value.len() + 16);
                capsule.encode(&mut encoded);
                let mut content = content.lock().await;
                Ok(content.write(encoded.into()).await?)
            }
        }
    }

    fn network(&self) -> MutexGuard<'_, Network> {
        self.network.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A packet that this end, as a router, does not forward.
fn refused(error: IcmpError, packet: &[u8], header: &IpHeader) -> SendPacketError {
    let reply = error.about(packet, header.destination);
    SendPacketError::Forwarding { error, reply }
}
