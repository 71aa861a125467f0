//! Profiles for what must not wait resume soon after an outage.

#[path = "../examples/outages/measure.rs"]
mod measure;

use std::time::Duration;

use swiftwater::Profile;
use swiftwater_sim::Direction;

use measure::{Lost, Outage};

const SEEDS: u64 = 6;

/// Lives through outages of 0.1 to 10 s, and checks each resumption.
fn all_resume(profile: Profile, direction: Direction) {
    for lost in [Lost::Both, Lost::Data, Lost::Acks] {
        for rtt in [20, 100, 300].map(Duration::from_millis) {
            for length in [100, 250, 500, 1_000, 2_500, 5_000, 10_000].map(Duration::from_millis) {
                for seed in 1..=SEEDS {
                    let outage = Outage {
                        profile,
                        direction,
                        lost,
                        rtt,
                        length,
                        seed,
                    };
                    let resumption = outage.run().unwrap();
                    let bound = 2 * rtt + Duration::from_millis(200);
                    let in_time = resumption.time.is_some_and(|time| time <= bound);
                    assert!(in_time, "{outage:?}: {resumption:?}");
                }
            }
        }
    }
}

#[test]
fn live_video_resumes_within_two_round_trips_and_200_ms() {
    all_resume(Profile::Live, Direction::ToClient);
}

#[test]
fn live_uploads_do_too() {
    all_resume(Profile::Live, Direction::ToServer);
}

#[test]
fn calls_resume_within_two_round_trips_and_200_ms() {
    all_resume(Profile::Interactive, Direction::ToClient);
    all_resume(Profile::Interactive, Direction::ToServer);
}

/// What a dead path carries: no more than two packets per timeout for 12 s, then ever less.
#[test]
fn probes_of_a_failed_path_are_bounded() {
    for profile in [Profile::Live, Profile::Interactive] {
        let outage = |length| {
            let outage = Outage {
                profile,
                direction: Direction::ToClient,
                lost: Lost::Both,
                rtt: Duration::from_millis(20),
                length: Duration::from_secs(length),
                seed: 1,
            };
            outage.run().unwrap()
        };
        let (young, old) = (outage(12), outage(25));
        // One timeout each 170 ms, the first few sooner.
        assert!(
            (60..=80).contains(&young.probe_timeouts),
            "{profile}: {young:?}"
        );
        // In 13 s more, six that double: without that 76 of 170 ms. A second of frames that still left
        // when the outage began counts as young, too, which makes six others.
        assert!(
            old.probe_timeouts <= young.probe_timeouts + 12,
            "{profile}: {young:?}, {old:?}"
        );
    }
}
