//! Stateless resets: which packets get one, what it looks like, and how many are sent (RFC 9000, section
//! 10.3).

use std::time::Duration;

use rand_core::Rng;
use swiftwater_units::Instant;
use swiftwater_wire::ResetToken;

use crate::datagram_size::MIN_STATELESS_RESET;

/// Bytes of the token at the end.
const TOKEN_LEN: usize = 16;

/// Answers to packets up to this size are one byte shorter (section 10.3.3); larger ones are
/// answered with this many bytes or a few more.
const USUAL_LEN: usize = 43;

/// How many bytes more, at most: packets that all have the same size would stand out.
const MAX_EXTRA: u32 = 20;

/// True if a packet with a short header and an unknown connection ID may be answered: large enough
/// that a smaller answer still is a reset, and with the QUIC bit, without which it isn't QUIC, unless
/// `grease`: this endpoint declares that it may be 0 (RFC 9287).
pub(super) fn deserves_reset(datagram: &[u8], grease: bool) -> bool {
    let looks_like_quic = |first: u8| first & 0x80 == 0 && (grease || first & 0x40 != 0);
    datagram.len() > MIN_STATELESS_RESET && datagram.first().copied().is_some_and(looks_like_quic)
}

/// Writes a reset that carries `token` and is smaller than its `trigger` (bytes), so that two
/// endpoints that reset each other soon stop. Returns its size, or `None` if there is no
/// room.
pub(super) fn write(
    rng: &mut impl Rng,
    token: ResetToken,
    trigger: usize,
    out: &mut [u8],
) -> Option<usize> {
    let largest = trigger.checked_sub(1)?;
    let usual = USUAL_LEN + (rng.next_u32() % (MAX_EXTRA + 1)) as usize;
    let size = largest.min(usual);
    if size < MIN_STATELESS_RESET {
        return None;
    }
    let (unpredictable, end) = out.get_mut(..size)?.split_at_mut(size - TOKEN_LEN);
    rng.fill_bytes(unpredictable);
    // A short header's form and fixed bits; the rest is protected in real packets.
    unpredictable[0] = unpredictable[0] & 0x3f | 0x40;
    end.copy_from_slice(&token.0);
    Some(size)
}

const SECOND: u64 = Duration::from_secs(1).as_nanos() as u64;

/// How many resets may be sent (section 10.3.3): a token bucket that holds those of one second.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResetRate {
    per_second: u64,
    /// Resets that may be sent, in 1/`SECOND`.
    left: u64,
    filled_at: Option<Instant>,
}

impl ResetRate {
    pub(super) fn new(per_second: usize) -> Self {
        let per_second = u64::try_from(per_second).unwrap_or(u64::MAX);
        Self {
            per_second,
            left: per_second.saturating_mul(SECOND),
            filled_at: None,
        }
    }

    /// True if a reset may be sent now; then it is counted.
    pub(super) fn permits(&mut self, now: Instant) -> bool {
        let filled_at = *self.filled_at.get_or_insert(now);
        if let Some(passed) = now.checked_since(filled_at) {
            let passed = u64::try_from(passed.as_nanos()).unwrap_or(u64::MAX);
            let gained = passed.saturating_mul(self.per_second);
            let most = self.per_second.saturating_mul(SECOND);
            self.left = self.left.saturating_add(gained).min(most);
            self.filled_at = Some(now);
        }
        let left = self.left.checked_sub(SECOND);
        self.left = left.unwrap_or(self.left);
        left.is_some()
    }
}
