//! What a connection takes at least, whatever it does.

use swiftwater_quic::Connection;
use swiftwater_units::Instant;

/// Parts that only some connections need, or only some of the time, belong behind a pointer.
#[cfg(target_pointer_width = "64")]
#[test]
fn a_connection_is_small() {
    let size = size_of::<Connection>();
    assert!(size <= 4_250, "{size} bytes");
}

#[test]
fn a_time_that_is_not_set_takes_no_room_of_its_own() {
    assert_eq!(size_of::<Option<Instant>>(), size_of::<Instant>());
}
