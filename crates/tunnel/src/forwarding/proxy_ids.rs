//! The connection IDs that a client registered for a tunnel, at the proxy (draft-ietf-masque-quic-proxy, sections 5.7,
//! 5.8 and 5.10).

use bytes::Bytes;
use swiftwater_wire::{ConnectionId, has_short_header};
use thiserror::Error;

use super::INITIAL_MAX_SEQUENCE;
use super::capsules::CidCapsule;

/// The IDs of a tunnel. `T` is what the proxy has for each ID of the target: dropping it ends the forwarding there.
#[derive(Debug)]
pub struct ProxyIds<T> {
    /// IDs that may be registered at once.
    max_active: u64,
    next_sequence: u64,
    max_sequence: u64,
    announced: u64,
    clients: Vec<ClientId>,
    targets: Vec<TargetId<T>>,
}

/// An ID of the client.
#[derive(Debug)]
struct ClientId {
    cid: ConnectionId,
    /// What the client has acknowledged: packets go there.
    vcid: Option<ConnectionId>,
    /// What the client has to acknowledge.
    offered: Option<ConnectionId>,
}

#[derive(Debug)]
struct TargetId<T> {
    cid: ConnectionId,
    _held: T,
}

/// The virtual ID that replaces the one of a packet to the client.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ClientVcid {
    /// Bytes of the ID that is replaced.
    pub cid_len: usize,
    /// The virtual ID.
    pub vcid: ConnectionId,
}

/// The client registers more IDs than it may.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the client registers more connection IDs than it may")]
pub struct TooManyRegistrations;

impl<T> ProxyIds<T> {
    /// None yet; up to `max_active` at once, two at least.
    pub fn new(max_active: u64) -> Self {
        let mut ids = Self {
            max_active: max_active.max(INITIAL_MAX_SEQUENCE + 1),
            next_sequence: 0,
            max_sequence: INITIAL_MAX_SEQUENCE,
            announced: INITIAL_MAX_SEQUENCE,
            clients: Vec::new(),
            targets: Vec::new(),
        };
        ids.permit();
        ids
    }

    /// The capsule that permits more registrations, if more are permitted than the client knows.
    pub fn take_permission(&mut self) -> Option<CidCapsule> {
        let is_new = self.max_sequence > self.announced;
        self.announced = self.max_sequence;
        is_new.then_some(CidCapsule::MaxConnectionIds(self.max_sequence))
    }

    /// Registers an ID of the client, which gets `vcid` once it says that it takes it; returns the answer. One that is
    /// registered gets another virtual ID (section 5.9).
    ///
    /// # Errors
    ///
    /// [`TooManyRegistrations`].
    pub fn register_client(
        &mut self,
        cid: &Bytes,
        vcid: ConnectionId,
    ) -> Result<CidCapsule, TooManyRegistrations> {
        self.count()?;
        let refusal = CidCapsule::CloseClientCid(cid.clone());
        let Some(id) = ConnectionId::new(cid) else {
            self.permit();
            return Ok(refusal);
        };
        if conflicts(self.clients.iter().map(|client| &client.cid), &id) {
            self.permit();
            return Ok(refusal);
        }
        let known = self.clients.iter().position(|client| client.cid == id);
        let place = known.unwrap_or_else(|| {
            self.clients.push(ClientId {
                cid: id,
                vcid: None,
                offered: None,
            });
            self.clients.len() - 1
        });
        self.clients[place].offered = Some(vcid);
        self.permit();
        Ok(CidCapsule::AckClientCid {
            cid: cid.clone(),
            vcid: bytes(&vcid),
        })
    }

    /// Registers an ID of the target, for which `issue` makes a virtual ID and what holds it, or refuses; returns the
    /// answer. One that is registered gets another virtual ID.
    ///
    /// # Errors
    ///
    /// [`TooManyRegistrations`].
    pub fn register_target(
        &mut self,
        cid: &Bytes,
        issue: impl FnOnce(ConnectionId) -> Option<(ConnectionId, T)>,
    ) -> Result<CidCapsule, TooManyRegistrations> {
        self.count()?;
        let issued = ConnectionId::new(cid)
            .filter(|id| !conflicts(self.targets.iter().map(|target| &target.cid), id))
            .and_then(|id| Some((id, issue(id)?)));
        let Some((id, (vcid, held))) = issued else {
            self.permit();
            return Ok(CidCapsule::CloseTargetCid(cid.clone()));
        };
        self.targets.retain(|target| target.cid != id);
        self.targets.push(TargetId {
            cid: id,
            _held: held,
        });
        self.permit();
        Ok(CidCapsule::AckTargetCid {
            cid: cid.clone(),
            vcid: bytes(&vcid),
            // The connection ends by other means: the client sees that nothing is forwarded any more.
            reset_token: Bytes::new(),
        })
    }

    /// The client takes packets with this virtual ID. An acknowledgement of what was not offered changes nothing.
    pub fn acknowledge(&mut self, cid: &[u8], vcid: &[u8]) {
        let mut clients = self.clients.iter_mut();
        if let Some(client) = clients.find(|client| client.cid.as_bytes() == cid)
            && let Some(offered) = client.offered.take_if(|offered| offered.as_bytes() == vcid)
        {
            client.vcid = Some(offered);
        }
    }

    /// An ID of the client is no longer in use.
    pub fn close_client(&mut self, cid: &[u8]) {
        self.clients.retain(|client| client.cid.as_bytes() != cid);
        self.permit();
    }

    /// An ID of the target is no longer in use.
    pub fn close_target(&mut self, cid: &[u8]) {
        self.targets.retain(|target| target.cid.as_bytes() != cid);
        self.permit();
    }

    /// Ends all registrations; returns what says so to the client.
    pub fn close_all(&mut self) -> Vec<CidCapsule> {
        let clients = self.clients.drain(..);
        let mut closed: Vec<_> = clients
            .map(|client| CidCapsule::CloseClientCid(bytes(&client.cid)))
            .collect();
        let targets = self.targets.drain(..);
        closed.extend(targets.map(|target| CidCapsule::CloseTargetCid(bytes(&target.cid))));
        self.permit();
        closed
    }

    /// True if nothing is registered.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty() && self.targets.is_empty()
    }

    /// Whether some packets to the client are forwarded.
    pub fn forwards_to_client(&self) -> bool {
        self.clients.iter().any(|client| client.vcid.is_some())
    }

    /// What becomes of the ID of a datagram from the target; `None` if it has to go through the tunnel.
    pub fn to_client(&self, datagram: &[u8]) -> Option<ClientVcid> {
        if !has_short_header(datagram) {
            return None;
        }
        let after = &datagram[1..];
        let mut clients = self.clients.iter();
        let client = clients.find(|client| after.starts_with(client.cid.as_bytes()))?;
        Some(ClientVcid {
            cid_len: client.cid.len(),
            vcid: client.vcid?,
        })
    }

    /// Counts a registration.
    fn count(&mut self) -> Result<(), TooManyRegistrations> {
        if self.next_sequence > self.max_sequence {
            return Err(TooManyRegistrations);
        }
        self.next_sequence += 1;
        Ok(())
    }

    /// Permits as many registrations as there is room for.
    fn permit(&mut self) {
        let active = (self.clients.len() + self.targets.len()) as u64;
        let room = self.max_active.saturating_sub(active);
        let max = (self.next_sequence + room).saturating_sub(1);
        self.max_sequence = self.max_sequence.max(max);
    }
}

/// Whether packets with `id` could not be told from those with another one of `all`.
fn conflicts<'a>(mut all: impl Iterator<Item = &'a ConnectionId>, id: &ConnectionId) -> bool {
    all.any(|have| {
        let (have, id) = (have.as_bytes(), id.as_bytes());
        have != id && (have.starts_with(id) || id.starts_with(have))
    })
}

fn bytes(id: &ConnectionId) -> Bytes {
    Bytes::copy_from_slice(id.as_bytes())
}
