//! Limits on the use of keys (RFC 9001, section 6.6), with keys that wear out quickly.

use swiftwater_units::{PacketNumber, PathId};

use super::keys::{OpenError, Protection};
use crate::crypto::{
    ApplicationKeys, CryptoError, EncryptionLevel, HeaderKey, KeyPair, Keys, PacketKey,
};

/// Opens packets whose last byte is zero, and may be used little.
struct ShortLived;

const CONFIDENTIALITY: u64 = 100;
const INTEGRITY: u64 = 5;

impl PacketKey for ShortLived {
    fn encrypt(&self, _: PathId, _: PacketNumber, _: usize, packet: &mut [u8]) {
        if let Some(last) = packet.last_mut() {
            *last = 0;
        }
    }

    fn decrypt(
        &self,
        _: PathId,
        _: PacketNumber,
        _: &[u8],
        payload: &mut [u8],
    ) -> Result<usize, CryptoError> {
        match payload.last() {
            Some(0) => Ok(payload.len() - 1),
            _ => Err(CryptoError),
        }
    }

    fn tag_len(&self) -> usize {
        1
    }

    fn confidentiality_limit(&self) -> u64 {
        CONFIDENTIALITY
    }

    fn integrity_limit(&self) -> u64 {
        INTEGRITY
    }
}

impl HeaderKey for ShortLived {
    fn encrypt(&self, _: usize, _: &mut [u8]) {}

    fn decrypt(&self, _: usize, _: &mut [u8]) {}

    fn sample_len(&self) -> usize {
        16
    }
}

fn packet_keys() -> KeyPair<dyn PacketKey> {
    KeyPair {
        local: Box::new(ShortLived),
        remote: Box::new(ShortLived),
    }
}

fn keys() -> Keys {
    Keys {
        header: KeyPair {
            local: Box::new(ShortLived),
            remote: Box::new(ShortLived),
        },
        packet: packet_keys(),
    }
}

fn protection() -> Protection {
    let mut protection = Protection::new(keys());
    protection.install(EncryptionLevel::OneRtt, keys(), Some(packet_keys()));
    protection
}

fn seal(protection: &mut Protection, number: u64) {
    let mut packet = [1; 40];
    protection.seal(
        EncryptionLevel::OneRtt,
        PathId::ZERO,
        PacketNumber::new(number),
        1,
        3,
        &mut packet,
    );
}

fn open(
    protection: &mut Protection,
    level: EncryptionLevel,
    number: u64,
    last: u8,
) -> Option<OpenError> {
    let mut payload = [last; 20];
    protection
        .open(
            level,
            PathId::ZERO,
            PacketNumber::new(number),
            false,
            &[],
            &mut payload,
        )
        .err()
}

#[test]
fn an_update_is_due_at_half_the_limit_of_sealed_packets() {
    let mut protection = protection();
    for number in 0..CONFIDENTIALITY / 2 {
        assert!(!protection.update_is_due(u64::MAX), "{number}");
        seal(&mut protection, number);
        protection.on_acked(PacketNumber::new(number));
    }
    assert!(protection.update_is_due(u64::MAX));
    protection.update(Some(packet_keys()), None);
    // The count starts anew with new keys.
    assert!(!protection.update_is_due(u64::MAX) && !protection.is_exhausted());
}

#[test]
fn without_an_update_keys_are_exhausted_shortly_before_the_limit() {
    let mut protection = protection();
    // Enough for the packets that tell of it.
    for number in 0..CONFIDENTIALITY - 64 {
        assert!(!protection.is_exhausted(), "{number}");
        // Nothing is acknowledged: no update is permitted.
        assert!(!protection.update_is_due(u64::MAX), "{number}");
        seal(&mut protection, number);
    }
    assert!(protection.is_exhausted());
}

#[test]
fn packets_that_fail_authentication_are_counted_across_all_keys() {
    let mut protection = protection();
    let levels = [
        EncryptionLevel::Initial,
        EncryptionLevel::OneRtt,
        EncryptionLevel::Initial,
        EncryptionLevel::OneRtt,
    ];
    for (number, level) in (0..).zip(levels) {
        // Those that succeed in between don't count.
        assert_eq!(open(&mut protection, level, number, 0), None);
        let failure = open(&mut protection, level, number, 1);
        assert_eq!(failure, Some(OpenError::Inauthentic), "{number}");
    }
    let failure = open(&mut protection, EncryptionLevel::OneRtt, 9, 1);
    assert_eq!(failure, Some(OpenError::IntegrityLimit));
}

#[test]
fn keys_at_rest_neither_open_nor_protect_but_are_known() {
    let mut protection = protection();
    let tag_len = protection.tag_len(EncryptionLevel::OneRtt);
    protection.release_idle_memory();
    assert!(protection.is_at_rest() && protection.has(EncryptionLevel::OneRtt));
    assert_eq!(protection.tag_len(EncryptionLevel::OneRtt), tag_len);
    let opened = open(&mut protection, EncryptionLevel::OneRtt, 0, 0);
    assert_eq!(opened, Some(OpenError::NoKeys));

    protection.wake(Some(ApplicationKeys {
        current: keys(),
        next: Some(packet_keys()),
    }));
    assert!(!protection.is_at_rest());
    assert_eq!(open(&mut protection, EncryptionLevel::OneRtt, 0, 0), None);
}

#[test]
fn keys_stay_while_those_of_the_phase_before_do() {
    let mut protection = protection();
    seal(&mut protection, 0);
    protection.on_acked(PacketNumber::new(0));
    protection.update(Some(packet_keys()), None);
    protection.release_idle_memory();
    assert!(!protection.is_at_rest());
}

#[test]
fn keys_that_do_not_come_back_end_the_level() {
    let mut protection = protection();
    protection.release_idle_memory();
    protection.wake(None);
    assert!(!protection.has(EncryptionLevel::OneRtt) && !protection.is_at_rest());
}
