//! Packets of a session: what is written is read back, and no bytes make the parsers panic.

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_media::protection::Protector;
use swiftwater_media::protection::tambur::{Window, WindowFrame};
use swiftwater_media::session::{
    Ack, Coding, Cut, Feedback, HEADER_LEN, Header, Kind, Receiver, Report, Sender, SessionConfig,
    VideoPacket,
};
use swiftwater_media::{Frame, FrameKind};
use swiftwater_units::Instant;

fn kind() -> impl Strategy<Value = Kind> {
    prop_oneof![
        Just(Kind::Source),
        Just(Kind::Retransmission),
        Just(Kind::Replica),
        Just(Kind::Repair),
        Just(Kind::Parity),
    ]
}

prop_compose! {
    fn header()(
        kind in kind(),
        sequence in 0_u64..1 << 60,
        index in 3_u64..1 << 59,
        is_key in any::<bool>(),
        restart in any::<bool>(),
        at in 0_u64..1 << 60,
        size in 1_u32..3_000_000,
        payload in 1_000_u32..2_000,
        share in 0.0_f64..1.0,
    ) -> Header {
        let cut = Cut::new(size, payload);
        Header {
            kind,
            sequence,
            frame: Frame {
                index,
                kind: if is_key { FrameKind::Key } else { FrameKind::Delta },
                size,
                at: Duration::from_nanos(at),
            },
            restart,
            packets: cut.packets() as u16,
            number: (f64::from(cut.packets()) * share) as u16,
        }
    }
}

prop_compose! {
    fn window_frame()(
        size in 1_u32..100_000,
        late in 0_u16..3,
        is_key in any::<bool>(),
        before in any::<u32>(),
    ) -> WindowFrame {
        let packets = Cut::new(size, 1000).packets() as u16;
        WindowFrame {
            packets,
            late_packets: late.min(packets),
            size,
            is_key,
            before: Duration::from_nanos(u64::from(before)),
        }
    }
}

proptest! {
    #[test]
    fn video_packets_round_trip(
        header in header(),
        frames in proptest::collection::vec(window_frame(), 1..=4),
        payload in proptest::collection::vec(any::<u8>(), 0..50),
    ) {
        let window = (header.kind == Kind::Parity).then_some(Window {
            frame: header.frame.index,
            frames,
        });
        let mut bytes = Vec::new();
        header.write(window.as_ref(), &mut bytes);
        if window.is_none() {
            prop_assert_eq!(bytes.len(), HEADER_LEN);
        }
        bytes.extend(&payload);
        let packet = VideoPacket::parse(&bytes).unwrap();
        prop_assert_eq!(packet.header, header);
        prop_assert_eq!(packet.window, window);
        prop_assert_eq!(packet.payload, payload);
    }

    #[test]
    fn feedback_round_trips(
        ends in proptest::collection::btree_set(0_u64..1 << 30, 1..17),
        delay in any::<u32>(),
        newest_frame in any::<u64>(),
        complete in any::<u64>(),
        counts in any::<(u32, u32)>(),
    ) {
        // Ranges with a gap between them: each from an even number to half the way to the next.
        let ends: Vec<u64> = ends.into_iter().map(|end| end * 4).collect();
        let ranges = ends.iter().rev().map(|&start| start..=start + 1).collect();
        let ack = Feedback::Ack(Ack {
            ranges,
            delay: Duration::from_micros(u64::from(delay)),
            newest_frame,
            complete,
        });
        let report = Feedback::Report(Report { received: counts.0, lost: counts.1 });
        for feedback in [ack, report] {
            let mut bytes = Vec::new();
            feedback.write(&mut bytes);
            let parsed = Feedback::parse(&bytes);
            prop_assert_eq!(parsed.as_ref(), Ok(&feedback));
            for len in 0..bytes.len() {
                prop_assert!(Feedback::parse(&bytes[..len]).is_err());
            }
        }
    }

    #[test]
    fn no_bytes_make_the_ends_panic(
        datagrams in proptest::collection::vec(
            (0_u8..8, proptest::collection::vec(any::<u8>(), 0..120)), 0..40
        ),
        real in any::<bool>(),
    ) {
        let coding = if real { Coding::Real } else { Coding::Counted };
        let config = SessionConfig { coding, ..SessionConfig::default() };
        let mut receiver = Receiver::new(&config, Instant::ZERO).unwrap();
        let mut sender = Sender::new(config, Protector::Rtx, Instant::ZERO).unwrap();
        for (kind, bytes) in datagrams {
            // A likely first byte gets further.
            let bytes: Vec<u8> = std::iter::once(kind).chain(bytes).collect();
            let _ = receiver.handle_datagram(Instant::ZERO, &bytes);
            let feedback: Vec<u8> = std::iter::once(0x3f + kind).chain(bytes).collect();
            let _ = sender.handle_datagram(Instant::ZERO, &feedback);
        }
        while let Some(datagram) = receiver.poll_transmit(Instant::ZERO) {
            prop_assert!(Feedback::parse(&datagram.bytes).is_ok());
        }
    }

    #[test]
    fn mangled_packets_are_refused_or_acknowledged(
        flips in proptest::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..4),
        seed in header(),
    ) {
        let mut bytes = Vec::new();
        let header = Header { kind: Kind::Source, ..seed };
        header.write(None, &mut bytes);
        for (at, mask) in flips {
            let at = at.index(bytes.len());
            bytes[at] ^= mask;
        }
        let mut receiver = Receiver::new(&SessionConfig::default(), Instant::ZERO).unwrap();
        let understood = receiver.handle_datagram(Instant::ZERO, &bytes).is_ok();
        prop_assert_eq!(receiver.poll_transmit(Instant::ZERO).is_some(), understood);
    }

    #[test]
    fn cuts_cover_the_frame(size in 1_u32..10_000_000, payload in 16_u32..65_000) {
        let cut = Cut::new(size, payload);
        let lens = (0..cut.packets()).map(|number| cut.len(number));
        prop_assert_eq!(lens.clone().map(u64::from).sum::<u64>(), u64::from(size));
        prop_assert!(lens.clone().all(|len| len > 0 && len <= cut.packet_len()));
        prop_assert!(cut.packet_len() <= payload);
        prop_assert_eq!(cut.len(cut.packets()), 0);
        prop_assert_eq!(Cut::from_counts(size, cut.packets()), Some(cut));
    }
}

#[test]
fn four_megabits_at_sixty_frames_are_six_packets() {
    let cut = Cut::new(8333, SessionConfig::default().payload_size);
    assert_eq!(
        (cut.packets(), cut.packet_len(), cut.len(5)),
        (6, 1389, 1388)
    );
}
