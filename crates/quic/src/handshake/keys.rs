//! Packet protection by epoch and key phase (RFC 9001, sections 5 and 6).

use std::time::Duration;

use swiftwater_units::{Instant, PacketNumber, PathId};

use crate::crypto::{CryptoError, EarlyKeys, Epoch, HeaderKey, KeyPair, Keys, PacketKey};

/// Packets of each key that are left to the closing period, in which answers get ever rarer.
const RESERVED_FOR_CLOSING: u64 = 64;

/// 1-RTT keys: one header key for good, packet keys that change phase.
struct OneRtt {
    header: KeyPair<dyn HeaderKey>,
    current: KeyPair<dyn PacketKey>,
    next: Option<KeyPair<dyn PacketKey>>,
    /// Receive key of the previous phase, and when to discard it: some time after the peer's first
    /// packet of the current phase.
    previous: Option<(Box<dyn PacketKey>, Option<Instant>)>,
    phase: bool,
    generation: u64,
    /// Lowest packet number received in the current phase; packets below it may belong to the
    /// previous one.
    first_received: Option<PacketNumber>,
    /// First packet number sent in the current phase.
    first_sent: Option<PacketNumber>,
    /// True once a packet of the current phase was acknowledged.
    phase_acked: bool,
    /// Packets protected with the current key.
    sealed: u64,
}

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
    fn plain(len: usize) -> Self {
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
    initial: Option<Keys>,
    handshake: Option<Keys>,
    one_rtt: Option<OneRtt>,
    /// Keys of early data, and when a server discards them.
    early: Option<(EarlyKeys, Option<Instant>)>,
    /// Packets that failed authentication.
    failed: u64,
    /// The application asked for a key update, perhaps before there were keys to update.
    update_wanted: bool,
}

impl Protection {
    pub(crate) fn new(initial: Keys) -> Self {
        Self {
            initial: Some(initial),
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
            .map(|initial| std::mem::replace(initial, keys))
    }

    pub(crate) fn install_initial(&mut self, keys: Keys) {
        self.initial = Some(keys);
    }

    pub(crate) fn install(
        &mut self,
        epoch: Epoch,
        keys: Keys,
        next: Option<KeyPair<dyn PacketKey>>,
    ) {
        match epoch {
            Epoch::Initial => self.initial = Some(keys),
            Epoch::Handshake => self.handshake = Some(keys),
            Epoch::OneRtt => {
                self.one_rtt = Some(OneRtt {
                    header: keys.header,
                    current: keys.packet,
                    next,
                    previous: None,
                    phase: false,
                    generation: 0,
                    first_received: None,
                    first_sent: None,
                    phase_acked: false,
                    sealed: 0,
                });
            }
            // Keys of early data come for one direction only.
            Epoch::ZeroRtt => {}
        }
    }

    /// Installs the keys of early data.
    pub(crate) fn install_early(&mut self, keys: EarlyKeys) {
        self.early = Some((keys, None));
    }

    /// Early data may still be on their way until `at`, no longer (RFC 9001, section 4.9.3).
    pub(crate) fn expire_early_at(&mut self, at: Instant) {
        if let Some((_, expiry)) = &mut self.early {
            expiry.get_or_insert(at);
        }
    }

    /// When the keys of early data are discarded.
    pub(crate) fn early_expires(&self) -> Option<Instant> {
        self.early.as_ref()?.1
    }

    pub(crate) fn has(&self, epoch: Epoch) -> bool {
        match epoch {
            Epoch::Initial => self.initial.is_some(),
            Epoch::Handshake => self.handshake.is_some(),
            Epoch::OneRtt => self.one_rtt.is_some(),
            Epoch::ZeroRtt => self.early.is_some(),
        }
    }

    pub(crate) fn discard(&mut self, epoch: Epoch) {
        match epoch {
            Epoch::Initial => self.initial = None,
            Epoch::Handshake => self.handshake = None,
            Epoch::OneRtt => self.one_rtt = None,
            Epoch::ZeroRtt => self.early = None,
        }
    }

    /// What removes the protection of received headers.
    fn remote_header(&self, epoch: Epoch) -> Option<&dyn HeaderKey> {
        match epoch {
            Epoch::Initial => self.initial.as_ref().map(|keys| &*keys.header.remote),
            Epoch::Handshake => self.handshake.as_ref().map(|keys| &*keys.header.remote),
            Epoch::OneRtt => self.one_rtt.as_ref().map(|keys| &*keys.header.remote),
            Epoch::ZeroRtt => self.early.as_ref().map(|(keys, _)| &*keys.header),
        }
    }

    /// Bytes that protection adds in `epoch`.
    pub(crate) fn tag_len(&self, epoch: Epoch) -> usize {
        let early = self.early.as_ref().map(|(keys, _)| &*keys.packet);
        let key = match epoch {
            Epoch::Initial => self.initial.as_ref().map(|keys| &*keys.packet.local),
            Epoch::Handshake => self.handshake.as_ref().map(|keys| &*keys.packet.local),
            Epoch::OneRtt => self.one_rtt.as_ref().map(|keys| &*keys.current.local),
            Epoch::ZeroRtt => early,
        };
        key.map_or(0, PacketKey::tag_len)
    }

    /// The key-phase bit of packets that we send.
    pub(crate) fn phase(&self) -> bool {
        self.one_rtt.as_ref().is_some_and(|keys| keys.phase)
    }

    /// Number of key updates so far.
    pub(crate) fn generation(&self) -> u64 {
        self.one_rtt.as_ref().map_or(0, |keys| keys.generation)
    }

    /// Removes header protection in place; false if there are no keys or the packet is too short.
    pub(crate) fn unprotect_header(
        &self,
        epoch: Epoch,
        pn_offset: usize,
        packet: &mut [u8],
    ) -> bool {
        let Some(key) = self.remote_header(epoch) else {
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
        epoch: Epoch,
        path: PathId,
        number: PacketNumber,
        key_phase: bool,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Opened, OpenError> {
        let key = match epoch {
            Epoch::OneRtt => {
                let keys = self.one_rtt.as_mut().ok_or(OpenError::NoKeys)?;
                return match keys.open(path, number, key_phase, header, payload) {
                    Err(OpenError::Inauthentic) => Err(self.on_inauthentic(epoch)),
                    opened => opened,
                };
            }
            Epoch::Initial => self.initial.as_ref().map(|keys| &*keys.packet.remote),
            Epoch::ZeroRtt => self.early.as_ref().map(|(keys, _)| &*keys.packet),
            Epoch::Handshake => self.handshake.as_ref().map(|keys| &*keys.packet.remote),
        };
        let key = key.ok_or(OpenError::NoKeys)?;
        match key.decrypt(path, number, header, payload) {
            Ok(len) => Ok(Opened::plain(len)),
            Err(CryptoError) => Err(self.on_inauthentic(epoch)),
        }
    }

    /// Counts a packet that failed authentication.
    #[cold]
    fn on_inauthentic(&mut self, epoch: Epoch) -> OpenError {
        let early = self.early.as_ref().map(|(keys, _)| &*keys.packet);
        let key = match epoch {
            Epoch::Initial => self.initial.as_ref().map(|keys| &*keys.packet.remote),
            Epoch::Handshake => self.handshake.as_ref().map(|keys| &*keys.packet.remote),
            Epoch::OneRtt => self.one_rtt.as_ref().map(|keys| &*keys.current.remote),
            Epoch::ZeroRtt => early,
        };
        self.failed += 1;
        if key.is_some_and(|key| self.failed >= key.integrity_limit()) {
            OpenError::IntegrityLimit
        } else {
            OpenError::Inauthentic
        }
    }

    /// Protects a packet in place: payload, then header.
    pub(crate) fn seal(
        &mut self,
        epoch: Epoch,
        path: PathId,
        number: PacketNumber,
        pn_offset: usize,
        header_len: usize,
        packet: &mut [u8],
    ) {
        let keys: Option<(&dyn HeaderKey, &dyn PacketKey)> = match epoch {
            Epoch::Initial => (self.initial.as_ref()).map(local),
            Epoch::Handshake => (self.handshake.as_ref()).map(local),
            Epoch::OneRtt => self.one_rtt.as_mut().map(|keys| {
                keys.first_sent.get_or_insert(number);
                keys.sealed += 1;
                (&*keys.header.local, &*keys.current.local)
            }),
            Epoch::ZeroRtt => self
                .early
                .as_ref()
                .map(|(keys, _)| (&*keys.header, &*keys.packet)),
        };
        if let Some((header, body)) = keys {
            body.encrypt(path, number, header_len, packet);
            header.encrypt(pn_offset, packet);
        }
    }

    /// A 1-RTT packet was acknowledged.
    pub(crate) fn on_acked(&mut self, largest: PacketNumber) {
        if let Some(keys) = &mut self.one_rtt
            && keys.first_sent.is_some_and(|first| largest >= first)
        {
            keys.phase_acked = true;
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
        self.one_rtt.as_ref().is_some_and(|keys| {
            let limit = interval.min(keys.current.local.confidentiality_limit() / 2);
            (self.update_wanted || keys.sealed >= limit)
                && keys.phase_acked
                && keys.previous.is_none()
                && keys.next.is_some()
        })
    }

    /// True if the current key may protect no further packet but those that tell of the end.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.one_rtt.as_ref().is_some_and(|keys| {
            let limit = keys.current.local.confidentiality_limit();
            keys.sealed >= limit.saturating_sub(RESERVED_FOR_CLOSING)
        })
    }

    /// Moves to the next phase; `next` are the keys of the phase after it. If the peer moved first,
    /// `received` is its packet and the time until which old receive keys are kept.
    pub(crate) fn update(
        &mut self,
        next: Option<KeyPair<dyn PacketKey>>,
        received: Option<(PacketNumber, Instant)>,
    ) {
        let Some(keys) = &mut self.one_rtt else {
            return;
        };
        let Some(new) = std::mem::replace(&mut keys.next, next) else {
            return;
        };
        let old = std::mem::replace(&mut keys.current, new);
        keys.previous = Some((old.remote, received.map(|(_, keep_until)| keep_until)));
        keys.phase = !keys.phase;
        keys.generation += 1;
        keys.first_received = received.map(|(number, _)| number);
        keys.first_sent = None;
        keys.phase_acked = false;
        keys.sealed = 0;
        self.update_wanted = false;
    }

    /// When old receive keys are discarded.
    pub(crate) fn previous_expires(&self) -> Option<Instant> {
        self.one_rtt.as_ref()?.previous.as_ref()?.1
    }

    /// The peer followed our update: old receive keys are kept until `keep_until`.
    pub(crate) fn confirm_phase(&mut self, keep_until: Instant) {
        if let Some((_, at)) = self
            .one_rtt
            .as_mut()
            .and_then(|keys| keys.previous.as_mut())
        {
            at.get_or_insert(keep_until);
        }
    }

    /// Discards old receive keys, and those of early data, whose time has come.
    pub(crate) fn expire_previous(&mut self, now: Instant) {
        if self.early_expires().is_some_and(|at| at <= now) {
            self.early = None;
        }
        if let Some(keys) = &mut self.one_rtt
            && keys
                .previous
                .as_ref()
                .is_some_and(|(_, at)| at.is_some_and(|at| at <= now))
        {
            keys.previous = None;
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

impl OneRtt {
    #[inline]
    fn open(
        &mut self,
        path: PathId,
        number: PacketNumber,
        key_phase: bool,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Opened, OpenError> {
        if key_phase == self.phase {
            let Ok(len) = self.current.remote.decrypt(path, number, header, payload) else {
                return Err(OpenError::Inauthentic);
            };
            let phase_confirmed = self.first_received.is_none() && self.previous.is_some();
            let first = self.first_received.get_or_insert(number);
            *first = (*first).min(number);
            return Ok(Opened {
                phase_confirmed,
                ..Opened::plain(len)
            });
        }
        let is_old = self.first_received.is_none_or(|first| number < first);
        if let (true, Some((previous, _))) = (is_old, &self.previous) {
            let opened = previous.decrypt(path, number, header, payload);
            return opened
                .map(Opened::plain)
                .map_err(|CryptoError| OpenError::Inauthentic);
        }
        let Some(next) = &self.next else {
            return Err(OpenError::Inauthentic);
        };
        let Ok(len) = next.remote.decrypt(path, number, header, payload) else {
            return Err(OpenError::Inauthentic);
        };
        if is_old && self.first_received.is_some() {
            // Newer keys on an older packet number: the peer went back and forth.
            return Err(OpenError::KeyUpdate);
        }
        if self.first_received.is_some() && self.first_sent.is_none() {
            // It has had no acknowledgement under the current keys, for we have sent nothing under
            // them: a second update must wait for one (RFC 9001, section 6.2).
            return Err(OpenError::KeyUpdate);
        }
        Ok(Opened {
            key_updated: true,
            ..Opened::plain(len)
        })
    }
}
