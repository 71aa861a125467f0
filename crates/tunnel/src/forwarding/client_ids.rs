//! The connection IDs that a client registers for a tunnel (draft-ietf-masque-quic-proxy, sections 5.9 and 6).
//!
//! They are read from the long headers of the packets that pass, so that any QUIC program can use the tunnel: the source of
//! the client's first packets is its ID, that of the target's first packets the target's. IDs that the ends exchange later
//! are encrypted; packets that have them go through the tunnel.

use std::collections::VecDeque;

use bytes::Bytes;
use swiftwater_wire::{ConnectionId, has_short_header};
use thiserror::Error;

use super::capsules::CidCapsule;
use super::packets::long_header_ids;
use super::{INITIAL_MAX_SEQUENCE, MIN_VCID_LEN};

/// QUIC connections of a tunnel whose IDs are registered at once; that of the oldest one is given up for a new one.
const MAX_CONNECTIONS: usize = 4;

/// The IDs of a tunnel. `T` is what the client has for each virtual ID that it receives packets with.
#[derive(Debug)]
pub struct ClientIds<T> {
    next_sequence: u64,
    max_sequence: u64,
    /// The oldest first.
    connections: VecDeque<Registered<T>>,
    /// What is to be registered once the proxy permits it.
    waiting: VecDeque<Side>,
}

/// The IDs of one QUIC connection.
#[derive(Debug)]
struct Registered<T> {
    client: ConnectionId,
    /// What receives packets with the virtual ID of the client.
    receiving: Option<T>,
    target: Option<Target>,
}

/// The ID of a target, with the virtual ID once the proxy has given it.
#[derive(Clone, Copy, Debug)]
struct Target {
    cid: ConnectionId,
    vcid: Option<ConnectionId>,
}

/// An ID to be registered.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Side {
    Client(ConnectionId),
    Target(ConnectionId),
}

/// The virtual ID that replaces the one of a packet to the target.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct TargetVcid {
    /// Bytes of the ID that is replaced.
    pub cid_len: usize,
    /// The virtual ID.
    pub vcid: ConnectionId,
}

/// The proxy permits fewer registrations than every client may make; the request is to be aborted (section 5.7).
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the proxy permits fewer than two connection IDs")]
pub struct ZeroLimit;

impl<T> Default for ClientIds<T> {
    fn default() -> Self {
        Self {
            next_sequence: 0,
            max_sequence: INITIAL_MAX_SEQUENCE,
            connections: VecDeque::new(),
            waiting: VecDeque::new(),
        }
    }
}

impl<T> ClientIds<T> {
    /// Looks at a datagram to the target. What is to be said to the proxy goes to `out`.
    pub fn observe_sent(&mut self, datagram: &[u8], out: &mut Vec<CidCapsule>) {
        let Some(ids) = long_header_ids(datagram) else {
            return;
        };
        if self.connection(&ids.source).is_some() {
            return;
        }
        if self.connections.len() >= MAX_CONNECTIONS
            && let Some(oldest) = self.connections.pop_front()
        {
            self.close(&oldest, out);
        }
        self.connections.push_back(Registered {
            client: ids.source,
            receiving: None,
            target: None,
        });
        self.register(Side::Client(ids.source), out);
    }

    /// Looks at a datagram from the target.
    pub fn observe_received(&mut self, datagram: &[u8], out: &mut Vec<CidCapsule>) {
        let Some(ids) = long_header_ids(datagram) else {
            return;
        };
        let Some(connection) = self.connection(&ids.destination) else {
            return;
        };
        let cid = ids.source;
        let before = connection.target.filter(|target| target.cid != cid);
        let is_new = connection.target.is_none_or(|target| target.cid != cid);
        if !is_new {
            return;
        }
        connection.target = Some(Target { cid, vcid: None });
        if let Some(before) = before {
            self.close_target(&before, out);
        }
        self.register(Side::Target(cid), out);
    }

    /// Takes a capsule of the proxy. `receive` begins to receive packets with a virtual ID of the client for an ID of it,
    /// unless that can't be.
    ///
    /// # Errors
    ///
    /// [`ZeroLimit`].
    pub fn on_capsule(
        &mut self,
        capsule: CidCapsule,
        receive: impl FnOnce(ConnectionId, ConnectionId) -> Option<T>,
        out: &mut Vec<CidCapsule>,
    ) -> Result<(), ZeroLimit> {
        match capsule {
            CidCapsule::MaxConnectionIds(max) if max < INITIAL_MAX_SEQUENCE => {
                return Err(ZeroLimit);
            }
            CidCapsule::MaxConnectionIds(max) => {
                self.max_sequence = self.max_sequence.max(max);
                self.register_waiting(out);
            }
            CidCapsule::AckClientCid { cid, vcid } => self.on_client_vcid(cid, vcid, receive, out),
            CidCapsule::AckTargetCid { cid, vcid, .. } => {
                if let Some(target) = self.target(&cid) {
                    target.vcid = ConnectionId::new(&vcid).filter(|vcid| !vcid.is_empty());
                }
            }
            CidCapsule::CloseClientCid(cid) => self.on_client_closed(&cid, out),
            CidCapsule::CloseTargetCid(cid) => self.on_target_closed(&cid, out),
            // Only clients send these.
            CidCapsule::RegisterClientCid(_)
            | CidCapsule::RegisterTargetCid { .. }
            | CidCapsule::AckClientVcid { .. } => {}
        }
        Ok(())
    }

    /// The proxy refuses an ID of the client, or gives it up. It does the latter when the client is at another address:
    /// then the ID is registered again.
    fn on_client_closed(&mut self, cid: &[u8], out: &mut Vec<CidCapsule>) {
        let mut connections = self.connections.iter_mut();
        let connection = connections.find(|connection| connection.client.as_bytes() == cid);
        let closed = connection.and_then(|connection| {
            let was_given = connection.receiving.take().is_some();
            was_given.then_some(connection.client)
        });
        if let Some(client) = closed {
            self.register(Side::Client(client), out);
        }
    }

    /// The same for an ID of the target.
    fn on_target_closed(&mut self, cid: &[u8], out: &mut Vec<CidCapsule>) {
        let closed = self.target(cid).and_then(|target| {
            let was_given = target.vcid.take().is_some();
            was_given.then_some(target.cid)
        });
        if let Some(target) = closed {
            self.register(Side::Target(target), out);
        }
    }

    /// The proxy has given the client a virtual ID.
    fn on_client_vcid(
        &mut self,
        cid: Bytes,
        vcid: Bytes,
        receive: impl FnOnce(ConnectionId, ConnectionId) -> Option<T>,
        out: &mut Vec<CidCapsule>,
    ) {
        let Some(connection) = ConnectionId::new(&cid).and_then(|id| self.connection(&id)) else {
            return;
        };
        let client = connection.client;
        let receiving = ConnectionId::new(&vcid)
            .filter(|vcid| vcid.len() >= MIN_VCID_LEN)
            .and_then(|vcid| receive(client, vcid));
        let Some(receiving) = receiving else {
            if !vcid.is_empty() {
                out.push(CidCapsule::CloseClientCid(cid));
            }
            return;
        };
        connection.receiving = Some(receiving);
        out.push(CidCapsule::AckClientVcid {
            cid,
            vcid,
            reset_token: Bytes::new(),
        });
    }

    /// What becomes of the ID of a datagram to the target; `None` if it has to go through the tunnel.
    pub fn to_target(&self, datagram: &[u8]) -> Option<TargetVcid> {
        if !has_short_header(datagram) {
            return None;
        }
        let after = &datagram[1..];
        // The newest connection is most likely the one in use.
        self.connections.iter().rev().find_map(|connection| {
            let target = connection.target?;
            let vcid = target.vcid?;
            after
                .starts_with(target.cid.as_bytes())
                .then_some(TargetVcid {
                    cid_len: target.cid.len(),
                    vcid,
                })
        })
    }

    /// Whether packets are forwarded in either direction.
    pub fn is_forwarding(&self) -> bool {
        self.connections.iter().any(|connection| {
            let sends = connection
                .target
                .is_some_and(|target| target.vcid.is_some());
            sends || connection.receiving.is_some()
        })
    }

    /// Ends forwarding, and says so to the proxy. The IDs are not forgotten: see [`ClientIds::renew`].
    pub fn suspend(&mut self, out: &mut Vec<CidCapsule>) {
        self.waiting.clear();
        for connection in &mut self.connections {
            connection.receiving = None;
            out.push(close_client(&connection.client));
            if let Some(target) = &mut connection.target {
                target.vcid = None;
                out.push(close_target(&target.cid));
            }
        }
    }

    /// Registers all IDs again, for other virtual ones (section 5.9): after [`ClientIds::suspend`], or on another network
    /// path. Those that the proxy gave before are not used any more.
    pub fn renew(&mut self, out: &mut Vec<CidCapsule>) {
        self.waiting.clear();
        let mut sides = Vec::new();
        for connection in &mut self.connections {
            connection.receiving = None;
            sides.push(Side::Client(connection.client));
            if let Some(target) = &mut connection.target {
                target.vcid = None;
                sides.push(Side::Target(target.cid));
            }
        }
        for side in sides {
            self.register(side, out);
        }
    }

    fn connection(&mut self, client: &ConnectionId) -> Option<&mut Registered<T>> {
        let mut connections = self.connections.iter_mut();
        connections.find(|connection| connection.client == *client)
    }

    /// The target with this ID.
    fn target(&mut self, cid: &[u8]) -> Option<&mut Target> {
        let mut targets = (self.connections.iter_mut()).filter_map(|all| all.target.as_mut());
        targets.find(|target| target.cid.as_bytes() == cid)
    }

    /// Registers an ID, at once or when the proxy permits it.
    fn register(&mut self, side: Side, out: &mut Vec<CidCapsule>) {
        self.waiting.push_back(side);
        self.register_waiting(out);
    }

    fn register_waiting(&mut self, out: &mut Vec<CidCapsule>) {
        while self.next_sequence <= self.max_sequence
            && let Some(side) = self.waiting.pop_front()
        {
            self.next_sequence += 1;
            out.push(match side {
                Side::Client(cid) => CidCapsule::RegisterClientCid(bytes(&cid)),
                Side::Target(cid) => CidCapsule::RegisterTargetCid {
                    cid: bytes(&cid),
                    // It is encrypted. A reset of the target has no registered ID, and so comes through the tunnel.
                    reset_token: Bytes::new(),
                },
            });
        }
    }

    /// Says that the IDs of a connection are not in use any more.
    fn close(&mut self, connection: &Registered<T>, out: &mut Vec<CidCapsule>) {
        let client = Side::Client(connection.client);
        if self.waiting.contains(&client) {
            self.waiting.retain(|side| *side != client);
        } else {
            out.push(close_client(&connection.client));
        }
        if let Some(target) = connection.target {
            self.close_target(&target, out);
        }
    }

    fn close_target(&mut self, target: &Target, out: &mut Vec<CidCapsule>) {
        let side = Side::Target(target.cid);
        if self.waiting.contains(&side) {
            self.waiting.retain(|waiting| *waiting != side);
        } else {
            out.push(close_target(&target.cid));
        }
    }
}

fn close_client(cid: &ConnectionId) -> CidCapsule {
    CidCapsule::CloseClientCid(bytes(cid))
}

fn close_target(cid: &ConnectionId) -> CidCapsule {
    CidCapsule::CloseTargetCid(bytes(cid))
}

fn bytes(cid: &ConnectionId) -> Bytes {
    Bytes::copy_from_slice(cid.as_bytes())
}
