//! Parts of the simulated TCP on their own: segments as bytes, the window's growth and reduction.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_sim::tcp::{
    Acknowledgement, ByteQueue, CongestionWindow, Cubic, Expected, Gathering, HyStart, LossProbe,
    MSS, ProbeOutcome, Progress, Reduction, Segment, SlowStartView, Ticks, Undo,
};
use swiftwater_units::Instant;

const START: Instant = Instant::ZERO;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn segments() -> impl Strategy<Value = (Segment, Expected)> {
    let blocks = prop::collection::vec((0_u64..1 << 20, 1_u64..1 << 20), 0..=3);
    let flags = any::<[bool; 4]>();
    let numbers = (0_u64..1 << 40, 0_u64..1 << 40, 0_u64..=MSS, 0_u64..65_536);
    (flags, numbers, blocks, any::<(u32, u32)>(), 0_u64..1 << 30).prop_map(
        |([fin, push, reset, has_ack], (start, next, len, window), blocks, stamps, near)| {
            let blocks = blocks.into_iter().map(|(at, len)| {
                let start = next + at;
                start..start + len
            });
            let ack = Acknowledgement {
                next,
                window: window << 10,
                blocks: blocks.collect(),
            };
            let segment = Segment {
                syn: false,
                fin,
                reset,
                push,
                payload: start..start + len,
                ack: has_ack.then_some(ack),
                timestamp: stamps.0,
                echo: stamps.1,
            };
            // The receiver is not far from what is sent, nor the sender from what is acknowledged.
            let expected = Expected {
                incoming: start + near,
                outgoing: next.saturating_sub(near),
            };
            (segment, expected)
        },
    )
}

proptest! {
    #[test]
    fn a_segment_is_read_as_it_was_written((segment, expected) in segments()) {
        let len = (segment.payload.end - segment.payload.start) as usize;
        let payload = vec![7; len];
        let mut bytes = Vec::new();
        segment.encode(&payload, &mut bytes);
        // With the headers of IPv4 and UDP that links add, it has its true size.
        prop_assert_eq!(bytes.len() as u64 + 28, segment.wire_size());
        let (read, header) = Segment::decode(&bytes, expected).unwrap();
        prop_assert_eq!(&bytes[header..], &payload[..]);
        prop_assert_eq!(read, segment);
    }

    #[test]
    fn a_changed_bit_is_noticed((segment, expected) in segments(), at in any::<prop::sample::Index>(), bit in 0_u8..8) {
        let len = (segment.payload.end - segment.payload.start) as usize;
        let mut bytes = Vec::new();
        segment.encode(&vec![7; len], &mut bytes);
        let at = at.index(bytes.len());
        bytes[at] ^= 1 << bit;
        prop_assert_eq!(Segment::decode(&bytes, expected), None);
    }

    #[test]
    fn no_bytes_make_reading_fail_otherwise(bytes in prop::collection::vec(any::<u8>(), 0..100)) {
        let _ = Segment::decode(&bytes, Expected::default());
    }

    #[test]
    fn bytes_are_found_where_they_were_put(
        pieces in prop::collection::vec((0_u64..500, prop::collection::vec(any::<u8>(), 0..50)), 0..20),
        start in 0_u64..300,
    ) {
        let mut queue = ByteQueue::new();
        let mut expected = vec![0; 600];
        let mut end = 0;
        for (offset, bytes) in &pieces {
            queue.insert(*offset, bytes);
            let at = *offset as usize;
            expected[at..at + bytes.len()].copy_from_slice(bytes);
            if !bytes.is_empty() {
                end = end.max(at + bytes.len());
            }
        }
        queue.advance(start);
        let start = (start as usize).min(queue.start() as usize);
        let mut found = Vec::new();
        queue.copy(start as u64..u64::MAX, &mut found);
        prop_assert_eq!(found, &expected[start..end.max(start)]);
    }
}

#[test]
fn cubic_returns_to_the_window_of_the_loss_after_k_seconds() {
    let mut cubic = Cubic::new();
    assert_eq!(cubic.on_loss(100), 70);
    // K is the cube root of 30 / 0.4 seconds: 4.2 s.
    let (mut window, mut credit) = (70, 0);
    let mut at_k = 0;
    for round in 0..60 {
        let now = START + ms(100 * round);
        let acknowledged = window;
        for _ in 0..acknowledged {
            let pace = cubic.on_acked(now, window, 1, ms(100));
            credit += 1;
            if credit >= pace {
                credit = 0;
                window += 1;
            }
        }
        if round == 42 {
            at_k = window;
        }
    }
    assert!((97..=103).contains(&at_k), "{at_k}");
    // 1.7 s later: 0.4 times 1.7 cubed.
    assert!((102..=104).contains(&window), "{window}");
}

#[test]
fn a_second_loss_below_the_first_leaves_room() {
    let mut cubic = Cubic::new();
    cubic.on_loss(100);
    cubic.on_loss(80);
    // The plateau is below 80: at the reduced window of 68, which is (1 + 0.7) / 2 of 80, the function
    // is on it.
    let pace = cubic.on_acked(START, 68, 1, ms(1));
    assert!(pace > 50, "{pace}");
}

#[test]
fn hystart_ends_slow_start_when_the_delay_rises() {
    let view = |acked| SlowStartView {
        window: 40,
        acked,
        sent: acked + 40,
        train_slack: Duration::ZERO,
    };
    let mut hystart = HyStart::new();
    // A rise by an eighth of 100 ms, and a little more.
    for (rtt, ends) in [(112, false), (114, true)] {
        hystart = HyStart::new();
        assert!(!hystart.on_rtt(START, ms(100), Some(view(0))));
        let mut has_ended = false;
        for nth in 0..10 {
            // Too far apart for a train.
            let now = START + ms(200 + 10 * nth);
            has_ended |= hystart.on_rtt(now, ms(rtt), Some(view(50)));
        }
        assert_eq!(has_ended, ends, "{rtt}");
    }
    assert_eq!(hystart.min_rtt(), ms(100));
}

#[test]
fn hystart_ends_slow_start_upon_a_train_of_half_a_round_trip() {
    let mut hystart = HyStart::new();
    let view = SlowStartView {
        window: 40,
        acked: 0,
        sent: 1000,
        train_slack: Duration::ZERO,
    };
    let ended = (0..100).find(|nth| hystart.on_rtt(START + ms(*nth), ms(100), Some(view)));
    assert_eq!(ended, Some(51));
}

#[test]
fn a_reduction_lets_out_seven_packets_for_ten_that_arrive() {
    let mut reduction = Reduction::begin(100);
    let (mut in_flight, mut sent) = (99, 0);
    for _ in 0..60 {
        in_flight -= 1;
        let progress = Progress {
            delivered: 1,
            lost: 0,
            advanced: false,
        };
        let window = reduction.on_ack(progress, in_flight, 70).unwrap();
        let may_send = window.saturating_sub(in_flight);
        reduction.on_sent(may_send);
        in_flight += may_send;
        sent += may_send;
    }
    assert_eq!(sent, 42);
}

#[test]
fn an_unused_window_does_not_grow_and_shrinks_after_a_timeout() {
    let mut window = CongestionWindow::new(START, 10);
    window.begin(START);
    window.validate(START, 10, (0, 10), true, Some(ms(300)));
    window.on_acked(START + ms(100), 10);
    assert_eq!(window.get(), 20);
    // Three packets are in flight from now on.
    window.validate(START + ms(100), 3, (10, 13), false, Some(ms(300)));
    window.on_acked(START + ms(200), 3);
    assert_eq!(window.get(), 20);
    window.validate(START + ms(500), 3, (13, 16), false, Some(ms(300)));
    assert_eq!(window.get(), 15);
}

#[test]
fn a_probe_that_repaired_a_loss_is_told_from_one_that_did_not() {
    let mut probe = LossProbe::default();
    probe.on_sent(1000, true);
    assert_eq!(probe.on_ack(500, false), ProbeOutcome::Waiting);
    assert_eq!(probe.on_ack(1000, false), ProbeOutcome::Waiting);
    assert_eq!(probe.on_ack(1100, false), ProbeOutcome::RepairedLoss);
    probe.on_sent(2000, true);
    assert_eq!(probe.on_ack(2000, true), ProbeOutcome::Harmless);
    probe.on_sent(3000, false);
    assert_eq!(probe.on_ack(3000, false), ProbeOutcome::Harmless);
    assert!(!probe.is_in_flight());
}

#[test]
fn a_reduction_is_refuted_by_duplicates_of_all_repetitions_or_an_older_timestamp() {
    let mut undo = Undo::default();
    undo.begin(100, 0, 20, 15);
    undo.on_repeated(START + ms(50));
    undo.on_repeated(START + ms(60));
    undo.on_duplicate(200);
    assert!(!undo.is_refuted());
    undo.on_duplicate(300);
    assert!(undo.is_refuted());
    assert!(undo.is_original(Some(START + ms(40))));
    assert!(!undo.is_original(Some(START + ms(50))));
    assert!(!undo.is_original(None));
}

#[test]
fn a_sender_gathers_two_segments_while_acknowledgements_come_fast() {
    let gathering = Gathering {
        window: 20,
        threshold: Some(20),
        room: 1,
        out: 19,
        since_last: Duration::from_micros(200),
        since_first: ms(100),
        smoothed_rtt: ms(100),
    };
    assert!(gathering.waits());
    let more = |room| Gathering { room, ..gathering };
    assert!(!more(2).waits());
    let slow = Gathering {
        since_last: ms(2),
        ..gathering
    };
    assert!(!slow.waits());
    // The next acknowledgement is far away.
    let early = Gathering {
        since_first: ms(40),
        ..gathering
    };
    assert!(!early.waits());
    // A third of a small window leaves in any case.
    let small = Gathering {
        window: 3,
        ..gathering
    };
    assert!(!small.waits());
    // 500 packets in 20 ms at 1.2 times the rate are 29 in a millisecond.
    let fast = Gathering {
        window: 500,
        smoothed_rtt: ms(20),
        room: 28,
        ..gathering
    };
    assert!(fast.waits());
    assert!(!Gathering { room: 29, ..fast }.waits());
}

#[test]
fn the_further_away_a_timer_is_the_coarser_it_is() {
    let ticks = Ticks::new(ms(4));
    let expiry = |now, after| ticks.expiry(START + ms(now), START + ms(now + after)) - START;
    // The next tick after the one that is due, below 63 ticks.
    assert_eq!(expiry(0, 40), ms(44));
    assert_eq!(expiry(3, 40), ms(44));
    assert_eq!(expiry(0, 248), ms(252));
    // Then multiples of 8 ticks, and of 64 below 4032.
    assert_eq!(expiry(0, 252), ms(256));
    assert_eq!(expiry(8, 252), ms(288));
    assert_eq!(expiry(0, 1000), ms(1024));
    assert_eq!(expiry(0, 3000), ms(3072));
    let exact = Ticks::new(Duration::ZERO);
    assert_eq!(exact.expiry(START, START + ms(300)), START + ms(300));
}
