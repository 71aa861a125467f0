//! What both ends know of the connections in a tunnel in forwarded mode: which connection IDs are registered, and
//! which packets pass beside the connection between client and proxy.

use rand_core::Rng;
use swiftwater_wire::{ConnectionId, InvariantHeader};

use super::registration::{Mapping, Registration};
use crate::application::HostContext;
use crate::connection_id_map::ConnectionIdMap;

/// Least length of an ID of a client that may be registered, and of virtual ones.
const MIN_LEN: usize = 8;
/// IDs of each side that a client asks for, and that wait at a proxy, at most.
const CAPACITY: usize = 256;

/// IDs, and what to write in their place into the packets to them.
#[derive(Debug, Default)]
struct Replacements(ConnectionIdMap<ConnectionId>);

impl Replacements {
    /// The packet with the ID in the place of its own; `None` if its own is not registered.
    fn apply(&self, packet: &[u8]) -> Option<Vec<u8>> {
        let (len, id) = self.0.of_packet(packet)?;
        let (first, rest) = packet.split_first()?;
        Some([&[*first], id.as_bytes(), rest.get(len..)?].concat())
    }
}

/// The ID that the sender of a long header chose for itself. Version Negotiation has none.
fn source_id(payload: &[u8]) -> Option<ConnectionId> {
    let header = InvariantHeader::parse(payload, 0).ok()?;
    header.version.filter(|&version| version != 0)?;
    ConnectionId::new(header.src_cid?)
}

/// The client's part.
#[derive(Debug, Default)]
pub(super) struct ClientForwarding {
    /// IDs of the local peer that the proxy was asked for.
    clients: Vec<ConnectionId>,
    /// Those of the target.
    targets: Vec<ConnectionId>,
    to_peer: Replacements,
    to_proxy: Replacements,
}

impl ClientForwarding {
    /// The form in which a packet of the local peer goes to the proxy beside the connection.
    pub(super) fn to_proxy(&self, packet: &[u8]) -> Option<Vec<u8>> {
        self.to_proxy.apply(packet)
    }

    /// The packet for the local peer that came from the proxy in this form.
    pub(super) fn to_peer(&self, packet: &[u8]) -> Option<Vec<u8>> {
        self.to_peer.apply(packet)
    }

    /// The registration that a payload of the local peer, about to be tunnelled, calls for.
    pub(super) fn on_payload_of_peer(&mut self, payload: &[u8]) -> Option<Registration> {
        let id = source_id(payload).filter(|id| id.len() >= MIN_LEN)?;
        ask_once(&mut self.clients, id).then_some(Registration::RegisterClient(id))
    }

    /// The registration that a tunnelled payload of the target calls for.
    pub(super) fn on_payload_of_target(&mut self, payload: &[u8]) -> Option<Registration> {
        let id = source_id(payload).filter(|id| !id.is_empty())?;
        ask_once(&mut self.targets, id).then_some(Registration::RegisterTarget(id))
    }

    /// The answer to a message of the proxy, if it needs one.
    pub(super) fn on_registration(
        &mut self,
        host: &mut HostContext<'_>,
        registration: &Registration,
    ) -> Option<Registration> {
        match registration {
            Registration::AckClient(mapping) if self.clients.contains(&mapping.id) => {
                let is_ready = host.claim_connection_id(&mapping.virtual_id)
                    && self.to_peer.0.insert(&mapping.virtual_id, mapping.id);
                Some(if is_ready {
                    Registration::AckClientVirtual(*mapping)
                } else {
                    Registration::CloseClient(mapping.id)
                })
            }
            Registration::AckTarget(mapping) if self.targets.contains(&mapping.id) => {
                self.to_proxy.0.insert(&mapping.id, mapping.virtual_id);
                None
            }
            // What the proxy refuses stays in the tunnel.
            _ => None,
        }
    }
}

/// Whether `id` is to be asked for: it was not before, and there is room.
fn ask_once(asked: &mut Vec<ConnectionId>, id: ConnectionId) -> bool {
    let is_new = asked.len() < CAPACITY && !asked.contains(&id);
    if is_new {
        asked.push(id);
    }
    is_new
}

/// The proxy's part.
#[derive(Debug, Default)]
pub(super) struct ProxyForwarding {
    /// IDs of clients whose virtual ones the client does not know yet.
    pending: Vec<Mapping>,
    to_client: Replacements,
    to_target: Replacements,
}

impl ProxyForwarding {
    /// The form in which a packet of the target goes to the client beside the connection.
    pub(super) fn to_client(&self, packet: &[u8]) -> Option<Vec<u8>> {
        self.to_client.apply(packet)
    }

    /// The packet for the target that came from the client in this form.
    pub(super) fn to_target(&self, packet: &[u8]) -> Option<Vec<u8>> {
        self.to_target.apply(packet)
    }

    /// The answer to a message of the client, if it needs one.
    pub(super) fn on_registration(
        &mut self,
        host: &mut HostContext<'_>,
        registration: &Registration,
    ) -> Option<Registration> {
        match registration {
            Registration::RegisterClient(id) => {
                if id.len() < MIN_LEN || self.pending.len() >= CAPACITY {
                    return Some(Registration::CloseClient(*id));
                }
                let virtual_id = virtual_id(host, id);
                let mapping = Mapping {
                    id: *id,
                    virtual_id,
                };
                self.pending.push(mapping);
                Some(Registration::AckClient(mapping))
            }
            Registration::AckClientVirtual(mapping) => {
                let place = self.pending.iter().position(|known| known == mapping)?;
                self.pending.swap_remove(place);
                let is_new = self.to_client.0.insert(&mapping.id, mapping.virtual_id);
                (!is_new).then_some(Registration::CloseClient(mapping.id))
            }
            Registration::RegisterTarget(id) => {
                let virtual_id = virtual_id(host, id);
                let is_ready = host.claim_connection_id(&virtual_id)
                    && self.to_target.0.insert(&virtual_id, *id);
                Some(if is_ready {
                    Registration::AckTarget(Mapping {
                        id: *id,
                        virtual_id,
                    })
                } else {
                    Registration::CloseTarget(*id)
                })
            }
            Registration::CloseClient(id) => {
                self.pending.retain(|mapping| mapping.id != *id);
                None
            }
            _ => None,
        }
    }
}

/// A random ID to stand for `id`, of its length, so that packets stay as long as they are, or longer.
fn virtual_id(host: &mut HostContext<'_>, id: &ConnectionId) -> ConnectionId {
    let mut bytes = [0; swiftwater_wire::MAX_CID_LEN];
    host.rng().fill_bytes(&mut bytes);
    let len = id.len().clamp(MIN_LEN, bytes.len());
    ConnectionId::new(&bytes[..len]).unwrap_or_default()
}
