//! Rounds, and whether the window was used in them.

use super::*;

/// Sends `count` packets, waits 10 ms, acks them one by one.
fn round(bench: &mut Bench, count: usize) -> Vec<AckBatch> {
    let sent = bench.send_many(count);
    bench.wait(ms(10));
    for packet in sent {
        bench.ack(&[packet]);
    }
    bench.acks()
}

#[test]
fn a_round_starts_with_the_ack_of_a_packet_sent_in_the_one_before() {
    let mut bench = Bench::new();
    let first = round(&mut bench, 4);
    let second = round(&mut bench, 4);
    let starts: Vec<_> = first.iter().chain(&second).map(|a| a.round.start).collect();
    assert_eq!(
        starts,
        [true, false, false, false, true, false, false, false]
    );
    assert_eq!(second[0].round.count, first[3].round.count + 1);
    assert_eq!(second[3].round.count, second[0].round.count);
}

#[test]
fn losses_of_the_ack_that_ends_a_round_belong_to_it() {
    let mut bench = Bench::new();
    round(&mut bench, 1);
    let mut sent = bench.send_many(6);
    bench.wait(ms(10));
    let (lost, rest) = sent.split_at_mut(2);
    bench.result(&rest[..1], lost, false, 0);
    let calls = bench.calls();
    let loss = calls
        .iter()
        .find_map(|c| if let Call::Loss(l) = c { Some(l) } else { None });
    assert_eq!(loss.unwrap().round_lost, packets(2));
    assert_eq!(loss.unwrap().round_sent, packets(6));
    bench.lose(&mut rest[1..2], false);
    assert_eq!(
        bench.losses()[0].round_lost,
        packets(1),
        "a new round has begun"
    );
}

#[test]
fn a_window_filled_at_any_time_counts_for_this_round_and_the_next() {
    let mut bench = Bench::new();
    bench.set_cwnd(packets(4));
    let filled = round(&mut bench, 4);
    assert!(
        filled.iter().all(|a| a.cwnd_limited_in_round),
        "although acks find it part empty"
    );
    // Those acks opened the next round, in which nothing filled the window.
    let next = round(&mut bench, 1);
    assert!(!next[0].cwnd_limited_in_round);
}

#[test]
fn an_unused_window_does_not_count() {
    let mut bench = Bench::new();
    for _ in 0..5 {
        assert!(
            round(&mut bench, 98)
                .iter()
                .all(|a| !a.cwnd_limited_in_round)
        );
    }
}

#[test]
fn a_blocked_window_counts_even_if_a_packet_would_have_fitted() {
    let mut bench = Bench::new();
    bench.path.on_window_blocked();
    assert!(round(&mut bench, 1)[0].cwnd_limited_in_round);
}

#[test]
fn data_held_by_the_pacer_count_if_they_would_fill_the_window() {
    for (waiting, expected) in [(97, false), (99, true)] {
        let mut bench = Bench::with(|_| {});
        let sent = bench.send();
        bench.path.on_pacer_blocked(bench.now, packets(waiting));
        bench.wait(ms(10));
        bench.ack(&[sent]);
        assert_eq!(
            bench.last_ack().cwnd_limited_in_round,
            expected,
            "{waiting}"
        );
    }
}
