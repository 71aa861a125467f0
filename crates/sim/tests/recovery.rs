//! Loss recovery on links: what a loss costs, probes, spurious losses, round-trip times, and floors
//! of goodput that a slow protocol misses.

use crate::support;

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use swiftwater_link::{Buffer, Jitter, LinkConfig, LossModel, Reorder, ReorderBy};
use swiftwater_quic::{Event, StreamEvent};
use swiftwater_sim::{Cipher, Direction, Pair, Verdict};
use swiftwater_units::{ByteCount, Instant, PacketCount, Side};

use support::{BOTH, Watch, black_out, drop_if, link, millis, path, secs};

const RTT: Duration = Duration::from_millis(40);

fn connected(link: LinkConfig) -> Pair {
    let mut pair = Pair::builder().link(link).build().unwrap();
    assert!(pair.connect());
    pair.advance(millis(200));
    pair
}

/// How long `bytes` to the server take on this pair.
fn upload(pair: &mut Pair, bytes: u64) -> Duration {
    let report = pair.transfer(bytes, Direction::ToServer);
    assert!(report.verified, "{report:?}");
    report.finish - report.start
}

/// Drops the client's datagrams from the `first` on of those sent from now on.
fn lose(pair: &mut Pair, first: u64, count: u64) {
    let from = pair.offered(Direction::ToServer) + first;
    drop_if(pair, Direction::ToServer, move |datagram| {
        (from..from + count).contains(&datagram.index)
    });
}

#[test]
fn one_loss_is_repaired_after_a_round_trip() {
    for nth in [0, 1, 5, 30, 100, 200] {
        let watch = Watch::new(Side::Client);
        let factory = watch.factory();
        let mut pair = Pair::builder()
            .link(link(10, 20))
            .client_config(|config| config.observer = Some(factory))
            .build()
            .unwrap();
        assert!(pair.connect());
        pair.advance(millis(200));
        let from = pair.offered(Direction::ToServer) + nth;
        let dropped = Rc::new(Cell::new(Instant::ZERO));
        let at = Rc::clone(&dropped);
        pair.tap(Direction::ToServer, move |datagram| {
            if datagram.index == from {
                at.set(datagram.now);
                return Verdict::Drop;
            }
            Verdict::Pass
        });
        upload(&mut pair, 300_000);
        let path = path(&pair, Side::Client);
        assert_eq!(path.lost_packets.get(), 1, "{nth}");
        assert_eq!(
            (path.pto_count, path.spurious_losses.get()),
            (0, 0),
            "{nth}"
        );
        // Three later packets, a round trip with the queue that the flow itself has filled.
        let repair = watch.notes().lost[0].0 - dropped.get();
        assert!(
            repair < path.smoothed_rtt + millis(10),
            "{nth}: {repair:?}, {path:?}"
        );
        let resent = pair.stats(Side::Client).stream_bytes_retransmitted.get();
        assert!((1..=1_200).contains(&resent), "{nth}: {resent}");
    }
}

#[test]
fn one_loss_in_steady_state_costs_no_more_than_a_round_trip() {
    let clean = upload(&mut connected(link(10, 20)), 1_000_000);
    let mut pair = connected(link(10, 20));
    lose(&mut pair, 500, 1);
    let took = upload(&mut pair, 1_000_000);
    assert!(took < clean + RTT, "{took:?} instead of {clean:?}");
}

#[test]
fn a_lost_tail_is_repaired_by_a_probe() {
    for tail in [1, 2, 3, 8] {
        let mut pair = connected(link(10, 20));
        let probes = path(&pair, Side::Client).pto_count;
        // Ten packets: within the initial window.
        lose(&mut pair, 10 - tail, tail);
        let took = upload(&mut pair, 11_000);
        // Where three packets or more arrive before the loss nothing follows to show it: a probe
        // timeout, round trip and ACK delay included, and what it brings.
        assert!(took < millis(300), "{tail}: {took:?}");
        assert!(took > RTT, "{tail}: {took:?}");
        let path = path(&pair, Side::Client);
        assert!(path.pto_count > probes, "{tail}");
        assert!(path.lost_packets.get() <= tail, "{tail}: {path:?}");
    }
}

#[test]
fn a_burst_of_losses_is_repaired_together() {
    let clean = upload(&mut connected(link(10, 20)), 600_000);
    for burst in [5, 15, 30] {
        let mut pair = connected(link(10, 20));
        lose(&mut pair, 120, burst);
        let took = upload(&mut pair, 600_000);
        assert!(
            took < clean + RTT * 6,
            "{burst}: {took:?} instead of {clean:?}"
        );
        let path = path(&pair, Side::Client);
        assert_eq!(path.lost_packets.get(), burst);
        assert_eq!(
            path.congestion_events, 1,
            "{burst}: one burst is one episode"
        );
    }
}

#[test]
fn a_long_outage_is_persistent_congestion() {
    let watch = Watch::new(Side::Client);
    let factory = watch.factory();
    let mut pair = Pair::builder()
        .link(link(10, 20))
        .client_config(|config| config.observer = Some(factory))
        .build()
        .unwrap();
    assert!(pair.connect());
    pair.start_transfer(2_000_000, Direction::ToServer);
    let outage = pair.now() + millis(500);
    // Acknowledgements still pass, so that what arrived before is no part of what follows.
    let end = outage + secs(3);
    drop_if(&mut pair, Direction::ToServer, move |datagram| {
        datagram.now >= outage && datagram.now < end
    });
    assert!(pair.finish_transfers());
    let after: Vec<_> = watch
        .notes()
        .cwnd
        .into_iter()
        .filter(|(at, _)| *at > end)
        .collect();
    let least = after.iter().map(|(_, cwnd)| *cwnd).min();
    // Two packets, and what the ACK that shows it acknowledges.
    assert!((2_400..=4_800).contains(&least.unwrap()), "{least:?}");
    // A probe at most twice the outage after the last one, then slow start.
    let late = after[0].0 - end;
    assert!(late < secs(3), "{late:?}");
    let rest = pair.now() - after[0].0;
    assert!(rest < millis(2_500), "{rest:?}");
}

#[test]
fn a_short_outage_is_not() {
    let watch = Watch::new(Side::Client);
    let factory = watch.factory();
    let mut pair = Pair::builder()
        .link(link(10, 20))
        .client_config(|config| config.observer = Some(factory))
        .build()
        .unwrap();
    assert!(pair.connect());
    pair.start_transfer(2_000_000, Direction::ToServer);
    let outage = pair.now() + millis(700);
    black_out(&mut pair, outage, millis(50));
    assert!(pair.finish_transfers());
    let least = watch.notes().cwnd.iter().map(|(_, cwnd)| *cwnd).min();
    assert!(least > Some(2_400), "{least:?}");
}

#[test]
fn a_late_packet_that_counted_as_lost_is_forgiven() {
    let mut late = connected(link(20, 20));
    let from = late.offered(Direction::ToServer) + 60;
    late.tap(Direction::ToServer, move |datagram| {
        if datagram.index == from {
            return Verdict::Delay(millis(15));
        }
        Verdict::Pass
    });
    let took = upload(&mut late, 2_000_000);
    let path_late = path(&late, Side::Client);
    assert_eq!(path_late.lost_packets.get(), 1);
    assert_eq!(path_late.spurious_losses.get(), 1);

    // Without forgiveness it would cost what a real loss costs.
    let clean = upload(&mut connected(link(20, 20)), 2_000_000);
    assert!(took < clean + RTT, "{took:?} instead of {clean:?}");
}

#[test]
fn mild_disorder_is_no_loss() {
    let mut rough = link(20, 20);
    rough.reorder = Some(Reorder {
        probability: 0.05,
        by: ReorderBy::Packets {
            count: 1,
            at_most: millis(5),
        },
    });
    let mut pair = connected(rough);
    upload(&mut pair, 2_000_000);
    assert_eq!(path(&pair, Side::Client).lost_packets.get(), 0);
}

#[test]
fn lost_acknowledgements_cost_little() {
    // Windows are no part of it: a lost update of them must wait for a probe.
    let builder = || {
        Pair::builder().server_config(|config| {
            config.stream_receive_window = ByteCount::new(4 << 20);
            config.receive_window = ByteCount::new(4 << 20);
        })
    };
    let mut clean = builder().link(link(10, 20)).build().unwrap();
    assert!(clean.connect());
    let clean = upload(&mut clean, 2_000_000);
    for (loss, bound) in [(0.3, 1.05), (0.5, 1.6)] {
        for seed in 0..10 {
            let mut pair = builder()
                .seed(seed)
                .links(link(10, 20), link(10, 20).loss(LossModel::Bernoulli(loss)))
                .build()
                .unwrap();
            assert!(pair.connect());
            let took = upload(&mut pair, 2_000_000);
            assert!(
                took < clean.mul_f64(bound),
                "{loss}, seed {seed}: {took:?} instead of {clean:?}"
            );
            let resent = pair.stats(Side::Client).stream_bytes_retransmitted.get();
            assert!(resent < 20_000, "{loss}, seed {seed}: {resent} for nothing");
        }
    }
}

#[test]
fn lost_window_updates_are_repeated() {
    for seed in 0..10 {
        let mut pair = Pair::builder()
            .seed(seed)
            .links(link(10, 20), link(10, 20).loss(LossModel::Bernoulli(0.3)))
            .build()
            .unwrap();
        assert!(pair.connect());
        let took = upload(&mut pair, 4_000_000);
        assert!(took < secs(9), "seed {seed}: {took:?}");
    }
}

#[test]
fn probe_timeouts_double_and_stay_few() {
    let watch = Watch::new(Side::Client);
    let factory = watch.factory();
    let mut pair = Pair::builder()
        .link(link(10, 20))
        .client_config(|config| config.observer = Some(factory))
        .build()
        .unwrap();
    assert!(pair.connect());
    pair.advance(secs(1));
    let outage = pair.now();
    black_out(&mut pair, outage, secs(3_600));
    pair.start_transfer(5_000, Direction::ToServer);
    let sent = pair.offered(Direction::ToServer);
    pair.advance(secs(40));
    assert!(pair.client().is_closed(), "the idle timeout ends it");
    let notes = watch.notes();
    let probes: Vec<_> = notes
        .probe_timeouts
        .iter()
        .filter(|(at, _)| *at >= outage)
        .collect();
    assert!((6..=10).contains(&probes.len()), "{probes:?}");
    let gaps: Vec<_> = probes.windows(2).map(|two| two[1].0 - two[0].0).collect();
    for two in gaps.windows(2) {
        let ratio = two[1].as_secs_f64() / two[0].as_secs_f64();
        assert!((1.9..2.1).contains(&ratio), "{gaps:?}");
    }
    // Two datagrams each in addition to the five of the first flight, and the bytes for which an
    // ACK in a probe left no space.
    let sent = pair.offered(Direction::ToServer) - sent;
    assert!(sent <= 5 + 3 * probes.len() as u64, "{sent}");
}

#[test]
fn round_trip_times_are_the_links() {
    for delay in [1, 20, 100, 400] {
        let mut pair = Pair::builder().link(link(100, delay)).build().unwrap();
        assert!(pair.connect());
        for direction in BOTH {
            assert!(pair.transfer(100_000, direction).verified);
        }
        let rtt = millis(2 * delay);
        for side in support::SIDES {
            let path = path(&pair, side);
            let above = path.min_rtt.checked_sub(rtt);
            assert!(
                above.is_some_and(|above| above < millis(1)),
                "{delay} {side:?} {path:?}"
            );
            // Serialisation, pacing and half a queue may add a little.
            let slack = rtt / 4 + millis(5);
            for value in [path.smoothed_rtt, path.mean_rtt] {
                assert!(
                    (rtt..rtt + slack).contains(&value),
                    "{delay} {side:?} {path:?}"
                );
            }
        }
    }
}

#[test]
fn acknowledgement_delay_is_no_part_of_the_round_trip() {
    // Single packets, far apart: each is acknowledged after the full 25 ms.
    let mut pair = connected(link(100, 10));
    for nth in 0..50 {
        // Each larger than the ones before: none is faster than the fastest but for the delay.
        pair.start_transfer(100 + nth * 20, Direction::ToServer);
        pair.advance(millis(200));
    }
    let path = path(&pair, Side::Client);
    assert!(path.smoothed_rtt < millis(24), "{path:?}");
    assert!(path.min_rtt < millis(22), "{path:?}");
    assert_eq!(path.pto_count, 0, "an ACK delay is no reason to probe");
}

#[test]
fn a_jumping_round_trip_is_no_loss() {
    let mut pair = connected(link(10, 20).jitter(Jitter::Uniform(millis(80))));
    let took = upload(&mut pair, 1_000_000);
    // Order is kept, so nothing is ever lost.
    let path = path(&pair, Side::Client);
    assert_eq!(
        path.lost_packets.get(),
        path.spurious_losses.get(),
        "{path:?}"
    );
    assert!(path.lost_packets.get() < 20, "{path:?}");
    assert!(took < secs(3), "{took:?}");
}

/// Megabits a second, one-way delay in milliseconds, loss, bytes, milliseconds at most.
const FLOORS: [(u64, u64, f64, u64, u64); 9] = [
    (10, 20, 0.0, 1_000_000, 1_000),
    (100, 15, 0.0, 20_000_000, 1_950),
    // With random loss, what the response function of CUBIC's Reno-friendly region gives, and a
    // fifth: 12 packets a round trip at 1 %, 39 at 0.1 %.
    (20, 20, 0.01, 5_000_000, 18_000),
    (20, 20, 0.001, 5_000_000, 4_800),
    (5, 50, 0.0, 500_000, 1_150),
    (5, 50, 0.02, 1_000_000, 15_000),
    (50, 5, 0.01, 10_000_000, 9_000),
    (2, 300, 0.0, 250_000, 3_200),
    (1_000, 1, 0.0, 50_000_000, 480),
];

#[test]
fn goodput_has_floors() {
    for (mbps, delay, loss, bytes, at_most) in FLOORS {
        let mut slowest = Duration::ZERO;
        for (seed, direction) in [(1, BOTH[0]), (2, BOTH[1]), (3, BOTH[0])] {
            let lossy = match loss {
                0.0 => link(mbps, delay),
                loss => link(mbps, delay).loss(LossModel::Bernoulli(loss)),
            };
            let mut pair = Pair::builder().seed(seed).link(lossy).build().unwrap();
            assert!(pair.connect());
            let report = pair.transfer(bytes, direction);
            assert!(report.verified);
            slowest = slowest.max(report.finish - report.start);
        }
        let row = (mbps, delay, loss, bytes);
        assert!(slowest < millis(at_most), "{row:?}: {slowest:?}");
    }
}

#[test]
fn a_small_buffer_is_used_well() {
    // Half a bandwidth-delay product of drop-tail queue.
    let mut narrow = link(20, 20).buffer(Buffer::Packets(PacketCount::new(40)));
    narrow.bdp_rtt = Some(RTT);
    let mut pair = connected(narrow);
    let took = upload(&mut pair, 5_000_000);
    assert!(took < millis(2_700), "{took:?}");
    let stats = pair.stats(Side::Client);
    let share = stats.stream_bytes_retransmitted.get() as f64 / 5e6;
    assert!(share < 0.06, "{share}");
}

#[test]
fn a_receiver_of_much_stays_small_and_asks_for_acknowledgements_now_and_then() {
    let watch = Watch::new(Side::Client);
    let factory = watch.factory();
    let mut pair = Pair::builder()
        .link(link(200, 5))
        .client_config(|config| config.observer = Some(factory))
        .build()
        .unwrap();
    assert!(pair.connect());
    let report = pair.transfer(50_000_000, Direction::ToClient);
    assert!(report.verified);
    let took = report.finish - report.start;
    assert!(took < millis(2_400), "{took:?}");
    let sent: Vec<_> = watch
        .notes()
        .sent
        .into_iter()
        .filter(|(at, _)| *at > report.start + millis(50))
        .collect();
    // Every other packet is acknowledged.
    assert!(sent.len() > 15_000, "{}", sent.len());
    let longest = sent
        .split(|(_, ack_eliciting)| *ack_eliciting)
        .map(<[_]>::len)
        .max();
    assert!(
        longest < Some(150),
        "{longest:?} packets without a question"
    );
    let eliciting = sent
        .iter()
        .filter(|(_, ack_eliciting)| *ack_eliciting)
        .count();
    assert!(eliciting * 20 < sent.len(), "{eliciting} of {}", sent.len());
    // PINGs that are requested and answered must not count as losses or probes.
    let path = path(&pair, Side::Client);
    assert_eq!((path.lost_packets.get(), path.pto_count), (0, 0));
}

#[test]
fn both_directions_at_once() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        let mut pair = Pair::builder()
            .cipher(cipher)
            .link(link(20, 20).loss(LossModel::Bernoulli(0.001)))
            .build()
            .unwrap();
        assert!(pair.connect());
        let start = pair.now();
        for direction in BOTH {
            pair.start_transfer(3_000_000, direction);
        }
        assert!(pair.finish_transfers());
        let took = pair.now() - start;
        assert!(took < millis(3_300), "{cipher:?}: {took:?}");
    }
}

#[test]
fn bursts_of_loss_do_not_stop_a_flow() {
    for seed in 0..10 {
        // A tenth of the time bad, bursts of ten packets.
        let bursty = link(20, 20).loss(LossModel::GilbertElliott {
            p: 0.01,
            r: 0.1,
            h: 0.2,
            k: 1.0,
        });
        let mut pair = Pair::builder().seed(seed).link(bursty).build().unwrap();
        assert!(pair.connect(), "seed {seed}");
        let took = upload(&mut pair, 500_000);
        assert!(took < secs(12), "seed {seed}: {took:?}");
    }
}

#[test]
fn an_idle_connection_sends_nothing() {
    let mut pair = connected(link(10, 20));
    upload(&mut pair, 50_000);
    pair.advance(secs(1));
    let before = BOTH.map(|direction| pair.offered(direction));
    pair.advance(secs(20));
    assert_eq!(before, BOTH.map(|direction| pair.offered(direction)));
    assert!(pair.now() > Instant::from_millis(21_000));
}

#[test]
fn a_lost_acknowledgement_comes_again_with_the_next_ping() {
    let mut pair = Pair::builder()
        .link(link(10, 20))
        .server_config(|config| config.keep_alive_interval = Some(millis(500)))
        .build()
        .unwrap();
    assert!(pair.connect());
    pair.advance(millis(200));
    // No packet is received for so long that the client's next probe is seconds away.
    let end = pair.now() + secs(5);
    drop_if(&mut pair, Direction::ToClient, move |datagram| {
        datagram.now < end
    });
    assert!(pair.transfer(1_000, Direction::ToServer).verified);
    let finished = |event: &Event| matches!(event, Event::Stream(StreamEvent::Finished { .. }));
    assert!(pair.run_until(|pair| support::count(pair, Side::Client, finished) > 0));
    let late = pair.now() - end;
    assert!(late < millis(600), "{late:?}");
}
