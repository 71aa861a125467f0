//! Limits on the use of keys (RFC 9001, section 6.6), with keys that wear out quickly; and key phases over
//! several paths.

use std::time::Duration;

use swiftwater_units::{Instant, PacketNumber, PathId};

use super::key_phases::{KeyPhaseNumbers, UpdateCause};
use super::keys::{ActiveKeys, KeysUnavailable, OpenError, Opened, PacketName, Protection};
use crate::crypto::{
    ApplicationKeys, CryptoError, EncryptionLevel, HeaderKey, KeyPair, Keys, PacketKey,
};
use crate::idle_memory::IdleMemory as _;

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

/// A connection's keys, and the phase_numbers of its only path.
struct Subject {
    protection: Protection,
    phase_numbers: KeyPhaseNumbers,
}

impl Subject {
    fn new() -> Self {
        let mut protection = Protection::new(keys());
        protection.install(EncryptionLevel::OneRtt, keys(), Some(packet_keys()));
        Self {
            protection,
            phase_numbers: KeyPhaseNumbers::default(),
        }
    }

    fn seal(&mut self, level: EncryptionLevel, number: u64) -> Result<(), KeysUnavailable> {
        let mut packet = [1; 40];
        ActiveKeys::new(&mut self.protection)?.seal(
            name(level, number),
            &mut self.phase_numbers,
            1,
            3,
            &mut packet,
        )
    }

    /// Opens a 1-RTT packet with this key-phase bit that arrives on the path with these numbers.
    fn open_on(
        &mut self,
        phase_numbers: &mut KeyPhaseNumbers,
        number: u64,
        key_phase: bool,
    ) -> Result<Opened, OpenError> {
        let mut keys = ActiveKeys::new(&mut self.protection).unwrap();
        let name = name(ONE_RTT, number);
        keys.open(name, phase_numbers, key_phase, &[], &mut [0; 20])
    }

    fn open(&mut self, level: EncryptionLevel, number: u64, last: u8) -> Option<OpenError> {
        let mut payload = [last; 20];
        let keys = ActiveKeys::new(&mut self.protection);
        let name = name(level, number);
        keys.map_err(|KeysUnavailable| OpenError::NoKeys)
            .and_then(|mut keys| keys.open(name, &mut self.phase_numbers, false, &[], &mut payload))
            .err()
    }

    fn acked(&mut self, number: u64) {
        self.protection
            .on_acked(PacketNumber::new(number), &self.phase_numbers);
    }

    fn update(&mut self) {
        self.protection
            .update(Some(packet_keys()), UpdateCause::Local);
    }
}

fn name(level: EncryptionLevel, number: u64) -> PacketName {
    PacketName {
        level,
        path: PathId::ZERO,
        number: PacketNumber::new(number),
    }
}

const ONE_RTT: EncryptionLevel = EncryptionLevel::OneRtt;

#[test]
fn an_update_is_due_at_half_the_limit_of_sealed_packets() {
    let mut subject = Subject::new();
    for number in 0..CONFIDENTIALITY / 2 {
        assert!(!subject.protection.update_is_due(u64::MAX), "{number}");
        subject.seal(ONE_RTT, number).unwrap();
        subject.acked(number);
    }
    assert!(subject.protection.update_is_due(u64::MAX));
    subject.update();
    // The count starts anew with new keys.
    assert!(!subject.protection.update_is_due(u64::MAX) && !subject.protection.is_exhausted());
}

#[test]
fn without_an_update_keys_are_exhausted_shortly_before_the_limit() {
    let mut subject = Subject::new();
    // Enough for the packets that report it.
    for number in 0..CONFIDENTIALITY - 64 {
        assert!(!subject.protection.is_exhausted(), "{number}");
        // Nothing is acknowledged: no update is permitted.
        assert!(!subject.protection.update_is_due(u64::MAX), "{number}");
        subject.seal(ONE_RTT, number).unwrap();
    }
    assert!(subject.protection.is_exhausted());
}

#[test]
fn packets_that_fail_authentication_are_counted_across_all_keys() {
    let mut subject = Subject::new();
    let levels = [
        EncryptionLevel::Initial,
        EncryptionLevel::OneRtt,
        EncryptionLevel::Initial,
        EncryptionLevel::OneRtt,
    ];
    for (number, level) in (0..).zip(levels) {
        // Those that succeed in between don't count.
        assert_eq!(subject.open(level, number, 0), None);
        let failure = subject.open(level, number, 1);
        assert_eq!(failure, Some(OpenError::Inauthentic), "{number}");
    }
    let failure = subject.open(ONE_RTT, 9, 1);
    assert_eq!(failure, Some(OpenError::IntegrityLimit));
}

#[test]
fn keys_that_were_released_neither_open_nor_protect() {
    let mut subject = Subject::new();
    let tag_len = subject.protection.tag_len(ONE_RTT);
    subject.protection.release_idle_memory();
    assert!(subject.protection.are_released() && subject.protection.has(ONE_RTT));
    assert_eq!(subject.protection.tag_len(ONE_RTT), tag_len);
    assert_eq!(subject.open(ONE_RTT, 0, 0), Some(OpenError::NoKeys));
    assert_eq!(subject.seal(ONE_RTT, 0), Err(KeysUnavailable));

    subject.protection.restore(ApplicationKeys {
        current: keys(),
        next: Some(packet_keys()),
    });
    assert!(!subject.protection.are_released());
    assert_eq!(subject.open(ONE_RTT, 0, 0), None);
    assert_eq!(subject.seal(ONE_RTT, 0), Ok(()));
}

#[test]
fn without_keys_of_its_level_a_packet_is_not_protected() {
    let mut subject = Subject::new();
    assert_eq!(
        subject.seal(EncryptionLevel::Handshake, 0),
        Err(KeysUnavailable)
    );
    assert_eq!(
        subject.seal(EncryptionLevel::ZeroRtt, 0),
        Err(KeysUnavailable)
    );
    subject.protection.discard(EncryptionLevel::Initial);
    assert_eq!(
        subject.seal(EncryptionLevel::Initial, 0),
        Err(KeysUnavailable)
    );
}

/// A path in reserve receives nothing while keys are updated.
#[test]
fn a_path_without_packets_of_the_current_phase_follows_an_update() {
    let mut subject = Subject::new();
    let [mut active, mut reserve] = [KeyPhaseNumbers::default(); 2];
    assert!(!subject.open_on(&mut active, 9, false).unwrap().key_updated);
    subject.seal(ONE_RTT, 0).unwrap();
    subject.update();
    subject.seal(ONE_RTT, 1).unwrap();
    let opened = subject.open_on(&mut active, 10, true).unwrap();
    assert!(opened.phase_confirmed);
    let later = Instant::ZERO + Duration::from_secs(1);
    subject.protection.confirm_phase(later);
    // While there may be packets of the previous phase it is one of them, then one of the next.
    let opened = subject.open_on(&mut reserve, 3, false).unwrap();
    assert!(!opened.key_updated);
    subject.protection.expire_previous(later);
    let opened = subject.open_on(&mut reserve, 4, false).unwrap();
    assert!(opened.key_updated);
    // On the other path its number shows that it is too late.
    let late = subject.open_on(&mut active, 8, false);
    assert_eq!(late.err(), Some(OpenError::KeyUpdate));
}

#[test]
fn keys_stay_while_those_of_the_phase_before_do() {
    let mut subject = Subject::new();
    subject.seal(ONE_RTT, 0).unwrap();
    subject.acked(0);
    subject.update();
    subject.protection.release_idle_memory();
    assert!(!subject.protection.are_released());
}
