//! Reports of a tunnel: their encoding, and when they leave.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_tecc::{ReportFlags, Reporter, ReporterConfig, TunnelReport, TunnelState};
use swiftwater_units::{Bandwidth, ByteCount, Instant};

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

prop_compose! {
    fn reports()(
        bits in 0_u8..32,
        fields in prop::array::uniform14(0_u64..1 << 50),
    ) -> TunnelReport {
        let micros = |at: usize| Duration::from_micros(fields[at]);
        TunnelReport {
            flags: ReportFlags::from_bits(bits),
            sequence: fields[0],
            time: micros(1),
            rate: Bandwidth::from_bytes_per_sec(fields[2]),
            goodput: Bandwidth::from_bytes_per_sec(fields[3]),
            queue: ByteCount::new(fields[4]),
            sojourn: micros(5),
            smoothed_rtt: micros(6),
            rtt_var: micros(7),
            min_rtt: micros(8),
            next_number: fields[9],
            settled: fields[10],
            lost: fields[11],
            resent: fields[12],
            abandoned: fields[13],
        }
    }
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(report in reports()) {
        let bytes = report.encode();
        prop_assert!(bytes.len() <= 113);
        prop_assert_eq!(TunnelReport::decode(&bytes), Ok(report));
        let longer = [&bytes[..], &[1, 2, 3]].concat();
        prop_assert_eq!(TunnelReport::decode(&longer), Ok(report));
        for len in 0..bytes.len() {
            prop_assert!(TunnelReport::decode(&bytes[..len]).is_err());
        }
    }

    #[test]
    fn any_bytes_are_a_report_or_none(bytes in prop::collection::vec(any::<u8>(), 0..130)) {
        if let Ok(report) = TunnelReport::decode(&bytes) {
            prop_assert_eq!(TunnelReport::decode(&report.encode()), Ok(report));
        }
    }

    #[test]
    fn reports_are_never_closer_than_the_least_interval(
        steps in prop::collection::vec((0_u64..20, 0_u64..3, 0_u64..2_000_000, 0_u64..100_000), 1..200),
    ) {
        let mut reporter = Reporter::new(at(0), ReporterConfig::default());
        let (mut now, mut state, mut last) = (0, tunnel(), None);
        for (wait, payloads, rate, queue) in steps {
            now += wait;
            state.next_number += payloads;
            state.rate = Bandwidth::from_bytes_per_sec(rate);
            state.queue = ByteCount::new(queue);
            if let Some(report) = reporter.poll(at(now), &state) {
                if let Some((at, sequence)) = last {
                    prop_assert!(now >= at + 5);
                    prop_assert_eq!(report.sequence, sequence + 1);
                }
                last = Some((now, report.sequence));
            }
        }
    }
}

#[test]
fn a_report_takes_fewer_than_fifty_bytes() {
    let report = TunnelReport {
        sequence: 1_000,
        time: Duration::from_secs(60),
        rate: Bandwidth::from_mbps(50),
        goodput: Bandwidth::from_mbps(40),
        queue: ByteCount::new(20_000),
        sojourn: Duration::from_millis(3),
        smoothed_rtt: Duration::from_millis(30),
        rtt_var: Duration::from_millis(2),
        min_rtt: Duration::from_millis(28),
        next_number: 100_000,
        settled: 99_900,
        lost: 1_000,
        resent: 990,
        abandoned: 10,
        ..TunnelReport::default()
    };
    assert!(report.encode().len() < 50, "{}", report.encode().len());
}

/// A tunnel of 8 Mbit/s and 30 ms, in which nothing has passed.
fn tunnel() -> TunnelState {
    TunnelState {
        rate: Bandwidth::from_mbps(8),
        smoothed_rtt: Duration::from_millis(30),
        ..TunnelState::default()
    }
}

/// A reporter that has reported at 100 ms, and the state of then.
fn reported() -> (Reporter, TunnelState) {
    let mut reporter = Reporter::new(at(0), ReporterConfig::default());
    let mut state = tunnel();
    state.next_number = 10;
    assert!(reporter.poll(at(100), &state).is_some());
    (reporter, state)
}

#[test]
fn a_silent_tunnel_reports_nothing() {
    let mut reporter = Reporter::new(at(0), ReporterConfig::default());
    assert_eq!(reporter.poll(at(0), &tunnel()), None);
    assert_eq!(reporter.next_deadline(), None);
    let (mut reporter, state) = reported();
    assert_eq!(reporter.next_deadline(), None);
    assert_eq!(reporter.poll(at(500), &state), None);
}

#[test]
fn one_report_leaves_per_round_trip_while_payloads_pass() {
    let (mut reporter, mut state) = reported();
    state.next_number += 1;
    assert_eq!(reporter.poll(at(101), &state), None);
    assert_eq!(reporter.next_deadline(), Some(at(130)));
    let report = reporter.poll(at(130), &state).unwrap();
    assert_eq!((report.sequence, report.next_number), (1, 11));
}

#[test]
fn what_is_urgent_leaves_after_five_milliseconds() {
    let urgent = |change: fn(&mut TunnelState)| {
        let (mut reporter, mut state) = reported();
        state.next_number += 1;
        change(&mut state);
        assert_eq!(reporter.poll(at(101), &state), None, "too early");
        reporter.poll(at(105), &state)
    };
    assert_eq!(urgent(|_| ()), None);
    let fell = urgent(|state| state.rate = Bandwidth::from_mbps(5)).unwrap();
    assert!(fell.flags.bandwidth_drop);
    assert_eq!(urgent(|state| state.rate = Bandwidth::from_mbps(6)), None);
    // Twice the 30 ms at 8 Mbit/s that may stand.
    assert!(urgent(|state| state.queue = ByteCount::new(60_001)).is_some());
    assert_eq!(urgent(|state| state.queue = ByteCount::new(59_000)), None);
    let gave_up = urgent(|state| state.repair.abandoned = 1).unwrap();
    assert_eq!(gave_up.abandoned, 1);
}

#[test]
fn a_gap_that_is_filled_late_is_urgent() {
    let (mut reporter, mut state) = reported();
    (state.next_number, state.settled) = (20, 3);
    assert_eq!(reporter.poll(at(101), &state), None);
    state.next_number = 40;
    assert!(reporter.poll(at(140), &state).is_some(), "the regular one");
    state.settled = 30;
    assert!(
        reporter.poll(at(145), &state).is_some(),
        "3 was open for longer than a period"
    );
}
