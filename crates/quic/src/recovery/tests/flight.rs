//! Bytes in flight, windows, idle times, discarded spaces, changes of address.

use super::*;

#[test]
fn windows_follow_the_rfc_unless_configured() {
    let built = |configured: Option<u64>, mds: u16| {
        let bench = Bench::with(|c| c.initial_window = configured.map(ByteCount::new));
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let path = PathRecovery::new(bench.now, PathId::ZERO, &bench.config, mds, &mut rng);
        drop(path);
        let (mds, initial, minimum) = bench.cc.script().built_with.unwrap();
        (mds.get(), initial.get(), minimum.get())
    };
    assert_eq!(built(None, 1_200), (1_200, 12_000, 2_400));
    assert_eq!(built(None, 1_500), (1_500, 14_720, 3_000));
    assert_eq!(built(None, 9_000), (9_000, 18_000, 18_000));
    assert_eq!(built(Some(38_400), 1_200), (1_200, 38_400, 2_400));
    assert_eq!(built(Some(1), 1_200), (1_200, 2_400, 2_400));
}

#[test]
fn the_controllers_initial_window_yields_to_the_configuration() {
    let initial = |configured: Option<u64>, specification: &str| {
        let mut config = TransportConfig {
            initial_window: configured.map(ByteCount::new),
            ..TransportConfig::default()
        };
        config.controller = swiftwater_congestion::by_name(specification).unwrap();
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let config = std::sync::Arc::new(config);
        let path = PathRecovery::new(Instant::ZERO, PathId::ZERO, &config, 1_200, &mut rng);
        path.cwnd().get() / 1_200
    };
    assert_eq!(initial(None, "bbr1"), 10);
    assert_eq!(initial(None, "bbr1-xquic"), 32);
    assert_eq!(initial(None, "bbr3:initial_window=20"), 20);
    assert_eq!(initial(Some(14 * 1_200), "bbr1-xquic"), 14);
}

#[test]
fn a_change_of_packet_size_reaches_the_controller() {
    let mut bench = Bench::new();
    bench.path.on_max_datagram_size(1_500, &mut bench.rng);
    let expected = Call::Mds(1_500.into(), 14_720.into(), 3_000.into());
    assert_eq!(bench.calls(), [expected]);
}

#[test]
fn the_window_is_never_exceeded_by_part_of_a_packet() {
    let mut bench = Bench::new();
    bench.set_cwnd(ByteCount::new(2_500));
    bench.send();
    assert!(bench.path.has_window_for(1_200));
    bench.send();
    assert!(!bench.path.has_window_for(1_200));
    assert!(bench.path.has_window_for(100));
    assert!(!bench.path.has_window_for(101));
}

#[test]
fn bytes_in_flight_follow_every_fate() {
    let mut bench = Bench::new();
    let mut sent = bench.send_many(10);
    assert_eq!(bench.path.bytes_in_flight(), packets(10));
    bench.ack(&sent[..3]);
    let ack = bench.last_ack();
    assert_eq!(
        (ack.prior_inflight, ack.inflight),
        (packets(10), packets(7))
    );
    bench.lose(&mut sent[3..5], false);
    assert_eq!(bench.path.bytes_in_flight(), packets(5));
    bench.path.on_discard(packets(4));
    assert_eq!(bench.path.bytes_in_flight(), packets(1));
    bench.path.on_discard(packets(4));
    assert_eq!(
        bench.path.bytes_in_flight(),
        ByteCount::ZERO,
        "no underflow"
    );
}

#[test]
fn discarded_spaces_are_neither_acked_nor_lost() {
    let mut bench = Bench::new();
    bench.send_many(2);
    bench.calls();
    bench.path.on_discard(packets(2));
    assert_eq!(bench.calls(), [Call::Discard(packets(2))]);
    assert_eq!(bench.path.stats().lost_packets, PacketCount::ZERO);
}

#[test]
fn abandoned_packets_are_no_sign_of_congestion() {
    let mut bench = Bench::new();
    let sent = bench.send_many(3);
    bench.calls();
    let records: Vec<_> = sent.iter().map(|p| p.lost()).collect();
    let cause = LossCause::Abandoned;
    let episode = bench
        .path
        .on_losses(bench.now, &records, cause, false, &mut bench.rng);
    assert_eq!(bench.calls(), [Call::Discard(packets(3))]);
    assert_eq!(bench.path.stats().congestion_events, 0);
    assert!(bench.path.bytes_in_flight().is_zero());
    // Acked after all: must not leave flight twice.
    let other = bench.send_many(3);
    bench.ack(&[Packet {
        lost_in: episode,
        ..sent[0]
    }]);
    assert_eq!(bench.path.bytes_in_flight(), packets(3));
    assert_eq!(bench.spurious(), []);
    bench.ack(&other);
}

#[test]
fn idle_time_runs_from_the_last_send_or_ack() {
    let mut bench = Bench::new();
    let first = bench.send();
    assert!(
        !bench.calls().iter().any(|c| matches!(c, Call::Idle(_))),
        "nothing before it"
    );
    bench.wait(ms(30));
    bench.ack(&[first]);
    // A tiny window: flight touches zero in each round, but nothing was idle.
    let second = bench.send();
    let calls = bench.calls();
    assert!(
        !calls.iter().any(|c| matches!(c, Call::Idle(_))),
        "{calls:?}"
    );
    bench.wait(ms(30));
    bench.ack(&[second]);
    bench.wait(ms(70));
    bench.calls();
    bench.send();
    let calls = bench.calls();
    assert_eq!(calls[0], Call::Idle(ms(70)));
    let Call::Sent(sent) = calls[1] else {
        panic!("{calls:?}")
    };
    assert_eq!(sent.was_idle, Some(ms(70)));
    assert_eq!(sent.inflight_before, ByteCount::ZERO);
    bench.wait(ms(70));
    bench.send();
    let calls = bench.calls();
    let Call::Sent(sent) = calls[0] else {
        panic!("{calls:?}")
    };
    assert_eq!(sent.was_idle, None, "something was in flight");
}

#[test]
fn waiting_for_the_loss_timer_is_not_idle() {
    let mut bench = Bench::new();
    let mut sent = bench.send_many(2);
    bench.wait(ms(500));
    bench.lose(&mut sent, false);
    bench.calls();
    bench.send();
    assert!(!bench.calls().iter().any(|c| matches!(c, Call::Idle(_))));
}

#[test]
fn probes_are_distinguished() {
    let mut bench = Bench::new();
    bench.send_size(MDS, true);
    let Call::Sent(sent) = bench.calls()[0] else {
        panic!()
    };
    assert!(sent.is_probe && sent.ack_eliciting && !sent.is_mtu_probe);
}

#[test]
fn after_a_change_of_address_old_packets_are_no_samples() {
    let mut bench = Bench::new();
    bench.sample_rtt(ms(50), ms(0));
    let mut old = bench.send_many(5);
    let old_time = bench.now;
    bench.path.on_pto(bench.now, &mut bench.rng);
    let config = bench.config.clone();
    // In the same instant as the last packets.
    bench
        .path
        .reset_for_new_path(bench.now, &config, config.initial_rtt, &mut bench.rng);
    assert!(bench.path.bytes_in_flight().is_zero());
    assert!(!bench.path.rtt().has_sample);
    assert_eq!(bench.path.first_rtt_sample_at(), None);
    assert_eq!(bench.path.pto_count(), 0);
    let new = bench.send_many(3);
    bench.calls();
    bench.wait(ms(10));
    bench.path.on_rtt_sample(bench.now, old_time - ms(1), ms(0));
    assert!(!bench.path.rtt().has_sample);
    bench.ack(&old[..2]);
    let (_, rest) = old.split_at_mut(2);
    bench.lose(rest, true);
    bench.result(&rest[..1], &mut [], false, 1);
    assert_eq!(bench.calls(), [], "the new controller gets no report of it");
    assert_eq!(bench.path.bytes_in_flight(), packets(3));
    bench.ack(&new);
    assert_eq!(bench.last_ack().delivered, packets(3));
    assert!(bench.path.bytes_in_flight().is_zero());
    assert_eq!(
        bench.path.stats().sent_packets,
        PacketCount::new(8),
        "totals go on"
    );
}

#[test]
fn an_ack_of_old_and_new_packets_counts_the_new_only() {
    let mut bench = Bench::new();
    let old = bench.send_many(2);
    let config = bench.config.clone();
    bench
        .path
        .reset_for_new_path(bench.now, &config, config.initial_rtt, &mut bench.rng);
    let new = bench.send_many(2);
    bench.wait(ms(10));
    bench.ack(&[old[0], new[0], old[1]]);
    let ack = bench.last_ack();
    assert_eq!(ack.acked_bytes, packets(1));
    assert_eq!(ack.inflight, packets(1));
}

#[test]
fn episodes_keep_their_numbers_over_a_change_of_address() {
    let mut bench = Bench::new();
    let mut old = bench.send_many(2);
    bench.lose(&mut old[..1], false);
    let config = bench.config.clone();
    bench
        .path
        .reset_for_new_path(bench.now, &config, config.initial_rtt, &mut bench.rng);
    let mut new = bench.send_many(2);
    bench.calls();
    bench.lose(&mut new[..1], false);
    let loss = bench.losses().remove(0);
    assert_eq!((loss.episode, loss.new_episode), (EpisodeId(2), true));
    bench.ack(&old[..1]);
    assert_eq!(bench.spurious(), []);
}

#[test]
fn the_controllers_timer_fires_when_due() {
    let mut bench = Bench::new();
    assert_eq!(bench.path.next_controller_timer(), None);
    let due = bench.now + ms(5);
    bench.cc.script().timer = Some(due);
    assert_eq!(bench.path.next_controller_timer(), Some(due));
    bench.path.on_controller_timer(bench.now, &mut bench.rng);
    assert_eq!(bench.calls(), []);
    bench.path.on_controller_timer(due, &mut bench.rng);
    assert_eq!(bench.calls(), [Call::Timer]);
}
