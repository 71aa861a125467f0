//! Forwarded mode at the proxy: QUIC packets with short headers beside the connection of the client
//! (draft-ietf-masque-quic-proxy, sections 5.10 and 6).
//!
//! Packets of the client go to the target from the worker that receives them, without a wake-up of the tunnel's task;
//! packets of the target leave from that task, which has the socket of the target.

use std::net::SocketAddr;
use std::sync::Arc;

use quinn_udp::EcnCodepoint;
use swiftwater_http::udp::connect::HttpDatagrams;
use swiftwater_net::quic::{EcnCodepoint as QuicEcn, PathAddress};
use swiftwater_net::{VirtualId, VirtualIdReceiver, VirtualPacket};
use swiftwater_tls::random_secret;
use swiftwater_wire::ConnectionId;

use super::idle::Activity;
use super::send_run::SendRun;
use super::stats::{Counters, Dropped};
use super::target_socket::TargetSocket;
use super::user_budget::{Direction, UserBudget, admits};
use crate::forwarding::{
    CidCapsule, ForwardingAnswer, ForwardingOffer, MIN_VCID_LEN, PacketTransform, ProxyIds,
    ScrambleKey, TooManyRegistrations, Transform,
};

/// Connection IDs of one tunnel that may be registered at once.
const MAX_ACTIVE: u64 = 8;

/// What a client asked for, and the answer.
pub(super) struct Agreed {
    pub(super) answer: ForwardingAnswer,
    receiving: PacketTransform,
}

impl Agreed {
    /// The answer to an offer, with `transforms` of this proxy; `None` if they have none in common.
    pub(super) fn new(offer: &ForwardingOffer, transforms: &[Transform]) -> Option<Self> {
        let answer = offer.answer(transforms, ScrambleKey::random())?;
        let receiving = offer.sending(&answer);
        Some(Self { answer, receiving })
    }
}

/// Forwarding for one tunnel.
pub(super) struct Forwarding {
    datagrams: HttpDatagrams,
    ids: ProxyIds<VirtualId>,
    sending: PacketTransform,
    receiving: Arc<PacketTransform>,
    /// The network path that the virtual IDs are for.
    path: Option<PathAddress>,
    target: Arc<Target>,
}

/// Where packets of the client go.
pub(super) struct Target {
    pub(super) socket: Arc<TargetSocket>,
    pub(super) budget: Option<Arc<UserBudget>>,
    pub(super) counters: Arc<Counters>,
    pub(super) activity: Arc<Activity>,
}

impl Forwarding {
    /// For a tunnel of the connection of `datagrams`.
    pub(super) fn new(datagrams: HttpDatagrams, agreed: Agreed, target: Target) -> Self {
        Self {
            datagrams,
            ids: ProxyIds::new(MAX_ACTIVE),
            sending: agreed.answer.sending(),
            receiving: Arc::new(agreed.receiving),
            path: None,
            target: Arc::new(target),
        }
    }

    /// That the client may register more, if it may.
    pub(super) fn take_permission(&mut self) -> Option<CidCapsule> {
        self.ids.take_permission()
    }

    /// Takes a capsule of the client, and returns the answer to it. Without an answer of the target there is nothing to
    /// forward to it yet: its ID can't be known.
    pub(super) fn on_capsule(
        &mut self,
        capsule: CidCapsule,
        has_answered: bool,
    ) -> Result<Option<CidCapsule>, TooManyRegistrations> {
        if self.ids.is_empty() {
            self.path = self.datagrams.connection().validated_path();
        }
        match capsule {
            CidCapsule::RegisterClientCid(cid) => {
                let vcid = draw_client_vcid(cid.len());
                self.ids.register_client(&cid, vcid).map(Some)
            }
            CidCapsule::RegisterTargetCid { cid, .. } => {
                let Self {
                    ids,
                    datagrams,
                    receiving,
                    path,
                    target,
                    ..
                } = self;
                let issue = |cid: ConnectionId| {
                    let remote = path.filter(|_| has_answered)?.remote;
                    let receiver = ToTarget {
                        target: Arc::clone(target),
                        transform: Arc::clone(receiving),
                        cid,
                        remote,
                    };
                    let connection = datagrams.connection();
                    let issued = connection.issue_virtual_id(Arc::new(receiver));
                    let id = issued
                        .inspect_err(|error| tracing::debug!(%error, "no virtual connection ID"))
                        .ok()?;
                    Some((id.id(), id))
                };
                ids.register_target(&cid, issue).map(Some)
            }
            CidCapsule::AckClientVcid { cid, vcid, .. } => {
                self.ids.acknowledge(&cid, &vcid);
                Ok(None)
            }
            CidCapsule::CloseClientCid(cid) => {
                self.ids.close_client(&cid);
                Ok(None)
            }
            CidCapsule::CloseTargetCid(cid) => {
                self.ids.close_target(&cid);
                Ok(None)
            }
            // Only proxies send these.
            CidCapsule::AckClientCid { .. }
            | CidCapsule::AckTargetCid { .. }
            | CidCapsule::MaxConnectionIds(_) => Ok(None),
        }
    }

    /// Looks whether the client still is where its IDs were registered; if not, they end, and what says so is returned.
    /// The client registers them again: with the same virtual IDs, an observer could tell that it moved (section 6.5).
    pub(super) fn check_path(&mut self) -> Vec<CidCapsule> {
        if self.ids.is_empty() {
            return Vec::new();
        }
        let path = self.datagrams.connection().validated_path();
        match path {
            // It is not known yet where the client is.
            None => Vec::new(),
            path if path == self.path => Vec::new(),
            path => {
                self.path = path;
                self.ids.close_all()
            }
        }
    }

    /// Whether some datagrams of the target may be forwarded.
    pub(super) fn forwards_to_client(&self) -> bool {
        self.ids.forwards_to_client()
    }

    /// Forwards those of `datagrams` that can be, and hands the others to `tunnel`.
    pub(super) fn to_client<'d>(
        &self,
        datagrams: impl Iterator<Item = (&'d [u8], Option<EcnCodepoint>)>,
        mut tunnel: impl FnMut(&'d [u8]),
    ) {
        // An address that is not validated gets no more than the connection itself may send (section 6.5).
        let path = self.datagrams.connection().validated_path();
        let path = path.filter(|path| self.path == Some(*path));
        let Target {
            budget, counters, ..
        } = &*self.target;
        SendRun::lend(|run| {
            let mut mark = None;
            for (datagram, ecn) in datagrams {
                let forwarded = path.and_then(|path| Some((path, self.ids.to_client(datagram)?)));
                let Some((path, to)) = forwarded else {
                    tunnel(datagram);
                    continue;
                };
                let (first, rest) = datagram.split_at(1);
                let parts = [first, to.vcid.as_bytes(), &rest[to.cid_len..]];
                let len = parts.iter().map(|part| part.len()).sum();
                if !self.sending.takes(len, to.vcid.len()) {
                    tunnel(datagram);
                    continue;
                }
                if !admits(budget.as_deref(), Direction::ToClient, datagram.len()) {
                    counters.on_drop(Dropped::OverLimit, 1);
                    continue;
                }
                if ecn != mark || !run.takes(len, usize::MAX) {
                    self.send_to_client(&path, run, mark);
                    run.clear();
                }
                mark = ecn;
                if let Some(packet) = run.push_parts(&parts, usize::MAX) {
                    self.sending.encode(packet, to.vcid.len());
                }
            }
            if let Some(path) = path {
                self.send_to_client(&path, run, mark);
            }
        });
    }

    fn send_to_client(&self, path: &PathAddress, run: &SendRun, ecn: Option<EcnCodepoint>) {
        if run.count() == 0 {
            return;
        }
        let counters = &self.target.counters;
        let connection = self.datagrams.connection();
        match connection.send_beside(path, run.content(), run.size(), ecn.map(to_quic)) {
            Ok(()) => {
                counters.on_forwarded(Direction::ToClient, run.count(), run.content().len());
            }
            // Those before the one that was not taken have left; that they count as dropped is on the safe side.
            Err(error) => {
                tracing::trace!(%error, "forwarded packets were not sent");
                counters.on_drop(Dropped::Full, run.count() as u64);
            }
        }
    }
}

/// A virtual ID for one of `len` bytes, no shorter (section 5.3).
fn draw_client_vcid(len: usize) -> ConnectionId {
    let random = random_secret();
    let len = len.clamp(MIN_VCID_LEN, swiftwater_wire::MAX_CID_LEN);
    ConnectionId::new(&random[..len]).unwrap_or_default()
}

/// Takes the packets of a client with one virtual ID.
struct ToTarget {
    target: Arc<Target>,
    transform: Arc<PacketTransform>,
    cid: ConnectionId,
    /// The client; packets from elsewhere are not its own.
    remote: SocketAddr,
}

impl VirtualIdReceiver for ToTarget {
    fn receive(&self, packets: &mut dyn Iterator<Item = VirtualPacket<'_>>) {
        let Target {
            socket,
            budget,
            counters,
            activity,
        } = &*self.target;
        activity.note();
        let max_count = socket.max_run();
        SendRun::lend(|run| {
            let mut mark = None;
            for VirtualPacket {
                packet,
                remote,
                ecn,
                id_len,
            } in packets
            {
                if remote != self.remote || !self.transform.decode(packet, id_len) {
                    counters.on_drop(Dropped::Unknown, 1);
                    continue;
                }
                let (first, rest) = packet.split_at(1);
                let parts = [first, self.cid.as_bytes(), &rest[id_len..]];
                let len = parts.iter().map(|part| part.len()).sum();
                if !admits(budget.as_deref(), Direction::ToTarget, len) {
                    counters.on_drop(Dropped::OverLimit, 1);
                    continue;
                }
                if ecn != mark || !run.takes(len, max_count) {
                    send_to_target(socket, counters, run, mark);
                    run.clear();
                }
                mark = ecn;
                run.push_parts(&parts, max_count);
            }
            send_to_target(socket, counters, run, mark);
        });
    }
}

/// Sends what a run has. That the target can't be reached, the tunnel's task learns from [`TargetSocket::ready`].
fn send_to_target(socket: &TargetSocket, counters: &Counters, run: &SendRun, ecn: Option<QuicEcn>) {
    let ecn = ecn.map(to_udp);
    let (count, content) = (run.count(), run.content());
    if count > 1 && socket.send_marked(content, Some(run.size()), ecn).is_ok() {
        counters.on_forwarded(Direction::ToTarget, count, content.len());
        return;
    }
    // Also if the system takes no runs after all, or has room for some only.
    for datagram in run.datagrams() {
        match socket.send_marked(datagram, None, ecn) {
            Ok(()) => counters.on_forwarded(Direction::ToTarget, 1, datagram.len()),
            Err(_) => counters.on_drop(Dropped::Full, 1),
        }
    }
}

fn to_quic(ecn: EcnCodepoint) -> QuicEcn {
    match ecn {
        EcnCodepoint::Ect0 => QuicEcn::Ect0,
        EcnCodepoint::Ect1 => QuicEcn::Ect1,
        EcnCodepoint::Ce => QuicEcn::Ce,
    }
}

fn to_udp(ecn: QuicEcn) -> EcnCodepoint {
    match ecn {
        QuicEcn::Ect0 => EcnCodepoint::Ect0,
        QuicEcn::Ect1 => EcnCodepoint::Ect1,
        QuicEcn::Ce => EcnCodepoint::Ce,
    }
}
