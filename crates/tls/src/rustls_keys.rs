//! Adapters of rustls's packet and header protection keys to the crypto traits, and keys that need
//! no session: Initial keys and the Retry tag (RFC 9001, sections 5.2 to 5.8).

use std::fmt;

use aws_lc_rs::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::quic::{Suite, Version};
use swiftwater_quic::crypto::{
    CryptoError, EarlyKeys, HeaderKey, KeyPair, Keys, PacketKey, Primitives,
};
use swiftwater_units::{PacketNumber, PathId, Side};
use swiftwater_wire::{ConnectionId, VERSION_2};

/// Longest encoding of a packet number, bytes (RFC 9000, section 17.1).
const MAX_PACKET_NUMBER_LEN: usize = 4;

/// The fixed key of QUIC v1's Retry integrity tag (RFC 9001, section 5.8).
const RETRY_KEY_1: [u8; 16] = [
    0xbe, 0x0c, 0x69, 0x0b, 0x9f, 0x66, 0x57, 0x5a, 0x1d, 0x76, 0x6b, 0x54, 0xe3, 0x68, 0xc8, 0x4e,
];

/// The fixed nonce of QUIC v1's Retry integrity tag (RFC 9001, section 5.8).
const RETRY_NONCE_1: [u8; 12] = [
    0x46, 0x15, 0x99, 0xd3, 0x5d, 0x63, 0x2b, 0xf2, 0x23, 0x98, 0x25, 0xbb,
];

/// The same key of QUIC v2 (RFC 9369, section 3.3.3).
const RETRY_KEY_2: [u8; 16] = [
    0x8f, 0xb4, 0xb0, 0x1b, 0x56, 0xac, 0x48, 0xe2, 0x60, 0xfb, 0xcb, 0xce, 0xad, 0x7c, 0xcc, 0x92,
];

/// The same nonce of QUIC v2 (RFC 9369, section 3.3.3).
const RETRY_NONCE_2: [u8; 12] = [
    0xd8, 0x69, 0x69, 0xbc, 0x2d, 0x7c, 0x6d, 0x99, 0x90, 0xef, 0xb0, 0x4a,
];

/// An AEAD key of rustls, with the values that every packet needs.
pub(crate) struct AeadKey {
    key: Box<dyn rustls::quic::PacketKey>,
    tag_len: usize,
    confidentiality_limit: u64,
}

impl AeadKey {
    pub(crate) fn new(key: Box<dyn rustls::quic::PacketKey>) -> Self {
        Self {
            tag_len: key.tag_len(),
            confidentiality_limit: key.confidentiality_limit(),
            key,
        }
    }
}

impl PacketKey for AeadKey {
    fn encrypt(&self, path: PathId, number: PacketNumber, header_len: usize, packet: &mut [u8]) {
        let (header, rest) = packet.split_at_mut(header_len);
        let (payload, tag_room) = rest.split_at_mut(rest.len() - self.tag_len);
        // The two nonces are equal for path 0; the plain call is supported by every provider.
        let tag = if path == PathId::ZERO {
            self.key.encrypt_in_place(number.get(), header, payload)
        } else {
            self.key
                .encrypt_in_place_for_path(path.get(), number.get(), header, payload)
        };
        let tag = tag.expect("a packet is far shorter than the limit of an AEAD");
        tag_room.copy_from_slice(tag.as_ref());
    }

    fn decrypt(
        &self,
        path: PathId,
        number: PacketNumber,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, CryptoError> {
        let plaintext = if path == PathId::ZERO {
            self.key.decrypt_in_place(number.get(), header, payload)
        } else {
            self.key
                .decrypt_in_place_for_path(path.get(), number.get(), header, payload)
        };
        plaintext.map(<[u8]>::len).map_err(|_| CryptoError)
    }

    fn tag_len(&self) -> usize {
        self.tag_len
    }

    fn confidentiality_limit(&self) -> u64 {
        self.confidentiality_limit
    }

    fn integrity_limit(&self) -> u64 {
        self.key.integrity_limit()
    }
}

/// A header protection key of rustls.
struct MaskKey(Box<dyn rustls::quic::HeaderProtectionKey>);

impl MaskKey {
    /// The first byte, the longest possible packet number and the sample. `None` if the packet is
    /// too short for a sample.
    fn parts<'a>(
        &self,
        pn_offset: usize,
        packet: &'a mut [u8],
    ) -> Option<(&'a mut u8, &'a mut [u8], &'a [u8])> {
        let (header, payload) =
            packet.split_at_mut_checked(pn_offset.checked_add(MAX_PACKET_NUMBER_LEN)?)?;
        let sample = payload.get(..self.0.sample_len())?;
        let (before, number) = header.split_at_mut(pn_offset);
        Some((before.first_mut()?, number, sample))
    }
}

impl HeaderKey for MaskKey {
    fn encrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        let (first, number, sample) = self
            .parts(pn_offset, packet)
            .expect("a sender pads its packets until they hold a sample");
        self.0
            .encrypt_in_place(sample, first, number)
            .expect("sample and packet number have the required lengths");
    }

    fn decrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        // A packet without a sample stays unchanged and fails authentication later.
        if let Some((first, number, sample)) = self.parts(pn_offset, packet) {
            self.0
                .decrypt_in_place(sample, first, number)
                .expect("sample and packet number have the required lengths");
        }
    }

    fn sample_len(&self) -> usize {
        self.0.sample_len()
    }
}

/// Adapts a set of rustls's keys.
pub(crate) fn keys(keys: rustls::quic::Keys) -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(MaskKey(keys.local.header)),
            remote: Box::new(MaskKey(keys.remote.header)),
        },
        packet: KeyPair {
            local: Box::new(AeadKey::new(keys.local.packet)),
            remote: Box::new(AeadKey::new(keys.remote.packet)),
        },
    }
}

/// Adapts rustls's keys of early data.
pub(crate) fn early_keys(keys: rustls::quic::DirectionalKeys) -> EarlyKeys {
    EarlyKeys {
        header: Box::new(MaskKey(keys.header)),
        packet: Box::new(AeadKey::new(keys.packet)),
    }
}

/// Adapts rustls's packet keys.
pub(crate) fn packet_keys(keys: rustls::quic::PacketKeySet) -> KeyPair<dyn PacketKey> {
    KeyPair {
        local: Box::new(AeadKey::new(keys.local)),
        remote: Box::new(AeadKey::new(keys.remote)),
    }
}

/// rustls's value for a version. Unknown versions are treated as v1: none of their packets is ever
/// processed.
pub(crate) fn rustls_version(version: u32) -> Version {
    match version {
        VERSION_2 => Version::V2,
        _ => Version::V1,
    }
}

/// Initial keys and Retry tags of QUIC v1 and v2.
pub struct RustlsPrimitives {
    initial: Suite,
    retry_1: LessSafeKey,
    retry_2: LessSafeKey,
}

impl RustlsPrimitives {
    /// The primitives; they have no settings.
    pub fn new() -> Self {
        let initial = TLS13_AES_128_GCM_SHA256
            .tls13()
            .and_then(rustls::Tls13CipherSuite::quic_suite)
            .expect("the mandatory suite of TLS 1.3 supports QUIC");
        let retry = |key: &[u8; 16]| {
            let key = UnboundKey::new(&AES_128_GCM, key)
                .expect("the key has the length of an AES-128 key");
            LessSafeKey::new(key)
        };
        Self {
            initial,
            retry_1: retry(&RETRY_KEY_1),
            retry_2: retry(&RETRY_KEY_2),
        }
    }
}

impl Default for RustlsPrimitives {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for RustlsPrimitives {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RustlsPrimitives")
    }
}

impl Primitives for RustlsPrimitives {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId, side: Side) -> Keys {
        let side = match side {
            Side::Client => rustls::Side::Client,
            Side::Server => rustls::Side::Server,
        };
        let version = rustls_version(version);
        keys(self.initial.keys(dst_cid.as_bytes(), side, version))
    }

    fn retry_tag(&self, version: u32, original_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        let mut pseudo_packet = Vec::with_capacity(1 + original_dst_cid.len() + packet.len());
        pseudo_packet.push(original_dst_cid.len() as u8);
        pseudo_packet.extend_from_slice(original_dst_cid.as_bytes());
        pseudo_packet.extend_from_slice(packet);
        let (key, nonce) = match version {
            VERSION_2 => (&self.retry_2, RETRY_NONCE_2),
            _ => (&self.retry_1, RETRY_NONCE_1),
        };
        let tag = key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::from(pseudo_packet),
                &mut [],
            )
            .expect("an empty plaintext can be sealed");
        tag.as_ref()
            .try_into()
            .expect("an AES-GCM tag has 16 bytes")
    }
}

#[cfg(test)]
mod tests {
    //! Test vectors that need raw keys, which no session exposes.

    use aws_lc_rs::aead::CHACHA20_POLY1305;
    use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256;
    use rustls::crypto::cipher::Iv;
    use rustls::quic::Algorithm;

    use super::*;

    fn algorithm() -> &'static dyn Algorithm {
        let suite = TLS13_CHACHA20_POLY1305_SHA256.tls13().unwrap();
        suite.quic_suite().unwrap().quic
    }

    fn packet_key(key: [u8; 32], iv: [u8; 12]) -> AeadKey {
        AeadKey::new(algorithm().packet_key(key.into(), Iv::from(iv)))
    }

    /// RFC 9001, appendix A.5.
    #[test]
    fn chacha20_packet_with_a_short_header() {
        let key = packet_key(
            [
                0xc6, 0xd9, 0x8f, 0xf3, 0x44, 0x1c, 0x3f, 0xe1, 0xb2, 0x18, 0x20, 0x94, 0xf6, 0x9c,
                0xaa, 0x2e, 0xd4, 0xb7, 0x16, 0xb6, 0x54, 0x88, 0x96, 0x0a, 0x7a, 0x98, 0x49, 0x79,
                0xfb, 0x23, 0xe1, 0xc8,
            ],
            [
                0xe0, 0x45, 0x9b, 0x34, 0x74, 0xbd, 0xd0, 0xe4, 0x4a, 0x41, 0xc1, 0x44,
            ],
        );
        let header_key: [u8; 32] = [
            0x25, 0xa2, 0x82, 0xb9, 0xe8, 0x2f, 0x06, 0xf2, 0x1f, 0x48, 0x89, 0x17, 0xa4, 0xfc,
            0x8f, 0x1b, 0x73, 0x57, 0x36, 0x85, 0x60, 0x85, 0x97, 0xd0, 0xef, 0xcb, 0x07, 0x6b,
            0x0a, 0xb7, 0xa7, 0xa4,
        ];
        let header_key = MaskKey(algorithm().header_protection_key(header_key.into()));

        let mut packet = vec![0x42, 0x00, 0xbf, 0xf4, 0x01];
        packet.resize(5 + 16, 0);
        let number = PacketNumber::new(654_360_564);
        key.encrypt(PathId::ZERO, number, 4, &mut packet);
        header_key.encrypt(1, &mut packet);
        let expected = [
            0x4c, 0xfe, 0x41, 0x89, 0x65, 0x5e, 0x5c, 0xd5, 0x5c, 0x41, 0xf6, 0x90, 0x80, 0x57,
            0x5d, 0x79, 0x99, 0xc2, 0x5a, 0x5b, 0xfb,
        ];
        assert_eq!(packet, expected);
    }

    /// The example of a nonce in draft-ietf-quic-multipath-21, section 2.4, and path 0 as in RFC 9001, section 5.3.
    #[test]
    fn nonces_include_the_path() {
        let iv = [
            0x6b, 0x26, 0x11, 0x4b, 0x9c, 0xba, 0x2b, 0x63, 0xa9, 0xe8, 0xdd, 0x4f,
        ];
        let on_path_3 = [
            0x6b, 0x26, 0x11, 0x48, 0x9c, 0xba, 0x2b, 0x63, 0xa9, 0xe8, 0x09, 0x7e,
        ];
        let on_path_0 = [
            0x6b, 0x26, 0x11, 0x4b, 0x9c, 0xba, 0x2b, 0x63, 0xa9, 0xe8, 0x09, 0x7e,
        ];
        let raw = LessSafeKey::new(UnboundKey::new(&CHACHA20_POLY1305, &[9; 32]).unwrap());
        for (path, nonce) in [(3, on_path_3), (0, on_path_0)] {
            let mut packet = *b"headpayload________________";
            let number = PacketNumber::new(54321);
            packet_key([9; 32], iv).encrypt(PathId::new(path), number, 4, &mut packet);

            let mut expected = b"payload".to_vec();
            let nonce = Nonce::assume_unique_for_key(nonce);
            raw.seal_in_place_append_tag(nonce, Aad::from(b"head"), &mut expected)
                .unwrap();
            assert_eq!(packet[4..], expected);
        }
    }
}
