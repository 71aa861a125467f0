//! Null packet and header keys, and the derivation of their secrets.

use swiftwater_quic::crypto::{
    CryptoError, EarlyKeys, HeaderKey, KeyPair, Keys, PacketKey, Primitives,
};
use swiftwater_units::{PacketNumber, PathId, Side};
use swiftwater_wire::ConnectionId;

use super::checksum::Checksum;

/// Bytes of a tag and of a header sample, as of the AEADs of TLS 1.3.
const TAG_LEN: usize = 16;

/// Longest encoding of a packet number, bytes; samples start after it (RFC 9001, section 5.4.2).
const MAX_PACKET_NUMBER_LEN: usize = 4;

/// The secret from which keys are derived: that of an encryption level and key phase, or that of
/// one direction.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Secret(pub(super) u64);

impl Secret {
    /// Another secret, separated by `label` and `context`.
    pub(super) fn derive(self, label: &str, context: &[u8]) -> Self {
        let mut sum = Checksum::new(self.0);
        sum.bytes(label.as_bytes());
        sum.bytes(context);
        Self(sum.finish())
    }

    /// The secret of the next key phase.
    pub(super) fn next_phase(self) -> Self {
        self.derive("key update", &[])
    }

    /// Packet keys of both directions as `side` uses them.
    pub(super) fn packet_keys(self, side: Side) -> KeyPair<dyn PacketKey> {
        let client = Box::new(NullPacketKey(self.derive("client", &[])));
        let server = Box::new(NullPacketKey(self.derive("server", &[])));
        let (local, remote) = match side {
            Side::Client => (client, server),
            Side::Server => (server, client),
        };
        KeyPair { local, remote }
    }

    /// The keys of a client's early data.
    pub(super) fn early_keys(self) -> EarlyKeys {
        EarlyKeys {
            header: Box::new(NullHeaderKey),
            packet: Box::new(NullPacketKey(self.derive("client", &[]))),
        }
    }

    /// All keys of both directions as `side` uses them.
    pub(super) fn keys(self, side: Side) -> Keys {
        Keys {
            header: KeyPair {
                local: Box::new(NullHeaderKey),
                remote: Box::new(NullHeaderKey),
            },
            packet: self.packet_keys(side),
        }
    }
}

/// Leaves payloads in plain text and appends a checksum.
struct NullPacketKey(Secret);

impl NullPacketKey {
    fn tag(
        &self,
        path: PathId,
        number: PacketNumber,
        header: &[u8],
        payload: &[u8],
    ) -> [u8; TAG_LEN] {
        let mut sum = Checksum::new(self.0.0);
        sum.number(u64::from(path.get()));
        sum.number(number.get());
        sum.bytes(header);
        sum.bytes(payload);
        sum.tag()
    }
}

impl PacketKey for NullPacketKey {
    fn encrypt(&self, path: PathId, number: PacketNumber, header_len: usize, packet: &mut [u8]) {
        let (header, rest) = packet.split_at_mut(header_len);
        let (payload, tag_room) = rest.split_at_mut(rest.len() - TAG_LEN);
        tag_room.copy_from_slice(&self.tag(path, number, header, payload));
    }

    fn decrypt(
        &self,
        path: PathId,
        number: PacketNumber,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, CryptoError> {
        let (plaintext, tag) = payload.split_last_chunk().ok_or(CryptoError)?;
        if *tag == self.tag(path, number, header, plaintext) {
            Ok(plaintext.len())
        } else {
            Err(CryptoError)
        }
    }

    fn tag_len(&self) -> usize {
        TAG_LEN
    }

    // The limits of AES-GCM, so that connections update their keys as often as real ones.
    fn confidentiality_limit(&self) -> u64 {
        1 << 23
    }

    fn integrity_limit(&self) -> u64 {
        1 << 52
    }
}

/// Leaves headers unchanged; the packet's checksum covers them.
struct NullHeaderKey;

impl HeaderKey for NullHeaderKey {
    fn encrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        // Real header protection could not sample a shorter packet; simulations must detect that.
        debug_assert!(packet.len() >= pn_offset + MAX_PACKET_NUMBER_LEN + self.sample_len());
    }

    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_len(&self) -> usize {
        TAG_LEN
    }
}

/// Initial keys and Retry tags of the null cipher.
#[derive(Debug)]
pub struct NullPrimitives;

impl Primitives for NullPrimitives {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId, side: Side) -> Keys {
        Secret(u64::from(version))
            .derive("initial", dst_cid.as_bytes())
            .keys(side)
    }

    fn retry_tag(&self, version: u32, original_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        let mut sum = Checksum::new(u64::from(version));
        sum.bytes(b"retry");
        sum.bytes(original_dst_cid.as_bytes());
        sum.bytes(packet);
        sum.tag()
    }
}
