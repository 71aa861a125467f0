//! 1-RTT keys: header protection for good, packet protection that changes phase (RFC 9001, section 6).
//!
//! The keys of an idle connection can be released, for they take more memory than the secrets that they
//! are derived from; the handshake derives them again.

use swiftwater_units::{Instant, PacketNumber};

use super::keys::{OpenError, Opened, PacketName};
use crate::crypto::{ApplicationKeys, CryptoError, HeaderKey, KeyPair, PacketKey};
use crate::idle_memory::IdleMemory;

/// Packets of each key that are left to the closing period, in which answers get ever rarer.
const RESERVED_FOR_CLOSING: u64 = 64;

/// Packet numbers that delimit the current key phase on one path: the phase is the connection's, the
/// numbers are the path's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyPhaseNumbers {
    /// The key phase that they are about, counted in key updates; others have no numbers yet.
    generation: u64,
    /// Lowest packet number received in that phase, [`NONE`] before the first; packets below it may
    /// belong to the previous phase.
    first_received: u64,
    /// First packet number sent in that phase, [`NONE`] before the first.
    first_sent: u64,
}

/// Larger than every packet number: small, since each path has these numbers.
const NONE: u64 = u64::MAX;

impl Default for KeyPhaseNumbers {
    fn default() -> Self {
        Self {
            generation: 0,
            first_received: NONE,
            first_sent: NONE,
        }
    }
}

impl KeyPhaseNumbers {
    /// The numbers of phase `generation`.
    fn of(&mut self, generation: u64) -> &mut Self {
        if self.generation != generation {
            *self = Self {
                generation,
                ..Self::default()
            };
        }
        self
    }

    fn on_received(&mut self, number: PacketNumber) {
        self.first_received = self.first_received.min(number.get());
    }

    fn on_sent(&mut self, number: PacketNumber) {
        self.first_sent = self.first_sent.min(number.get());
    }
}

/// What begins a key phase.
#[derive(Debug)]
pub(crate) enum UpdateCause<'a> {
    /// This end initiates the key update.
    Local,
    /// The peer did, with packet `number` of the path with these phase_numbers.
    Remote {
        number: PacketNumber,
        phase_numbers: &'a mut KeyPhaseNumbers,
        /// Until then old receive keys are kept.
        keep_until: Instant,
    },
}

/// The receive key of the previous phase.
struct PreviousKey {
    key: Box<dyn PacketKey>,
    /// Some time after the peer's first packet of the current phase.
    discard_at: Option<Instant>,
}

/// The keys, and the state kept of each phase.
pub(super) struct KeyPhases {
    /// `None` while they are released.
    keys: Option<Box<PhaseKeys>>,
    previous: Option<PreviousKey>,
    phase: bool,
    generation: u64,
    /// A packet of the current phase was received.
    phase_received: bool,
    /// A packet of the current phase was acknowledged.
    phase_acked: bool,
    /// Packets protected with the current key.
    sealed: u64,
    // Properties of the keys, while they are released, too.
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
            phase_received: false,
            phase_acked: false,
            sealed: 0,
        }
    }

    /// The key-phase bit of packets that this end sends.
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

    /// True if the keys were released.
    pub(super) fn are_released(&self) -> bool {
        self.keys.is_none()
    }

    /// Takes keys like those that were released.
    pub(super) fn restore(&mut self, keys: ApplicationKeys) {
        self.keys = Some(keys.into());
    }

    /// What removes the protection of received headers.
    pub(super) fn remote_header(&self) -> Option<&dyn HeaderKey> {
        self.keys.as_ref().map(|keys| &*keys.header.remote)
    }

    /// The keys that protect packet `number` of the path with these phase_numbers, which counts as sent.
    pub(super) fn sealing(
        &mut self,
        number: PacketNumber,
        phase_numbers: &mut KeyPhaseNumbers,
    ) -> Option<(&dyn HeaderKey, &dyn PacketKey)> {
        let keys = self.keys.as_ref()?;
        phase_numbers.of(self.generation).on_sent(number);
        self.sealed += 1;
        Some((&*keys.header.local, &*keys.current.local))
    }

    #[inline]
    pub(super) fn open(
        &mut self,
        PacketName { path, number, .. }: PacketName,
        phase_numbers: &mut KeyPhaseNumbers,
        key_phase: bool,
        header: &[u8],
        payload: &mut [u8],
    ) -> Result<Opened, OpenError> {
        let keys = self.keys.as_ref().ok_or(OpenError::NoKeys)?;
        let phase_numbers = phase_numbers.of(self.generation);
        if key_phase == self.phase {
            let Ok(len) = keys.current.remote.decrypt(path, number, header, payload) else {
                return Err(OpenError::Inauthentic);
            };
            let is_first = !std::mem::replace(&mut self.phase_received, true);
            phase_numbers.on_received(number);
            return Ok(Opened {
                phase_confirmed: is_first && self.previous.is_some(),
                ..Opened::plain(len)
            });
        }
        let is_old = match phase_numbers.first_received {
            // Nothing to compare with. This packet is of the previous phase as long as there may be such
            // packets: an end waits for that time before it begins the next phase (section 6.5; over
            // several paths, draft-ietf-quic-multipath-21, section 4.2: the longest of their times).
            NONE => self.previous.is_some(),
            first => number.get() < first,
        };
        if let (true, Some(previous)) = (is_old, &self.previous) {
            let opened = previous.key.decrypt(path, number, header, payload);
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
        if is_old && self.phase_received {
            // A newer key phase on a lower packet number.
            return Err(OpenError::KeyUpdate);
        }
        if self.phase_received && self.sealed == 0 {
            // It has had no acknowledgement under the current keys, for this end has sent nothing under
            // them: a second update must wait for one (RFC 9001, section 6.2).
            return Err(OpenError::KeyUpdate);
        }
        Ok(Opened {
            key_updated: true,
            ..Opened::plain(len)
        })
    }

    /// A packet of the path with these numbers was acknowledged.
    pub(super) fn on_acked(&mut self, largest: PacketNumber, phase_numbers: &KeyPhaseNumbers) {
        let is_current = phase_numbers.generation == self.generation;
        if is_current && largest.get() >= phase_numbers.first_sent {
            self.phase_acked = true;
        }
    }

    /// True if an update is permitted, and either `requested` or due after `interval` packets.
    pub(super) fn update_is_due(&self, requested: bool, interval: u64) -> bool {
        let limit = interval.min(self.confidentiality_limit / 2);
        (requested || self.sealed >= limit)
            && self.phase_acked
            && self.previous.is_none()
            && (self.keys.as_ref()).is_none_or(|keys| keys.next.is_some())
    }

    /// True if the current key may protect no further packet but those of the close.
    pub(super) fn are_exhausted(&self) -> bool {
        self.sealed
            >= self
                .confidentiality_limit
                .saturating_sub(RESERVED_FOR_CLOSING)
    }

    /// Moves to the next phase, if there are keys of it; `next` are those of the phase after it. True if
    /// the phase changed.
    pub(super) fn update(
        &mut self,
        next: Option<KeyPair<dyn PacketKey>>,
        cause: UpdateCause<'_>,
    ) -> bool {
        let Some(keys) = &mut self.keys else {
            return false;
        };
        let Some(new) = std::mem::replace(&mut keys.next, next) else {
            return false;
        };
        let old = std::mem::replace(&mut keys.current, new);
        self.phase = !self.phase;
        self.generation += 1;
        self.phase_acked = false;
        self.sealed = 0;
        let mut discard_at = None;
        self.phase_received = match cause {
            UpdateCause::Local => false,
            UpdateCause::Remote {
                number,
                phase_numbers,
                keep_until,
            } => {
                phase_numbers.of(self.generation).on_received(number);
                discard_at = Some(keep_until);
                true
            }
        };
        self.previous = Some(PreviousKey {
            key: old.remote,
            discard_at,
        });
        true
    }

    /// When old receive keys are discarded.
    pub(super) fn previous_expires(&self) -> Option<Instant> {
        self.previous.as_ref()?.discard_at
    }

    /// The peer followed the local update: old receive keys are kept until `keep_until`.
    pub(super) fn confirm(&mut self, keep_until: Instant) {
        if let Some(previous) = &mut self.previous {
            previous.discard_at.get_or_insert(keep_until);
        }
    }

    /// Discards old receive keys whose time has come.
    pub(super) fn expire_previous(&mut self, now: Instant) {
        if self.previous_expires().is_some_and(|at| at <= now) {
            self.previous = None;
        }
    }
}

impl IdleMemory for KeyPhases {
    /// Releases the keys, unless the receive key of the previous phase is still kept.
    fn release_idle_memory(&mut self) {
        let Self {
            keys,
            previous,
            phase: _,
            generation: _,
            phase_received: _,
            phase_acked: _,
            sealed: _,
            tag_len: _,
            confidentiality_limit: _,
            integrity_limit: _,
        } = self;
        if previous.is_none() {
            *keys = None;
        }
    }
}
