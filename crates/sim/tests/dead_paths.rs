//! Paths that die under a connection: neither end waits for the idle timeout while data are missing.

use crate::support;

use std::net::SocketAddr;

use swiftwater_link::LossModel;
use swiftwater_quic::Event;
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::{Dir, Side};

use support::{link, millis, path, secs};

fn pings(pair: &Pair, side: Side) -> u64 {
    pair.stats(side).frames_sent.of("ping")
}

fn connected() -> Pair {
    let mut pair = Pair::builder().link(link(10, 20)).build().unwrap();
    assert!(pair.connect());
    pair.advance(secs(1));
    pair
}

/// A client's request; the server has read it when this returns.
fn request(pair: &mut Pair) -> swiftwater_units::StreamId {
    let id = pair.client().open(Dir::Bi).unwrap();
    pair.client().send_stream(id).write(b"a request").unwrap();
    pair.client().send_stream(id).finish().unwrap();
    pair.advance(millis(100));
    assert_eq!(pair.server().accept(Dir::Bi), Some(id));
    let mut buffer = [0; 100];
    pair.server().recv_stream(id).read(&mut buffer).unwrap();
    id
}

#[test]
fn a_download_survives_a_rebinding_under_loss_without_keep_alive() {
    for percent in [10, 20, 30] {
        for seed in 0..25 {
            let outcome = support::rebinding::download(seed, f64::from(percent) / 100.0);
            assert!(outcome.complete, "{percent} %, seed {seed}: {outcome:?}");
            // Far from the idle timeout of 30 s.
            let stall = outcome.longest_stall;
            assert!(stall < secs(20), "{percent} %, seed {seed}: {outcome:?}");
        }
    }
}

#[test]
fn a_client_that_waits_for_a_response_finds_its_server_from_a_new_address() {
    for ip in [false, true] {
        let mut pair = connected();
        let id = request(&mut pair);
        let mut address: SocketAddr = pair.address(Side::Client);
        address.set_port(40_000);
        if ip {
            address.set_ip([192, 0, 2, 77].into());
        }
        pair.rebind(Side::Client, address).unwrap();
        let data = vec![7; 10_000];
        pair.server().send_stream(id).write(&data).unwrap();
        pair.server().send_stream(id).finish().unwrap();
        pair.advance(secs(2));
        assert_eq!(pair.server().remote(), address);
        let mut read = 0;
        let mut buffer = vec![0; 20_000];
        while let Ok(more) = pair.client().recv_stream(id).read(&mut buffer) {
            let swiftwater_quic::ReadOutcome::Data(n) = more else {
                break;
            };
            read += n;
        }
        assert_eq!(read, data.len());
    }
}

#[test]
fn a_path_that_works_is_never_probed() {
    let mut pair = connected();
    for direction in support::BOTH {
        assert!(pair.transfer(3_000_000, direction).verified);
    }
    let stats = pair.stats(Side::Client);
    // One in a hundred packets that carry nothing but acknowledgements asks for one itself.
    assert!(pings(&pair, Side::Client) <= stats.packets_sent.get() / 100);
    pair.advance(secs(5));
    let before = support::SIDES.map(|side| pings(&pair, side));
    // A request that is answered at once, and then nothing.
    let id = request(&mut pair);
    pair.server().send_stream(id).write(b"a response").unwrap();
    pair.server().send_stream(id).finish().unwrap();
    // A stream that is opened for later, as the control streams of HTTP/3.
    let control = pair.server().open(Dir::Uni).unwrap();
    pair.server()
        .send_stream(control)
        .write(b"settings")
        .unwrap();
    pair.advance(secs(29));
    assert_eq!(support::SIDES.map(|side| pings(&pair, side)), before);
}

#[test]
fn a_server_that_takes_its_time_is_asked_less_and_less() {
    let mut pair = connected();
    request(&mut pair);
    let start = pair.stats(Side::Client).datagrams_sent;
    pair.advance(secs(25));
    // After 1, 2, 4 and 8 seconds without a packet.
    assert_eq!(pings(&pair, Side::Client), 4);
    let sent = pair.stats(Side::Client).datagrams_sent - start;
    assert!(sent <= 6, "{sent}");
    assert_eq!(pair.server().remote(), pair.address(Side::Client));
}

/// Each of six challenges and its answer get through with a probability of 64 %: one validation in 460
/// fails. With two challenges it was one in eight.
#[test]
fn path_validation_outlasts_loss() {
    let lossy = || link(10, 20).loss(LossModel::Bernoulli(0.2));
    let address: SocketAddr = ([192, 0, 2, 200], 50_000).into();
    let (mut failed, runs) = (0, 1_000);
    for seed in 0..runs {
        let builder = Pair::builder().seed(seed).link(link(10, 20));
        let mut pair = builder.build().unwrap();
        assert!(pair.connect());
        pair.advance(millis(200));
        let there = pair.attach(Side::Client, address, lossy()).unwrap();
        support::drop_if(&mut pair, Direction::ToClient, {
            let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
            move |datagram| {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                datagram.destination == address && state % 100 < 20
            }
        });
        let now = pair.now();
        pair.client().migrate(now, there.local).unwrap();
        pair.advance(secs(4));
        let is_there = path(&pair, Side::Client).local == there.local;
        let failures = support::count(&pair, Side::Client, |event| {
            matches!(event, Event::MigrationFailed { .. })
        });
        assert_eq!(failures, usize::from(!is_there), "seed {seed}");
        failed += failures;
    }
    assert!((0..=8).contains(&failed), "{failed} of {runs} failed");
}
