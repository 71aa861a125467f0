//! Loss and CE episodes, recovery periods, spurious losses, and the order of calls.

use super::*;

fn names(calls: &[Call]) -> Vec<&'static str> {
    let name = |call: &Call| match call {
        Call::Sent(_) => "sent",
        Call::Ack(_) => "ack",
        Call::Loss(_) => "loss",
        Call::Ce(_) => "ce",
        Call::Spurious(_) => "spurious",
        Call::Persistent => "persistent",
        Call::Pto(_) => "pto",
        Call::Idle(_) => "idle",
        Call::Mds(..) => "mds",
        Call::Discard(_) => "discard",
        Call::Timer => "timer",
    };
    calls.iter().map(name).collect()
}

#[test]
fn one_episode_per_recovery_period() {
    let mut bench = Bench::new();
    let mut sent = bench.send_many(10);
    bench.wait(ms(50));
    bench.lose(&mut sent[..2], false);
    bench.wait(ms(1));
    bench.lose(&mut sent[4..6], false);
    let losses = bench.losses();
    assert_eq!(
        (losses[0].new_episode, losses[0].episode),
        (true, EpisodeId(1))
    );
    assert_eq!(
        (losses[1].new_episode, losses[1].episode),
        (false, EpisodeId(1))
    );
    let mut later = bench.send_many(3);
    bench.wait(ms(50));
    bench.lose(&mut later[..1], false);
    assert_eq!(bench.losses()[0].episode, EpisodeId(2));
    assert_eq!(bench.path.stats().congestion_events, 2);
}

#[test]
fn a_retransmission_in_the_instant_of_the_loss_counts_as_sent_after() {
    let mut bench = Bench::new();
    let mut sent = bench.send_many(4);
    bench.lose(&mut sent[..1], false);
    let mut again = [bench.send()];
    assert_eq!(again[0].sent_at, sent[0].sent_at, "times tie");
    bench.lose(&mut sent[1..2], false);
    bench.lose(&mut again, false);
    let losses = bench.losses();
    assert_eq!(
        losses.iter().map(|l| l.episode.0).collect::<Vec<_>>(),
        [1, 1, 2]
    );
}

#[test]
fn recovery_ends_with_an_ack_of_a_packet_sent_after_its_start() {
    let mut bench = Bench::new();
    let mut sent = bench.send_many(6);
    bench.wait(ms(50));
    let (lost, rest) = sent.split_at_mut(1);
    bench.result(&rest[..2], lost, false, 0);
    let ack = bench.last_ack();
    assert!(ack.in_recovery && !ack.sent_after_recovery_start && !ack.recovery_ended);
    let after = bench.send();
    bench.ack(&rest[2..]);
    let ack = bench.last_ack();
    assert!(ack.in_recovery && !ack.sent_after_recovery_start && !ack.recovery_ended);
    bench.ack(&[after]);
    let ack = bench.last_ack();
    assert!(!ack.in_recovery && ack.sent_after_recovery_start && ack.recovery_ended);
    let more = bench.send();
    bench.ack(&[more]);
    assert!(!bench.last_ack().recovery_ended, "reported once");
}

#[test]
fn marks_open_episodes_like_losses() {
    let mut bench = Bench::new();
    let sent = bench.send_many(6);
    bench.wait(ms(50));
    bench.result(&sent[..2], &mut [], false, 1);
    bench.result(&sent[2..4], &mut [], false, 2);
    let after = bench.send();
    bench.wait(ms(50));
    bench.result(&[after], &mut [], false, 1);
    let calls = bench.calls().into_iter();
    let marks: Vec<_> = calls
        .filter_map(|c| if let Call::Ce(ce) = c { Some(ce) } else { None })
        .collect();
    let seen: Vec<_> = marks
        .iter()
        .map(|m| (m.episode.0, m.new_episode, m.counts.ce.get()))
        .collect();
    assert_eq!(seen, [(1, true, 1), (1, false, 2), (2, true, 1)]);
    assert_eq!(bench.path.stats().ce_packets, PacketCount::new(4));
}

#[test]
fn losses_and_marks_of_one_ack_are_one_episode() {
    let mut bench = Bench::new();
    let mut sent = bench.send_many(6);
    bench.wait(ms(50));
    let (lost, rest) = sent.split_at_mut(2);
    bench.result(rest, lost, false, 1);
    assert_eq!(bench.path.stats().congestion_events, 1);
}

#[test]
fn calls_inside_one_ack_come_in_order() {
    let mut bench = Bench::new();
    let mut first = bench.send_many(4);
    bench.wait(ms(50));
    bench.lose(&mut first[..1], false);
    let mut second = bench.send_many(6);
    bench.wait(ms(50));
    bench.calls();
    let (lost, rest) = second.split_at_mut(2);
    let acked: Vec<_> = first[..1].iter().chain(rest.iter()).copied().collect();
    bench.result(&acked, lost, false, 0);
    let calls = bench.calls();
    assert_eq!(names(&calls), ["loss", "spurious", "ack"]);
    let after = bench.send_many(3);
    bench.calls();
    bench.result(&after[..1], &mut rest[..0], false, 1);
    assert_eq!(names(&bench.calls()), ["ce", "ack"]);
}

#[test]
fn a_loss_batch_has_ranges_totals_and_cause() {
    let mut bench = Bench::new();
    let mut sent = bench.send_many(8);
    bench.wait(ms(50));
    sent.remove(4);
    sent.remove(2);
    let mut lost: Vec<_> = sent[..4].to_vec();
    bench.result(&sent[5..], &mut lost, false, 0);
    let loss = bench.losses().remove(0);
    // numbers 0, 1, 3, 5
    assert_eq!(
        (loss.ranges, loss.bytes, loss.packets.len()),
        (3, packets(4), 4)
    );
    assert_eq!(
        (loss.prior_inflight, loss.inflight),
        (packets(7), packets(3))
    );
    assert_eq!((loss.round_sent, loss.round_lost), (packets(8), packets(4)));
    assert_eq!(loss.cause, LossCause::Reorder);
    assert_eq!(loss.packets[1].tx_in_flight, packets(2));
    let mut rest = [sent[4]];
    bench.lose(&mut rest, false);
    assert_eq!(bench.losses()[0].cause, LossCause::Time);
}

#[test]
fn a_wholly_refuted_episode_is_reported_once() {
    let mut bench = Bench::new();
    let mut sent = bench.send_many(8);
    bench.wait(ms(50));
    let (lost, rest) = sent.split_at_mut(3);
    bench.result(rest, lost, false, 0);
    bench.ack(&lost[..2]);
    assert_eq!(bench.spurious(), [], "one packet is still missing");
    bench.ack(&lost[2..]);
    let calls = bench.calls();
    assert_eq!(names(&calls), ["spurious", "ack"]);
    let Call::Ack(ack) = &calls[1] else { panic!() };
    assert!(
        !ack.in_recovery && ack.recovery_ended,
        "there was nothing to recover from"
    );
    assert_eq!(bench.path.stats().spurious_events, 1);
    // A real loss of a packet as old as the refuted ones is a new signal.
    let mut more = bench.send_many(1);
    bench.ack(&lost[..0]);
    bench.lose(&mut more, false);
    assert_eq!(bench.losses()[0].episode, EpisodeId(2));
    assert_eq!(bench.spurious(), []);
}

#[test]
fn later_losses_of_an_episode_must_be_refuted_too() {
    let mut bench = Bench::new();
    let mut sent = bench.send_many(8);
    bench.wait(ms(50));
    let (one, others) = sent.split_at_mut(1);
    let (two, rest) = others.split_at_mut(1);
    bench.lose(one, false);
    // The ACK that brings the first back reveals the second as lost.
    let acked: Vec<_> = one.iter().chain(rest.iter()).copied().collect();
    bench.result(&acked, two, false, 0);
    assert_eq!(two[0].lost_in, Some(EpisodeId(1)));
    assert_eq!(bench.spurious(), []);
    bench.ack(two);
    assert_eq!(bench.spurious(), [EpisodeId(1)]);
}

#[test]
fn two_episodes_refuted_by_one_ack_are_reported_newest_first() {
    let mut bench = Bench::new();
    let mut first = bench.send_many(2);
    bench.lose(&mut first[..1], false);
    let mut second = bench.send_many(2);
    bench.lose(&mut second[..1], false);
    bench.ack(&[first[0], second[0]]);
    assert_eq!(bench.spurious(), [EpisodeId(2), EpisodeId(1)]);
}

#[test]
fn persistent_congestion_is_never_undone_and_clears_the_recovery_start() {
    let mut bench = Bench::new();
    bench.sample_rtt(ms(50), ms(0));
    let mut sent = bench.send_many(6);
    bench.wait(ms(50));
    bench.lose(&mut sent[..3], true);
    assert_eq!(names(&bench.calls()[6..]), ["loss", "persistent"]);
    bench.ack(&sent[..3]);
    let calls = bench.calls();
    assert_eq!(names(&calls), ["ack"]);
    let Call::Ack(ack) = &calls[0] else { panic!() };
    assert!(!ack.in_recovery && ack.sent_after_recovery_start);
    bench.lose(&mut sent[3..4], false);
    assert!(
        bench.losses()[0].new_episode,
        "the old recovery start no longer shields"
    );
    assert_eq!(bench.path.stats().persistent_congestions, 1);
}

#[test]
fn a_ce_episode_is_never_undone() {
    let mut bench = Bench::new();
    let mut sent = bench.send_many(8);
    bench.wait(ms(50));
    let (lost, rest) = sent.split_at_mut(2);
    bench.result(&rest[..2], lost, false, 1);
    bench.ack(lost);
    assert_eq!(bench.spurious(), [], "marks in the same episode confirm it");
    // and losses that join an episode opened by marks
    let mut later = bench.send_many(6);
    let (mark, others) = later.split_at_mut(1);
    bench.result(mark, &mut [], false, 1);
    bench.lose(&mut others[..1], false);
    bench.ack(&others[..1]);
    assert_eq!(bench.spurious(), []);
}

#[test]
fn episodes_are_discarded_after_three_probe_timeouts() {
    for (after, expected) in [(0, 1), (1, 0)] {
        let mut bench = Bench::new();
        bench.sample_rtt(ms(100), ms(0));
        let mut sent = bench.send_many(4);
        bench.lose(&mut sent[..1], false);
        let memory = bench.path.pto_base() * 3;
        bench.wait(memory + ms(after));
        bench.ack(&sent[..1]);
        assert_eq!(bench.spurious().len(), expected, "{after}");
    }
}

#[test]
fn memory_for_episodes_is_bounded() {
    let mut bench = Bench::new();
    let mut all = Vec::new();
    for _ in 0..100 {
        let mut packet = [bench.send()];
        bench.lose(&mut packet, false);
        all.extend(packet);
    }
    bench.ack(&all);
    let refuted = bench.spurious();
    assert_eq!(refuted.first(), Some(&EpisodeId(100)));
    assert_eq!(refuted.len(), 8);
}

#[test]
fn one_packet_may_leave_when_an_episode_opens() {
    let mut bench = Bench::new();
    bench.set_cwnd(packets(10));
    let mut sent = bench.send_many(10);
    assert!(!bench.path.has_window_for(1_200));
    bench.lose(&mut sent[..1], false);
    bench.set_cwnd(packets(5));
    assert!(
        bench.path.has_window_for(1_200),
        "the retransmission needn't wait"
    );
    bench.send();
    assert!(!bench.path.has_window_for(1_200));
    bench.lose(&mut sent[1..2], false);
    assert!(!bench.path.has_window_for(1_200), "once per episode");
}

#[test]
fn marks_that_come_without_anything_to_acknowledge_are_reported_with_the_next_ack() {
    let mut bench = Bench::new();
    let sent = bench.send_many(4);
    bench.wait(ms(50));
    // Only packets that don't count in flight were newly acknowledged.
    bench.result(&[], &mut [], false, 2);
    assert_eq!(bench.path.stats().congestion_events, 0);
    bench.result(&sent[..2], &mut [], false, 1);
    assert_eq!(bench.last_ack().ecn.ce, PacketCount::new(3));
    assert_eq!(bench.path.stats().ce_packets, PacketCount::new(3));
    bench.ack(&sent[2..]);
    assert_eq!(bench.last_ack().ecn.ce, PacketCount::ZERO, "reported once");
}
