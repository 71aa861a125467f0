//! Forwarding without I/O: fields, capsules, transforms, and the connection IDs at both ends
//! (draft-ietf-masque-quic-proxy).

use bytes::Bytes;
use http::HeaderValue;
use proptest::prelude::*;
use swiftwater_http::h3::capsule::Capsule;
use swiftwater_tunnel::forwarding::{
    CidCapsule, CidCapsuleError, ClientIds, ClientVcid, ForwardingAnswer, ForwardingOffer,
    NotOffered, PacketTransform, ProxyIds, ScrambleKey, TargetVcid, TooManyRegistrations,
    Transform, ZeroLimit, replace_cid,
};
use swiftwater_wire::ConnectionId;

const KEY: ScrambleKey = ScrambleKey::new([7; 32]);

fn value(text: &str) -> HeaderValue {
    HeaderValue::from_str(text).unwrap()
}

fn id(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

/// A packet with a long header, of a version and with these IDs.
fn long(first: u8, version: u32, destination: &[u8], source: &[u8]) -> Vec<u8> {
    let mut packet = vec![first];
    packet.extend(version.to_be_bytes());
    packet.push(destination.len() as u8);
    packet.extend(destination);
    packet.push(source.len() as u8);
    packet.extend(source);
    packet.extend([0; 30]);
    packet
}

fn short(destination: &[u8]) -> Vec<u8> {
    [&[0x40], destination, &[9; 30]].concat()
}

mod fields {
    use super::*;

    #[test]
    fn an_offer_and_its_answer_are_read_as_they_were_written() {
        let offer = ForwardingOffer::new(&Transform::ALL, KEY);
        let field = offer.field().unwrap();
        let key = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc=";
        let wanted = format!("?1;accept-transform=\"scramble-dt,identity\";scramble-key=:{key}:");
        assert_eq!(field, wanted);
        assert_eq!(ForwardingOffer::parse(&field), Some(offer.clone()));
        let answer = offer.answer(&Transform::ALL, KEY).unwrap();
        let field = answer.field().unwrap();
        let wanted = format!("?1;transform=\"scramble-dt\";scramble-key=:{key}:");
        assert_eq!(field, wanted);
        assert_eq!(ForwardingAnswer::parse(&field, &offer), Ok(Some(answer)));
    }

    #[test]
    fn the_first_transform_of_the_client_that_the_proxy_has_is_chosen() {
        let both = ForwardingOffer::new(&[Transform::Identity, Transform::Scramble], KEY);
        let transform = |has: &[Transform]| both.answer(has, KEY).map(|answer| answer.transform());
        assert_eq!(transform(&Transform::ALL), Some(Transform::Identity));
        assert_eq!(transform(&[Transform::Scramble]), Some(Transform::Scramble));
        assert_eq!(transform(&[]), None);
    }

    #[test]
    fn what_is_no_offer_is_ignored() {
        for text in [
            "?0",
            "?1",
            "1",
            "?1;accept-transform=scramble-dt",
            "?1;accept-transform=\"\"",
            "?1;accept-transform=\"rot13\"",
            // Without a key there is no scrambling (section 6.3.2).
            "?1;accept-transform=\"scramble-dt\"",
            "?1;accept-transform=\"scramble-dt\";scramble-key=:AAAA:",
            "?1;accept-transform=\"scramble-dt\";scramble-key=\"AAAA\"",
            "nonsense;",
        ] {
            assert_eq!(ForwardingOffer::parse(&value(text)), None, "{text}");
        }
        // Unknown transforms and parameters of the other end are passed over.
        let text = "?1;transform=\"x\";accept-transform=\"rot13, identity,identity,scramble-dt\"";
        let offer = ForwardingOffer::parse(&value(text)).unwrap();
        assert_eq!(offer.transforms(), [Transform::Identity]);
    }

    #[test]
    fn an_answer_that_was_not_offered_is_an_error_and_one_without_a_key_is_none() {
        let scramble = ForwardingOffer::new(&[Transform::Scramble], KEY);
        let parse = |text: &str| ForwardingAnswer::parse(&value(text), &scramble);
        assert_eq!(parse("?0"), Ok(None));
        assert_eq!(parse("?1"), Ok(None));
        assert_eq!(parse("?1;transform=\"scramble-dt\""), Ok(None));
        assert_eq!(parse("?1;transform=\"identity\""), Err(NotOffered));
        assert_eq!(parse("?1;transform=\"rot13\""), Err(NotOffered));
    }
}

mod transforms {
    use super::*;

    /// Computed by the steps of section 6.3.2 with another implementation of AES.
    #[test]
    fn vector_of_the_scramble_transform() {
        let mut key = [0; 32];
        (0..).zip(&mut key).for_each(|(n, byte)| *byte = n);
        let mut packet = vec![0x5a, 0xc0, 0xff, 0xee, 0x01, 0x23, 0x45, 0x67, 0x89];
        packet.extend((0..40).map(|n: u32| (7 * n + 3) as u8));
        let before = packet.clone();
        let transform = PacketTransform::scramble(&ScrambleKey::new(key));
        assert!(transform.encode(&mut packet, 8));
        let blocks = packet
            .chunks_exact(16)
            .map(|block| block.try_into().unwrap());
        let blocks: Vec<u128> = blocks.map(u128::from_be_bytes).collect();
        let wanted = [
            0x7cc0_ffee_0123_4567_89c7_7d42_d277_d110,
            0x1ab4_bd7d_aa88_4f77_14f6_ea06_b67e_1636,
            0xf737_46d8_6502_3647_b5b0_ab45_2bfc_3390,
        ];
        assert_eq!(blocks, wanted);
        assert_eq!(packet[48..], [0x3f]);
        assert!(transform.decode(&mut packet, 8));
        assert_eq!(packet, before);
    }

    #[test]
    fn packets_that_are_too_short_stay_as_they_are() {
        let transform = PacketTransform::scramble(&KEY);
        for len in 0..25 {
            let mut packet = vec![1; len];
            assert!(!transform.takes(len, 8));
            assert!(!transform.encode(&mut packet, 8) && !transform.decode(&mut packet, 8));
            assert_eq!(packet, vec![1; len]);
        }
        assert!(transform.takes(25, 8) && transform.encode(&mut [0; 25], 8));
        assert!(!PacketTransform::Identity.encode(&mut [0; 8], 8));
    }

    #[test]
    fn the_two_ends_have_keys_of_their_own() {
        let offer = ForwardingOffer::new(&[Transform::Scramble], KEY);
        let answer = offer
            .answer(&Transform::ALL, ScrambleKey::random())
            .unwrap();
        let (mut one, mut other) = (short(b"12345678"), short(b"12345678"));
        offer.sending(&answer).encode(&mut one, 8);
        answer.sending().encode(&mut other, 8);
        assert_ne!(one, other);
    }

    proptest! {
        #[test]
        fn decoding_is_the_inverse_and_keeps_header_form_and_id(
            key: [u8; 32],
            mut packet in proptest::collection::vec(any::<u8>(), 0..1500),
            cid_len in 0..=20_usize,
        ) {
            if let Some(first) = packet.first_mut() {
                *first &= 0x7f;
            }
            let transform = PacketTransform::scramble(&ScrambleKey::new(key));
            let before = packet.clone();
            if transform.encode(&mut packet, cid_len) {
                prop_assert_eq!(packet.len(), before.len());
                prop_assert_eq!(packet[0] & 0x80, 0);
                prop_assert_eq!(&packet[1..=cid_len], &before[1..=cid_len]);
                prop_assert!(transform.decode(&mut packet, cid_len));
            }
            prop_assert_eq!(packet, before);
        }
    }

    #[test]
    fn ids_of_any_length_replace_each_other() {
        let mut out = Vec::new();
        assert!(replace_cid(&short(b"1234"), 4, b"abcdefgh", &mut out));
        assert_eq!(out, short(b"abcdefgh"));
        out.clear();
        assert!(replace_cid(&short(b"abcdefgh"), 8, b"", &mut out));
        assert_eq!(out, short(b""));
        assert!(!replace_cid(b"\x40abc", 4, b"x", &mut out));
    }
}

mod capsules {
    use super::*;

    fn bytes() -> impl Strategy<Value = Bytes> {
        proptest::collection::vec(any::<u8>(), 0..=255).prop_map(Bytes::from)
    }

    fn capsule() -> impl Strategy<Value = CidCapsule> {
        prop_oneof![
            bytes().prop_map(CidCapsule::RegisterClientCid),
            (bytes(), bytes())
                .prop_map(|(cid, reset_token)| CidCapsule::RegisterTargetCid { cid, reset_token }),
            (bytes(), bytes()).prop_map(|(cid, vcid)| CidCapsule::AckClientCid { cid, vcid }),
            (bytes(), bytes(), bytes()).prop_map(|(cid, vcid, reset_token)| {
                CidCapsule::AckClientVcid {
                    cid,
                    vcid,
                    reset_token,
                }
            }),
            (bytes(), bytes(), bytes()).prop_map(|(cid, vcid, reset_token)| {
                CidCapsule::AckTargetCid {
                    cid,
                    vcid,
                    reset_token,
                }
            }),
            bytes().prop_map(CidCapsule::CloseClientCid),
            bytes().prop_map(CidCapsule::CloseTargetCid),
            (0..1_u64 << 62).prop_map(CidCapsule::MaxConnectionIds),
        ]
    }

    proptest! {
        #[test]
        fn capsules_are_read_as_they_were_written(capsule in capsule()) {
            prop_assert_eq!(CidCapsule::decode(&capsule.encode()), Ok(Some(capsule)));
        }

        #[test]
        fn whatever_comes_is_read_or_refused(
            capsule_type in 0xff_e600..0xff_e608_u64,
            value in proptest::collection::vec(any::<u8>(), 0..600),
        ) {
            let value = value.into();
            let capsule = Capsule { capsule_type, value };
            if let Ok(read) = CidCapsule::decode(&capsule) {
                let read = read.unwrap();
                prop_assert_eq!(CidCapsule::decode(&read.encode()), Ok(Some(read)));
            }
        }
    }

    #[test]
    fn the_form_is_that_of_the_draft() {
        let ack = CidCapsule::AckTargetCid {
            cid: Bytes::from_static(b"abcd"),
            vcid: Bytes::from_static(b"123456"),
            reset_token: Bytes::new(),
        };
        let mut encoded = vec![0x80, 0xff, 0xe6, 0x04, 13];
        encoded.extend(b"\x04abcd\x06123456\x00");
        assert_eq!(ack.to_bytes(), encoded);
        let register = CidCapsule::RegisterClientCid(Bytes::from_static(b"abcd"));
        assert_eq!(register.to_bytes(), &b"\x80\xff\xe6\x00\x04abcd"[..]);
    }

    #[test]
    fn malformed_capsules_are_refused() {
        const LONG: &[u8] = &[0; 256];
        let decode = |capsule_type, value: &'static [u8]| {
            let value = Bytes::from_static(value);
            CidCapsule::decode(&Capsule {
                capsule_type,
                value,
            })
        };
        assert_eq!(decode(0xff_e601, b"\x04abc"), Err(CidCapsuleError::Length));
        assert_eq!(decode(0xff_e602, b"\x01a"), Err(CidCapsuleError::Length));
        assert_eq!(decode(0xff_e607, b"\x01\x01"), Err(CidCapsuleError::Length));
        assert_eq!(decode(0xff_e607, b""), Err(CidCapsuleError::Length));
        let long = Err(CidCapsuleError::LongCid(256));
        assert_eq!(decode(0xff_e600, LONG), long);
        assert_eq!(decode(0xff_e608, b"?"), Ok(None));
        assert_eq!(decode(0, b"?"), Ok(None));
    }
}

mod proxy {
    use super::*;

    fn register(ids: &mut ProxyIds<()>, cid: &'static [u8], vcid: &[u8]) -> CidCapsule {
        let cid = Bytes::from_static(cid);
        ids.register_client(&cid, id(vcid)).unwrap()
    }

    fn register_target(
        ids: &mut ProxyIds<()>,
        cid: &'static [u8],
    ) -> Result<CidCapsule, TooManyRegistrations> {
        ids.register_target(&Bytes::from_static(cid), |_| Some((id(b"target-vcid"), ())))
    }

    #[test]
    fn packets_are_forwarded_once_the_client_has_taken_the_virtual_id() {
        let mut ids = ProxyIds::<()>::new(8);
        let answer = register(&mut ids, b"client-1", b"virtual-1");
        let (cid, vcid) = (Bytes::from("client-1"), Bytes::from("virtual-1"));
        assert_eq!(answer, CidCapsule::AckClientCid { cid, vcid });
        let packet = short(b"client-1");
        assert_eq!(ids.to_client(&packet), None);
        ids.acknowledge(b"client-1", b"virtual-2");
        ids.acknowledge(b"client-2", b"virtual-1");
        assert_eq!(ids.to_client(&packet), None, "that was not offered");
        ids.acknowledge(b"client-1", b"virtual-1");
        let to = ClientVcid {
            cid_len: 8,
            vcid: id(b"virtual-1"),
        };
        assert_eq!(ids.to_client(&packet), Some(to));
        assert_eq!(ids.to_client(&short(b"client-2")), None);
        assert_eq!(ids.to_client(&long(0xc0, 1, b"client-1", b"x")), None);
        assert_eq!(ids.to_client(b""), None);
        // The new virtual ID replaces the old one when it is acknowledged.
        register(&mut ids, b"client-1", b"virtual-2");
        assert_eq!(ids.to_client(&packet), Some(to));
        ids.acknowledge(b"client-1", b"virtual-2");
        assert_eq!(ids.to_client(&packet).unwrap().vcid, id(b"virtual-2"));
        ids.close_client(b"client-1");
        assert_eq!(ids.to_client(&packet), None);
        assert!(ids.is_empty());
    }

    #[test]
    fn an_empty_id_takes_all_packets_with_short_headers() {
        let mut ids = ProxyIds::<()>::new(8);
        register(&mut ids, b"", b"virtual-1");
        ids.acknowledge(b"", b"virtual-1");
        assert_eq!(ids.to_client(&short(b"whatever")).unwrap().cid_len, 0);
    }

    #[test]
    fn conflicting_and_long_ids_are_refused() {
        const LONG: &[u8] = &[0; 21];
        let mut ids = ProxyIds::<()>::new(8);
        register(&mut ids, b"client", b"virtual-1");
        for cid in [&b""[..], b"cli", b"client-1"] {
            let answer = register(&mut ids, cid, b"virtual-2");
            assert_eq!(answer, CidCapsule::CloseClientCid(Bytes::from_static(cid)));
        }
        let answer = register(&mut ids, LONG, b"virtual-2");
        assert_eq!(answer, CidCapsule::CloseClientCid(Bytes::from_static(LONG)));
        register_target(&mut ids, b"target").unwrap();
        let answer = register_target(&mut ids, b"tar").unwrap();
        assert_eq!(
            answer,
            CidCapsule::CloseTargetCid(Bytes::from_static(b"tar"))
        );
        // So is one that there is no virtual ID for.
        let cid = Bytes::from_static(b"other");
        let answer = ids.register_target(&cid, |_| None).unwrap();
        assert_eq!(answer, CidCapsule::CloseTargetCid(cid));
    }

    #[test]
    fn no_more_ids_are_registered_than_is_permitted() {
        let mut ids = ProxyIds::<()>::new(4);
        assert_eq!(ids.take_permission(), Some(CidCapsule::MaxConnectionIds(3)));
        assert_eq!(ids.take_permission(), None);
        for cid in [&b"a"[..], b"b", b"c"] {
            register(&mut ids, cid, b"virtual-1");
        }
        register_target(&mut ids, b"t").unwrap();
        assert_eq!(ids.take_permission(), None);
        assert_eq!(register_target(&mut ids, b"u"), Err(TooManyRegistrations));
        ids.close_client(b"a");
        ids.close_client(b"a");
        assert_eq!(ids.take_permission(), Some(CidCapsule::MaxConnectionIds(4)));
        register_target(&mut ids, b"u").unwrap();
        assert_eq!(register_target(&mut ids, b"v"), Err(TooManyRegistrations));
        assert_eq!(ids.close_all().len(), 4);
        assert_eq!(ids.take_permission(), Some(CidCapsule::MaxConnectionIds(8)));
        assert!(ids.is_empty() && !ids.forwards_to_client());
    }

    #[test]
    fn a_renewed_id_of_the_target_gives_up_what_was_held_for_it() {
        let held = std::rc::Rc::new(());
        let mut ids = ProxyIds::new(4);
        for number in 1..4_u8 {
            let issue = |_| Some((id(&[number; 8]), std::rc::Rc::clone(&held)));
            let answer = ids
                .register_target(&Bytes::from_static(b"t"), issue)
                .unwrap();
            let CidCapsule::AckTargetCid { vcid, .. } = answer else {
                panic!("{answer:?}");
            };
            assert_eq!(vcid, [number; 8][..]);
            assert_eq!(std::rc::Rc::strong_count(&held), 2);
        }
        ids.close_target(b"t");
        assert_eq!(std::rc::Rc::strong_count(&held), 1);
    }

    proptest! {
        /// Whatever a client does, the number of its registrations is bounded.
        #[test]
        fn registrations_are_bounded(steps in proptest::collection::vec((0..5_u8, 0..6_u8), 0..200)) {
            let mut ids = ProxyIds::<()>::new(8);
            for (step, cid) in steps {
                let cid = Bytes::from(vec![cid; 8]);
                match step {
                    0 => drop(ids.register_client(&cid, id(b"virtual-1"))),
                    1 => drop(ids.register_target(&cid, |_| Some((id(b"virtual-2"), ())))),
                    2 => ids.close_client(&cid),
                    3 => ids.close_target(&cid),
                    _ => ids.acknowledge(&cid, b"virtual-1"),
                }
                let _ = ids.take_permission();
            }
            prop_assert!(ids.close_all().len() <= 8);
        }
    }
}

mod client {
    use super::*;

    /// Version 1.
    const V1: u32 = 1;

    fn observe_sent(ids: &mut ClientIds<()>, datagram: &[u8]) -> Vec<CidCapsule> {
        let mut out = Vec::new();
        ids.observe_sent(datagram, &mut out);
        out
    }

    fn observe_received(ids: &mut ClientIds<()>, datagram: &[u8]) -> Vec<CidCapsule> {
        let mut out = Vec::new();
        ids.observe_received(datagram, &mut out);
        out
    }

    fn on_capsule(ids: &mut ClientIds<()>, capsule: CidCapsule) -> Vec<CidCapsule> {
        let mut out = Vec::new();
        ids.on_capsule(capsule, |_, _| Some(()), &mut out).unwrap();
        out
    }

    fn register_client(cid: &'static str) -> CidCapsule {
        CidCapsule::RegisterClientCid(cid.into())
    }

    fn register_target(cid: &'static str) -> CidCapsule {
        CidCapsule::RegisterTargetCid {
            cid: cid.into(),
            reset_token: Bytes::new(),
        }
    }

    fn ack_client(cid: &'static str, vcid: &'static str) -> CidCapsule {
        CidCapsule::AckClientCid {
            cid: cid.into(),
            vcid: vcid.into(),
        }
    }

    fn ack_target(cid: &'static str, vcid: &'static str) -> CidCapsule {
        CidCapsule::AckTargetCid {
            cid: cid.into(),
            vcid: vcid.into(),
            reset_token: Bytes::new(),
        }
    }

    /// Both IDs of a connection are registered, and virtual ones given.
    fn forwarding() -> ClientIds<()> {
        let mut ids = ClientIds::default();
        let sent = observe_sent(&mut ids, &long(0xc0, V1, b"random", b"client-1"));
        assert_eq!(sent, [register_client("client-1")]);
        let ack = CidCapsule::AckClientVcid {
            cid: "client-1".into(),
            vcid: "virtual-1".into(),
            reset_token: Bytes::new(),
        };
        assert_eq!(
            on_capsule(&mut ids, ack_client("client-1", "virtual-1")),
            [ack]
        );
        let received = observe_received(&mut ids, &long(0xc0, V1, b"client-1", b"target-1"));
        assert_eq!(received, [register_target("target-1")]);
        assert_eq!(ids.to_target(&short(b"target-1")), None);
        assert_eq!(
            on_capsule(&mut ids, ack_target("target-1", "virtual-t")),
            []
        );
        ids
    }

    #[test]
    fn both_ids_are_registered_as_they_pass() {
        let mut ids = forwarding();
        let to = TargetVcid {
            cid_len: 8,
            vcid: id(b"virtual-t"),
        };
        assert_eq!(ids.to_target(&short(b"target-1")), Some(to));
        assert_eq!(ids.to_target(&short(b"target-2")), None);
        assert_eq!(
            ids.to_target(&long(0xe0, V1, b"target-1", b"client-1")),
            None
        );
        // Nothing is registered twice.
        assert_eq!(
            observe_sent(&mut ids, &long(0xe0, V1, b"target-1", b"client-1")),
            []
        );
        assert_eq!(
            observe_received(&mut ids, &long(0xe0, V1, b"client-1", b"target-1")),
            []
        );
        assert!(ids.is_forwarding());
    }

    #[test]
    fn what_is_not_to_stay_is_not_registered() {
        let mut ids = ClientIds::default();
        observe_sent(&mut ids, &long(0xc0, V1, b"random", b"client-1"));
        for (first, version) in [(0xf0, V1), (0xc0, 0x6b33_43cf), (0xc0, 0)] {
            let packet = long(first, version, b"client-1", b"server-1");
            assert_eq!(
                observe_received(&mut ids, &packet),
                [],
                "Retry, Version Negotiation"
            );
        }
        // Another connection's, and no QUIC.
        assert_eq!(
            observe_received(&mut ids, &long(0xc0, V1, b"client-2", b"server-1")),
            []
        );
        assert_eq!(observe_received(&mut ids, b"\xc0"), []);
        assert_eq!(observe_sent(&mut ids, b""), []);
        let long_id = long(0xc0, V1, b"random", &[7; 21]);
        assert_eq!(observe_sent(&mut ids, &long_id), []);
    }

    #[test]
    fn registrations_wait_for_the_permission_of_the_proxy() {
        let mut ids = ClientIds::default();
        let sent = [b"client-1", b"client-2", b"client-3"]
            .map(|client| observe_sent(&mut ids, &long(0xc0, V1, b"random", client)).len());
        assert_eq!(sent, [1, 1, 0]);
        observe_received(&mut ids, &long(0xc0, V1, b"client-1", b"target-1"));
        let registered = on_capsule(&mut ids, CidCapsule::MaxConnectionIds(2));
        assert_eq!(registered, [register_client("client-3")]);
        let registered = on_capsule(&mut ids, CidCapsule::MaxConnectionIds(7));
        assert_eq!(registered, [register_target("target-1")]);
        let mut out = Vec::new();
        let none = ids.on_capsule(CidCapsule::MaxConnectionIds(0), |_, _| None, &mut out);
        assert_eq!(none, Err(ZeroLimit));
    }

    #[test]
    fn the_oldest_connection_is_given_up_for_a_new_one() {
        let mut ids = ClientIds::default();
        on_capsule(&mut ids, CidCapsule::MaxConnectionIds(100));
        for client in [b"client-1", b"client-2", b"client-3", b"client-4"] {
            observe_sent(&mut ids, &long(0xc0, V1, b"random", client));
        }
        observe_received(&mut ids, &long(0xc0, V1, b"client-1", b"target-1"));
        let sent = observe_sent(&mut ids, &long(0xc0, V1, b"random", b"client-5"));
        let closed = [
            CidCapsule::CloseClientCid("client-1".into()),
            CidCapsule::CloseTargetCid("target-1".into()),
            register_client("client-5"),
        ];
        assert_eq!(sent, closed);
    }

    #[test]
    fn a_virtual_id_that_might_be_another_is_refused() {
        let mut ids = ClientIds::default();
        observe_sent(&mut ids, &long(0xc0, V1, b"random", b"client-1"));
        let refused = [CidCapsule::CloseClientCid("client-1".into())];
        assert_eq!(
            on_capsule(&mut ids, ack_client("client-1", "short")),
            refused
        );
        let mut out = Vec::new();
        let ack = ack_client("client-1", "virtual-1");
        ids.on_capsule(ack, |_, _| None, &mut out).unwrap();
        assert_eq!(out, refused);
        // The proxy knows the ID, and does not forward.
        assert_eq!(on_capsule(&mut ids, ack_client("client-1", "")), []);
        assert_eq!(
            on_capsule(&mut ids, ack_client("client-2", "virtual-1")),
            []
        );
        assert!(!ids.is_forwarding());
    }

    #[test]
    fn on_another_path_all_ids_get_other_virtual_ones() {
        let mut ids = forwarding();
        on_capsule(&mut ids, CidCapsule::MaxConnectionIds(100));
        let mut out = Vec::new();
        ids.renew(&mut out);
        assert_eq!(
            out,
            [register_client("client-1"), register_target("target-1")]
        );
        assert_eq!(ids.to_target(&short(b"target-1")), None);
        on_capsule(&mut ids, ack_target("target-1", "virtual-u"));
        assert_eq!(
            ids.to_target(&short(b"target-1")).unwrap().vcid,
            id(b"virtual-u")
        );
    }

    #[test]
    fn suspended_ids_are_closed_and_can_be_registered_again() {
        let mut ids = forwarding();
        on_capsule(&mut ids, CidCapsule::MaxConnectionIds(100));
        let mut out = Vec::new();
        ids.suspend(&mut out);
        let closed = [
            CidCapsule::CloseClientCid("client-1".into()),
            CidCapsule::CloseTargetCid("target-1".into()),
        ];
        assert_eq!(out, closed);
        assert!(!ids.is_forwarding());
        out.clear();
        ids.renew(&mut out);
        assert_eq!(
            out,
            [register_client("client-1"), register_target("target-1")]
        );
    }

    #[test]
    fn ids_that_the_proxy_gives_up_are_registered_again_and_refused_ones_are_not() {
        let mut ids = forwarding();
        on_capsule(&mut ids, CidCapsule::MaxConnectionIds(100));
        let closed = on_capsule(&mut ids, CidCapsule::CloseClientCid("client-1".into()));
        assert_eq!(closed, [register_client("client-1")]);
        let closed = on_capsule(&mut ids, CidCapsule::CloseTargetCid("target-1".into()));
        assert_eq!(closed, [register_target("target-1")]);
        // Now it refuses them.
        for side in [CidCapsule::CloseClientCid, CidCapsule::CloseTargetCid] {
            assert_eq!(on_capsule(&mut ids, side("client-1".into())), []);
            assert_eq!(on_capsule(&mut ids, side("target-1".into())), []);
        }
        assert!(!ids.is_forwarding());
    }
}
