//! Delivery-rate samples and the application-limited mark.

use super::*;

/// Sends full packets `gap` apart and acks each `rtt` later, for `count` packets; the last sample.
fn bulk(bench: &mut Bench, count: usize, gap: Duration, rtt: Duration) -> AckBatch {
    let start = bench.now;
    let mut flying = std::collections::VecDeque::new();
    let (mut sent, mut acked) = (0_u32, 0_u32);
    while (acked as usize) < count {
        let next_ack = start + rtt + gap * acked;
        let next_send = start + gap * sent;
        if next_ack <= next_send {
            bench.now = next_ack;
            let packet: Packet = flying.pop_front().unwrap();
            bench.path.on_rtt_sample(bench.now, packet.sent_at, ms(0));
            bench.ack(&[packet]);
            acked += 1;
        } else {
            bench.now = next_send;
            flying.push_back(bench.send());
            sent += 1;
        }
    }
    bench.last_ack()
}

#[test]
fn a_bulk_flow_is_sampled_at_its_rate() {
    let mut bench = Bench::new();
    let ack = bulk(&mut bench, 200, us(100), ms(5));
    let rate = ack.rate.unwrap();
    assert_eq!(rate.rate, Bandwidth::from_mbps(96));
    assert!(!rate.is_app_limited);
    assert!(!ack.app_limited);
    assert_eq!(rate.interval, ms(5));
    assert_eq!(rate.delivered, packets(50));
    assert_eq!(ack.delivered, packets(200));
}

#[test]
fn rates_beyond_34_gbit_do_not_wrap() {
    let mut bench = Bench::new();
    let ack = bulk(&mut bench, 20_000, Duration::from_nanos(24), us(100));
    let gbps = ack.rate.unwrap().rate.as_mbps_f64() / 1_000.0;
    assert!((gbps - 400.0).abs() < 1.0, "{gbps}");
}

#[test]
fn the_snapshot_counts_the_packet_itself() {
    let mut bench = Bench::new();
    assert_eq!(bench.send().snapshot.tx_in_flight, 1_200);
    assert_eq!(bench.send_size(300, false).snapshot.tx_in_flight, 1_500);
}

#[test]
fn the_packet_sent_last_makes_the_sample_whatever_the_order() {
    let mut bench = Bench::new();
    let mut sent = Vec::new();
    for _ in 0..4 {
        sent.push(bench.send());
        bench.wait(ms(10));
    }
    sent.swap(1, 3);
    bench.ack(&sent);
    let rate = bench.last_ack().rate.unwrap();
    assert_eq!(rate.send_elapsed, ms(30));
    assert_eq!(rate.ack_elapsed, ms(40));
    assert_eq!(rate.tx_in_flight, packets(4));
    assert_eq!(bench.path.controller().name(), "recorder");
}

#[test]
fn compressed_acks_yield_no_sample() {
    let mut bench = Bench::new();
    bench.sample_rtt(ms(20), ms(0));
    let first = bench.send();
    bench.wait(ms(19));
    bench.ack(&[first]);
    assert_eq!(bench.last_ack().rate, None, "19 ms is below min_rtt");
    let second = bench.send();
    bench.wait(ms(20));
    bench.ack(&[second]);
    assert!(bench.last_ack().rate.is_some());
    let third = bench.send();
    bench.ack(&[third]);
    assert_eq!(bench.last_ack().rate, None, "no time at all");
}

#[test]
fn idle_time_does_not_dilute_the_next_sample() {
    let mut bench = Bench::new();
    let first = bench.send();
    bench.wait(ms(10));
    bench.ack(&[first]);
    bench.wait(ms(60_000));
    let second = bench.send();
    bench.wait(ms(10));
    bench.ack(&[second]);
    assert_eq!(bench.last_ack().rate.unwrap().interval, ms(10));
}

#[test]
fn the_sampler_restarts_only_at_a_send_with_nothing_in_flight() {
    let mut bench = Bench::new();
    let first = bench.send();
    bench.wait(ms(10));
    let second = bench.send();
    bench.ack(&[first]);
    bench.wait(ms(10));
    let third = bench.send();
    bench.ack(&[second]);
    bench.wait(ms(10));
    bench.ack(&[third]);
    // Sent 10 ms after `second`, acked 20 ms after the ACK that preceded its sending.
    let rate = bench.last_ack().rate.unwrap();
    assert_eq!((rate.send_elapsed, rate.ack_elapsed), (ms(20), ms(20)));
}

#[test]
fn unknown_is_limited_until_something_was_delivered() {
    let mut bench = Bench::new();
    let first = bench.send();
    assert!(first.snapshot.is_app_limited);
    bench.wait(ms(10));
    bench.ack(&[first]);
    let ack = bench.last_ack();
    assert!(ack.rate.unwrap().is_app_limited);
    assert!(!ack.app_limited);
    assert!(!bench.send().snapshot.is_app_limited);
}

/// A path on which something was delivered, so that it isn't limited.
fn delivered() -> Bench {
    let mut bench = Bench::new();
    let first = bench.send();
    bench.wait(ms(10));
    bench.ack(&[first]);
    bench.calls();
    bench
}

#[test]
fn the_mark_is_delivered_plus_in_flight_and_ends_when_passed() {
    let mut bench = delivered();
    let old = bench.send_many(3);
    assert!(!old[2].snapshot.is_app_limited);
    bench.path.set_app_limited(bench.now);
    bench.wait(ms(1));
    let new = bench.send_many(2);
    assert!(new[0].snapshot.is_app_limited);
    bench.ack(&old);
    assert!(
        bench.last_ack().app_limited,
        "the mark is reached, not passed"
    );
    assert!(bench.send().snapshot.is_app_limited);
    bench.ack(&new[..1]);
    assert!(!bench.last_ack().app_limited);
    assert!(!bench.send().snapshot.is_app_limited);
}

#[test]
fn pacer_blocked_is_not_app_limited() {
    let mut bench = Bench::with(|_| {});
    let first = bench.send();
    bench.wait(ms(10));
    bench.ack(&[first]);
    while bench.path.pacing_release(bench.now) <= bench.now {
        bench.send();
    }
    bench.path.on_pacer_blocked(bench.now, packets(1_000));
    bench.wait(ms(10));
    assert!(!bench.send().snapshot.is_app_limited);
}

#[test]
fn window_blocked_is_not_app_limited() {
    let mut bench = delivered();
    bench.set_cwnd(packets(3));
    let sent = bench.send_many(3);
    bench.path.set_app_limited(bench.now);
    bench.ack(&sent[..1]);
    assert!(!bench.last_ack().app_limited);
    assert!(!bench.send().snapshot.is_app_limited);
}

#[test]
fn a_peer_that_holds_data_back_is_sampled_as_a_slow_path() {
    let mut bench = delivered();
    let old = bench.send_many(3);
    bench.path.set_flow_limited(bench.now);
    bench.wait(ms(1));
    let new = bench.send();
    assert!(!new.snapshot.is_app_limited, "the sample counts");
    bench.ack(&old);
    assert!(bench.last_ack().app_limited, "the window is not tested");
    bench.ack(&[new]);
    assert!(!bench.last_ack().app_limited);
}

#[test]
fn a_probe_is_sampled_as_limited() {
    let mut bench = delivered();
    assert!(bench.send_size(MDS, true).snapshot.is_app_limited);
    assert!(!bench.send().snapshot.is_app_limited);
}

#[test]
fn the_mark_is_lowered_when_marked_packets_are_lost() {
    let mut bench = delivered();
    let mut old = bench.send_many(4);
    bench.path.set_app_limited(bench.now);
    bench.wait(ms(1));
    let new = bench.send_many(4);
    bench.wait(ms(10));
    bench.lose(&mut old[..2], false);
    bench.ack(&old[2..]);
    assert!(bench.last_ack().app_limited);
    bench.ack(&new[..1]);
    assert!(
        !bench.last_ack().app_limited,
        "one packet beyond the mark arrived"
    );
}

#[test]
fn losses_of_later_packets_leave_the_mark() {
    let mut bench = delivered();
    let old = bench.send_many(4);
    bench.path.set_app_limited(bench.now);
    bench.wait(ms(1));
    let mut new = bench.send_many(4);
    bench.lose(&mut new[..3], false);
    bench.ack(&old);
    assert!(bench.last_ack().app_limited);
    bench.ack(&new[3..]);
    assert!(!bench.last_ack().app_limited);
}

#[test]
fn the_mark_is_lowered_when_packets_are_discarded() {
    let mut bench = delivered();
    bench.send_many(4);
    bench.path.set_app_limited(bench.now);
    bench.path.on_discard(packets(4));
    bench.wait(ms(1));
    let new = bench.send_many(2);
    bench.ack(&new[..1]);
    assert!(!bench.last_ack().app_limited);
}

#[test]
fn the_controller_can_ask_for_the_mark() {
    let mut bench = delivered();
    let sent = bench.send_many(3);
    bench.cc.script().wants_mark = true;
    bench.ack(&sent[..1]);
    let held = bench.send();
    assert!(held.snapshot.is_app_limited);
    bench.cc.script().wants_mark = false;
    bench.ack(&sent[1..2]);
    assert!(
        !bench.last_ack().app_limited,
        "the application had no part in it"
    );
    assert!(bench.send().snapshot.is_app_limited);
    bench.ack(&sent[2..]);
    bench.ack(&[held]);
    assert!(!bench.send().snapshot.is_app_limited);
}

#[test]
fn lost_then_acked_counts_as_delivered_once() {
    let mut bench = delivered();
    let mut sent = bench.send_many(4);
    bench.wait(ms(10));
    let (lost, rest) = sent.split_at_mut(1);
    bench.result(rest, lost, false, 0);
    let ack = bench.last_ack();
    assert_eq!(ack.delivered, packets(4));
    assert_eq!(ack.acked_bytes, packets(3));
    bench.ack(lost);
    let ack = bench.last_ack();
    assert_eq!(ack.delivered, packets(5));
    assert_eq!(ack.acked_bytes, packets(0), "left flight when it was lost");
    assert_eq!(ack.acked_packets, PacketCount::ZERO);
    assert!(bench.path.bytes_in_flight().is_zero());
    assert_eq!(bench.path.stats().delivered, packets(5));
    assert_eq!(bench.path.stats().spurious_packets, PacketCount::new(1));
}

#[test]
fn a_sample_counts_the_losses_and_marks_of_its_own_ack() {
    let mut bench = delivered();
    let mut sent = bench.send_many(6);
    bench.wait(ms(10));
    let (lost, rest) = sent.split_at_mut(2);
    bench.result(rest, lost, false, 3);
    let ack = bench.last_ack();
    let rate = ack.rate.unwrap();
    assert_eq!(rate.lost_since_sent, packets(2));
    assert_eq!(rate.ce_since_sent, PacketCount::new(3));
    assert_eq!(ack.newly_lost_bytes, packets(2));
    assert_eq!(ack.ecn.ce, PacketCount::new(3));
}
