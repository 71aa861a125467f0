//! Whatever a link does, data arrives whole and right.

use std::time::Duration;

use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;
use swiftwater_link::{Buffer, Jitter, LinkConfig, LossModel, Reorder, ReorderBy};
use swiftwater_sim::{Cipher, Direction, LogDetail, Pair};
use swiftwater_units::{Bandwidth, PacketCount};

fn links() -> impl Strategy<Value = LinkConfig> {
    (
        1..50u64,
        0..100u64,
        0.0..0.2f64,
        0.0..0.1f64,
        0.0..0.1f64,
        0.0..0.3f64,
        (0..20u64, 0..30u64, 5..100u64),
    )
        .prop_map(
            |(rate, delay, loss, duplicate, corrupt, reorder, (jitter, late, buffer))| {
                let mut link = LinkConfig::default()
                    .rate(Bandwidth::from_mbps(rate))
                    .delay(Duration::from_millis(delay))
                    .loss(LossModel::Bernoulli(loss))
                    .duplicate(duplicate)
                    .corrupt(corrupt)
                    .jitter(Jitter::Uniform(Duration::from_millis(jitter)))
                    .jitter_reorders(jitter % 2 == 0)
                    .buffer(Buffer::Packets(PacketCount::new(buffer)));
                link.reorder = Some(Reorder {
                    probability: reorder,
                    by: ReorderBy::Delay(Duration::from_millis(late)),
                });
                link
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 24,
        failure_persistence: Some(Box::new(FileFailurePersistence::WithSource("regressions"))),
        ..ProptestConfig::default()
    })]

    #[test]
    fn transfers_are_verified_and_repeat(
        seed in any::<u64>(),
        to_server in links(),
        to_client in links(),
        bytes in 0..200_000u64,
    ) {
        let run = |cipher| {
            let mut pair = Pair::builder()
                .seed(seed)
                .cipher(cipher)
                .links(to_server.clone(), to_client.clone())
                .both_configs(|config| {
                    config.handshake_timeout = Duration::from_secs(120);
                    config.max_idle_timeout = Some(Duration::from_secs(300));
                })
                .log(LogDetail { entries: false, content: cipher == Cipher::Null })
                .build()
                .unwrap();
            let connected = pair.connect();
            let verified = connected && {
                pair.start_transfer(bytes, Direction::ToClient);
                pair.start_transfer(bytes / 2, Direction::ToServer);
                pair.finish_transfers()
            };
            (connected, verified, pair.log().unwrap().digest())
        };
        let first = run(Cipher::Null);
        prop_assert_eq!((first.0, first.1), (true, true));
        prop_assert_eq!(first, run(Cipher::Null));
    }
}
