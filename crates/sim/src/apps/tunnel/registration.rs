//! Registrations of connection IDs, in the stream of a tunnel in forwarded mode: the capsules of
//! draft-ietf-masque-quic-proxy-08, without stateless reset tokens and without the limit on their number.

use swiftwater_wire::{ConnectionId, Reader, Writer};

/// Longest registration: type, and two IDs after their lengths.
const MAX_LEN: usize = 8 + 2 * (1 + swiftwater_wire::MAX_CID_LEN);

const REGISTER_CLIENT: u64 = 0xff_e600;
const REGISTER_TARGET: u64 = 0xff_e601;
const ACK_CLIENT: u64 = 0xff_e602;
const ACK_CLIENT_VIRTUAL: u64 = 0xff_e603;
const ACK_TARGET: u64 = 0xff_e604;
const CLOSE_CLIENT: u64 = 0xff_e605;
const CLOSE_TARGET: u64 = 0xff_e606;

/// A connection ID, and the virtual one that stands for it between client and proxy.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Mapping {
    pub(super) id: ConnectionId,
    pub(super) virtual_id: ConnectionId,
}

/// A message about a connection ID.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Registration {
    /// The client asks for packets to this ID of its own to be forwarded to it.
    RegisterClient(ConnectionId),
    /// The client asks to forward packets to this ID of the target.
    RegisterTarget(ConnectionId),
    /// The proxy will forward packets to an ID of the client, once the client is ready for the virtual one.
    AckClient(Mapping),
    /// The client is ready for the virtual ID.
    AckClientVirtual(Mapping),
    /// The proxy takes packets with the virtual ID to the target.
    AckTarget(Mapping),
    /// Packets to this ID of the client stay in the tunnel.
    CloseClient(ConnectionId),
    /// Packets to this ID of the target stay in the tunnel.
    CloseTarget(ConnectionId),
}

impl Registration {
    pub(super) fn encode(&self) -> Vec<u8> {
        let (kind, id, virtual_id) = match self {
            Self::RegisterClient(id) => (REGISTER_CLIENT, id, None),
            Self::RegisterTarget(id) => (REGISTER_TARGET, id, None),
            Self::AckClient(mapping) => (ACK_CLIENT, &mapping.id, Some(&mapping.virtual_id)),
            Self::AckClientVirtual(mapping) => {
                (ACK_CLIENT_VIRTUAL, &mapping.id, Some(&mapping.virtual_id))
            }
            Self::AckTarget(mapping) => (ACK_TARGET, &mapping.id, Some(&mapping.virtual_id)),
            Self::CloseClient(id) => (CLOSE_CLIENT, id, None),
            Self::CloseTarget(id) => (CLOSE_TARGET, id, None),
        };
        let mut buffer = [0; MAX_LEN];
        let mut writer = Writer::new(&mut buffer);
        writer.varint(kind);
        for id in [Some(id), virtual_id].into_iter().flatten() {
            writer.u8(id.len() as u8);
            writer.bytes(id.as_bytes());
        }
        let written = writer.written();
        buffer[..written].to_vec()
    }

    /// Reads one; `None` if it is none.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut reader = Reader::new(bytes);
        let kind = reader.varint().ok()?;
        let id = connection_id(&mut reader)?;
        let mut mapping = || {
            let virtual_id = connection_id(&mut reader)?;
            Some(Mapping { id, virtual_id })
        };
        match kind {
            REGISTER_CLIENT => Some(Self::RegisterClient(id)),
            REGISTER_TARGET => Some(Self::RegisterTarget(id)),
            ACK_CLIENT => mapping().map(Self::AckClient),
            ACK_CLIENT_VIRTUAL => mapping().map(Self::AckClientVirtual),
            ACK_TARGET => mapping().map(Self::AckTarget),
            CLOSE_CLIENT => Some(Self::CloseClient(id)),
            CLOSE_TARGET => Some(Self::CloseTarget(id)),
            _ => None,
        }
    }
}

fn connection_id(reader: &mut Reader<'_>) -> Option<ConnectionId> {
    let len = reader.u8().ok()?;
    ConnectionId::new(reader.bytes(usize::from(len)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_and_nothing_shorter() {
        let id = ConnectionId::new(&[7; 20]).unwrap_or_default();
        let virtual_id = ConnectionId::new(&[8; 20]).unwrap_or_default();
        let mapping = Mapping { id, virtual_id };
        for registration in [
            Registration::RegisterClient(id),
            Registration::RegisterTarget(id),
            Registration::AckClient(mapping),
            Registration::AckClientVirtual(mapping),
            Registration::AckTarget(mapping),
            Registration::CloseClient(id),
            Registration::CloseTarget(id),
        ] {
            let bytes = registration.encode();
            assert_eq!(Registration::decode(&bytes), Some(registration));
            for len in 0..bytes.len() {
                assert_eq!(Registration::decode(&bytes[..len]), None);
            }
        }
    }
}
