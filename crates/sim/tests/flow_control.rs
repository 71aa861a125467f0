//! Limits (MAX_DATA, MAX_STREAM_DATA, MAX_STREAMS) that are lost on the way (RFC 9000, section 4).

use std::time::Duration;

use rand_chacha::ChaCha8Rng;
use rand_core::{Rng, SeedableRng};
use swiftwater_quic::TransportConfig;
use swiftwater_sim::{Direction, Pair};
use swiftwater_units::ByteCount;

use crate::support::{drop_if, link, millis, secs};

const UPLOAD: u64 = 4 << 20;

/// Time of an upload while `loss` of 100 datagrams of the receiver are lost, and how many were lost.
fn upload(seed: u64, loss: u64, windows: impl FnOnce(&mut TransportConfig)) -> (Duration, u64) {
    let mut pair = Pair::builder()
        .seed(seed)
        .link(link(20, 20))
        .server_config(windows)
        .build()
        .unwrap();
    assert!(pair.connect());
    pair.advance(millis(200));
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let dropped = drop_if(&mut pair, Direction::ToClient, move |_| {
        u64::from(rng.next_u32()) % 100 < loss
    });
    let report = pair.transfer(UPLOAD, Direction::ToServer);
    assert!(report.verified, "seed {seed}: {report:?}");
    let dropped = *dropped.borrow();
    (report.finish - report.start, dropped)
}

/// Mean over 20 seeds with and without loss.
fn mean_times(windows: impl Fn(&mut TransportConfig)) -> (Duration, Duration) {
    let (mut with, mut without) = (Duration::ZERO, Duration::ZERO);
    for seed in 0..20 {
        let (time, dropped) = upload(seed, 30, &windows);
        assert!(dropped > 50, "seed {seed}: {dropped}");
        with += time / 20;
        without += upload(seed, 0, &windows).0 / 20;
    }
    (with, without)
}

#[test]
fn an_upload_survives_the_loss_of_acknowledgements_and_limits() {
    let (with, without) = mean_times(|_| ());
    assert!(
        with < without * 13 / 10,
        "{with:?}, without loss {without:?}"
    );
}

#[test]
fn windows_of_two_bandwidth_delay_products_survive_it_too() {
    // 20 Mbit/s in 40 ms are 100 kB.
    let (with, without) = mean_times(|config| {
        config.stream_receive_window = ByteCount::new(200_000);
        config.max_stream_receive_window = ByteCount::new(200_000);
        config.receive_window = ByteCount::new(200_000);
        config.max_receive_window = ByteCount::new(200_000);
    });
    // A limit every 40 ms at first, each of which costs a round trip if it is lost; then every 10 ms.
    assert!(
        with < without * 13 / 10,
        "{with:?}, without loss {without:?}"
    );
}

/// The receiver's datagrams of 45 ms are lost once, in a transfer that the window limits, so that
/// there is a limit among them.
#[test]
fn a_lost_limit_costs_a_round_trip() {
    let windows = |config: &mut TransportConfig| {
        config.stream_receive_window = ByteCount::new(50_000);
        config.max_stream_receive_window = ByteCount::new(50_000);
    };
    let (undisturbed, _) = upload(1, 0, windows);
    let mut worst = Duration::ZERO;
    for seed in 0..10 {
        let mut pair = Pair::builder()
            .seed(1)
            .link(link(20, 20))
            .server_config(windows)
            .build()
            .unwrap();
        assert!(pair.connect());
        pair.advance(millis(200));
        let from = pair.now() + secs(1) + millis(7 * seed);
        drop_if(&mut pair, Direction::ToClient, move |datagram| {
            datagram.now >= from && datagram.now < from + millis(45)
        });
        let report = pair.transfer(UPLOAD, Direction::ToServer);
        assert!(report.verified);
        let extra = (report.finish - report.start).saturating_sub(undisturbed);
        worst = worst.max(extra);
    }
    // The outage, and no more than half a round trip: acknowledgements show the loss.
    assert!(worst < millis(45 + 20), "{worst:?}");
}
