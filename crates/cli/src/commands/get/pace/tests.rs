use std::time::Duration;

use swiftwater::units::Bandwidth;
use tokio::time::Instant;

use super::Account;

/// Megabits per second at which `blocks` blocks of `bytes` are read when every wait ends `late`.
fn measured(rate: u64, bytes: usize, blocks: u32, late: Duration) -> f64 {
    let begun = Instant::now();
    let mut account = Account::new(Bandwidth::from_mbps(rate), begun);
    let mut now = begun;
    for _ in 0..blocks {
        let until = account.spend(bytes, now);
        if until > now {
            now = until + late;
        }
    }
    bytes as f64 * 8.0 * f64::from(blocks) / (now - begun).as_secs_f64() / 1e6
}

/// Blocks of the sizes of HTTP/1.1 and HTTP/2, and waits that end as late as those of a busy
/// machine.
#[test]
fn the_rate_is_kept_whatever_the_blocks_and_however_late_waits_end() {
    for rate in [20, 200, 800] {
        for bytes in [700, 16_384, 400_000] {
            for late in [0, 1, 5, 20].map(Duration::from_millis) {
                let blocks = (rate as usize * 500_000 / bytes) as u32;
                let got = measured(rate, bytes, blocks, late);
                let wrong = (got / rate as f64 - 1.0).abs();
                assert!(
                    wrong < 0.05,
                    "{got:.1} Mbit/s of {rate}, blocks of {bytes}, waits {late:?} too long"
                );
            }
        }
    }
}

#[test]
fn what_was_not_used_for_long_is_not_saved_up() {
    let begun = Instant::now();
    let mut account = Account::new(Bandwidth::from_mbps(8), begun);
    let begun = begun + Duration::from_secs(60);
    let mut now = begun;
    for _ in 0..1000 {
        now = now.max(account.spend(1000, now));
    }
    // A second's worth.
    assert_eq!(now - begun, Duration::from_millis(900));
}

#[test]
fn a_slow_sender_is_not_held_up() {
    let begun = Instant::now();
    let mut account = Account::new(Bandwidth::from_mbps(8), begun);
    for nth in 1..100 {
        let now = begun + nth * Duration::from_millis(2);
        assert!(account.spend(1000, now) <= now, "block {nth}");
    }
}
