//! Credit that keeps to a rate.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_units::Bandwidth;

use super::*;

const ID: StreamId = StreamId::new(Side::Server, Dir::Uni, 0);
const RTT: Duration = Duration::from_millis(50);

fn limited(rate: Bandwidth, window: u64) -> Streams {
    let window = ByteCount::new(window);
    let config = TransportConfig {
        stream_receive_window: ByteCount::new(1 << 40),
        max_stream_receive_window: ByteCount::new(1 << 40),
        receive_window: window,
        max_receive_window: window,
        ..config()
    };
    let mut streams = client_with(&config);
    streams.on_rtt(Instant::ZERO, RTT);
    streams.set_receive_rate(Instant::ZERO, Some(rate));
    streams
}

/// A peer that sends whatever its credit permits, half a round trip away in each direction, and a
/// reader that reads at once, for `time`; returns the bytes received by then and the wake-ups.
fn run(streams: &mut Streams, window: u64, time: Duration) -> (u64, u64) {
    let mut now = Instant::ZERO;
    let end = now + time;
    // Credit and when the peer's data for it arrives.
    let mut grants = std::collections::VecDeque::from([(now, window)]);
    let (mut received, mut wakeups) = (0, 0);
    while now < end {
        while let Some(&(at, limit)) = grants.front()
            && at <= now
        {
            grants.pop_front();
            streams.on_rtt(now, RTT);
            while received < limit {
                let len = (limit - received).min(1000) as usize;
                deliver(streams, ID, received, len, false).unwrap();
                received += len as u64;
                read_all(streams, ID, received - len as u64);
            }
        }
        streams.grant_by(now);
        let limit = controls(streams)
            .into_iter()
            .find_map(|control| match control {
                (ControlKey::MaxData, ControlValue::Limit(limit)) => Some(limit),
                _ => None,
            });
        grants.extend(limit.map(|limit| (now + RTT, limit)));
        let next = [streams.next_grant(), grants.front().map(|(at, _)| *at)];
        let Some(next) = next.into_iter().flatten().min() else {
            break;
        };
        wakeups += 1;
        // What is due at once must not stay due.
        assert!(wakeups < 1_000_000, "no wake-up in between");
        now = now.max(next);
    }
    assert!(now >= end, "neither end would ever send again, at {now}");
    (received, wakeups)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn the_average_keeps_to_the_rate(kbps in 200..50_000u64, window in 1000..4_000_000u64) {
        let rate = Bandwidth::from_kbps(kbps);
        let time = Duration::from_secs(10);
        let mut streams = limited(rate, window);
        let (received, wakeups) = run(&mut streams, window, time);
        let due = rate.bytes_in(time);
        // Credit given before the limit counts, beyond a second's worth of it.
        let before = window.saturating_sub(rate.bytes_in(Duration::from_secs(1) + RTT));
        let most = due + due / 20 + before + 3000;
        prop_assert!(received <= most, "{received} of {due} and {before}");
        // A window that is too small for the rate limits it further.
        let by_window = (window / 2) * 10_000 / RTT.as_millis() as u64;
        let least = (due - due / 20).min(by_window);
        prop_assert!(received >= least, "{received} of {least}");
        prop_assert!(wakeups <= 2 * 10_000 / 5 + 2 * received / 1000, "{wakeups} wake-ups");
    }
}

#[test]
fn an_idle_peer_causes_no_wakeups() {
    let mut streams = limited(Bandwidth::from_mbps(8), 100_000);
    let mut now = Instant::ZERO;
    let mut wakeups = 0;
    while let Some(next) = streams.next_grant() {
        now = now.max(next);
        streams.grant_by(now);
        wakeups += 1;
        assert!(wakeups < 100, "still timers at {now}");
    }
}

#[test]
fn without_a_rate_the_window_is_granted_again() {
    let mut streams = limited(Bandwidth::from_kbps(80), 100_000);
    deliver(&mut streams, ID, 0, 100_000, false).unwrap();
    read_all(&mut streams, ID, 0);
    assert_eq!(controls(&mut streams), []);
    streams.set_receive_rate(Instant::from_millis(1), None);
    let raised = (ControlKey::MaxData, ControlValue::Limit(200_000));
    assert_eq!(controls(&mut streams), [raised]);
    assert_eq!(streams.next_grant(), None);
}
