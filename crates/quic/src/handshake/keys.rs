//! Packet protection by encryption level and key phase (RFC 9001, sections 5 and 6).

use std::time::Duration;

use swiftwater_units::{Instant, PacketNumber, PathId};

use crate::crypto::{
    ApplicationKeys, CryptoError, EarlyKeys, EncryptionLevel, HeaderKey, KeyPair, Keys, PacketKey,
};

use super::key_phases::KeyPhases;

/// A packet was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    /// Bytes of plaintext, at the start of what was the ciphertext.
    pub(crate) len: usize,
    /// The peer moved to the next key phase with this packet.
    pub(crate) key_updated: bool,
    /// The peer followed our key update with this packet: old keys can be discarded soon.
    pub(crate) phase_confirmed: bool,
}

impl Opened {
    pub(super) fn plain(len: usize) -> Self {
        Self {
            len,
            key_updated: false,
            phase_confirmed: false,
        }
    }
}

/// A packet was not opened.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum OpenError {
    /// It failed authentication.
    Inauthentic,
    /// The peer used old keys for a packet after one with new keys (RFC 9001, section 6.4).
    KeyUpdate,
    /// Too many packets failed authentication (RFC 9001, section 6.6).
    IntegrityLimit,
    /// There are no keys for it.
    NoKeys,
}

/// The keys of a connection.
pub(crate) struct Protection {
    // Those of the handshake are for a moment only.
    initial: Option<Box<Keys>>,
    handshake: Option<Box<Keys>>,
    one_rtt: Option<KeyPhases>,
    /// Keys of early data, and when a server discards them.
    early: Option<Box<(EarlyKeys, Option<Instant>)>>,
    /// Packets that failed authentication.
    failed: u64,
    /// The application asked for a key update, perhaps before there were keys to update.
    update_wanted: bool,
}

impl Protection {
    pub(crate) fn new(initial: Keys) -> Self {
        Self {
            initial: Some(Box::new(initial)),
            handshake: None,
            one_rtt: None,
            early: None,
            failed: 0,
            update_wanted: false,
        }
    }

    /// Puts other Initial keys in the place of those there are, if they are not discarded, and returns
    /// the former ones.
    pub(crate) fn replace_initial(&mut self, keys: Keys) -> Option<Keys> {
        self.initial
            .as_mut()
            .map(|initial| std::mem::replace(&mut **initial, keys))
    }

    pub(crate) fn install_initial(&mut self, keys: Keys) {
        self.initial = Some(Box::new(keys));
    }

    /// Installs the keys of `level`; `next` are packet keys of the second phase, for 1-RTT.
    pub(crate) fn install(
        &mut self,
        level: EncryptionLevel,
        keys: Keys,
        next: Option<KeyPair<dyn PacketKey>>,
    ) {
        match level {
            EncryptionLevel::Initial => self.initial = Some(Box::new(keys)),
            EncryptionLevel::Handshake => self.handshake = Some(Box::new(keys)),
            EncryptionLevel::OneRtt => {
                let current = keys;
                self.one_rtt = Some(KeyPhases::new(ApplicationKeys { current, next }));
            }
            // Keys of early data come for one direction only.
            EncryptionLevel::ZeroRtt => {}
        }
    }

    /// Gives up the 1-RTT keys. Nothing can be opened or protected with them before
    /// [`Protection::wake`].
    pub(crate) fn release_idle_memory(&mut self) {
        if let Some(phases) = &mut self.one_rtt {
            phases.release_idle_memory();
        }
    }

    /// True if the 1-RTT keys were given up.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.one_rtt.as_ref().is_some_and(KeyPhases::are_at_rest)
    }

    /// Takes 1-RTT keys like those that were given up. Without any the encryption level is over: no packet may
    /// leave unprotected.
    pub(crate) fn wake(&mut self, keys: Option<ApplicationKeys>) {
        match (&mut self.one_rtt, keys) {
            (Some(phases), Some(keys)) => phases.wake(keys),
            _ => self.one_rtt = None,
        }
    }

    /// Installs the keys of early data.
    pub(crate) fn install_early(&mut self, keys: EarlyKeys) {
        self.early = Some(Box::new((keys, None)));
    }

    /// Early data may still be on their way until `at`, no longer (RFC 9001, section 4.9.3).
    pub(crate) fn expire_early_at(&mut self, at: Instant) {
        if let Some(early) = &mut self.early {
            early.1.get_or_insert(at);
        }
    }

    /// When the keys of early data are discarded.
    pub(crate) fn early_expires(&self) -> Option<Instant> {
        self.early.as_ref()?.1
    }

    pub(crate) fn has(&self, level: EncryptionLevel) -> bool {
        match level {
            EncryptionLevel::Initial => self.initial.is_some(),
            EncryptionLevel::Handshake => self.handshake.is_some(),
            EncryptionLevel::OneRtt => self.one_rtt.is_some(),
            EncryptionLevel::ZeroRtt => self.early.is_some(),
        }
    }

    pub(crate) fn discard(&mut self, level: EncryptionLevel) {
        match level {
            EncryptionLevel::Initial => self.initial = None,
            EncryptionLevel::Handshake => self.handshake = None,
            EncryptionLevel::OneRtt => self.one_rtt = None,
            EncryptionLevel::ZeroRtt => self.early = None,
        }
    }

    /// What removes the protection of received headers.
    fn remote_header(&self, level: EncryptionLevel) -> Option<&dyn HeaderKey> {
        match level {
            EncryptionLevel::Initial => self.initial.as_ref().map(|keys| &*keys.header.remote),
            EncryptionLevel::Handshake => self.handshake.as_ref().map(|keys| &*keys.header.remote),
            EncryptionLevel::OneRtt => self.one_rtt.as_ref()?.remote_header(),
            EncryptionLevel::ZeroRtt => self.early.as_ref().map(|early| &*early.0.header),
        }
    }

    /// Bytes that protection adds in `level`.
    pub(crate) fn tag_len(&self, level: EncryptionLevel) -> usize {
        let key = match level {
            EncryptionLevel::Initial => self.initial.as_ref().map(|keys| &*keys.packet.local),
            EncryptionLevel::Handshake => self.handshake.as_ref().map(|keys| &*keys.packet.local),
            EncryptionLevel::OneRtt => return self.one_rtt.as_ref().map_or(0, KeyPhases::tag_len),
            EncryptionLevel::ZeroRtt => self.early.as_ref().map(|early| &*early.0.packet),
        };
        key.map_or(0, PacketKey::tag_len)
    }

    /// The key-phase bit of packets that we send.
    pub(crate) fn phase(&self) -> bool {
        self.one_rtt.as_ref().is_some_and(KeyPhases::phase)
    }

    /// Number of key updates so far.
    pub(crate) fn generation(&self) -> u64 {
        self.one_rtt.as_ref().map_or(0, KeyPhases::generation)
    }

    /// Removes header protection in place; false if there are no keys or the packet is too short.
    pub(crate) fn unprotect_header(
        &self,
        level: EncryptionLevel,
        pn_offset: usize,
        packet: &mut [u8],
    ) -> bool {
        let Some(key) = self.remote_header(level) else {
            return false;
        };
        if packet.len() < pn_offset + 4 + key.sample_len() {
            return false;
        }
        key.decrypt(pn_offset, packet);
        true
    }

    /// Opens a packet whose header protection is removed. `key_phase` is its key-phase bit.
    pub(crate) fn open(
        &mut self,
        level: EncryptionLevel,
        path: PathId,
        number: PacketNumber,
        key_phase: bool,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Opened, OpenError> {
        let key = match level {
            EncryptionLevel::OneRtt => {
                let keys = self.one_rtt.as_mut().ok_or(OpenError::NoKeys)?;
                return match keys.open(path, number, key_phase, header, payload) {
                    Err(OpenError::Inauthentic) => Err(self.on_inauthentic(level)),
                    opened => opened,
                };
            }
            EncryptionLevel::Initial => self.initial.as_ref().map(|keys| &*keys.packet.remote),
            EncryptionLevel::ZeroRtt => self.early.as_ref().map(|early| &*early.0.packet),
            EncryptionLevel::Handshake => self.handshake.as_ref().map(|keys| &*keys.packet.remote),
        };
        let key = key.ok_or(OpenError::NoKeys)?;
        match key.decrypt(path, number, header, payload) {
            Ok(len) => Ok(Opened::plain(len)),
            Err(CryptoError) => Err(self.on_inauthentic(level)),
        }
    }

    /// Counts a packet that failed authentication.
    #[cold]
    fn on_inauthentic(&mut self, level: EncryptionLevel) -> OpenError {
        self.failed += 1;
        let limit = |key: &dyn PacketKey| key.integrity_limit();
        let limit = match level {
            EncryptionLevel::Initial => self
                .initial
                .as_ref()
                .map(|keys| limit(&*keys.packet.remote)),
            EncryptionLevel::Handshake => {
                (self.handshake.as_ref()).map(|keys| limit(&*keys.packet.remote))
            }
            EncryptionLevel::OneRtt => self.one_rtt.as_ref().map(KeyPhases::integrity_limit),
            EncryptionLevel::ZeroRtt => self.early.as_ref().map(|early| limit(&*early.0.packet)),
        };
        if limit.is_some_and(|limit| self.failed >= limit) {
            OpenError::IntegrityLimit
        } else {
            OpenError::Inauthentic
        }
    }

    /// Protects a packet in place: payload, then header.
    pub(crate) fn seal(
        &mut self,
        level: EncryptionLevel,
        path: PathId,
        number: PacketNumber,
        pn_offset: usize,
        header_len: usize,
        packet: &mut [u8],
    ) {
        let keys: Option<(&dyn HeaderKey, &dyn PacketKey)> = match level {
            EncryptionLevel::Initial => self.initial.as_deref().map(local),
            EncryptionLevel::Handshake => self.handshake.as_deref().map(local),
            EncryptionLevel::OneRtt => self.one_rtt.as_mut().and_then(|keys| keys.sealing(number)),
            EncryptionLevel::ZeroRtt => self
                .early
                .as_ref()
                .map(|early| (&*early.0.header, &*early.0.packet)),
        };
        if let Some((header, body)) = keys {
            body.encrypt(path, number, header_len, packet);
            header.encrypt(pn_offset, packet);
        }
    }

    /// A 1-RTT packet was acknowledged.
    pub(crate) fn on_acked(&mut self, largest: PacketNumber) {
        if let Some(keys) = &mut self.one_rtt {
            keys.on_acked(largest);
        }
    }

    /// Asks for a key update at the next opportunity.
    pub(crate) fn want_update(&mut self) {
        self.update_wanted = true;
    }

    /// True if an update is due (asked for, or more than `interval` packets were sealed) and
    /// permitted: the current phase was acknowledged and the keys of the one before are gone (RFC
    /// 9001, sections 6.1 and 6.5).
    pub(crate) fn update_is_due(&self, interval: u64) -> bool {
        (self.one_rtt.as_ref()).is_some_and(|keys| keys.update_is_due(self.update_wanted, interval))
    }

    /// True if the current key may protect no further packet but those that tell of the end.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.one_rtt.as_ref().is_some_and(KeyPhases::are_exhausted)
    }

    /// Moves to the next phase; `next` are the keys of the phase after it. If the peer moved first,
    /// `received` is its packet and the time until which old receive keys are kept.
    pub(crate) fn update(
        &mut self,
        next: Option<KeyPair<dyn PacketKey>>,
        received: Option<(PacketNumber, Instant)>,
    ) {
        if let Some(keys) = &mut self.one_rtt
            && keys.update(next, received)
        {
            self.update_wanted = false;
        }
    }

    /// When old receive keys are discarded.
    pub(crate) fn previous_expires(&self) -> Option<Instant> {
        self.one_rtt.as_ref()?.previous_expires()
    }

    /// The peer followed our update: old receive keys are kept until `keep_until`.
    pub(crate) fn confirm_phase(&mut self, keep_until: Instant) {
        if let Some(keys) = &mut self.one_rtt {
            keys.confirm(keep_until);
        }
    }

    /// Discards old receive keys, and those of early data, whose time has come.
    pub(crate) fn expire_previous(&mut self, now: Instant) {
        if self.early_expires().is_some_and(|at| at <= now) {
            self.early = None;
        }
        if let Some(keys) = &mut self.one_rtt {
            keys.expire_previous(now);
        }
    }

    /// How long old receive keys are kept after an update: three PTOs (RFC 9001, section 6.5).
    pub(crate) fn retention(pto: Duration) -> Duration {
        pto * 3
    }
}

/// What protects outgoing packets.
fn local(keys: &Keys) -> (&dyn HeaderKey, &dyn PacketKey) {
    (&*keys.header.local, &*keys.packet.local)
}
