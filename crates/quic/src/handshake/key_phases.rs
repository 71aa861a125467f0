//! 1-RTT keys: header protection for good, packet protection that changes phase (RFC 9001, section 6).
//!
//! The keys of a quiet connection can be given up, for they take more memory than the secrets they are
//! made of; where they come from again is the handshake's matter.

use swiftwater_units::{Instant, PacketNumber, PathId};

use super::keys::{OpenError, Opened};
use crate::crypto::{ApplicationKeys, CryptoError, HeaderKey, KeyPair, PacketKey};

/// Packets of each key that are left to the closing period, in which answers get ever rarer.
const RESERVED_FOR_CLOSING: u64 = 64;

/// The keys, and what is remembered of each phase.
pub(super) struct KeyPhases {
    /// `None` while they rest.
    keys: Option<Box<PhaseKeys>>,
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
    // Known of the keys while they rest, too.
    tag_len: usize,
    confidentiality_limit: u64,
    integrity_limit: u64,
}

struct PhaseKeys {
    header: KeyPair<dyn HeaderKey>,
    current: KeyPair<dyn PacketKey>,
    next: Option<KeyPair<dyn PacketKey>>,
}

impl From<ApplicationKeys> for Box<PhaseKeys> {
    fn from(keys: ApplicationKeys) -> Self {
        Self::new(PhaseKeys {
            header: keys.current.header,
            current: keys.current.packet,
            next: keys.next,
        })
    }
}

impl KeyPhases {
    /// The first phase.
    pub(super) fn new(keys: ApplicationKeys) -> Self {
        let (local, remote) = (&keys.current.packet.local, &keys.current.packet.remote);
        Self {
            tag_len: local.tag_len(),
            confidentiality_limit: local.confidentiality_limit(),
            integrity_limit: remote.integrity_limit(),
            keys: Some(keys.into()),
            previous: None,
            phase: false,
            generation: 0,
            first_received: None,
            first_sent: None,
            phase_acked: false,
            sealed: 0,
        }
    }

    /// The key-phase bit of packets that we send.
    pub(super) fn phase(&self) -> bool {
        self.phase
    }

    /// Number of key updates so far.
    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    /// Bytes that protection adds.
    pub(super) fn tag_len(&self) -> usize {
        self.tag_len
    }

    /// Packets that may fail authentication.
    pub(super) fn integrity_limit(&self) -> u64 {
        self.integrity_limit
    }

    /// Gives up the keys, unless those of the previous phase are still around.
    pub(super) fn release_idle_memory(&mut self) {
        if self.previous.is_none() {
            self.keys = None;
        }
    }

    /// True if the keys were given up.
    pub(super) fn are_at_rest(&self) -> bool {
        self.keys.is_none()
    }

    /// Takes keys like those that were given up.
    pub(super) fn wake(&mut self, keys: ApplicationKeys) {
        self.keys = Some(keys.into());
    }

    /// What removes the protection of received headers.
    pub(super) fn remote_header(&self) -> Option<&dyn HeaderKey> {
        self.keys.as_ref().map(|keys| &*keys.header.remote)
    }

    /// The keys that protect packet `number`, which counts as sent.
    pub(super) fn sealing(
        &mut self,
        number: PacketNumber,
    ) -> Option<(&dyn HeaderKey, &dyn PacketKey)> {
        let keys = self.keys.as_ref()?;
        self.first_sent.get_or_insert(number);
        self.sealed += 1;
        Some((&*keys.header.local, &*keys.current.local))
    }

    #[inline]
    pub(super) fn open(
        &mut self,
        path: PathId,
        number: PacketNumber,
        key_phase: bool,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Opened, OpenError> {
        let keys = self.keys.as_ref().ok_or(OpenError::NoKeys)?;
        if key_phase == self.phase {
            let Ok(len) = keys.current.remote.decrypt(path, number, header, payload) else {
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
        let Some(next) = &keys.next else {
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

    /// A packet was acknowledged.
    pub(super) fn on_acked(&mut self, largest: PacketNumber) {
        if self.first_sent.is_some_and(|first| largest >= first) {
            self.phase_acked = true;
        }
    }

    /// True if an update is permitted, and either `wanted` or due after `interval` packets.
    pub(super) fn update_is_due(&self, wanted: bool, interval: u64) -> bool {
        let limit = interval.min(self.confidentiality_limit / 2);
        (wanted || self.sealed >= limit)
            && self.phase_acked
            && self.previous.is_none()
            && (self.keys.as_ref()).is_none_or(|keys| keys.next.is_some())
    }

    /// True if the current key may protect no further packet but those that tell of the end.
    pub(super) fn are_exhausted(&self) -> bool {
        self.sealed
            >= self
                .confidentiality_limit
                .saturating_sub(RESERVED_FOR_CLOSING)
    }

    /// Moves to the next phase, if there are keys of it; `next` are those of the phase after it. If the
    /// peer moved first, `received` is its packet and the time until which old receive keys are kept.
    /// True if the phase changed.
    pub(super) fn update(
        &mut self,
        next: Option<KeyPair<dyn PacketKey>>,
        received: Option<(PacketNumber, Instant)>,
    ) -> bool {
        let Some(keys) = &mut self.keys else {
            return false;
        };
        let Some(new) = std::mem::replace(&mut keys.next, next) else {
            return false;
        };
        let old = std::mem::replace(&mut keys.current, new);
        self.previous = Some((old.remote, received.map(|(_, keep_until)| keep_until)));
        self.phase = !self.phase;
        self.generation += 1;
        self.first_received = received.map(|(number, _)| number);
        self.first_sent = None;
        self.phase_acked = false;
        self.sealed = 0;
        true
    }

    /// When old receive keys are discarded.
    pub(super) fn previous_expires(&self) -> Option<Instant> {
        self.previous.as_ref()?.1
    }

    /// The peer followed our update: old receive keys are kept until `keep_until`.
    pub(super) fn confirm(&mut self, keep_until: Instant) {
        if let Some((_, at)) = &mut self.previous {
            at.get_or_insert(keep_until);
        }
    }

    /// Discards old receive keys whose time has come.
    pub(super) fn expire_previous(&mut self, now: Instant) {
        if self.previous_expires().is_some_and(|at| at <= now) {
            self.previous = None;
        }
    }
}
