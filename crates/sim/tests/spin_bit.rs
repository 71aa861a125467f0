//! The latency spin bit as an observer on the path sees it (RFC 9000, section 17.4), and the QUIC bit
//! (RFC 9287).

use std::time::Duration;

use swiftwater_quic::wire::{PacketType, PartialHeader};
use swiftwater_sim::{Captured, Direction, Pair, Recording};
use swiftwater_units::{Instant, Side};

use crate::support::{BOTH, CID_LEN, link, millis, secs};

/// The spin bits of a direction's short packets, in order. Nothing is reordered on the links.
fn spins(recording: &Recording, sample: impl Fn(&Captured) -> bool) -> Vec<(Instant, bool)> {
    recording
        .datagrams()
        .iter()
        .filter(|captured| sample(captured))
        .filter_map(|captured| {
            let mut rest = &captured.data[..];
            while !rest.is_empty() {
                let header = PartialHeader::parse(rest, CID_LEN).ok()?;
                if header.packet_type == PacketType::OneRtt {
                    return Some((captured.at, header.spin));
                }
                rest = &rest[header.packet_len..];
            }
            None
        })
        .collect()
}

/// Times between changes of the bit: an observer's samples of the round-trip time.
fn periods(spins: &[(Instant, bool)]) -> Vec<Duration> {
    let edges: Vec<Instant> = spins
        .windows(2)
        .filter(|pair| pair[0].1 != pair[1].1)
        .map(|pair| pair[1].0)
        .collect();
    edges.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

/// A connection that is busy both ways, and what an observer saw of each direction.
fn busy(seed: u64, spin: [bool; 2]) -> (Pair, [Recording; 2]) {
    let mut pair = Pair::builder()
        .seed(seed)
        .link(link(20, 25))
        .client_config(move |config| config.spin_bit = spin[0])
        .server_config(move |config| config.spin_bit = spin[1])
        .build()
        .unwrap();
    let recordings = BOTH.map(|direction| pair.record(direction));
    assert!(pair.connect());
    for direction in BOTH {
        pair.start_transfer(2_000_000, direction);
    }
    assert!(pair.finish_transfers());
    (pair, recordings)
}

fn changes(recording: &Recording) -> usize {
    periods(&spins(recording, |_| true)).len()
}

#[test]
fn the_period_of_the_wave_is_the_round_trip_time() {
    let mut seen = 0;
    for seed in 1..5 {
        let (pair, recordings) = busy(seed, [true, true]);
        let rtt = pair.stats(Side::Client).paths[0].min_rtt;
        assert!(rtt >= millis(50));
        for recording in &recordings {
            let mut samples = periods(&spins(recording, |captured| {
                captured.at > Instant::from_millis(200)
            }));
            if samples.len() < 4 {
                // One end in sixteen is quiet.
                continue;
            }
            seen += 1;
            samples.sort_unstable();
            // Queues and delayed acknowledgements add to the propagation time, and nothing reduces
            // it.
            assert!(samples[0] >= millis(50), "{samples:?}");
            let median = samples[samples.len() / 2];
            let largest = pair.stats(Side::Client).paths[0]
                .mean_rtt
                .max(pair.stats(Side::Server).paths[0].mean_rtt);
            assert!(median < largest * 2, "{median:?} {largest:?}");
        }
    }
    assert!(seen >= 4, "{seen}");
}

#[test]
fn a_side_that_does_not_spin_stops_the_wave() {
    for spin in [[false, true], [true, false], [false, false]] {
        let (_, recordings) = busy(3, spin);
        for recording in &recordings {
            assert!(changes(recording) <= 1, "{spin:?}");
        }
    }
}

#[test]
fn some_connections_do_not_spin_though_they_may() {
    // Both ends must spin: (15/16)^2 of all connections, about 53 of 60.
    let spinning = (0..60)
        .filter(|&seed| {
            let mut pair = Pair::builder()
                .seed(seed)
                .link(link(20, 25))
                .build()
                .unwrap();
            let recording = pair.record(Direction::ToServer);
            assert!(pair.connect());
            pair.start_transfer(100_000, Direction::ToServer);
            assert!(pair.finish_transfers());
            changes(&recording) > 1
        })
        .count();
    assert!((42..60).contains(&spinning), "{spinning}");
}

#[test]
fn the_quic_bit_says_nothing_between_ends_that_grease() {
    for (ours, theirs) in [(true, true), (true, false), (false, true), (false, false)] {
        let mut pair = Pair::builder()
            .link(link(20, 25))
            .endpoint(Side::Client, move |config| config.grease = ours)
            .endpoint(Side::Server, move |config| config.grease = theirs)
            .build()
            .unwrap();
        let recordings = BOTH.map(|direction| pair.record(direction));
        assert!(pair.connect());
        for direction in BOTH {
            pair.start_transfer(500_000, direction);
        }
        assert!(pair.finish_transfers());
        pair.advance(secs(1));
        for (recording, direction) in recordings.iter().zip(BOTH) {
            let datagrams = recording.datagrams();
            let cleared = datagrams.iter().filter(|d| d.data[0] & 0x40 == 0).count();
            if ours && theirs {
                let share = cleared * 100 / datagrams.len();
                assert!((40..60).contains(&share), "{direction:?}: {share} %");
                // The first packet is sent to a server without stored state.
                assert!(direction == Direction::ToClient || datagrams[0].data[0] & 0x40 != 0);
            } else {
                assert_eq!(cleared, 0, "{direction:?}");
            }
        }
        for side in [Side::Client, Side::Server] {
            assert_eq!(pair.stats(side).packets_dropped.get(), 0);
        }
    }
}
