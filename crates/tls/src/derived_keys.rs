//! Packet protection keys derived from traffic secrets with the labels of a QUIC version (RFC 9001,
//! sections 5.1 to 5.4 and 6.1; RFC 9369, section 3.3.2): all keys of sessions whose version changed
//! after rustls had started them, and for every session those of later key phases and those derived
//! again after they were released.

use aws_lc_rs::aead::{self, Aad, LessSafeKey, Nonce, UnboundKey, quic};
use swiftwater_quic::crypto::{ApplicationKeys, CryptoError, HeaderKey, KeyPair, Keys, PacketKey};
use swiftwater_units::{PacketNumber, PathId, Side};
use swiftwater_wire::{PlainFirstByte, VERSION_2};

use crate::cipher_suite::CipherSuite;
use crate::expand_label::{expand_label, hash};
use crate::secret::Secret;
use crate::secret_tap::Pair;

/// Longest encoding of a packet number, bytes (RFC 9000, section 17.1).
const MAX_PACKET_NUMBER_LEN: usize = 4;

/// The labels of key, IV, header protection and key update.
struct Labels {
    key: &'static str,
    iv: &'static str,
    hp: &'static str,
    ku: &'static str,
}

const LABELS_1: Labels = Labels {
    key: "quic key",
    iv: "quic iv",
    hp: "quic hp",
    ku: "quic ku",
};

const LABELS_2: Labels = Labels {
    key: "quicv2 key",
    iv: "quicv2 iv",
    hp: "quicv2 hp",
    ku: "quicv2 ku",
};

/// Algorithms of a cipher suite.
#[derive(Clone, Copy)]
struct Algorithms {
    aead: &'static aead::Algorithm,
    header: &'static quic::Algorithm,
    confidentiality_limit: u64,
    integrity_limit: u64,
}

impl Algorithms {
    fn of(suite: CipherSuite) -> Self {
        // Limits: RFC 9001, section 6.6. The confidentiality limit of ChaCha20-Poly1305 exceeds the
        // largest packet number.
        match suite {
            CipherSuite::Aes128Gcm => Self {
                aead: &aead::AES_128_GCM,
                header: &quic::AES_128,
                confidentiality_limit: 1 << 23,
                integrity_limit: 1 << 52,
            },
            CipherSuite::Aes256Gcm => Self {
                aead: &aead::AES_256_GCM,
                header: &quic::AES_256,
                confidentiality_limit: 1 << 23,
                integrity_limit: 1 << 52,
            },
            CipherSuite::ChaCha20Poly1305 => Self {
                aead: &aead::CHACHA20_POLY1305,
                header: &quic::CHACHA20,
                confidentiality_limit: u64::MAX,
                integrity_limit: 1 << 36,
            },
        }
    }
}

/// The traffic secrets of an encryption level, and the derivation of its keys.
pub(crate) struct TrafficSecrets {
    suite: CipherSuite,
    labels: &'static Labels,
    side: Side,
    /// The secrets of the present key phase.
    secrets: Pair,
    /// True if the packet keys of the next phase were derived.
    next_is_known: bool,
    /// Input of the header protection keys if the phase isn't the first, from whose secrets they are
    /// derived.
    header: Option<Box<Pair>>,
}

impl TrafficSecrets {
    /// The secrets of a session in the role `side`. They must have the length of the suite's hash.
    pub(crate) fn new(
        version: u32,
        suite: CipherSuite,
        side: Side,
        secrets: Pair,
    ) -> Result<Self, CryptoError> {
        let has_right_len = |secret: &[u8]| secret.len() == hash(suite).output_len();
        if !has_right_len(&secrets.client) || !has_right_len(&secrets.server) {
            return Err(CryptoError);
        }
        Ok(Self {
            suite,
            labels: match version {
                VERSION_2 => &LABELS_2,
                _ => &LABELS_1,
            },
            side,
            secrets,
            next_is_known: false,
            header: None,
        })
    }

    /// All keys of the present phase.
    pub(crate) fn keys(&self) -> Keys {
        let of_first;
        let header = if let Some(header) = &self.header {
            header
        } else {
            of_first = self.header_secrets();
            &of_first
        };
        let (local, remote) = self.local_remote(header);
        Keys {
            header: KeyPair {
                local: Box::new(self.header_key(local)),
                remote: Box::new(self.header_key(remote)),
            },
            packet: self.packet_keys(&self.secrets),
        }
    }

    /// All keys of the present phase, and the packet keys of the next one if they were derived
    /// before.
    pub(crate) fn remade_keys(&self) -> ApplicationKeys {
        ApplicationKeys {
            current: self.keys(),
            next: (self.next_is_known).then(|| self.packet_keys(&self.next_secrets())),
        }
    }

    /// The packet keys of the next phase. If they were derived before, that phase becomes the present
    /// one, and those of the following phase are returned.
    pub(crate) fn next_packet_keys(&mut self) -> KeyPair<dyn PacketKey> {
        if self.next_is_known {
            if self.header.is_none() {
                self.header = Some(Box::new(self.header_secrets()));
            }
            self.secrets = self.next_secrets();
        }
        self.next_is_known = true;
        self.packet_keys(&self.next_secrets())
    }

    fn algorithms(&self) -> Algorithms {
        Algorithms::of(self.suite)
    }

    fn next_secrets(&self) -> Pair {
        self.expand_both(self.labels.ku, hash(self.suite).output_len())
    }

    fn header_secrets(&self) -> Pair {
        self.expand_both(self.labels.hp, self.algorithms().header.key_len())
    }

    fn packet_keys(&self, secrets: &Pair) -> KeyPair<dyn PacketKey> {
        let (local, remote) = self.local_remote(secrets);
        KeyPair {
            local: Box::new(self.packet_key(local)),
            remote: Box::new(self.packet_key(remote)),
        }
    }

    fn local_remote<'a>(&self, pair: &'a Pair) -> (&'a [u8], &'a [u8]) {
        match self.side {
            Side::Client => (&pair.client, &pair.server),
            Side::Server => (&pair.server, &pair.client),
        }
    }

    fn packet_key(&self, secret: &[u8]) -> DerivedKey {
        let algorithms = self.algorithms();
        let key = self.expand(secret, self.labels.key, algorithms.aead.key_len());
        let mut iv = [0; aead::NONCE_LEN];
        iv.copy_from_slice(&self.expand(secret, self.labels.iv, aead::NONCE_LEN));
        let key = UnboundKey::new(algorithms.aead, &key)
            .expect("the key has the length that the algorithm requires");
        DerivedKey {
            key: LessSafeKey::new(key),
            iv,
            confidentiality_limit: algorithms.confidentiality_limit,
            integrity_limit: algorithms.integrity_limit,
        }
    }

    fn header_key(&self, key: &[u8]) -> DerivedHeaderKey {
        DerivedHeaderKey(
            quic::HeaderProtectionKey::new(self.algorithms().header, key)
                .expect("the key has the length that the algorithm requires"),
        )
    }

    fn expand_both(&self, label: &str, len: usize) -> Pair {
        Pair {
            client: self.expand(&self.secrets.client, label, len),
            server: self.expand(&self.secrets.server, label, len),
        }
    }

    fn expand(&self, secret: &[u8], label: &str, len: usize) -> Secret {
        Secret::made(len, |out| {
            expand_label(self.suite, secret, label.as_bytes(), b"", out)
                .expect("labels are short, and no key is longer than 255 hashes");
        })
    }
}

/// Packet protection of one direction.
struct DerivedKey {
    key: LessSafeKey,
    iv: [u8; aead::NONCE_LEN],
    confidentiality_limit: u64,
    integrity_limit: u64,
}

impl DerivedKey {
    /// RFC 9001, section 5.3; with the path identifier as in draft-ietf-quic-multipath-21, section
    /// 2.4.
    fn nonce(&self, path: PathId, number: PacketNumber) -> Nonce {
        let mut nonce = self.iv;
        let (first, last) = nonce.split_at_mut(4);
        for (byte, bits) in first.iter_mut().zip(path.get().to_be_bytes()) {
            *byte ^= bits;
        }
        for (byte, bits) in last.iter_mut().zip(number.get().to_be_bytes()) {
            *byte ^= bits;
        }
        Nonce::assume_unique_for_key(nonce)
    }
}

impl PacketKey for DerivedKey {
    fn encrypt(&self, path: PathId, number: PacketNumber, header_len: usize, packet: &mut [u8]) {
        let (header, rest) = packet.split_at_mut(header_len);
        let (payload, tag_room) = rest.split_at_mut(rest.len() - self.tag_len());
        let tag = self
            .key
            .seal_in_place_separate_tag(self.nonce(path, number), Aad::from(&*header), payload)
            .expect("a packet is far shorter than the limit of an AEAD");
        tag_room.copy_from_slice(tag.as_ref());
    }

    fn decrypt(
        &self,
        path: PathId,
        number: PacketNumber,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, CryptoError> {
        self.key
            .open_in_place(self.nonce(path, number), Aad::from(header), payload)
            .map(|plaintext| plaintext.len())
            .map_err(|_| CryptoError)
    }

    fn tag_len(&self) -> usize {
        self.key.algorithm().tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.confidentiality_limit
    }

    fn integrity_limit(&self) -> u64 {
        self.integrity_limit
    }
}

/// Header protection of one direction.
struct DerivedHeaderKey(quic::HeaderProtectionKey);

impl DerivedHeaderKey {
    /// The mask for the first byte and the packet number; `None` if the packet is too short for a
    /// sample.
    fn mask(&self, pn_offset: usize, packet: &[u8]) -> Option<[u8; 5]> {
        let sample = packet.get(pn_offset.checked_add(MAX_PACKET_NUMBER_LEN)?..)?;
        self.0.new_mask(sample.get(..self.sample_len())?).ok()
    }
}

/// Applies the mask to the first byte and returns it before and after.
fn flip_first(packet: &mut [u8], mask: u8) -> (PlainFirstByte, PlainFirstByte) {
    let before = PlainFirstByte(packet[0]);
    packet[0] ^= mask & if before.is_long() { 0x0f } else { 0x1f };
    (before, PlainFirstByte(packet[0]))
}

fn flip_number(number: &mut [u8], mask: &[u8]) {
    for (byte, bits) in number.iter_mut().zip(mask) {
        *byte ^= bits;
    }
}

impl HeaderKey for DerivedHeaderKey {
    fn encrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        let [first_bits, number_bits @ ..] = self
            .mask(pn_offset, packet)
            .expect("a sender pads its packets until they hold a sample");
        let (plain, _) = flip_first(packet, first_bits);
        let number = &mut packet[pn_offset..pn_offset + plain.packet_number_len()];
        flip_number(number, &number_bits);
    }

    fn decrypt(&self, pn_offset: usize, packet: &mut [u8]) {
        // A packet without a sample stays unchanged and fails authentication later.
        if let Some([first_bits, number_bits @ ..]) = self.mask(pn_offset, packet) {
            let (_, plain) = flip_first(packet, first_bits);
            let number = &mut packet[pn_offset..pn_offset + plain.packet_number_len()];
            flip_number(number, &number_bits);
        }
    }

    fn sample_len(&self) -> usize {
        self.0.algorithm().sample_len()
    }
}

#[cfg(test)]
mod tests {
    //! Test vectors that need raw secrets, which no session exposes.

    use swiftwater_wire::VERSION_1;

    use super::*;

    fn hex(digits: &str) -> Vec<u8> {
        let pairs = digits.as_bytes().chunks(2);
        pairs
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
            .collect()
    }

    /// The secret of RFC 9001, appendix A.5, and RFC 9369, appendix A.5, on both sides.
    fn secrets(version: u32) -> TrafficSecrets {
        let secret = hex("9ac312a7f877468ebe69422748ad00a15443f18203a07d6060f688f30f21632b");
        let pair = Pair {
            client: Secret::new(&secret),
            server: Secret::new(&secret),
        };
        TrafficSecrets::new(version, CipherSuite::ChaCha20Poly1305, Side::Server, pair).unwrap()
    }

    #[test]
    fn packets_with_a_short_header() {
        for (version, expected) in [
            (VERSION_1, "4cfe4189655e5cd55c41f69080575d7999c25a5bfb"),
            (VERSION_2, "5558b1c60ae7b6b932bc27d786f4bc2bb20f2162ba"),
        ] {
            let keys = secrets(version).keys();
            let mut packet = hex("4200bff401");
            packet.resize(5 + 16, 0);
            let number = PacketNumber::new(654_360_564);
            keys.packet
                .local
                .encrypt(PathId::ZERO, number, 4, &mut packet);
            keys.header.local.encrypt(1, &mut packet);
            assert_eq!(packet, hex(expected), "{version:#x}");

            keys.header.remote.decrypt(1, &mut packet);
            let (header, payload) = packet.split_at_mut(4);
            assert_eq!(header, hex("4200bff4"));
            let opened = keys
                .packet
                .remote
                .decrypt(PathId::ZERO, number, header, payload);
            assert_eq!((opened, payload[0]), (Ok(1), 1));
        }
    }

    #[test]
    fn the_secret_after_a_key_update() {
        for (version, expected) in [
            (
                VERSION_1,
                "1223504755036d556342ee9361d253421a826c9ecdf3c7148684b36b714881f9",
            ),
            (
                VERSION_2,
                "c69374c49e3d2a9466fa689e49d476db5d0dfbc87d32ceeaa6343fd0ae4c7d88",
            ),
        ] {
            let mut secrets = secrets(version);
            let first = secrets.secrets.client.to_vec();
            let _ = secrets.next_packet_keys();
            // Derived, but not started.
            assert_eq!(secrets.secrets.client[..], first);
            let _ = secrets.next_packet_keys();
            assert_eq!(secrets.secrets.client[..], hex(expected), "{version:#x}");
            assert_eq!(secrets.secrets.server[..], hex(expected), "{version:#x}");
        }
    }

    #[test]
    fn keys_made_once_more_are_the_same_in_every_phase() {
        for version in [VERSION_1, VERSION_2] {
            let mut secrets = secrets(version);
            let mut first = secrets.keys();
            for phase in 0..3 {
                let next = secrets.next_packet_keys();
                let again = secrets.remade_keys();
                // Packets sealed by one direction are opened by the other: the secrets are equal.
                let mut packet = vec![0x42; 40];
                let number = PacketNumber::new(phase);
                (first.packet.local).encrypt(PathId::ZERO, number, 4, &mut packet);
                let mut again_packet = vec![0x42; 40];
                (again.current.packet.local).encrypt(PathId::ZERO, number, 4, &mut again_packet);
                assert_eq!(packet, again_packet, "{phase}");
                first.header.local.encrypt(1, &mut packet);
                again.current.header.remote.decrypt(1, &mut packet);
                assert_eq!(packet, again_packet, "{phase}");
                let (header, payload) = packet.split_at_mut(4);
                let opened =
                    (again.current.packet.remote).decrypt(PathId::ZERO, number, header, payload);
                assert_eq!(opened, Ok(20));

                let mut packet = vec![0x42; 40];
                next.local.encrypt(PathId::ZERO, number, 4, &mut packet);
                let (header, payload) = packet.split_at_mut(4);
                let next_again = again.next.unwrap();
                let opened = next_again
                    .remote
                    .decrypt(PathId::ZERO, number, header, payload);
                assert_eq!(opened, Ok(20));
                // The header protection key stays the same.
                first.packet = next;
            }
        }
    }

    #[test]
    fn secrets_of_the_wrong_length_make_no_keys() {
        for len in [0, 31, 33, 48] {
            let pair = Pair {
                client: Secret::new(&[1; 32]),
                server: Secret::new(&vec![1; len]),
            };
            let made = TrafficSecrets::new(VERSION_2, CipherSuite::Aes128Gcm, Side::Client, pair);
            assert!(made.is_err(), "{len}");
        }
    }
}
