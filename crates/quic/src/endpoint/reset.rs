//! Stateless resets (RFC 9000, section 10.3).

use rand_core::Rng;
use swiftwater_wire::ResetToken;

/// Bytes of the token at the end.
const TOKEN_LEN: usize = 16;

/// Smallest datagram that can be a reset: 5 bytes that look random and the token.
pub(super) const MIN_LEN: usize = 5 + TOKEN_LEN;

/// Answers to packets up to this size are one byte shorter (section 10.3.3); larger ones are
/// answered with this many bytes or a few more.
const USUAL_LEN: usize = 43;

/// How many bytes more, at most: packets that all have the same size would stand out.
const MAX_EXTRA: u32 = 20;

/// True if a packet with a short header and an unknown connection ID may be answered: large enough
/// that a smaller answer still is a reset, and with the QUIC bit, without which it isn't QUIC, unless
/// `grease`: we have told clients that it may be 0.
pub(super) fn deserves_reset(datagram: &[u8], grease: bool) -> bool {
    let looks_like_quic = |first: u8| first & 0x80 == 0 && (grease || first & 0x40 != 0);
    datagram.len() > MIN_LEN && datagram.first().copied().is_some_and(looks_like_quic)
}

/// Writes a reset that carries `token` and is smaller than its `trigger` (bytes), so that two
/// endpoints that reset each other soon fall silent. Returns its size, or `None` if there is no
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
    if size < MIN_LEN {
        return None;
    }
    let (noise, end) = out.get_mut(..size)?.split_at_mut(size - TOKEN_LEN);
    rng.fill_bytes(noise);
    // A short header's form and fixed bits; the rest is protected in real packets.
    noise[0] = noise[0] & 0x3f | 0x40;
    end.copy_from_slice(&token.0);
    Some(size)
}
