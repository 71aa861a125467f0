//! TCP in virtual time: sizes of segments, delivery in order, acknowledgements and the timeout.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_sim::tcp::{
    Acknowledgement, DELAYED_ACK, INITIAL_TIMEOUT, MAX_SACK_BLOCKS, MAX_TIMEOUT, MIN_TIMEOUT, MSS,
    QUICK_ACKS, Rack, Receiver, RetransmissionTimeout, Scoreboard, Segment,
};
use swiftwater_units::Instant;

const START: Instant = Instant::ZERO;

fn segment(number: u64) -> std::ops::Range<u64> {
    number * MSS..(number + 1) * MSS
}

/// A receiver that has left quick-ACK mode, and the number of the next segment.
fn settled() -> (Receiver, u64) {
    // So small that the window does not grow, which would be acknowledged at once.
    let mut receiver = Receiver::new(60_000);
    for number in 0..u64::from(QUICK_ACKS) {
        receiver.on_payload(START, segment(number));
        assert_eq!(receiver.poll_ack(START).unwrap().next, segment(number).end);
    }
    (receiver, u64::from(QUICK_ACKS))
}

#[test]
fn segments_have_the_sizes_of_the_wire() {
    let of = |syn, payload: u64, blocks: usize| {
        let blocks = vec![0..1; blocks];
        let ack = Some(Acknowledgement {
            next: 0,
            window: 0,
            blocks,
        });
        Segment {
            syn,
            payload: 0..payload,
            ack,
            ..Segment::default()
        }
        .wire_size()
    };
    assert_eq!(of(false, MSS, 0), 1500);
    assert_eq!(of(false, 0, 0), 52);
    assert_eq!(of(false, 0, 1), 64);
    assert_eq!(of(false, 0, MAX_SACK_BLOCKS), 80);
    assert_eq!(of(true, 0, 0), 60);
}

#[test]
fn while_the_window_grows_every_segment_is_acknowledged_at_once() {
    let mut receiver = Receiver::new(1 << 20);
    let mut window = receiver.acknowledge().window;
    for number in 0..60 {
        receiver.on_payload(START, segment(number));
        receiver.read(START);
        let ack = receiver.poll_ack(START).unwrap();
        assert_eq!(
            (ack.next, ack.window),
            (segment(number).end, window + 2 * MSS)
        );
        window = ack.window;
    }
}

#[test]
fn one_segment_is_acknowledged_late_and_two_at_once() {
    let (mut receiver, first) = settled();
    receiver.on_payload(START, segment(first));
    assert_eq!(receiver.poll_ack(START), None);
    assert_eq!(receiver.next_timer(), Some(START + DELAYED_ACK));
    receiver.on_payload(START, segment(first + 1));
    assert_eq!(
        receiver.poll_ack(START).unwrap().next,
        segment(first + 1).end
    );
    assert_eq!(receiver.next_timer(), None);
}

#[test]
fn a_hole_holds_back_what_follows_and_is_reported_latest_block_first() {
    let (mut receiver, first) = settled();
    receiver.read(START);
    receiver.on_payload(START, segment(first + 1));
    receiver.on_payload(START, segment(first + 3));
    assert!(receiver.read(START).is_empty());
    let ack = receiver.poll_ack(START).unwrap();
    assert_eq!(ack.next, segment(first).start);
    assert_eq!(ack.blocks, [segment(first + 3), segment(first + 1)]);
    receiver.on_payload(START, segment(first));
    assert_eq!(
        receiver.read(START),
        segment(first).start..segment(first + 1).end
    );
}

#[test]
fn a_duplicate_is_reported_first_and_at_once() {
    let (mut receiver, first) = settled();
    receiver.on_payload(START, segment(0));
    let ack = receiver.poll_ack(START).unwrap();
    assert_eq!(ack.next, segment(first).start);
    assert_eq!(ack.blocks, [segment(0)]);
}

#[test]
fn a_full_buffer_closes_the_window_and_reading_opens_it() {
    let mut receiver = Receiver::new(2 * MSS);
    for number in 0..3 {
        receiver.on_payload(START, segment(number));
    }
    let ack = receiver.poll_ack(START).unwrap();
    assert_eq!((ack.next, ack.window), (2 * MSS, 0));
    assert_eq!(receiver.read(START), 0..2 * MSS);
    assert_eq!(receiver.poll_ack(START).unwrap().window, 2 * MSS);
}

#[test]
fn the_timeout_starts_at_a_second_and_doubles_to_its_ceiling() {
    let mut rto = RetransmissionTimeout::new();
    assert_eq!(rto.timeout(), INITIAL_TIMEOUT);
    rto.back_off();
    assert_eq!(rto.timeout(), 2 * INITIAL_TIMEOUT);
    for _ in 0..50 {
        rto.back_off();
    }
    assert_eq!(rto.timeout(), MAX_TIMEOUT);
    rto.on_sample(Duration::from_millis(50), 1, 2);
    assert_eq!(rto.timeout(), Duration::from_millis(50) + MIN_TIMEOUT);
}

#[test]
fn the_variance_rises_at_once_and_falls_once_a_round_trip() {
    let (short, long) = (Duration::from_millis(50), Duration::from_millis(900));
    let mut rto = RetransmissionTimeout::new();
    rto.on_sample(short, 0, 10);
    rto.on_sample(long, 1, 10);
    let risen = rto.timeout();
    assert!(risen > Duration::from_millis(900), "{risen:?}");
    let mut same_round = rto.clone();
    let mut rounds = rto;
    for number in 2..200 {
        same_round.on_sample(short, 5, 10);
        rounds.on_sample(short, 20 * number, 20 * number);
    }
    assert!(rounds.timeout() < same_round.timeout());
    assert!(rounds.timeout() >= short + MIN_TIMEOUT);
}

proptest! {
    #[test]
    fn every_byte_is_delivered_once_and_in_order(
        arrivals in prop::collection::vec((0_u64..40_000, 1_u64..3 * MSS), 0..80),
        reads in prop::collection::vec(any::<bool>(), 80),
    ) {
        let mut receiver = Receiver::new(20_000);
        let mut arrived = vec![false; 50_000];
        let mut read = 0;
        for ((start, length), does_read) in arrivals.into_iter().zip(reads) {
            let accepted = (start + length).min(read + 20_000);
            receiver.on_payload(START, start..start + length);
            for byte in start..accepted {
                arrived[byte as usize] = true;
            }
            let ack = receiver.acknowledge();
            let expected = arrived.iter().position(|byte| !byte).unwrap() as u64;
            prop_assert_eq!(ack.next, expected);
            prop_assert_eq!(ack.next + ack.window, read + 20_000);
            prop_assert!(ack.blocks.len() <= MAX_SACK_BLOCKS);
            if does_read {
                let bytes = receiver.read(START);
                prop_assert_eq!(bytes, read..expected);
                read = expected;
            }
        }
    }
}

fn millis(count: u64) -> Instant {
    START + Duration::from_millis(count)
}

fn sacked(blocks: &[u64]) -> Acknowledgement {
    let blocks = blocks.iter().map(|number| segment(*number)).collect();
    Acknowledgement {
        next: 0,
        window: 1 << 20,
        blocks,
    }
}

/// Five segments sent a millisecond apart.
fn five_sent() -> Scoreboard {
    let mut scoreboard = Scoreboard::new();
    for number in 0..5 {
        assert_eq!(scoreboard.send_new(millis(number), MSS), segment(number));
    }
    scoreboard
}

#[test]
fn three_segments_beyond_a_hole_make_it_lost_and_it_is_sent_again_once() {
    let (mut scoreboard, mut rack) = (five_sent(), Rack::new());
    let arrived = scoreboard.on_ack(&sacked(&[2, 3, 4]));
    assert_eq!(arrived.delivered(), 3);
    rack.on_arrived(millis(104), &arrived);
    let srtt = Duration::from_millis(100);
    assert_eq!(rack.detect(millis(104), &mut scoreboard, srtt, false), None);
    assert_eq!(scoreboard.in_flight(), 0);
    assert_eq!(scoreboard.retransmit(millis(104)), Some(segment(0)));
    assert_eq!(scoreboard.retransmit(millis(104)), Some(segment(1)));
    assert_eq!(scoreboard.retransmit(millis(104)), None);
    assert_eq!(scoreboard.in_flight(), 2);
}

#[test]
fn a_single_segment_beyond_a_hole_leaves_time_for_reordering() {
    let (mut scoreboard, mut rack) = (five_sent(), Rack::new());
    let srtt = Duration::from_millis(100);
    let arrived = scoreboard.on_ack(&sacked(&[1]));
    rack.on_arrived(millis(101), &arrived);
    let again = rack
        .detect(millis(101), &mut scoreboard, srtt, false)
        .unwrap();
    assert_eq!(again, millis(125));
    assert_eq!(scoreboard.retransmit(millis(101)), None);
    rack.detect(again, &mut scoreboard, srtt, false);
    assert_eq!(scoreboard.retransmit(again), Some(segment(0)));
}

#[test]
fn a_late_original_is_reordering_and_a_late_retransmission_is_not() {
    for does_retransmit in [false, true] {
        let (mut scoreboard, mut rack) = (five_sent(), Rack::new());
        rack.on_arrived(millis(104), &scoreboard.on_ack(&sacked(&[2, 3, 4])));
        if does_retransmit {
            rack.detect(
                millis(104),
                &mut scoreboard,
                Duration::from_millis(100),
                false,
            );
            scoreboard.retransmit(millis(104));
        }
        rack.on_arrived(millis(205), &scoreboard.on_ack(&sacked(&[0])));
        assert_eq!(rack.has_reordering(), !does_retransmit);
    }
}

proptest! {
    #[test]
    fn loss_duplicates_and_reordering_leave_no_byte_behind(
        fates in prop::collection::vec((0_u8..10, 0_u64..30), 400),
    ) {
        const SEGMENTS: u64 = 60;
        let (mut scoreboard, mut rack, mut receiver) =
            (Scoreboard::new(), Rack::new(), Receiver::new(1 << 20));
        let mut fates = fates.into_iter().chain(std::iter::repeat((9, 0)));
        let mut flying: Vec<(Instant, std::ops::Range<u64>)> = Vec::new();
        let mut at = 0;
        while scoreboard.sent() < SEGMENTS * MSS || receiver.acknowledge().next < SEGMENTS * MSS {
            at += 1;
            prop_assert!(at < 100_000, "no progress");
            let now = millis(at);
            let payload = scoreboard.retransmit(now).or_else(|| {
                (scoreboard.sent() < SEGMENTS * MSS).then(|| scoreboard.send_new(now, MSS))
            });
            if let Some(payload) = payload {
                let (fate, extra) = fates.next().unwrap();
                let copies = match fate { 0 | 1 => 0, 2 => 2, _ => 1 };
                for copy in 0..copies {
                    flying.push((millis(at + 20 + extra + copy), payload.clone()));
                }
            } else if flying.is_empty() {
                scoreboard.mark_lost(|_| true);
            }
            let (due, later) = flying.into_iter().partition(|(arrives, _)| *arrives <= now);
            flying = later;
            for (_, payload) in due {
                receiver.on_payload(now, payload);
                let arrived = scoreboard.on_ack(&receiver.acknowledge());
                rack.on_arrived(now, &arrived);
            }
            rack.detect(now, &mut scoreboard, Duration::from_millis(30), false);
        }
        prop_assert_eq!(receiver.read(START), 0..SEGMENTS * MSS);
        prop_assert_eq!(scoreboard.in_flight(), 0);
    }
}
