//! Truncation and expansion of packet numbers.

use proptest::prelude::*;
use swiftwater_units::PacketNumber;
use swiftwater_wire::{Reader, TruncatedPacketNumber, Writer};

fn pn(n: u64) -> PacketNumber {
    PacketNumber::new(n)
}

#[test]
fn encoding_vectors_of_rfc_9000_a_2() {
    let acked = Some(pn(0xab_e8b3));
    let short = TruncatedPacketNumber::encode(pn(0xac_5c02), acked);
    assert_eq!(
        short,
        TruncatedPacketNumber {
            value: 0x5c02,
            len: 2
        }
    );
    let longer = TruncatedPacketNumber::encode(pn(0xac_e8fe), acked);
    assert_eq!(
        longer,
        TruncatedPacketNumber {
            value: 0xac_e8fe,
            len: 3
        }
    );
}

#[test]
fn decoding_vector_of_rfc_9000_a_3() {
    let received = TruncatedPacketNumber {
        value: 0x9b32,
        len: 2,
    };
    assert_eq!(received.expand(Some(pn(0xa82f_30ea))), pn(0xa82f_9b32));
}

#[test]
fn the_first_packet_takes_one_byte() {
    let first = TruncatedPacketNumber::encode(pn(0), None);
    assert_eq!(first, TruncatedPacketNumber { value: 0, len: 1 });
    assert_eq!(first.expand(None), pn(0));
}

#[test]
fn the_encoding_grows_before_the_window_is_ambiguous() {
    for (distance, len) in [
        (1, 1),
        (127, 1),
        (128, 2),
        (32_767, 2),
        (32_768, 3),
        (1 << 23, 4),
    ] {
        let encoded = TruncatedPacketNumber::encode(pn(1_000_000 + distance), Some(pn(1_000_000)));
        assert_eq!(encoded.len, len, "{distance} packets ahead");
    }
}

#[test]
fn distances_that_no_encoding_can_express_use_the_longest() {
    assert_eq!(
        TruncatedPacketNumber::encode(PacketNumber::MAX, None).len,
        4
    );
}

#[test]
fn of_two_candidates_equally_near_the_later_is_meant() {
    // 72 and 328 are both 128 away from the expected 200.
    let received = TruncatedPacketNumber { value: 72, len: 1 };
    assert_eq!(received.expand(Some(pn(199))), pn(328));
    // 256 and 512 are both 128 away from the expected 384.
    let received = TruncatedPacketNumber { value: 0, len: 1 };
    assert_eq!(received.expand(Some(pn(383))), pn(512));
}

#[test]
fn the_ends_of_the_number_space_are_respected() {
    // Just above zero, a value from "before zero" can't be meant.
    let high = TruncatedPacketNumber {
        value: 0xff,
        len: 1,
    };
    assert_eq!(high.expand(None), pn(0xff));
    assert_eq!(high.expand(Some(pn(2))), pn(0xff));
    // Just below 2^62, a value from "after the end" can't be meant either.
    let last = PacketNumber::MAX;
    let low = TruncatedPacketNumber { value: 0, len: 1 };
    assert_eq!(low.expand(Some(pn(last.get() - 1))), pn(last.get() - 0xff));
    let max = TruncatedPacketNumber {
        value: 0xff,
        len: 1,
    };
    assert_eq!(max.expand(Some(last)), last);
}

#[test]
fn a_length_that_the_header_cannot_state_is_refused() {
    let bytes = [0; 8];
    assert!(TruncatedPacketNumber::read(&mut Reader::new(&bytes), 0).is_err());
    assert!(TruncatedPacketNumber::read(&mut Reader::new(&bytes), 5).is_err());
    assert!(TruncatedPacketNumber::read(&mut Reader::new(&bytes[..2]), 3).is_err());
}

prop_compose! {
    /// Numbers of every magnitude, not only huge ones.
    fn number()(n in 0..(1_u64 << 62), shift in 0..62_u32) -> u64 { n >> shift }
}

proptest! {
    /// A receiver that has seen anything from the sender's last known acknowledgement up to the
    /// packet just before recovers the number.
    #[test]
    fn any_receiver_in_the_window_recovers_it(
        acked in number(),
        ahead in 1..(1_u64 << 31),
        shift in 0..31_u32,
        seen in any::<prop::sample::Index>(),
    ) {
        let full = (acked + (ahead >> shift).max(1)).min(PacketNumber::MAX.get());
        prop_assume!(full > acked);
        let encoded = TruncatedPacketNumber::encode(pn(full), Some(pn(acked)));
        let largest = acked + seen.index((full - acked) as usize) as u64;
        prop_assert_eq!(encoded.expand(Some(pn(largest))), pn(full));
    }

    /// Late packets are recovered too, if they are in the lower half of the window.
    #[test]
    fn late_packets_are_recovered(full in number(), late in 0_u64..100) {
        let encoded = TruncatedPacketNumber::encode(pn(full), full.checked_sub(1).map(pn));
        let largest = pn(full + late);
        prop_assert_eq!(encoded.expand(Some(largest)), pn(full));
    }

    #[test]
    fn expansion_is_the_nearest_candidate(value in any::<u32>(), len in 1..=4_usize, largest in number()) {
        let window = 1_u64 << (8 * len);
        let received = TruncatedPacketNumber { value: value & (window - 1) as u32, len };
        let number = received.expand(Some(pn(largest))).get();
        prop_assert_eq!(number & (window - 1), u64::from(received.value));
        let expected = largest + 1;
        let distance = number.abs_diff(expected);
        for other in [number.checked_sub(window), number.checked_add(window)].into_iter().flatten() {
            prop_assert!(other >= 1 << 62 || distance <= other.abs_diff(expected));
        }
    }

    #[test]
    fn bytes_round_trip(value in any::<u32>(), len in 1..=4_usize) {
        let number = TruncatedPacketNumber { value: value >> (32 - 8 * len), len };
        let mut buf = [0; 4];
        let mut w = Writer::new(&mut buf);
        number.write(&mut w);
        prop_assert_eq!(w.written(), len);
        prop_assert_eq!(TruncatedPacketNumber::read(&mut Reader::new(&buf[..len]), len), Ok(number));
    }
}
