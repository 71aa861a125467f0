//! Statistics of a path during a connection, as sampled by a recorder.

use swiftwater_link::LossModel;
use swiftwater_quic::PathStats;
use swiftwater_sim::{Direction, Dumbbell, FlowSpec, Pair};
use swiftwater_units::{ByteCount, Instant, PathId, Side};

use crate::support::{link, millis, secs};

/// Samples of a flow's sender, one every 20 ms.
fn samples(dumbbell: &Dumbbell) -> Vec<PathStats> {
    let mut run = dumbbell.build().unwrap();
    let (sender, _) = run.hosts(0);
    let mut samples = Vec::new();
    let mut now = Instant::ZERO;
    while now < run.end() {
        now += millis(20);
        run.advance_to(now);
        let network = run.network();
        let Some(handle) = network.connections(sender).next() else {
            continue;
        };
        samples.extend(
            network
                .view(sender, handle)
                .unwrap()
                .path_stats(PathId::ZERO),
        );
    }
    samples
}

fn dumbbell(controller: &str) -> Dumbbell {
    Dumbbell {
        flows: vec![FlowSpec::new(controller).unwrap()],
        rate: swiftwater_units::Bandwidth::from_mbps(20).into(),
        loss: LossModel::Bernoulli(0.002),
        duration: secs(3),
        ..Dumbbell::default()
    }
}

#[test]
fn a_path_can_be_sampled_while_it_carries_a_flow() {
    for controller in ["cubic", "newreno"] {
        let samples = samples(&dumbbell(controller));
        assert!(samples.len() > 140, "{}", samples.len());
        for pair in samples.windows(2) {
            let (before, after) = (&pair[0], &pair[1]);
            assert!(after.delivered >= before.delivered);
            assert!(after.lost_bytes >= before.lost_bytes);
            assert!(after.retransmitted >= before.retransmitted);
            assert!(after.sent_packets >= before.sent_packets);
        }
        // What was sent was delivered, lost, or is in flight; except packets removed by discarding
        // the handshake's keys.
        let discarded = |sample: &PathStats| {
            sample.sent_bytes - sample.delivered - sample.lost_bytes - sample.bytes_in_flight
        };
        let after_handshake = discarded(&samples[5]);
        assert!(after_handshake < ByteCount::new(3_000));
        for sample in &samples[5..] {
            assert_eq!(discarded(sample), after_handshake, "{sample:?}");
        }
        let last = samples.last().unwrap();
        assert!(last.lost_packets.get() > 0 && last.spurious_losses.get() == 0);
        // A lost packet is 1472 bytes of UDP payload, most of them of the stream.
        let lost = last.lost_bytes.get() as f64;
        let again = last.retransmitted.get() as f64;
        assert!(again > 0.9 * lost - 20_000.0 && again <= lost, "{last:?}");
    }
}

#[test]
fn the_rate_in_force_is_reported_also_where_it_comes_from_the_window() {
    for sample in samples(&dumbbell("cubic")).iter().skip(50) {
        let rate = sample.pacing_rate.unwrap().as_bps() as f64;
        let window = 8.0 * sample.cwnd.get() as f64 / sample.smoothed_rtt.as_secs_f64();
        let gain = rate / window;
        assert!(
            (1.24..1.26).contains(&gain) || (1.99..2.01).contains(&gain),
            "{sample:?}"
        );
    }
}

#[test]
fn the_last_delivery_rate_is_that_of_the_link() {
    let mut clean = dumbbell("cubic");
    clean.loss = LossModel::None;
    let samples = samples(&clean);
    let rates: Vec<f64> = samples[50..]
        .iter()
        .map(|sample| sample.delivery_rate.unwrap().as_bps() as f64)
        .collect();
    let mean = rates.iter().sum::<f64>() / rates.len() as f64;
    // 28 of 1500 bytes are no UDP payload.
    assert!((18.5e6..19.8e6).contains(&mean), "{mean}");
}

#[test]
fn the_controller_shows_itself_by_path() {
    let mut pair = Pair::builder().link(link(10, 20)).build().unwrap();
    assert!(pair.connect());
    assert!(pair.transfer(300_000, Direction::ToServer).verified);
    pair.advance(secs(1));
    let client = pair.view(Side::Client).unwrap();
    let stats = client.path_stats(PathId::ZERO).unwrap();
    let snapshot = client.controller(PathId::ZERO).unwrap();
    assert_eq!(
        (snapshot.cwnd, snapshot.ssthresh),
        (stats.cwnd, stats.ssthresh)
    );
    assert!(!snapshot.state.is_empty());
    assert!(stats.app_limited && stats.bytes_in_flight.is_zero());
    assert_eq!(client.smoothed_rtt(PathId::ZERO), Some(stats.smoothed_rtt));
    assert_eq!(client.stats().paths, [stats]);
    assert!(client.path_stats(PathId::new(7)).is_none());
    assert!(client.smoothed_rtt(PathId::new(7)).is_none());
    assert!(client.controller(PathId::new(7)).is_none());
}

#[test]
fn acknowledgements_are_no_matter_of_congestion_control() {
    let mut pair = Pair::builder().link(link(10, 20)).build().unwrap();
    assert!(pair.connect());
    let before = pair.stats(Side::Server);
    assert!(pair.transfer(1_000_000, Direction::ToServer).verified);
    let after = pair.stats(Side::Server);
    let sent = (after.packets_sent - before.packets_sent).get();
    assert!(sent > 300, "{sent}");
    // An occasional window update, and the PING that elicits an acknowledgement of the others.
    let (before, after) = (&before.paths[0], &after.paths[0]);
    let counted = (after.sent_packets - before.sent_packets).get();
    assert!(counted < sent / 10, "{counted} of {sent}");
    assert_eq!(after.lost_packets.get(), 0);
}
