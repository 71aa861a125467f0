//! Packet headers: RFC 9001 appendix A, coalescing, and what is refused.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use proptest::prelude::*;
use swiftwater_wire::{
    ConnectionId, DecodeError, Header, InvariantHeader, PacketType, PartialHeader, PlainFirstByte,
    RETRY_TAG_LEN, Reader, TruncatedPacketNumber, VERSION_1, VERSION_2, Writer, write_retry,
    write_version_negotiation,
};

fn hex(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2);
    pairs
        .map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

fn cid(digits: &str) -> ConnectionId {
    ConnectionId::new(&hex(digits)).unwrap()
}

/// A header with its Length set for `rest` bytes behind the packet number.
fn encode(header: &Header<'_>, pn: TruncatedPacketNumber, rest: usize) -> Vec<u8> {
    encode_version(VERSION_1, header, pn, rest)
}

/// The same in another version.
fn encode_version(
    version: u32,
    header: &Header<'_>,
    pn: TruncatedPacketNumber,
    rest: usize,
) -> Vec<u8> {
    let mut buf = vec![0xee; 2000];
    let mut w = Writer::new(&mut buf);
    let layout = header.encode(version, pn, &mut w);
    let written = w.written();
    assert_eq!(layout.start, 0);
    assert_eq!(layout.header_len, written);
    assert_eq!(layout.pn_offset, written - pn.len);
    assert_eq!(header.size(pn.len), written);
    layout.patch_length(&mut buf, pn.len + rest);
    buf.truncate(written);
    buf
}

#[test]
fn client_initial_of_rfc_9001_a_2() {
    let dst = cid("8394c8f03e515708");
    let header = Header::Initial {
        dst,
        src: ConnectionId::EMPTY,
        token: &[],
    };
    let pn = TruncatedPacketNumber { value: 2, len: 4 };
    let bytes = encode(&header, pn, 1182 - 4);
    assert_eq!(bytes, hex("c300000001088394c8f03e5157080000449e00000002"));

    // As protected on the wire.
    let mut packet = hex("c000000001088394c8f03e5157080000449e7b9aec34");
    packet.resize(1200, 0);
    let parsed = PartialHeader::parse(&packet, 0).unwrap();
    assert_eq!(parsed.packet_type, PacketType::Initial);
    assert_eq!((parsed.dst_cid, parsed.src_cid), (dst, ConnectionId::EMPTY));
    assert!(parsed.token.is_empty());
    assert_eq!((parsed.pn_offset, parsed.packet_len), (18, 1200));
}

#[test]
fn server_initial_of_rfc_9001_a_3() {
    let src = cid("f067a5502a4262b5");
    let header = Header::Initial {
        dst: ConnectionId::EMPTY,
        src,
        token: &[],
    };
    let pn = TruncatedPacketNumber { value: 1, len: 2 };
    let bytes = encode(&header, pn, 117 - 2);
    assert_eq!(bytes, hex("c1000000010008f067a5502a4262b50040750001"));

    let mut packet = hex("cf000000010008f067a5502a4262b5004075c0d9");
    packet.resize(135, 0);
    let parsed = PartialHeader::parse(&packet, 20).unwrap();
    assert_eq!((parsed.dst_cid, parsed.src_cid), (ConnectionId::EMPTY, src));
    assert_eq!((parsed.pn_offset, parsed.packet_len), (18, 135));
}

#[test]
fn retry_of_rfc_9001_a_4() {
    let packet = hex("ff000000010008f067a5502a4262b5746f6b656e04a265ba2eff4d829058fb3f0f2496ba");
    let src = cid("f067a5502a4262b5");
    let mut buf = [0; 100];
    let mut w = Writer::new(&mut buf);
    write_retry(&mut w, VERSION_1, ConnectionId::EMPTY, src, b"token", 0x0f);
    let len = w.written();
    assert_eq!(buf[..len], packet[..packet.len() - RETRY_TAG_LEN]);

    let parsed = PartialHeader::parse(&packet, 0).unwrap();
    assert_eq!(parsed.packet_type, PacketType::Retry);
    assert_eq!(&packet[parsed.token.clone()], b"token");
    assert_eq!(parsed.src_cid, src);
    assert_eq!(parsed.packet_len, packet.len());
    assert_eq!(
        parsed.retry_tag(&packet).unwrap()[..],
        hex("04a265ba2eff4d829058fb3f0f2496ba")
    );
}

#[test]
fn short_header_of_rfc_9001_a_5() {
    let header = Header::OneRtt {
        dst: ConnectionId::EMPTY,
        spin: false,
        key_phase: false,
    };
    // The number is 654360564 (0x2700bff4), in three bytes.
    let pn = TruncatedPacketNumber {
        value: 0x00_bff4,
        len: 3,
    };
    assert_eq!(encode(&header, pn, 0), hex("4200bff4"));

    let packet = hex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb");
    let parsed = PartialHeader::parse(&packet, 0).unwrap();
    assert_eq!(parsed.packet_type, PacketType::OneRtt);
    assert_eq!((parsed.pn_offset, parsed.packet_len), (1, packet.len()));
}

#[test]
fn first_byte_of_a_short_header() {
    let dst = cid("0102");
    for (spin, key_phase) in [(false, false), (false, true), (true, false), (true, true)] {
        let pn = TruncatedPacketNumber { value: 7, len: 2 };
        let bytes = encode(
            &Header::OneRtt {
                dst,
                spin,
                key_phase,
            },
            pn,
            0,
        );
        let first = PlainFirstByte(bytes[0]);
        assert_eq!((first.spin(), first.key_phase()), (spin, key_phase));
        assert_eq!((first.is_long(), first.packet_number_len()), (false, 2));
        assert_eq!(first.reserved_bits(), 0);
    }
}

#[test]
fn reserved_bits_differ_between_long_and_short() {
    assert_eq!(PlainFirstByte(0xcc).reserved_bits(), 3);
    assert_eq!(PlainFirstByte(0xd3).reserved_bits(), 0);
    assert_eq!(PlainFirstByte(0x58).reserved_bits(), 3);
    assert_eq!(PlainFirstByte(0x67).reserved_bits(), 0);
    assert!(!PlainFirstByte(0xe4).key_phase() && !PlainFirstByte(0xe4).spin());
}

#[test]
fn coalesced_packets_are_walked_one_by_one() {
    let (dst, src) = (cid("0a0b0c"), cid("01"));
    let pn = TruncatedPacketNumber { value: 1, len: 1 };
    let mut datagram = Vec::new();
    for header in [
        Header::Initial {
            dst,
            src,
            token: b"abc",
        },
        Header::ZeroRtt { dst, src },
        Header::Handshake { dst, src },
    ] {
        datagram.extend(encode(&header, pn, 30));
        datagram.extend([0x11; 30]);
    }
    datagram.extend(encode(
        &Header::OneRtt {
            dst,
            spin: true,
            key_phase: false,
        },
        pn,
        0,
    ));
    datagram.extend([0x22; 25]);

    let mut rest = &datagram[..];
    let mut types = Vec::new();
    while !rest.is_empty() {
        let parsed = PartialHeader::parse(rest, 3).unwrap();
        assert_eq!(parsed.dst_cid, dst);
        if parsed.packet_type == PacketType::Initial {
            assert_eq!(&rest[parsed.token.clone()], b"abc");
        }
        let pn = TruncatedPacketNumber::read(&mut Reader::new(&rest[parsed.pn_offset..]), 1);
        assert_eq!(pn.unwrap().value, 1);
        types.push(parsed.packet_type);
        rest = &rest[parsed.packet_len..];
    }
    let expected = [
        PacketType::Initial,
        PacketType::ZeroRtt,
        PacketType::Handshake,
        PacketType::OneRtt,
    ];
    assert_eq!(types, expected);
}

#[test]
fn the_layout_counts_from_the_packets_start() {
    let mut buf = [0; 100];
    let mut w = Writer::new(&mut buf);
    w.bytes(&[9; 10]);
    let header = Header::Handshake {
        dst: cid("01"),
        src: cid("02"),
    };
    let layout = header.encode(
        VERSION_1,
        TruncatedPacketNumber { value: 5, len: 1 },
        &mut w,
    );
    assert_eq!(
        (layout.start, layout.length_offset, layout.pn_offset),
        (10, Some(9), 11)
    );
    layout.patch_length(&mut buf[layout.start..], 21);
    assert_eq!(buf[19..22], [0x40, 21, 5]);
}

fn assert_invalid(packet: &[u8]) {
    let error = PartialHeader::parse(packet, 0).unwrap_err();
    assert!(matches!(error, DecodeError::Invalid(_)), "{error:?}");
}

#[test]
fn the_quic_bit_is_decoded_whatever_it_is() {
    for (packet, quic_bit) in [
        ("4000000000", true),
        ("0000000000", false),
        ("c0000000010000000101", true),
        ("80000000010000000101", false),
        ("906b3343cf0000000101", false),
    ] {
        let parsed = PartialHeader::parse(&hex(packet), 0).unwrap();
        assert_eq!(parsed.quic_bit, quic_bit, "{packet}");
    }
}

#[test]
fn the_quic_bit_can_be_cleared() {
    let (dst, src) = (cid("0a0b0c"), cid("01"));
    let pn = TruncatedPacketNumber { value: 1, len: 1 };
    for header in [
        Header::Handshake { dst, src },
        Header::OneRtt {
            dst,
            spin: true,
            key_phase: true,
        },
    ] {
        let mut buf = [0; 100];
        let layout = header.encode(VERSION_2, pn, &mut Writer::new(&mut buf));
        let set = buf;
        layout.clear_quic_bit(&mut buf);
        assert_eq!(buf[0], set[0] & 0xbf);
        assert_eq!(buf[1..], set[1..]);
    }
}

/// RFC 9369, section 3.2, and the examples of its appendix A.
#[test]
fn types_of_version_2_have_other_numbers() {
    let (dst, src) = (cid("8394c8f03e515708"), ConnectionId::EMPTY);
    let pn = TruncatedPacketNumber { value: 2, len: 4 };
    let initial = Header::Initial {
        dst,
        src,
        token: &[],
    };
    let initial = encode_version(VERSION_2, &initial, pn, 1178);
    assert_eq!(initial, hex("d36b3343cf088394c8f03e5157080000449e00000002"));
    for (header, bits) in [
        (Header::ZeroRtt { dst, src }, 0xe0),
        (Header::Handshake { dst, src }, 0xf0),
    ] {
        let packet = encode_version(VERSION_2, &header, pn, 0);
        assert_eq!(packet[0] & 0xf0, bits);
        let parsed = PartialHeader::parse(&packet, 0).unwrap();
        assert_eq!(parsed.packet_type, header.packet_type());
        assert_eq!(parsed.version, VERSION_2);
    }

    let mut buf = [0; 100];
    let mut w = Writer::new(&mut buf);
    write_retry(
        &mut w,
        VERSION_2,
        ConnectionId::EMPTY,
        cid("f067a5502a4262b5"),
        b"token",
        0xf,
    );
    assert_eq!(
        w.filled_mut(),
        hex("cf6b3343cf0008f067a5502a4262b5746f6b656e")
    );
    let retry = hex("cf6b3343cf0008f067a5502a4262b5746f6b656ec8646ce8bfe33952d955543665dcc7b6");
    let parsed = PartialHeader::parse(&retry, 0).unwrap();
    assert_eq!(parsed.packet_type, PacketType::Retry);
    assert_eq!(&retry[parsed.token], b"token");
}

#[test]
fn connection_ids_of_version_1_end_at_20_bytes() {
    let with_cids = |dst: usize, src: usize| {
        let mut packet = hex("e000000001");
        for len in [dst, src] {
            packet.push(len as u8);
            packet.extend(vec![7; len]);
        }
        packet.extend([1, 0]);
        packet
    };
    assert!(PartialHeader::parse(&with_cids(20, 20), 0).is_ok());
    assert_invalid(&with_cids(21, 0));
    assert_invalid(&with_cids(0, 21));
    // Other versions may have longer ones, and the invariant header shows them.
    let packet = with_cids(255, 254);
    let header = InvariantHeader::parse(&packet, 0).unwrap();
    assert_eq!(
        (header.dst_cid.len(), header.src_cid.unwrap().len()),
        (255, 254)
    );
}

#[test]
fn other_versions_are_for_the_invariant_header() {
    let packet = hex("8aface0ff1020102010399");
    assert_invalid(&packet);
    let header = InvariantHeader::parse(&packet, 0).unwrap();
    assert!(header.is_long);
    assert_eq!(header.version, Some(0xface_0ff1));
    assert_eq!(
        (header.dst_cid, header.src_cid),
        (&[1, 2][..], Some(&[3][..]))
    );
}

#[test]
fn the_invariant_short_header_has_the_length_one_chose() {
    let header = InvariantHeader::parse(&[0x40, 1, 2, 3, 4], 3).unwrap();
    assert_eq!(
        (header.is_long, header.version, header.src_cid),
        (false, None, None)
    );
    assert_eq!(header.dst_cid, [1, 2, 3]);
    let too_short = InvariantHeader::parse(&[0x40, 1, 2], 3);
    assert_eq!(too_short, Err(DecodeError::UnexpectedEnd));
}

#[test]
fn length_stays_within_the_datagram() {
    assert!(PartialHeader::parse(&hex("e00000000100000101"), 0).is_ok());
    let beyond = PartialHeader::parse(&hex("e00000000100000201"), 0);
    assert_eq!(beyond, Err(DecodeError::UnexpectedEnd));
    let huge = PartialHeader::parse(&hex("e0000000010000ffffffffffffffff01"), 0);
    assert_eq!(huge, Err(DecodeError::UnexpectedEnd));
}

#[test]
fn a_retry_needs_a_token_and_a_tag() {
    let mut packet = hex("f0000000010000");
    packet.extend([1; 15]);
    assert_eq!(
        PartialHeader::parse(&packet, 0),
        Err(DecodeError::UnexpectedEnd)
    );
    packet.push(1);
    assert_invalid(&packet);
    packet.push(1);
    assert_eq!(PartialHeader::parse(&packet, 0).unwrap().token, 7..8);
}

#[test]
fn version_negotiation_lists_versions() {
    let mut buf = [0; 600];
    let mut w = Writer::new(&mut buf);
    write_version_negotiation(&mut w, 0x15, &[1; 8], &[2; 5], &[VERSION_1, 0x1a2a_3a4a]);
    let len = w.written();
    assert_eq!(len, 7 + 8 + 5 + 8);
    let packet = &buf[..len];
    assert_eq!(packet[0], 0xd5);
    let parsed = PartialHeader::parse(packet, 0).unwrap();
    assert_eq!(
        (parsed.packet_type, parsed.version),
        (PacketType::VersionNegotiation, 0)
    );
    assert_eq!(
        (parsed.dst_cid.as_bytes(), parsed.src_cid.as_bytes()),
        (&[1; 8][..], &[2; 5][..])
    );
    let versions: Vec<u32> = parsed.supported_versions(packet).collect();
    assert_eq!(versions, [VERSION_1, 0x1a2a_3a4a]);
    // Its fixed bit is unused.
    assert!(PartialHeader::parse(&hex("80000000000000ffffffff"), 0).is_ok());
    // A list that is cut or empty is no list.
    assert_invalid(&packet[..len - 1]);
    assert_invalid(&packet[..len - 8]);
}

#[test]
fn version_negotiation_echoes_connection_ids_of_any_length() {
    let mut buf = [0; 600];
    let mut w = Writer::new(&mut buf);
    write_version_negotiation(&mut w, 0, &[1; 255], &[2; 255], &[VERSION_1]);
    let len = w.written();
    let header = InvariantHeader::parse(&buf[..len], 0).unwrap();
    assert_eq!((header.version, header.dst_cid), (Some(0), &[1; 255][..]));
    assert_eq!(header.src_cid, Some(&[2; 255][..]));
}

#[test]
fn packets_without_versions_or_tag_have_none() {
    let packet = hex("4cfe4189655e5cd55c41f69080575d7999c25a5bfb");
    let parsed = PartialHeader::parse(&packet, 0).unwrap();
    assert_eq!(parsed.supported_versions(&packet).count(), 0);
    assert!(parsed.retry_tag(&packet).is_none());
}

fn any_cid() -> impl Strategy<Value = ConnectionId> {
    prop::collection::vec(any::<u8>(), 0..=20).prop_map(|bytes| ConnectionId::new(&bytes).unwrap())
}

proptest! {
    #[test]
    fn headers_round_trip(
        kind in 0..4_u8,
        dst in any_cid(),
        src in any_cid(),
        token in prop::collection::vec(any::<u8>(), 0..100),
        value in any::<u32>(),
        pn_len in 1..=4_usize,
        rest in 0..1200_usize,
        flags in any::<(bool, bool)>(),
        version in prop::sample::select(vec![VERSION_1, VERSION_2]),
    ) {
        let header = match kind {
            0 => Header::Initial { dst, src, token: &token },
            1 => Header::Handshake { dst, src },
            2 => Header::ZeroRtt { dst, src },
            _ => Header::OneRtt { dst, spin: flags.0, key_phase: flags.1 },
        };
        let pn = TruncatedPacketNumber { value: value >> (32 - 8 * pn_len), len: pn_len };
        let mut packet = encode_version(version, &header, pn, rest);
        let header_len = packet.len();
        packet.resize(header_len + rest, 0x55);

        let parsed = PartialHeader::parse(&packet, dst.len()).unwrap();
        prop_assert_eq!(parsed.packet_type, header.packet_type());
        prop_assert_eq!(parsed.version, if kind == 3 { VERSION_1 } else { version });
        prop_assert_eq!((parsed.quic_bit, parsed.spin), (true, kind == 3 && flags.0));
        prop_assert_eq!(parsed.dst_cid, dst);
        prop_assert_eq!(parsed.src_cid, if kind == 3 { ConnectionId::EMPTY } else { src });
        prop_assert_eq!(&packet[parsed.token.clone()], if kind == 0 { &token[..] } else { &[] });
        prop_assert_eq!((parsed.pn_offset, parsed.packet_len), (header_len - pn_len, packet.len()));
        let first = PlainFirstByte(packet[0]);
        prop_assert_eq!(first.packet_number_len(), pn_len);
        let mut r = Reader::new(&packet[parsed.pn_offset..]);
        prop_assert_eq!(TruncatedPacketNumber::read(&mut r, pn_len), Ok(pn));

        let invariant = InvariantHeader::parse(&packet, dst.len()).unwrap();
        prop_assert_eq!(invariant.dst_cid, dst.as_bytes());
        prop_assert_eq!(invariant.is_long, kind != 3);

        // Cut anywhere, a long header is too short; a short one up to its connection ID.
        let cut = if kind == 3 { parsed.pn_offset } else { packet.len() };
        for end in 0..cut {
            let cut = PartialHeader::parse(&packet[..end], dst.len());
            prop_assert_eq!(cut, Err(DecodeError::UnexpectedEnd));
        }
    }

    #[test]
    fn any_bytes_are_parsed_without_panic(
        mut packet in prop::collection::vec(any::<u8>(), 0..120),
        version in prop::option::of(prop::sample::select(vec![0, VERSION_1, VERSION_2])),
        small_cids in any::<bool>(),
        local_cid_len in 0..=30_usize,
    ) {
        if let (Some(version), true) = (version, packet.len() >= 7) {
            packet[0] |= 0xc0;
            packet[1..5].copy_from_slice(&version.to_be_bytes());
            if small_cids {
                packet[5] = 0;
                packet[6] %= 20;
            }
        }
        let _ = InvariantHeader::parse(&packet, local_cid_len);
        if let Ok(header) = PartialHeader::parse(&packet, local_cid_len) {
            prop_assert!(header.pn_offset <= header.packet_len);
            prop_assert!(header.packet_len <= packet.len());
            prop_assert!(packet.get(header.token.clone()).is_some());
            prop_assert!(header.token.end <= header.packet_len);
            let _ = header.supported_versions(&packet).count();
            let _ = header.retry_tag(&packet);
            // Even if the caller passes something else than what was parsed.
            let _ = header.supported_versions(&[]).count();
            let _ = header.retry_tag(&[]);
        }
    }
}
