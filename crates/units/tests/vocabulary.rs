//! The vocabulary's arithmetic: saturating, unit-correct, invertible.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, PacketNumber, Side, StreamId};

#[test]
fn instants_saturate_instead_of_wrapping() {
    assert_eq!(
        Instant::FAR_FUTURE + Duration::from_secs(1),
        Instant::FAR_FUTURE
    );
    assert_eq!(Instant::ZERO - Duration::from_secs(1), Instant::ZERO);
    assert_eq!(Instant::ZERO - Instant::from_millis(3), Duration::ZERO);
    assert_eq!(Instant::from_millis(1) + Duration::MAX, Instant::FAR_FUTURE);
}

#[test]
fn a_rate_of_8_mbps_moves_a_megabyte_per_second() {
    let rate = Bandwidth::from_mbps(8);
    assert_eq!(rate.bytes_in(Duration::from_secs(1)), 1_000_000);
    assert_eq!(rate.time_to_send(1_000_000), Duration::from_secs(1));
    assert_eq!(
        Bandwidth::from_transfer(1_000_000, Duration::from_secs(1)),
        rate
    );
    assert_eq!(Bandwidth::ZERO.time_to_send(1), Duration::MAX);
    assert_eq!(rate.scaled(f64::NAN), Bandwidth::ZERO);
}

#[test]
fn stream_kinds_follow_table_1_of_rfc_9000() {
    assert_eq!(StreamId::new(Side::Client, Dir::Bi, 0).get(), 0);
    assert_eq!(StreamId::new(Side::Server, Dir::Bi, 0).get(), 1);
    assert_eq!(StreamId::new(Side::Client, Dir::Uni, 0).get(), 2);
    assert_eq!(StreamId::new(Side::Server, Dir::Uni, 1).get(), 7);
}

#[test]
fn packet_numbers_stop_at_the_largest_varint() {
    assert_eq!(PacketNumber::MAX.next(), PacketNumber::MAX);
}

proptest! {
    #[test]
    fn sending_takes_at_least_as_long_as_the_rate_allows(bps in 1_u64..1 << 50, bytes in 0_u64..1 << 40) {
        let rate = Bandwidth::from_bps(bps);
        let time = rate.time_to_send(bytes);
        prop_assume!(time < Duration::from_nanos(u64::MAX));
        prop_assert!(rate.bytes_in(time) >= bytes.min(rate.bytes_in(time)));
        // Rounding up costs less than one nanosecond of rate.
        prop_assert!(rate.bytes_in(time) <= bytes + bps / 8_000_000_000 + 1);
        prop_assert!(rate.bytes_in(time + Duration::from_nanos(1)) >= bytes);
    }

    #[test]
    fn counts_never_wrap(a: u64, b: u64) {
        let (x, y) = (ByteCount::new(a), ByteCount::new(b));
        prop_assert_eq!((x + y).get(), a.saturating_add(b));
        prop_assert_eq!((x - y).get(), a.saturating_sub(b));
    }

    #[test]
    fn stream_ids_round_trip(id in 0_u64..1 << 62) {
        let id = StreamId::from_wire(id);
        prop_assert_eq!(StreamId::new(id.initiator(), id.dir(), id.index()), id);
    }
}
