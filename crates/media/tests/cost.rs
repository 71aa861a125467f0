//! The three definitions of bandwidth cost, on numbers worked out by hand.

use swiftwater_media::Cost;
use swiftwater_units::ByteCount;

/// Six data packets of a frame and one repair packet, a seventh retransmitted, 40 bytes of headers on
/// each, 1000 bytes of payload.
fn cost() -> Cost {
    Cost {
        source_bytes: ByteCount::new(6000),
        redundancy_bytes: ByteCount::new(1000),
        retransmitted_bytes: ByteCount::new(1000),
        header_bytes: ByteCount::new(320),
    }
}

fn close(value: Option<f64>, expected: f64) -> bool {
    value.is_some_and(|value| (value - expected).abs() < 1e-12)
}

#[test]
fn each_definition_counts_what_it_says() {
    assert_eq!(cost().total(), ByteCount::new(8320));
    assert!(close(cost().redundancy_over_source(), 1.0 / 6.0));
    assert!(close(cost().non_video_over_total(), 2320.0 / 8320.0));
    assert!(close(cost().resent_over_source(), 2.0 / 6.0));
}

#[test]
fn nothing_sent_has_no_cost() {
    let nothing = Cost::default();
    assert_eq!(nothing.redundancy_over_source(), None);
    assert_eq!(nothing.non_video_over_total(), None);
    assert_eq!(nothing.resent_over_source(), None);
}

#[test]
fn costs_add_up() {
    let sum: Cost = [cost(), cost(), Cost::default()].into_iter().sum();
    assert_eq!(sum.total(), ByteCount::new(16_640));
    assert_eq!(
        sum.redundancy_over_source(),
        cost().redundancy_over_source()
    );
}
