//! How datagrams and streams share packets: turns of bytes, weighted by urgency.
//!
//! A deficit round robin between the two (Shreedhar and Varghese): a turn is a quantum of bytes, and what
//! its last frame takes beyond that is taken off the next one. At equal urgency turns alternate. Otherwise
//! the more urgent side has all turns but one in `starvation_share`.

/// Bytes of one turn, as among streams.
const QUANTUM: i64 = 1024;

/// Datagrams or streams.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) enum NextSender {
    /// Datagrams.
    #[default]
    Datagrams,
    /// Streams.
    Streams,
}

impl NextSender {
    fn other(self) -> Self {
        match self {
            Self::Datagrams => Self::Streams,
            Self::Streams => Self::Datagrams,
        }
    }
}

/// The state of the turns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct StreamShare {
    /// The side that has the turn; `None` while only one side has something to send.
    turn: Option<NextSender>,
    /// The side that had nothing to send last.
    absent: NextSender,
    /// Bytes that each side may still send, datagrams first; negative after a long frame.
    left: [i64; 2],
}

impl StreamShare {
    /// The side that sends next, if datagrams and streams of these urgencies wait. The less urgent side
    /// has one turn in `starvation_share`; below 2 none.
    pub(super) fn next(
        &mut self,
        datagrams: Option<u8>,
        streams: Option<u8>,
        starvation_share: u32,
    ) -> Option<NextSender> {
        let (datagrams, streams) = match (datagrams, streams) {
            (Some(datagrams), Some(streams)) => (datagrams, streams),
            (None, None) => return None,
            // A side that has nothing to send saves nothing up.
            (Some(_), None) => return Some(self.alone(NextSender::Datagrams)),
            (None, Some(_)) => return Some(self.alone(NextSender::Streams)),
        };
        let first = if datagrams <= streams {
            NextSender::Datagrams
        } else {
            NextSender::Streams
        };
        if datagrams != streams && starvation_share < 2 {
            return Some(first);
        }
        let weight = |sender| {
            if datagrams == streams || sender != first {
                1
            } else {
                i64::from(starvation_share) - 1
            }
        };
        let mut turn = if let Some(turn) = self.turn {
            turn
        } else {
            let turn = if datagrams == streams {
                self.absent
            } else {
                first
            };
            self.left[turn as usize] = weight(turn) * QUANTUM;
            turn
        };
        while self.left[turn as usize] <= 0 {
            turn = turn.other();
            self.left[turn as usize] += weight(turn) * QUANTUM;
        }
        self.turn = Some(turn);
        Some(turn)
    }

    /// Only `side` has something to send. At equal urgency the other one is first when it has, too.
    fn alone(&mut self, side: NextSender) -> NextSender {
        self.turn = None;
        self.absent = side.other();
        self.left = [0; 2];
        side
    }

    /// `sender` has sent `bytes`, in its turn or in room that the other one left.
    pub(super) fn spend(&mut self, sender: NextSender, bytes: usize) {
        if self.turn.is_some() {
            self.left[sender as usize] -= i64::try_from(bytes).unwrap_or(i64::MAX);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes of each side after `frames` frames of these sizes, both sides always waiting.
    fn sent(share: u32, urgency: [u8; 2], sizes: [usize; 2], frames: usize) -> [usize; 2] {
        let mut state = StreamShare::default();
        let mut sent = [0; 2];
        for _ in 0..frames {
            let next = state
                .next(Some(urgency[0]), Some(urgency[1]), share)
                .unwrap();
            state.spend(next, sizes[next as usize]);
            sent[next as usize] += sizes[next as usize];
        }
        sent
    }

    #[test]
    fn equal_urgencies_share_equally_whatever_the_sizes() {
        for sizes in [[1_200, 1_200], [100, 1_300], [1_200, 40], [3, 9_000]] {
            let [datagrams, streams] = sent(16, [3, 3], sizes, 100_000);
            let difference = datagrams.abs_diff(streams);
            assert!(difference < 12_000, "{sizes:?}: {datagrams} {streams}");
        }
    }

    #[test]
    fn the_less_urgent_side_gets_its_share() {
        for (urgency, first) in [([1, 3], 0), ([4, 3], 1)] {
            let bytes = sent(16, urgency, [1_100, 1_100], 16_000);
            let share = bytes[1 - first] as f64 / (bytes[0] + bytes[1]) as f64;
            assert!((0.055..0.07).contains(&share), "{urgency:?}: {share}");
        }
    }

    #[test]
    fn without_a_share_urgency_decides_alone() {
        assert_eq!(sent(0, [1, 3], [1_000, 1_000], 100), [100_000, 0]);
        assert_eq!(sent(0, [4, 3], [1_000, 1_000], 100), [0, 100_000]);
    }

    #[test]
    fn a_datagram_that_comes_beside_busy_streams_goes_first() {
        let mut state = StreamShare::default();
        for _ in 0..100 {
            assert_eq!(state.next(None, Some(3), 16), Some(NextSender::Streams));
            state.spend(NextSender::Streams, 1_200);
        }
        assert_eq!(
            state.next(Some(3), Some(3), 16),
            Some(NextSender::Datagrams)
        );
        state.spend(NextSender::Datagrams, 200);
        // One that comes when none waits is first again, unless it is less urgent.
        assert_eq!(state.next(None, Some(3), 16), Some(NextSender::Streams));
        assert_eq!(
            state.next(Some(3), Some(3), 16),
            Some(NextSender::Datagrams)
        );
        assert_eq!(state.next(None, Some(3), 16), Some(NextSender::Streams));
        assert_eq!(state.next(Some(4), Some(3), 16), Some(NextSender::Streams));
    }
}
