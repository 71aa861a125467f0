//! Packet protection by encryption level and key phase (RFC 9001, sections 5 and 6).
//!
//! `Protection` holds the keys and their state; packets are opened and protected through `ActiveKeys`
//! only, which exist while no key is released.

use std::time::Duration;

use swiftwater_units::{Instant, PacketNumber, PathId};
use swiftwater_wire::ErrorCode;

use crate::crypto::{
    ApplicationKeys, CryptoError, EarlyKeys, EncryptionLevel, HeaderKey, KeyPair, Keys, PacketKey,
};

use super::key_phases::{KeyPhaseNumbers, KeyPhases, UpdateCause};
use crate::error::TransportError;
use crate::idle_memory::IdleMemory;

/// A packet was opened.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Opened {
    /// Bytes of plaintext, at the start of what was the ciphertext.
    pub(crate) len: usize,
    /// The peer moved to the next key phase with this packet.
    pub(crate) key_updated: bool,
    /// The peer followed the local key update with this packet: old keys can be discarded soon.
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

/// There are no keys to protect or to open a packet with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct KeysUnavailable;

/// Keys that were released can't be derived again: nothing can be sent or received any more.
impl From<KeysUnavailable> for TransportError {
    fn from(_: KeysUnavailable) -> Self {
        Self::new(
            ErrorCode::INTERNAL_ERROR,
            "the TLS session does not derive the keys again",
        )
    }
}

/// What names a packet to packet protection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketName {
    pub(crate) level: EncryptionLevel,
    pub(crate) path: PathId,
    pub(crate) number: PacketNumber,
}

/// Keys of early data.
struct ZeroRttKeys {
    keys: EarlyKeys,
    /// When a server discards them.
    discard_at: Option<Instant>,
}

/// The keys of a connection.
pub(crate) struct Protection {
    initial: Option<Box<Keys>>,
    handshake: Option<Box<Keys>>,
    one_rtt: Option<KeyPhases>,
    zero_rtt: Option<Box<ZeroRttKeys>>,
    /// Packets that failed authentication.
    failed: u64,
    /// The application asked for a key update, perhaps before there were keys to update.
    update_requested: bool,
}

impl Protection {
    pub(crate) fn new(initial: Keys) -> Self {
        Self {
            initial: Some(Box::new(initial)),
            handshake: None,
            one_rtt: None,
            zero_rtt: None,
            failed: 0,
            update_requested: false,
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

    /// True if the 1-RTT keys were released.
    pub(crate) fn are_released(&self) -> bool {
        self.one_rtt.as_ref().is_some_and(KeyPhases::are_released)
    }

    /// Takes 1-RTT keys like those that were released.
    pub(crate) fn restore(&mut self, keys: ApplicationKeys) {
        if let Some(phases) = &mut self.one_rtt {
            phases.restore(keys);
        }
    }

    /// Installs the keys of early data.
    pub(crate) fn install_early(&mut self, keys: EarlyKeys) {
        self.zero_rtt = Some(Box::new(ZeroRttKeys {
            keys,
            discard_at: None,
        }));
    }

    /// Early data may still be on their way until `at`, no longer (RFC 9001, section 4.9.3).
    pub(crate) fn expire_early_at(&mut self, at: Instant) {
        if let Some(zero_rtt) = &mut self.zero_rtt {
            zero_rtt.discard_at.get_or_insert(at);
        }
    }

    /// When the keys of early data are discarded.
    pub(crate) fn early_expires(&self) -> Option<Instant> {
        self.zero_rtt.as_ref()?.discard_at
    }

    pub(crate) fn has(&self, level: EncryptionLevel) -> bool {
        match level {
            EncryptionLevel::Initial => self.initial.is_some(),
            EncryptionLevel::Handshake => self.handshake.is_some(),
            EncryptionLevel::OneRtt => self.one_rtt.is_some(),
            EncryptionLevel::ZeroRtt => self.zero_rtt.is_some(),
        }
    }

    pub(crate) fn discard(&mut self, level: EncryptionLevel) {
        match level {
            EncryptionLevel::Initial => self.initial = None,
            EncryptionLevel::Handshake => self.handshake = None,
            EncryptionLevel::OneRtt => self.one_rtt = None,
            EncryptionLevel::ZeroRtt => self.zero_rtt = None,
        }
    }

    /// What removes the protection of received headers.
    fn remote_header(&self, level: EncryptionLevel) -> Option<&dyn HeaderKey> {
        match level {
            EncryptionLevel::Initial => self.initial.as_ref().map(|keys| &*keys.header.remote),
            EncryptionLevel::Handshake => self.handshake.as_ref().map(|keys| &*keys.header.remote),
            EncryptionLevel::OneRtt => self.one_rtt.as_ref()?.remote_header(),
            EncryptionLevel::ZeroRtt => self
                .zero_rtt
                .as_ref()
                .map(|zero_rtt| &*zero_rtt.keys.header),
        }
    }

    /// Bytes that protection adds in `level`.
    pub(crate) fn tag_len(&self, level: EncryptionLevel) -> usize {
        let key = match level {
            EncryptionLevel::Initial => self.initial.as_ref().map(|keys| &*keys.packet.local),
            EncryptionLevel::Handshake => self.handshake.as_ref().map(|keys| &*keys.packet.local),
            EncryptionLevel::OneRtt => return self.one_rtt.as_ref().map_or(0, KeyPhases::tag_len),
            EncryptionLevel::ZeroRtt => self
                .zero_rtt
                .as_ref()
                .map(|zero_rtt| &*zero_rtt.keys.packet),
        };
        key.map_or(0, PacketKey::tag_len)
    }

    /// The key-phase bit of packets that this end sends.
    pub(crate) fn phase(&self) -> bool {
        self.one_rtt.as_ref().is_some_and(KeyPhases::phase)
    }

    /// Number of key updates so far.
    pub(crate) fn generation(&self) -> u64 {
        self.one_rtt.as_ref().map_or(0, KeyPhases::generation)
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
            EncryptionLevel::ZeroRtt => {
                (self.zero_rtt.as_ref()).map(|zero_rtt| limit(&*zero_rtt.keys.packet))
            }
        };
        if limit.is_some_and(|limit| self.failed >= limit) {
            OpenError::IntegrityLimit
        } else {
            OpenError::Inauthentic
        }
    }

    /// A 1-RTT packet of the path with these phase_numbers was acknowledged.
    pub(crate) fn on_acked(&mut self, largest: PacketNumber, phase_numbers: &KeyPhaseNumbers) {
        if let Some(keys) = &mut self.one_rtt {
            keys.on_acked(largest, phase_numbers);
        }
    }

    /// Asks for a key update at the next opportunity.
    pub(crate) fn request_update(&mut self) {
        self.update_requested = true;
    }

    /// True if an update is due (asked for, or more than `interval` packets were sealed) and
    /// permitted: the current phase was acknowledged and the keys of the one before are gone (RFC
    /// 9001, sections 6.1 and 6.5).
    pub(crate) fn update_is_due(&self, interval: u64) -> bool {
        (self.one_rtt.as_ref())
            .is_some_and(|keys| keys.update_is_due(self.update_requested, interval))
    }

    /// True if the current key may protect no further packet but those of the close.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.one_rtt.as_ref().is_some_and(KeyPhases::are_exhausted)
    }

    /// Moves to the next phase; `next` are the keys of the phase after it, `cause` says whose packet
    /// the first of the phase is.
    pub(crate) fn update(&mut self, next: Option<KeyPair<dyn PacketKey>>, cause: UpdateCause<'_>) {
        if let Some(keys) = &mut self.one_rtt
            && keys.update(next, cause)
        {
            self.update_requested = false;
        }
    }

    /// When old receive keys are discarded.
    pub(crate) fn previous_expires(&self) -> Option<Instant> {
        self.one_rtt.as_ref()?.previous_expires()
    }

    /// The peer followed the local update: old receive keys are kept until `keep_until`.
    pub(crate) fn confirm_phase(&mut self, keep_until: Instant) {
        if let Some(keys) = &mut self.one_rtt {
            keys.confirm(keep_until);
        }
    }

    /// Discards old receive keys, and those of early data, whose time has come.
    pub(crate) fn expire_previous(&mut self, now: Instant) {
        if self.early_expires().is_some_and(|at| at <= now) {
            self.zero_rtt = None;
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

impl IdleMemory for Protection {
    /// Releases the 1-RTT keys, until [`Protection::restore`].
    fn release_idle_memory(&mut self) {
        let Self {
            initial: _,
            handshake: _,
            one_rtt,
            zero_rtt: _,
            failed: _,
            update_requested: _,
        } = self;
        if let Some(phases) = one_rtt {
            phases.release_idle_memory();
        }
    }
}

/// Keys that can open and protect packets: none of those that the connection has is released.
pub(crate) struct ActiveKeys<'a>(&'a mut Protection);

impl<'a> ActiveKeys<'a> {
    /// `Err` while the 1-RTT keys are released.
    pub(super) fn new(protection: &'a mut Protection) -> Result<Self, KeysUnavailable> {
        if protection.are_released() {
            return Err(KeysUnavailable);
        }
        Ok(Self(protection))
    }

    /// Removes header protection in place; false if there are no keys or the packet is too short.
    pub(crate) fn unprotect_header(
        &self,
        level: EncryptionLevel,
        pn_offset: usize,
        packet: &mut [u8],
    ) -> bool {
        let Some(key) = self.0.remote_header(level) else {
            return false;
        };
        if packet.len() < pn_offset + 4 + key.sample_len() {
            return false;
        }
        key.decrypt(pn_offset, packet);
        true
    }

    /// Opens a packet whose header protection is removed. `key_phase` is its key-phase bit, `phase_numbers` are
    /// those of its path.
    pub(crate) fn open(
        &mut self,
        name: PacketName,
        phase_numbers: &mut KeyPhaseNumbers,
        key_phase: bool,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Opened, OpenError> {
        let protection = &mut *self.0;
        let key = match name.level {
            EncryptionLevel::OneRtt => {
                let keys = protection.one_rtt.as_mut().ok_or(OpenError::NoKeys)?;
                return match keys.open(name, phase_numbers, key_phase, header, payload) {
                    Err(OpenError::Inauthentic) => Err(protection.on_inauthentic(name.level)),
                    opened => opened,
                };
            }
            EncryptionLevel::Initial => {
                (protection.initial.as_ref()).map(|keys| &*keys.packet.remote)
            }
            EncryptionLevel::ZeroRtt => {
                (protection.zero_rtt.as_ref()).map(|zero_rtt| &*zero_rtt.keys.packet)
            }
            EncryptionLevel::Handshake => {
                (protection.handshake.as_ref()).map(|keys| &*keys.packet.remote)
            }
        };
        let key = key.ok_or(OpenError::NoKeys)?;
        match key.decrypt(name.path, name.number, header, payload) {
            Ok(len) => Ok(Opened::plain(len)),
            Err(CryptoError) => Err(protection.on_inauthentic(name.level)),
        }
    }

    /// Protects a packet in place: payload, then header.
    ///
    /// # Errors
    ///
    /// Without keys nothing is protected, and the packet must not be sent.
    pub(crate) fn seal(
        &mut self,
        name: PacketName,
        phase_numbers: &mut KeyPhaseNumbers,
        pn_offset: usize,
        header_len: usize,
        packet: &mut [u8],
    ) -> Result<(), KeysUnavailable> {
        let protection = &mut *self.0;
        let keys: Option<(&dyn HeaderKey, &dyn PacketKey)> = match name.level {
            EncryptionLevel::Initial => protection.initial.as_deref().map(local),
            EncryptionLevel::Handshake => protection.handshake.as_deref().map(local),
            EncryptionLevel::OneRtt => (protection.one_rtt.as_mut())
                .and_then(|keys| keys.sealing(name.number, phase_numbers)),
            EncryptionLevel::ZeroRtt => (protection.zero_rtt.as_ref())
                .map(|zero_rtt| (&*zero_rtt.keys.header, &*zero_rtt.keys.packet)),
        };
        let (header, body) = keys.ok_or(KeysUnavailable)?;
        body.encrypt(name.path, name.number, header_len, packet);
        header.encrypt(pn_offset, packet);
        Ok(())
    }
}

/// What protects outgoing packets.
fn local(keys: &Keys) -> (&dyn HeaderKey, &dyn PacketKey) {
    (&*keys.header.local, &*keys.packet.local)
}
