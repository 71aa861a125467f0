//! The single-path policies decide as RFC 9000 does.

use std::time::Duration;

use swiftwater_policies::{by_name, names};
use swiftwater_quic::policy::{AckDecision, AckView, Demand, PathDecision, PathView};
use swiftwater_units::{Instant, PathId};

fn view() -> AckView {
    AckView {
        unacked: 1,
        out_of_order: false,
        ce: false,
        max_ack_delay: Duration::from_millis(25),
        smoothed_rtt: Duration::from_millis(40),
        requested: None,
    }
}

#[test]
fn every_name_makes_policies_and_others_are_refused_by_name() {
    for name in names() {
        assert!(by_name(&name).is_ok(), "{name}");
    }
    let error = by_name("nonsense").unwrap_err().to_string();
    assert!(
        error.contains("nonsense") && error.contains("single-path"),
        "{error}"
    );
}

#[test]
fn acknowledges_every_second_packet_reordering_and_ce_at_once() {
    let mut policy = by_name("single-path").unwrap().ack_policy(2);
    let later = AckDecision::Within(Duration::from_millis(25));
    assert_eq!(policy.on_ack_eliciting(&view()), later);
    assert_eq!(
        policy.on_ack_eliciting(&AckView {
            unacked: 2,
            ..view()
        }),
        AckDecision::Now
    );
    assert_eq!(
        policy.on_ack_eliciting(&AckView {
            out_of_order: true,
            ..view()
        }),
        AckDecision::Now
    );
    assert_eq!(
        policy.on_ack_eliciting(&AckView { ce: true, ..view() }),
        AckDecision::Now
    );
}

#[test]
fn a_threshold_of_zero_acknowledges_every_packet() {
    let mut policy = by_name("single-path").unwrap().ack_policy(0);
    assert_eq!(policy.on_ack_eliciting(&view()), AckDecision::Now);
}

#[test]
fn the_scheduler_takes_the_first_path_and_nothing_is_reinjected() {
    let policies = by_name("single-path").unwrap();
    let path = PathView::builder(PathId::new(7)).build();
    let decision = policies
        .scheduler()
        .next(Instant::ZERO, &[path], &Demand::nothing());
    assert_eq!(decision, PathDecision::batch(PathId::new(7)));
    assert!(policies.reinjector().is_inert());
}
