//! The streaming code: how much parity, which losses it repairs, and that repaired bytes are right.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use proptest::prelude::*;
use swiftwater_media::protection::tambur::{
    DELAY_FRAMES, FrameParity, Parity, StreamDecoder, Symbol, TamburParity, TamburRate, Window,
    WindowFrame, encode,
};

/// A stream of frames with `packets` packets of `len` bytes, `parity` parity packets with each, of
/// which the same number of packets are U packets.
struct Stream {
    frames: u64,
    packets: u16,
    parity: u16,
    len: usize,
}

impl Stream {
    fn content(&self, symbol: Symbol) -> Vec<u8> {
        let byte = |at: usize| (symbol.frame * 13 + u64::from(symbol.packet) * 5 + at as u64) as u8;
        (0..self.len).map(byte).collect()
    }

    fn parities(&self, frame: u64) -> impl Iterator<Item = Parity> + '_ {
        let covered = frame.min(DELAY_FRAMES) + 1;
        let one = WindowFrame {
            packets: self.packets,
            late_packets: self.parity,
            size: self.len as u32 * u32::from(self.packets),
            is_key: false,
            before: Duration::ZERO,
        };
        (0..self.parity).map(move |number| Parity {
            window: Window {
                frame,
                frames: vec![one; covered as usize],
            },
            number,
        })
    }

    /// Which packets are missing in the end if the frames `lost` are lost whole, and the packets in
    /// `gaps`.
    fn missing_after(&self, lost: &[u64], gaps: &[Symbol], with_bytes: bool) -> BTreeSet<Symbol> {
        let mut decoder = StreamDecoder::new();
        let mut missing = BTreeSet::new();
        for frame in 0..self.frames {
            for packet in 0..self.packets {
                let symbol = Symbol { frame, packet };
                if lost.contains(&frame) || gaps.contains(&symbol) {
                    missing.insert(symbol);
                } else {
                    let content = with_bytes.then(|| self.content(symbol));
                    self.take(&mut missing, decoder.on_source(symbol, content));
                }
            }
            if lost.contains(&frame) {
                continue;
            }
            for parity in self.parities(frame) {
                let content = with_bytes.then(|| self.encoded(&parity));
                self.take(&mut missing, decoder.on_parity(&parity, content));
            }
        }
        missing
    }

    fn encoded(&self, parity: &Parity) -> Vec<u8> {
        let contents: BTreeMap<Symbol, Vec<u8>> = parity
            .terms()
            .map(|(symbol, _)| (symbol, self.content(symbol)))
            .collect();
        encode(parity, self.len, |symbol| {
            contents.get(&symbol).map(Vec::as_slice)
        })
    }

    fn take(&self, missing: &mut BTreeSet<Symbol>, restored: Vec<(Symbol, Option<Vec<u8>>)>) {
        for (symbol, content) in restored {
            if let Some(content) = content {
                assert_eq!(content, self.content(symbol), "{symbol:?}");
            }
            missing.remove(&symbol);
        }
    }
}

#[test]
fn a_lost_frame_is_restored_if_parity_is_a_third_of_the_data() {
    // Three frames follow within the delay, each with a third of what was lost.
    let stream = Stream {
        frames: 9,
        packets: 6,
        parity: 2,
        len: 100,
    };
    assert!(stream.missing_after(&[4], &[], true).is_empty());
    let less = Stream {
        parity: 1,
        ..stream
    };
    assert!(!less.missing_after(&[4], &[], true).is_empty());
}

#[test]
fn a_lost_frame_is_restored_with_the_third_frame_after_it() {
    let stream = |frames| Stream {
        frames,
        packets: 6,
        parity: 2,
        len: 10,
    };
    assert!(!stream(7).missing_after(&[4], &[], false).is_empty());
    assert!(stream(8).missing_after(&[4], &[], false).is_empty());
}

#[test]
fn a_burst_of_two_frames_needs_parity_of_two_thirds() {
    // The optimum for a delay of 3 frames: V of both, 2 (6 - u) packets, from the u parity packets of
    // the frame after the burst; then U of each, u packets, from one frame's parity.
    let stream = |parity| Stream {
        frames: 12,
        packets: 6,
        parity,
        len: 10,
    };
    assert!(stream(4).missing_after(&[4, 5], &[], true).is_empty());
    assert!(!stream(3).missing_after(&[4, 5], &[], true).is_empty());
}

#[test]
fn losses_within_a_frame_are_restored_at_once() {
    let stream = Stream {
        frames: 5,
        packets: 6,
        parity: 2,
        len: 64,
    };
    let gaps = [(4, 0), (4, 5)].map(|(frame, packet)| Symbol { frame, packet });
    assert!(stream.missing_after(&[], &gaps, true).is_empty());
}

#[test]
fn parity_needs_reported_loss_and_comes_three_frames_later() {
    let mut rate = TamburRate::new(TamburParity::Ratio(0.25));
    for _ in 0..10 {
        assert_eq!(rate.on_frame(7).parity, 0);
    }
    rate.on_report(1);
    for _ in 0..3 {
        let share = rate.on_frame(7);
        assert_eq!((share.parity, share.late_packets), (0, 2));
    }
    assert_eq!(rate.on_frame(7).parity, 2);
    rate.on_report(0);
    for _ in 0..3 {
        assert_eq!(rate.on_frame(7).parity, 2);
    }
    assert_eq!(rate.on_frame(7).parity, 0);
}

#[test]
fn one_packet_mode_always_sends_one() {
    let mut rate = TamburRate::new(TamburParity::OnePacket);
    let expected = FrameParity {
        parity: 1,
        late_packets: 1,
    };
    assert_eq!(rate.on_frame(7), expected);
    rate.on_report(0);
    assert_eq!(rate.on_frame(1), expected);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn whatever_is_restored_is_right_and_bytes_change_nothing(
        packets in 1_u16..8,
        parity in 1_u16..4,
        len in (1_usize..80).prop_map(|half| half * 2),
        losses in proptest::collection::btree_set((0_u64..10, 0_u16..8), 0..24),
    ) {
        let parity = parity.min(packets);
        let stream = Stream { frames: 10, packets, parity, len };
        let gaps: Vec<_> = losses
            .into_iter()
            .map(|(frame, packet)| Symbol { frame, packet })
            .collect();
        // Contents are compared in `take`.
        let with_bytes = stream.missing_after(&[], &gaps, true);
        let without = stream.missing_after(&[], &gaps, false);
        prop_assert_eq!(&with_bytes, &without);
        // As many losses in a frame as it has parity, without others nearby: all are restored.
        let alone = &gaps.iter().filter(|gap| gap.packet < packets).count();
        if *alone <= usize::from(parity) {
            prop_assert!(with_bytes.is_empty());
        }
    }
}
