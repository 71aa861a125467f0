//! TECC at both ends of the connection in a tunnel.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_congestion::{LossCause, RttView};
use swiftwater_policies::LossJudgeFactory;
use swiftwater_policies::tecc::{
    TeccClientFeedback, TeccClientFeedbackConfig, TeccFeedback, TeccFeedbackConfig, TeccLossJudge,
    TeccLossJudgeConfig, TeccMessage,
};
use swiftwater_quic::policy::{
    FeedbackPayload, FeedbackPolicy, Hints, LossCandidate, LossJudge, LossVerdict, PathView,
    ReceivedFeedback, ReorderingThresholds,
};
use swiftwater_tecc::{LossPlace, LostPackets, ReportFlags, TunnelReport};
use swiftwater_units::{Bandwidth, ByteCount, Instant, PacketNumber, PathId};

const RTT: Duration = Duration::from_millis(80);

fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(ms)
}

fn range(first: u64, last: u64, place: LossPlace) -> LostPackets {
    LostPackets { first, last, place }
}

/// A tunnel of 8 Mbit/s and 20 ms: a repair takes 20 + 4 * 5 + 20 ms.
fn message() -> TeccMessage {
    TeccMessage {
        rate: Bandwidth::from_mbps(8),
        queue: ByteCount::new(5_000),
        smoothed_rtt: ms(20),
        rtt_var: ms(5),
        min_rtt: ms(18),
        settled: 10,
        ..TeccMessage::default()
    }
}

fn received(payload: FeedbackPayload) -> ReceivedFeedback {
    ReceivedFeedback {
        kind: TeccMessage::KIND,
        payload,
        sequence: 0,
        path: PathId::ZERO,
        age: RTT / 2,
    }
}

fn feedback(message: &TeccMessage) -> ReceivedFeedback {
    received(message.encode(64).unwrap())
}

fn judge(config: TeccLossJudgeConfig) -> TeccLossJudge {
    TeccLossJudge::new(config, PathId::ZERO, ReorderingThresholds::RFC_9002)
}

/// Packet `number` of ten sent at 100 ms, the last of which is acknowledged.
fn candidate(number: u64) -> LossCandidate {
    let number = PacketNumber::new(number);
    LossCandidate::new(PathId::ZERO, number, at(100), PacketNumber::new(10))
        .rtt(RTT)
        .cause(LossCause::Reorder)
}

#[test]
fn without_reports_the_configured_thresholds_hold() {
    let judge = judge(TeccLossJudgeConfig::default());
    assert_eq!(judge.thresholds(), ReorderingThresholds::RFC_9002);
    assert!(!judge.judges_packets());
    let made =
        TeccLossJudgeConfig::default().loss_judge(PathId::ZERO, ReorderingThresholds::RFC_9002);
    assert_eq!(made.thresholds(), ReorderingThresholds::RFC_9002);
}

#[test]
fn what_the_tunnel_repairs_is_left_to_it_until_the_repair_would_have_come() {
    // 60 ms for one repair and its news; eight round trips and variations and an acknowledgement's delay until the tunnel
    // has given the packet up.
    for (whole_horizon, repair) in [(false, ms(60)), (true, ms(225))] {
        let mut judge = judge(TeccLossJudgeConfig {
            whole_horizon,
            ..TeccLossJudgeConfig::default()
        });
        // 9/8 of the round trip before; but no report counts for longer than 120 ms.
        let safe_at = at(100) + ms(90) + repair;
        judge.on_feedback(at(170), &feedback(&message()));
        assert_eq!(
            judge.judge(at(180), &candidate(2)),
            LossVerdict::NotYet(safe_at.min(at(290)))
        );
        judge.on_feedback(safe_at - ms(10), &feedback(&message()));
        let before = safe_at - ms(1);
        assert_eq!(
            judge.judge(before, &candidate(2)),
            LossVerdict::NotYet(safe_at)
        );
        assert_eq!(judge.judge(safe_at, &candidate(2)), LossVerdict::Lost);
        assert_eq!(judge.suspects(), 1);
    }
}

#[test]
fn the_place_of_a_loss_decides_whether_it_is_a_sign_of_congestion_if_clients_are_trusted() {
    let mut judge = judge(TeccLossJudgeConfig {
        given_up: 1.0,
        ..TeccLossJudgeConfig::default()
    });
    let lost = vec![
        range(5, 6, LossPlace::Abandoned),
        range(2, 2, LossPlace::Upstream),
    ];
    judge.on_feedback(at(180), &feedback(&TeccMessage { lost, ..message() }));
    assert_eq!(judge.judge(at(180), &candidate(2)), LossVerdict::Lost);
    assert_eq!(
        judge.judge(at(180), &candidate(6)),
        LossVerdict::AbandonedUpstream
    );
    assert!(matches!(
        judge.judge(at(180), &candidate(4)),
        LossVerdict::NotYet(_)
    ));
    assert_eq!(judge.suspects(), 0);
}

/// How many of `count` packets, of which each tenth is missing and said to be given up, are no sign of congestion.
fn believed(config: TeccLossJudgeConfig, count: u64) -> usize {
    let mut judge = judge(config);
    let missing = (1..=count / 10).map(|nth| nth * 10);
    let verdicts = missing.map(|number| {
        let lost = vec![range(number, number, LossPlace::Abandoned)];
        judge.on_feedback(at(180), &feedback(&TeccMessage { lost, ..message() }));
        judge.judge(at(180), &candidate(number))
    });
    verdicts
        .filter(|verdict| *verdict == LossVerdict::AbandonedUpstream)
        .count()
}

#[test]
fn a_client_that_says_too_often_that_the_tunnel_gave_up_is_not_believed() {
    let believed_of = |given_up| {
        let config = TeccLossJudgeConfig {
            given_up,
            ..TeccLossJudgeConfig::default()
        };
        believed(config, 10_000)
    };
    // A thousandth of 10,000 packets, and what may come at once.
    assert!(
        (10..=18).contains(&believed_of(0.001)),
        "{}",
        believed_of(0.001)
    );
    assert_eq!(believed_of(0.0), 0);
    assert_eq!(believed_of(1.0), 1_000);
}

#[test]
fn when_reports_cease_the_configured_thresholds_hold_again() {
    let mut judge = judge(TeccLossJudgeConfig::default());
    judge.on_feedback(at(110), &feedback(&message()));
    // One and a half round trips after the report.
    assert!(matches!(
        judge.judge(at(180), &candidate(2)),
        LossVerdict::NotYet(_)
    ));
    assert_eq!(judge.judge(at(230), &candidate(2)), LossVerdict::Lost);
    assert_eq!(judge.suspects(), 0, "a plain loss");
    // Nine behind the largest is too many; one is not, and not late either.
    let mut late = candidate(9);
    late.sent_at = at(200);
    assert!(matches!(
        judge.judge(at(231), &late),
        LossVerdict::NotYet(_)
    ));
}

#[test]
fn a_packet_sent_after_a_silence_is_given_time_to_bring_a_report() {
    let mut judge = judge(TeccLossJudgeConfig::default());
    judge.on_feedback(at(110), &feedback(&message()));
    let mut later = candidate(2);
    later.sent_at = at(3_000);
    let verdict = judge.judge(at(3_085), &later);
    assert_eq!(verdict, LossVerdict::NotYet(at(3_120)));
    assert_eq!(judge.judge(at(3_120), &later), LossVerdict::Lost);
    later.sent_at = at(20_000);
    assert_eq!(
        judge.judge(at(20_085), &later),
        LossVerdict::Lost,
        "no tunnel any more"
    );
}

#[test]
fn each_rule_has_a_switch() {
    let rtt = RttView {
        latest: RTT,
        smoothed: RTT,
        var: RTT / 4,
        min: RTT,
        min_at: at(0),
        has_sample: true,
    };
    let mut on = judge(TeccLossJudgeConfig::default());
    assert_eq!(on.extra_probe_timeout(&rtt), Duration::ZERO);
    on.on_feedback(at(110), &feedback(&message()));
    assert_eq!(on.extra_probe_timeout(&rtt), ms(60));
    let mut off = judge(TeccLossJudgeConfig {
        suppress: false,
        extend_pto: false,
        ..TeccLossJudgeConfig::default()
    });
    off.on_feedback(at(110), &feedback(&message()));
    assert!(!off.judges_packets());
    assert_eq!(off.extra_probe_timeout(&rtt), Duration::ZERO);
    assert_eq!(off.thresholds(), ReorderingThresholds::RFC_9002);
    let mut silent = TeccFeedback::new(TeccFeedbackConfig { rate: false });
    silent.on_feedback(at(0), &feedback(&message()));
    assert_eq!(silent.poll_external_rate(), None);
}

#[test]
fn the_server_takes_the_rate_over() {
    let mut server = TeccFeedback::new(TeccFeedbackConfig::default());
    let mut fell = message();
    (fell.age, fell.flags.bandwidth_drop) = (ms(3), true);
    server.on_feedback(at(0), &feedback(&fell));
    let (path, rate) = server.poll_external_rate().unwrap();
    assert_eq!(path, PathId::ZERO);
    assert_eq!((rate.rate, rate.queue), (message().rate, message().queue));
    assert_eq!((rate.age, rate.interval), (ms(43), ms(20)));
    assert_eq!((rate.repair_time, rate.fell), (ms(60), true));
    assert_eq!(server.poll_external_rate(), None);
}

fn report(sequence: u64, settled: u64) -> Vec<u8> {
    let report = TunnelReport {
        sequence,
        settled,
        rate: Bandwidth::from_mbps(8),
        smoothed_rtt: ms(20),
        ..TunnelReport::default()
    };
    report.encode()
}

fn poll(client: &mut TeccClientFeedback, now: u64) -> Option<(TeccMessage, bool)> {
    let mut out = Vec::new();
    let paths = [PathView::builder(PathId::ZERO).rtt(RTT).build()];
    client.poll(at(now), &paths, &Hints::default(), &mut out);
    let out = out.first()?;
    assert!(!out.ack_eliciting);
    Some((
        TeccMessage::decode(&received(out.payload)).unwrap(),
        out.urgent,
    ))
}

#[test]
fn the_client_passes_reports_on_and_says_at_once_what_was_lost() {
    let mut client = TeccClientFeedback::new(TeccClientFeedbackConfig::default());
    client.on_peer_limit(64);
    let arrive = |client: &mut TeccClientFeedback, packet, number| {
        let packet = PacketNumber::new(packet);
        client.on_packet_received(at(0), PathId::ZERO, packet, Some(number));
    };
    arrive(&mut client, 0, 0);
    assert_eq!(poll(&mut client, 0), None, "no tunnel that reports");
    client.on_path_report(at(10), &report(0, 0));
    let (message, urgent) = poll(&mut client, 12).unwrap();
    assert_eq!((message.age, message.settled, urgent), (ms(2), 1, false));
    assert_eq!(poll(&mut client, 30), None, "told already");
    client.on_path_report(at(31), b"nonsense");
    client.on_path_report(at(31), &report(0, 9));
    assert_eq!(poll(&mut client, 31), None, "neither is a new report");
    for (packet, number) in [(2, 1), (3, 2), (4, 3), (5, 4)] {
        arrive(&mut client, packet, number);
    }
    let (message, urgent) = poll(&mut client, 40).unwrap();
    assert_eq!(message.lost, [range(1, 1, LossPlace::Upstream)]);
    assert!(urgent);
    assert_eq!(message.settled, 6);
    // Not more often than every 5 ms.
    client.on_path_report(at(41), &report(1, 0));
    assert_eq!(poll(&mut client, 42), None);
    assert_eq!(client.next_deadline(), Some(at(45)));
    assert!(poll(&mut client, 45).is_some());
}

proptest! {
    #[test]
    fn a_message_is_decoded_as_it_was_encoded(
        bits in 0_u8..32,
        micros in prop::array::uniform4(0_u64..1 << 30),
        numbers in prop::array::uniform3(0_u64..1 << 30),
        steps in prop::collection::vec((1_u64..9, 0_u64..9, any::<bool>()), 0..12),
    ) {
        let mut lost = Vec::new();
        let mut next = 0;
        for (gap, more, is_abandoned) in steps {
            let first = next + gap;
            let place = if is_abandoned { LossPlace::Abandoned } else { LossPlace::Upstream };
            lost.insert(0, range(first, first + more, place));
            next = first + more;
        }
        let time = |at: usize| Duration::from_micros(micros[at]);
        let message = TeccMessage {
            flags: ReportFlags::from_bits(bits),
            age: time(0),
            rate: Bandwidth::from_bytes_per_sec(numbers[0]),
            queue: ByteCount::new(numbers[1]),
            smoothed_rtt: time(1),
            rtt_var: time(2),
            min_rtt: time(3),
            settled: numbers[2],
            lost,
        };
        let decoded = TeccMessage::decode(&feedback(&message)).unwrap();
        let kept = decoded.lost.len();
        prop_assert!(kept == message.lost.len() || kept >= 8);
        prop_assert_eq!(&decoded.lost, &message.lost[..kept]);
        prop_assert_eq!(TeccMessage { lost: message.lost.clone(), ..decoded }, message);
    }

    #[test]
    fn any_payload_is_survived(bytes in prop::collection::vec(any::<u8>(), 0..=64), number: u32) {
        let feedback = received(FeedbackPayload::new(&bytes).unwrap());
        let mut judge = judge(TeccLossJudgeConfig::default());
        judge.on_feedback(at(100), &feedback);
        judge.judge(at(150), &candidate(u64::from(number)));
        let mut server = TeccFeedback::new(TeccFeedbackConfig::default());
        server.on_feedback(at(100), &feedback);
        server.poll_external_rate();
    }
}
