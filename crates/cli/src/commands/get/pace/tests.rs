use std::time::Duration;

use swiftwater::units::Bandwidth;
use tokio::time::{Instant, advance};

use super::Paces;

/// Megabits per second at which `blocks` blocks of `bytes` are read when every wait ends `late`.
async fn measured(rate: u64, bytes: usize, blocks: u32, late: Duration) -> f64 {
    let pace = Paces::new(Bandwidth::from_mbps(rate)).of("server".to_owned());
    let begun = Instant::now();
    for _ in 0..blocks {
        let before = Instant::now();
        pace.spend(bytes).await;
        if Instant::now() > before {
            advance(late).await;
        }
    }
    bytes as f64 * 8.0 * f64::from(blocks) / begun.elapsed().as_secs_f64() / 1e6
}

/// Blocks as HTTP/1.1 and HTTP/2 bring them, and waits that end as late as those of a busy machine.
#[tokio::test(start_paused = true)]
async fn the_rate_is_kept_whatever_the_blocks_and_however_late_waits_end() {
    for rate in [20, 200, 800] {
        for bytes in [700, 16_384, 400_000] {
            for late in [0, 1, 5, 20].map(Duration::from_millis) {
                let blocks = (rate as usize * 500_000 / bytes) as u32;
                let got = measured(rate, bytes, blocks, late).await;
                let wrong = (got / rate as f64 - 1.0).abs();
                assert!(
                    wrong < 0.05,
                    "{got:.1} Mbit/s of {rate}, blocks of {bytes}, waits {late:?} too long"
                );
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn what_was_not_used_for_long_is_not_saved_up() {
    let pace = Paces::new(Bandwidth::from_mbps(8)).of("server".to_owned());
    advance(Duration::from_secs(60)).await;
    let begun = Instant::now();
    for _ in 0..1000 {
        pace.spend(1000).await;
    }
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_millis(895) && took <= Duration::from_millis(1005),
        "{took:?} for a second's worth"
    );
}

#[tokio::test(start_paused = true)]
async fn downloads_from_one_server_share_its_rate() {
    let paces = Paces::new(Bandwidth::from_mbps(8));
    let begun = Instant::now();
    let read = async |pace: super::Pace| {
        for _ in 0..500 {
            pace.spend(1000).await;
        }
    };
    tokio::join!(
        read(paces.of("one".to_owned())),
        read(paces.of("one".to_owned())),
        read(paces.of("other".to_owned())),
    );
    let took = begun.elapsed();
    assert!(
        took >= Duration::from_millis(990) && took < Duration::from_millis(1100),
        "{took:?}"
    );
}
