//! Frames by kind.

use std::fmt;

use swiftwater_wire::frame::types;

/// The kinds, by the names that qlog gives them.
const NAMES: [&str; 25] = [
    "padding",
    "ping",
    "ack",
    "reset_stream",
    "stop_sending",
    "crypto",
    "new_token",
    "stream",
    "max_data",
    "max_stream_data",
    "max_streams",
    "data_blocked",
    "stream_data_blocked",
    "streams_blocked",
    "new_connection_id",
    "retire_connection_id",
    "path_challenge",
    "path_response",
    "connection_close",
    "handshake_done",
    "immediate_ack",
    "reset_stream_at",
    "datagram",
    "ack_frequency",
    "other",
];

/// Index of `other`.
const OTHER: usize = 24;

/// How many frames of each kind there were. Padding counts once for each run of it.
#[derive(Clone, Copy, Default, Eq, PartialEq)]
pub struct FrameCounts([u64; NAMES.len()]);

impl FrameCounts {
    /// Frames of the kind `name`, as qlog names it: `stream`, `max_data` …; `other` for what has no
    /// name here. 0 if there is no such kind.
    pub fn of(&self, name: &str) -> u64 {
        self.iter()
            .find_map(|(known, count)| (known == name).then_some(count))
            .unwrap_or(0)
    }

    /// Every kind that occurred, with its count.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let pairs = NAMES.into_iter().zip(self.0);
        pairs.filter(|&(_, count)| count > 0)
    }

    /// All frames.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }
}

/// Counts frames of one connection. Most connections see few of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct FrameCounter {
    /// Since the last multiple of 65,536.
    recent: [u16; NAMES.len()],
    /// Up to there.
    before: Option<Box<FrameCounts>>,
}

impl FrameCounter {
    /// Counts a frame of wire type `frame_type`.
    pub(crate) fn add(&mut self, frame_type: u64) {
        let kind = kind(frame_type);
        let recent = &mut self.recent[kind];
        *recent = recent.wrapping_add(1);
        if *recent == 0 {
            self.before.get_or_insert_default().0[kind] += 1 << u16::BITS;
        }
    }

    /// What was counted.
    pub(crate) fn totals(&self) -> FrameCounts {
        let mut totals = self.before.as_deref().copied().unwrap_or_default();
        for (total, &recent) in totals.0.iter_mut().zip(&self.recent) {
            *total += u64::from(recent);
        }
        totals
    }
}

impl fmt::Debug for FrameCounts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

/// The index of a wire type.
fn kind(frame_type: u64) -> usize {
    match frame_type {
        types::PADDING => 0,
        types::PING => 1,
        types::ACK | types::ACK_ECN => 2,
        types::RESET_STREAM => 3,
        types::STOP_SENDING => 4,
        types::CRYPTO => 5,
        types::NEW_TOKEN => 6,
        0x08..=0x0f => 7,
        types::MAX_DATA => 8,
        types::MAX_STREAM_DATA => 9,
        types::MAX_STREAMS_BIDI | types::MAX_STREAMS_UNI => 10,
        types::DATA_BLOCKED => 11,
        types::STREAM_DATA_BLOCKED => 12,
        types::STREAMS_BLOCKED_BIDI | types::STREAMS_BLOCKED_UNI => 13,
        types::NEW_CONNECTION_ID => 14,
        types::RETIRE_CONNECTION_ID => 15,
        types::PATH_CHALLENGE => 16,
        types::PATH_RESPONSE => 17,
        types::CONNECTION_CLOSE | types::CONNECTION_CLOSE_APP => 18,
        types::HANDSHAKE_DONE => 19,
        types::IMMEDIATE_ACK => 20,
        types::RESET_STREAM_AT => 21,
        types::DATAGRAM | types::DATAGRAM_LEN => 22,
        types::ACK_FREQUENCY => 23,
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_on_where_the_small_ones_end() {
        let mut counter = FrameCounter::default();
        for _ in 0..200_000 {
            counter.add(types::ACK);
        }
        counter.add(types::PING);
        let totals = counter.totals();
        assert_eq!((totals.of("ack"), totals.of("ping")), (200_000, 1));
        assert_eq!(totals.total(), 200_001);
    }
}
