//! Forwarded mode at the client: packets with short headers beside the connection to the proxy
//! (draft-ietf-masque-quic-proxy, section 6).

use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::{Bytes, BytesMut};
use http::HeaderMap;
use swiftwater_http::h3::capsule::Capsule;
use swiftwater_http::udp::connect::{HttpDatagrams, SendContent};
use swiftwater_net::quic::PathAddress;
use swiftwater_net::{VirtualId, VirtualIdReceiver, VirtualPacket};
use swiftwater_wire::{ConnectionId, has_short_header};
use tokio::sync::{Mutex as AsyncMutex, Notify, mpsc};

use super::error::{OpenError, TunnelError};
use crate::forwarding::{
    CidCapsule, ClientIds, ForwardingAnswer, ForwardingOffer, Liveness, PROXY_QUIC_FORWARDING,
    PacketTransform, replace_cid,
};

/// Forwarded packets that wait to be read; the oldest are dropped for more.
const MAX_WAITING: usize = 512;

/// Capsules that wait for the stream to the proxy. One that asks for more of them than it reads gets no more.
const MAX_CAPSULES: usize = 64;

/// What the ends of a tunnel say of forwarded packets, and those that came.
pub(super) struct Forwarding {
    datagrams: HttpDatagrams,
    offer: ForwardingOffer,
    state: Mutex<State>,
    arrivals: Arc<Arrivals>,
}

struct State {
    ids: ClientIds<VirtualId>,
    liveness: Liveness,
    phase: Phase,
    /// The network path to the proxy that the virtual IDs are for.
    path: Option<PathAddress>,
    /// Capsules for the proxy that are not on their way.
    capsules: Vec<CidCapsule>,
    /// Packets for the target, reused.
    packets: Vec<u8>,
}

enum Phase {
    /// The proxy has not answered.
    Opening,
    /// The proxy has agreed.
    Agreed(Agreed),
    /// The proxy does not read what it is sent: everything goes through the tunnel.
    Over,
}

struct Agreed {
    sending: PacketTransform,
    receiving: Arc<PacketTransform>,
    capsules: mpsc::Sender<Bytes>,
}

/// Forwarded packets from the target, as it sent them.
#[derive(Default)]
struct Arrivals {
    waiting: Mutex<VecDeque<Bytes>>,
    arrived: Notify,
}

/// Takes the packets with one virtual ID.
struct Receiver {
    arrivals: Arc<Arrivals>,
    transform: Arc<PacketTransform>,
    cid: ConnectionId,
    /// The proxy; packets from elsewhere are not its own.
    remote: SocketAddr,
}

impl Forwarding {
    /// For a tunnel that the proxy has not answered yet.
    pub(super) fn new(datagrams: HttpDatagrams, offer: ForwardingOffer) -> Self {
        let state = State {
            ids: ClientIds::default(),
            liveness: Liveness::default(),
            phase: Phase::Opening,
            path: None,
            capsules: Vec::new(),
            packets: Vec::new(),
        };
        Self {
            datagrams,
            offer,
            state: Mutex::new(state),
            arrivals: Arc::default(),
        }
    }

    /// Begins once the proxy has answered with these fields; false if it does not forward.
    pub(super) fn begin(
        &self,
        headers: &HeaderMap,
        content: &Arc<AsyncMutex<SendContent>>,
    ) -> Result<bool, OpenError> {
        let Some(field) = headers.get(PROXY_QUIC_FORWARDING) else {
            return Ok(false);
        };
        let Some(answer) = ForwardingAnswer::parse(field, &self.offer)? else {
            return Ok(false);
        };
        let (capsules, waiting) = mpsc::channel(MAX_CAPSULES);
        tokio::spawn(send_capsules(waiting, Arc::downgrade(content)));
        let mut state = self.lock();
        state.path = self.datagrams.connection().validated_path();
        state.phase = Phase::Agreed(Agreed {
            sending: self.offer.sending(&answer),
            receiving: Arc::new(answer.sending()),
            capsules,
        });
        state.send_capsules();
        Ok(true)
    }

    /// Forwards a datagram to the target; false if it has to go through the tunnel.
    pub(super) fn send(&self, datagram: &[u8]) -> bool {
        let mut guard = self.lock();
        let state = &mut *guard;
        if has_short_header(datagram) {
            return self.forward(state, datagram, datagram.len());
        }
        if !matches!(state.phase, Phase::Over) {
            state.ids.observe_sent(datagram, &mut state.capsules);
            state.send_capsules();
        }
        false
    }

    /// Forwards several datagrams, of `size` bytes each in `run` but for a shorter last one, at once; false if one of them
    /// has to go through the tunnel, or by itself.
    pub(super) fn send_run(&self, run: &[u8], size: usize) -> bool {
        let are_short = size > 0 && run.chunks(size).all(has_short_header);
        are_short && self.forward(&mut self.lock(), run, size)
    }

    /// Forwards packets with short headers, of `size` bytes each but for a shorter last one.
    fn forward(&self, state: &mut State, run: &[u8], size: usize) -> bool {
        let agreed = match &state.phase {
            Phase::Agreed(agreed) if !state.liveness.is_paused() => agreed,
            _ => return false,
        };
        let Some(target) = state.ids.to_target(run) else {
            return false;
        };
        let connection = self.datagrams.connection();
        let Some(path) = connection.validated_path() else {
            return false;
        };
        if state.path != Some(path) {
            // Virtual IDs of another path would link the two (section 5.9).
            state.path = Some(path);
            state.ids.renew(&mut state.capsules);
            state.send_capsules();
            return false;
        }
        let packets = &mut state.packets;
        packets.clear();
        let (cid, vcid) = (run.get(1..=target.cid_len), target.vcid.as_bytes());
        let mut count = 0;
        for datagram in run.chunks(size) {
            let begin = packets.len();
            // All are for one connection ID: packets of one connection, nearly always.
            if datagram.get(1..=target.cid_len) != cid
                || !replace_cid(datagram, target.cid_len, vcid, packets)
                || !agreed.sending.encode(&mut packets[begin..], vcid.len())
            {
                return false;
            }
            count += 1;
        }
        let size = size - target.cid_len + vcid.len();
        // What the socket does not take waits in the tunnel, or is too large there too. If it took the first packets of
        // a run, they go twice, which QUIC takes for what the network does now and then.
        if let Err(error) = connection.send_beside(&path, packets, size, None) {
            tracing::trace!(%error, "packets go through the tunnel");
            return false;
        }
        let now = connection.now();
        if (0..count).any(|_| state.liveness.on_forwarded(now)) {
            tracing::debug!("forwarded packets are not answered: the tunnel takes them");
            state.ids.suspend(&mut state.capsules);
            state.send_capsules();
        }
        true
    }

    /// Looks at a datagram of the target that came through the tunnel.
    pub(super) fn on_tunnelled(&self, datagram: &[u8]) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if matches!(state.phase, Phase::Over) {
            return;
        }
        if !has_short_header(datagram) {
            state.ids.observe_received(datagram, &mut state.capsules);
        }
        state.on_received(&self.datagrams);
        state.send_capsules();
    }

    /// Takes a capsule of the proxy, if it is one of connection IDs.
    pub(super) fn on_capsule(&self, capsule: &Capsule) -> Result<(), TunnelError> {
        let Some(capsule) = CidCapsule::decode(capsule)? else {
            return Ok(());
        };
        let mut guard = self.lock();
        let state = &mut *guard;
        let Phase::Agreed(agreed) = &state.phase else {
            return Ok(());
        };
        let remote = state.path.map(|path| path.remote);
        let receive = |cid: ConnectionId, vcid: ConnectionId| {
            let receiver = Receiver {
                arrivals: Arc::clone(&self.arrivals),
                transform: Arc::clone(&agreed.receiving),
                cid,
                remote: remote?,
            };
            let connection = self.datagrams.connection();
            let accepted = connection.accept_virtual_id(vcid, Arc::new(receiver));
            accepted
                .inspect_err(|error| tracing::debug!(%error, "a virtual connection ID is refused"))
                .ok()
        };
        let taken = (state.ids).on_capsule(capsule, receive, &mut state.capsules);
        state.send_capsules();
        Ok(taken?)
    }

    /// The next forwarded packet of the target. Dropping the future loses nothing.
    pub(super) async fn recv(&self) -> Bytes {
        loop {
            let arrived = self.arrivals.arrived.notified();
            let packet = lock(&self.arrivals.waiting).pop_front();
            if let Some(packet) = packet {
                self.lock().on_received(&self.datagrams);
                return packet;
            }
            arrived.await;
        }
    }

    /// Whether packets are forwarded in some direction at present.
    pub(super) fn is_active(&self) -> bool {
        self.lock().ids.is_forwarding()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }
}

impl State {
    /// Something came from the target.
    fn on_received(&mut self, datagrams: &HttpDatagrams) {
        if self.liveness.on_received(datagrams.connection().now()) {
            self.path = datagrams.connection().validated_path();
            self.ids.renew(&mut self.capsules);
            self.send_capsules();
        }
    }

    fn send_capsules(&mut self) {
        let Phase::Agreed(agreed) = &self.phase else {
            return;
        };
        let mut capsules = self.capsules.drain(..);
        let sent = capsules.try_for_each(|capsule| agreed.capsules.try_send(capsule.to_bytes()));
        drop(capsules);
        if sent.is_err() {
            // The tunnel is over, or the proxy does not read.
            self.phase = Phase::Over;
            self.ids = ClientIds::default();
        }
    }
}

/// Sends capsules until the tunnel is over.
async fn send_capsules(
    mut capsules: mpsc::Receiver<Bytes>,
    content: Weak<AsyncMutex<SendContent>>,
) {
    while let Some(capsule) = capsules.recv().await {
        let Some(content) = content.upgrade() else {
            return;
        };
        if let Err(error) = content.lock().await.write(capsule).await {
            tracing::debug!(%error, "no more capsules to the proxy");
            return;
        }
    }
}

impl VirtualIdReceiver for Receiver {
    fn receive(&self, packets: &mut dyn Iterator<Item = VirtualPacket<'_>>) {
        let mut memory = BytesMut::new();
        let mut waiting = lock(&self.arrivals.waiting);
        for VirtualPacket {
            packet,
            id_len,
            remote,
            ..
        } in packets
        {
            if remote != self.remote || !self.transform.decode(packet, id_len) {
                continue;
            }
            let (first, rest) = packet.split_at(1);
            memory.extend_from_slice(first);
            memory.extend_from_slice(self.cid.as_bytes());
            memory.extend_from_slice(&rest[id_len..]);
            if waiting.len() >= MAX_WAITING {
                waiting.pop_front();
            }
            waiting.push_back(memory.split().freeze());
        }
        drop(waiting);
        self.arrivals.arrived.notify_one();
    }
}

impl fmt::Debug for Forwarding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwarding")
            .field("offer", &self.offer)
            .finish_non_exhaustive()
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
