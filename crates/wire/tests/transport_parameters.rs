//! Transport parameters: defaults, ranges, roles and repetition.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::time::Duration;

use proptest::prelude::*;
use swiftwater_units::Side;
use swiftwater_wire::{
    ConnectionId, ErrorCode, PreferredAddress, ResetToken, TransportParameterError,
    TransportParameters, VERSION_1, VERSION_2, VersionInformation, Writer,
};

type Decoded = Result<TransportParameters, TransportParameterError>;

const MAX: u64 = (1 << 62) - 1;

/// `initial_max_path_id` of draft-ietf-quic-multipath-10.
const DRAFT10_MAX_PATH_ID: u64 = 0x0f73_9bbc_1b66_6d09;

fn varint(n: u64) -> Vec<u8> {
    let mut buf = [0; 8];
    let mut w = Writer::new(&mut buf);
    w.varint(n);
    let len = w.written();
    buf[..len].to_vec()
}

fn parameter(id: u64, value: &[u8]) -> Vec<u8> {
    [varint(id), varint(value.len() as u64), value.to_vec()].concat()
}

fn integer(id: u64, value: u64) -> Vec<u8> {
    parameter(id, &varint(value))
}

fn decode(bytes: &[u8]) -> Decoded {
    TransportParameters::decode(bytes, Side::Server)
}

fn encode(params: &TransportParameters, side: Side) -> Vec<u8> {
    let mut out = Vec::new();
    params.encode(side, &mut out, None);
    out
}

fn assert_invalid(id: u64, decoded: &Decoded) {
    match decoded {
        Err(error @ TransportParameterError::Invalid { id: found, .. }) => {
            assert_eq!(*found, id);
            assert_eq!(error.error_code(), ErrorCode::TRANSPORT_PARAMETER_ERROR);
        }
        other => panic!("{id:#x}: {other:?}"),
    }
}

fn preferred() -> PreferredAddress {
    PreferredAddress {
        ipv4: Some("192.0.2.1:4433".parse().unwrap()),
        ipv6: Some("[2001:db8::1]:4434".parse().unwrap()),
        cid: ConnectionId::new(&[9, 8, 7]).unwrap(),
        reset_token: ResetToken([6; 16]),
    }
}

fn all_set() -> TransportParameters {
    TransportParameters {
        original_destination_connection_id: ConnectionId::new(&[1; 8]),
        max_idle_timeout: Duration::from_secs(30),
        stateless_reset_token: Some(ResetToken([2; 16])),
        max_udp_payload_size: 1472,
        initial_max_data: 4,
        initial_max_stream_data_bidi_local: 5,
        initial_max_stream_data_bidi_remote: 6,
        initial_max_stream_data_uni: 7,
        initial_max_streams_bidi: 8,
        initial_max_streams_uni: 9,
        ack_delay_exponent: 10,
        max_ack_delay: Duration::from_millis(11),
        disable_active_migration: true,
        preferred_address: Some(preferred()),
        active_connection_id_limit: 14,
        initial_source_connection_id: ConnectionId::new(&[]),
        retry_source_connection_id: ConnectionId::new(&[3; 20]),
        version_information: Some(VersionInformation::new(VERSION_2, [VERSION_1, VERSION_2])),
        reset_stream_at: true,
        max_datagram_frame_size: 1200,
        initial_max_path_id: Some(4),
        initial_max_path_id_draft10: Some(5),
        grease_quic_bit: true,
        min_ack_delay: Some(Duration::from_micros(2500)),
        max_feedback_size: 48,
    }
}

#[test]
fn defaults_are_those_of_the_rfc_and_take_no_bytes() {
    let defaults = TransportParameters::default();
    assert_eq!(decode(&[]), Ok(defaults));
    assert!(encode(&defaults, Side::Server).is_empty());
    assert_eq!(defaults.max_udp_payload_size, 65_527);
    assert_eq!(defaults.ack_delay_exponent, 3);
    assert_eq!(defaults.max_ack_delay, Duration::from_millis(25));
    assert_eq!(defaults.active_connection_id_limit, 2);
    assert_eq!(defaults.max_idle_timeout, Duration::ZERO);
    assert_eq!(defaults.max_datagram_frame_size, 0);
    assert_eq!(defaults.initial_max_path_id, None);
    assert_eq!(defaults.version_information, None);
    assert!(!defaults.grease_quic_bit);
    assert!(!defaults.reset_stream_at);
    assert_eq!(defaults.max_feedback_size, 0);
}

/// A `version_information` with these versions, the chosen one first.
fn versions(versions: &[u32]) -> Vec<u8> {
    let bytes: Vec<u8> = versions.iter().flat_map(|v| v.to_be_bytes()).collect();
    parameter(0x11, &bytes)
}

#[test]
fn version_information_is_read_as_sent() {
    let read = decode(&versions(&[1, 0x0a1a_2a3a, 0x6b33_43cf, 1])).unwrap();
    let information = read.version_information.unwrap();
    assert_eq!(information.chosen, VERSION_1);
    assert_eq!(information.available(), [0x0a1a_2a3a, VERSION_2, VERSION_1]);
    // A list without an end is cut, after its check.
    let long: Vec<u32> = (1..=100).collect();
    let read = decode(&versions(&long)).unwrap();
    let information = read.version_information.unwrap();
    assert_eq!(information.available(), &long[1..17]);
}

/// What a client says is kept such that it can be said again.
#[test]
fn the_chosen_version_is_kept_however_many_come_before() {
    let listed: Vec<u32> = (100..120).chain([VERSION_2]).collect();
    let bytes = versions(&[&[VERSION_2], &listed[..]].concat());
    let read = TransportParameters::decode(&bytes, Side::Client).unwrap();
    let information = read.version_information.unwrap();
    assert_eq!(information.available().len(), 16);
    assert_eq!(information.available()[..15], listed[..15]);
    assert_eq!(information.available()[15], VERSION_2);
    let mut encoded = Vec::new();
    read.encode(Side::Client, &mut encoded, None);
    assert_eq!(
        TransportParameters::decode(&encoded, Side::Client),
        Ok(read)
    );
}

#[test]
fn version_information_that_breaks_the_rules_is_refused() {
    for bytes in [&[][..], &[0, 0, 0], &[0, 0, 0, 1, 0], &[0, 0, 0, 1, 0, 0]] {
        let error = decode(&parameter(0x11, bytes)).unwrap_err();
        assert_eq!(error, TransportParameterError::Malformed);
    }
    for list in [&[0][..], &[0, 1], &[1, 0], &[1, 1, 2, 0]] {
        for side in [Side::Client, Side::Server] {
            let error = TransportParameters::decode(&versions(list), side).unwrap_err();
            let invalid = matches!(error, TransportParameterError::Invalid { id: 0x11, .. });
            assert!(invalid, "{list:?} {error:?}");
        }
    }
    // Only a server may choose what it doesn't offer.
    for list in [&[1][..], &[1, 2, 3]] {
        assert!(decode(&versions(list)).is_ok());
        let error = TransportParameters::decode(&versions(list), Side::Client).unwrap_err();
        assert_eq!(error.error_code(), ErrorCode::TRANSPORT_PARAMETER_ERROR);
    }
}

#[test]
fn grease_quic_bit_has_no_value() {
    let bytes = parameter(0x2ab2, &[]);
    assert!(decode(&bytes).unwrap().grease_quic_bit);
    assert_eq!(
        decode(&parameter(0x2ab2, &[1])),
        Err(TransportParameterError::Malformed)
    );
    let twice = [bytes.clone(), bytes].concat();
    assert_eq!(
        decode(&twice),
        Err(TransportParameterError::Duplicate(0x2ab2))
    );
}

#[test]
fn every_parameter_round_trips() {
    assert_eq!(decode(&encode(&all_set(), Side::Server)), Ok(all_set()));
}

#[test]
fn each_field_has_its_own_identifier() {
    let read = |id, value| decode(&integer(id, value)).unwrap();
    assert_eq!(
        read(0x01, 1500).max_idle_timeout,
        Duration::from_millis(1500)
    );
    assert_eq!(read(0x03, 1200).max_udp_payload_size, 1200);
    assert_eq!(read(0x04, 1).initial_max_data, 1);
    assert_eq!(read(0x05, 1).initial_max_stream_data_bidi_local, 1);
    assert_eq!(read(0x06, 1).initial_max_stream_data_bidi_remote, 1);
    assert_eq!(read(0x07, 1).initial_max_stream_data_uni, 1);
    assert_eq!(read(0x08, 1).initial_max_streams_bidi, 1);
    assert_eq!(read(0x09, 1).initial_max_streams_uni, 1);
    assert_eq!(read(0x0a, 1).ack_delay_exponent, 1);
    assert_eq!(read(0x0b, 1).max_ack_delay, Duration::from_millis(1));
    assert_eq!(read(0x0e, 3).active_connection_id_limit, 3);
    assert_eq!(read(0x20, 1).max_datagram_frame_size, 1);
    assert_eq!(read(0x3e, 0).initial_max_path_id, Some(0));
    let draft = read(DRAFT10_MAX_PATH_ID, 5);
    let declared = (draft.initial_max_path_id, draft.initial_max_path_id_draft10);
    assert_eq!(declared, (None, Some(5)));
    let delay = read(0xff04_de1b, 1500).min_ack_delay;
    assert_eq!(delay, Some(Duration::from_micros(1500)));
    let cid = ConnectionId::new(&[5]);
    let read = |id| decode(&parameter(id, &[5])).unwrap();
    assert_eq!(read(0x00).original_destination_connection_id, cid);
    assert_eq!(read(0x0f).initial_source_connection_id, cid);
    assert_eq!(read(0x10).retry_source_connection_id, cid);
    let token = decode(&parameter(0x02, &[5; 16]))
        .unwrap()
        .stateless_reset_token;
    assert_eq!(token, Some(ResetToken([5; 16])));
    assert!(
        decode(&parameter(0x0c, &[]))
            .unwrap()
            .disable_active_migration
    );
}

#[test]
fn identifiers_rise_in_what_is_written() {
    let params = TransportParameters {
        max_idle_timeout: Duration::from_millis(64),
        initial_max_data: 1,
        disable_active_migration: true,
        initial_source_connection_id: ConnectionId::new(&[7]),
        initial_max_path_id: Some(0),
        ..TransportParameters::default()
    };
    let expected = [1, 2, 0x40, 64, 4, 1, 1, 0x0c, 0, 0x0f, 1, 7, 0x3e, 1, 0];
    assert_eq!(encode(&params, Side::Client), expected);
}

#[test]
fn a_reserved_parameter_is_added_and_ignored() {
    let mut out = Vec::new();
    TransportParameters::default().encode(Side::Client, &mut out, Some((31 * 2 + 27, &[1, 2])));
    assert_eq!(out, [0x40, 89, 2, 1, 2]);
    assert_eq!(decode(&out), Ok(TransportParameters::default()));
}

#[test]
fn clients_neither_send_nor_may_send_what_servers_may() {
    let bytes = encode(&all_set(), Side::Client);
    let expected = TransportParameters {
        original_destination_connection_id: None,
        stateless_reset_token: None,
        preferred_address: None,
        retry_source_connection_id: None,
        ..all_set()
    };
    assert_eq!(
        TransportParameters::decode(&bytes, Side::Client),
        Ok(expected)
    );

    for (id, value) in [
        (0x00, &[1; 8][..]),
        (0x02, &[1; 16]),
        (0x0d, &[1; 60]),
        (0x10, &[]),
    ] {
        let decoded = TransportParameters::decode(&parameter(id, value), Side::Client);
        assert_eq!(decoded, Err(TransportParameterError::ServerOnly(id)));
    }
}

#[test]
fn no_parameter_may_repeat() {
    for id in [0x04, 0x3e, 0x12, 27, 63, 64, 89, MAX] {
        let twice = [integer(id, 5), integer(0x01, 9), integer(id, 6)].concat();
        assert_eq!(decode(&twice), Err(TransportParameterError::Duplicate(id)));
    }
}

#[test]
fn unknown_parameters_are_ignored_however_many() {
    let bytes: Vec<u8> = (0..10_000)
        .flat_map(|n| parameter(100_000 + n, &[]))
        .collect();
    assert_eq!(decode(&bytes), Ok(TransportParameters::default()));
    let again = [bytes, parameter(100_000, &[])].concat();
    assert_eq!(
        decode(&again),
        Err(TransportParameterError::Duplicate(100_000))
    );
}

/// `valid` and `invalid` are adjacent at the edge of the range.
fn edge(id: u64, valid: u64, invalid: u64) {
    assert!(decode(&integer(id, valid)).is_ok(), "{id:#x}: {valid}");
    assert_invalid(id, &decode(&integer(id, invalid)));
}

#[test]
fn max_udp_payload_size_is_at_least_1200() {
    edge(0x03, 1200, 1199);
    assert!(decode(&integer(0x03, MAX)).is_ok());
}

#[test]
fn stream_limits_end_at_2_to_the_60() {
    edge(0x08, 1 << 60, (1 << 60) + 1);
    edge(0x09, 1 << 60, (1 << 60) + 1);
}

#[test]
fn ack_delay_exponent_ends_at_20() {
    edge(0x0a, 20, 21);
    // Not only its low byte counts.
    assert_invalid(0x0a, &decode(&integer(0x0a, 256)));
}

#[test]
fn max_feedback_size_ends_at_64() {
    edge(0x19d1_f5a6, 64, 65);
    // Not only its low byte counts.
    assert_invalid(0x19d1_f5a6, &decode(&integer(0x19d1_f5a6, 256)));
}

#[test]
fn max_ack_delay_is_below_2_to_the_14() {
    edge(0x0b, (1 << 14) - 1, 1 << 14);
}

#[test]
fn active_connection_id_limit_is_at_least_2() {
    edge(0x0e, 2, 1);
}

#[test]
fn min_ack_delay_is_at_most_max_ack_delay() {
    let delays = |max_millis, min_micros| {
        decode(&[integer(0xff04_de1b, min_micros), integer(0x0b, max_millis)].concat())
    };
    assert!(delays(20, 20_000).is_ok());
    assert_invalid(0xff04_de1b, &delays(20, 20_001));
    // The default of max_ack_delay counts, too.
    assert!(decode(&integer(0xff04_de1b, 25_000)).is_ok());
    assert_invalid(0xff04_de1b, &decode(&integer(0xff04_de1b, 25_001)));
}

#[test]
fn initial_max_path_id_has_32_bits() {
    for id in [0x3e, DRAFT10_MAX_PATH_ID] {
        edge(id, u64::from(u32::MAX), u64::from(u32::MAX) + 1);
    }
}

#[test]
fn connection_ids_end_at_20_bytes() {
    for id in [0x00, 0x0f, 0x10] {
        assert!(decode(&parameter(id, &[1; 20])).is_ok());
        assert_invalid(id, &decode(&parameter(id, &[1; 21])));
    }
}

#[test]
fn flags_are_empty_and_other_values_end_with_their_length() {
    let malformed = Err(TransportParameterError::Malformed);
    assert_eq!(decode(&parameter(0x0c, &[0])), malformed);
    assert_eq!(decode(&parameter(0x02, &[1; 15])), malformed);
    assert_eq!(decode(&parameter(0x02, &[1; 17])), malformed);
    assert_eq!(decode(&parameter(0x04, &[])), malformed);
    assert_eq!(decode(&parameter(0x04, &[1, 0])), malformed);
    assert_eq!(decode(&parameter(0x04, &[0x40])), malformed);
    assert_eq!(decode(&[0x04]), malformed);
    assert_eq!(decode(&[0x04, 2, 1]), malformed);
}

/// Drafts up to 07 had another identifier than those since; peers of either kind understand us.
#[test]
fn reset_stream_at_has_an_old_and_a_new_identifier() {
    let (new, old) = (0x1d, 0x17_f758_6d2c_b571);
    for id in [new, old] {
        assert!(decode(&parameter(id, &[])).unwrap().reset_stream_at);
        let malformed = Err(TransportParameterError::Malformed);
        assert_eq!(decode(&parameter(id, &[0])), malformed, "{id:#x}");
    }
    let params = TransportParameters {
        reset_stream_at: true,
        ..TransportParameters::default()
    };
    let both = [parameter(new, &[]), parameter(old, &[])].concat();
    assert_eq!(encode(&params, Side::Client), both);
}

#[test]
fn integers_need_not_be_shortest() {
    assert_eq!(
        decode(&parameter(0x04, &[0x40, 5]))
            .unwrap()
            .initial_max_data,
        5
    );
}

#[test]
fn durations_are_rounded_up_to_milliseconds() {
    let params = TransportParameters {
        max_idle_timeout: Duration::from_micros(1),
        max_ack_delay: Duration::from_micros(25_001),
        ..TransportParameters::default()
    };
    let decoded = decode(&encode(&params, Side::Client)).unwrap();
    assert_eq!(decoded.max_idle_timeout, Duration::from_millis(1));
    assert_eq!(decoded.max_ack_delay, Duration::from_millis(26));
    let forever = TransportParameters {
        max_idle_timeout: Duration::MAX,
        ..TransportParameters::default()
    };
    let decoded = decode(&encode(&forever, Side::Client)).unwrap();
    assert_eq!(decoded.max_idle_timeout, Duration::from_millis(MAX));
}

#[test]
fn preferred_address_layout() {
    let mut value = vec![192, 0, 2, 1, 0x11, 0x51];
    value.extend([
        0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x11, 0x52,
    ]);
    value.extend([3, 9, 8, 7]);
    value.extend([6; 16]);
    let bytes = parameter(0x0d, &value);
    assert_eq!(decode(&bytes).unwrap().preferred_address, Some(preferred()));
    let params = TransportParameters {
        preferred_address: Some(preferred()),
        ..TransportParameters::default()
    };
    assert_eq!(encode(&params, Side::Server), bytes);

    for end in 0..value.len() {
        let cut = decode(&parameter(0x0d, &value[..end]));
        assert_eq!(cut, Err(TransportParameterError::Malformed), "{end}");
    }
    value.push(0);
    assert_eq!(
        decode(&parameter(0x0d, &value)),
        Err(TransportParameterError::Malformed)
    );
}

#[test]
fn preferred_address_may_lack_a_family() {
    for (v4, v6) in [(true, false), (false, true), (false, false)] {
        let full = preferred();
        let address = PreferredAddress {
            ipv4: full.ipv4.filter(|_| v4),
            ipv6: full.ipv6.filter(|_| v6),
            ..full
        };
        let params = TransportParameters {
            preferred_address: Some(address),
            ..TransportParameters::default()
        };
        assert_eq!(decode(&encode(&params, Side::Server)), Ok(params));
    }
}

#[test]
fn preferred_address_has_a_connection_id_of_1_to_20_bytes() {
    let with_cid = |len: u8| {
        let mut value = vec![1; 24];
        value.push(len);
        value.extend(vec![1; usize::from(len) + 16]);
        decode(&parameter(0x0d, &value))
    };
    assert_invalid(0x0d, &with_cid(0));
    assert!(with_cid(1).is_ok());
    assert!(with_cid(20).is_ok());
    assert_invalid(0x0d, &with_cid(21));
}

fn cid() -> impl Strategy<Value = Option<ConnectionId>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..=20);
    prop::option::of(bytes.prop_map(|bytes| ConnectionId::new(&bytes).unwrap()))
}

prop_compose! {
    fn any_params()(
        cids in (cid(), cid(), cid()),
        token in prop::option::of(any::<[u8; 16]>().prop_map(ResetToken)),
        data in [0..=MAX, 0..=MAX, 0..=MAX, 0..=MAX, 0..=MAX],
        streams in [0..=1_u64 << 60, 0..=1_u64 << 60],
        idle in 0..=MAX,
        payload in 1200..=MAX,
        delay in (0..=20_u8, 0..1_u64 << 14),
        flag in any::<bool>(),
        reset_stream_at in any::<bool>(),
        limit in 2..=MAX,
        paths in any::<Option<u32>>(),
        versions in prop::option::of((1..=u32::MAX, prop::collection::vec(1..=u32::MAX, 0..=16))),
    ) -> TransportParameters {
        TransportParameters {
            original_destination_connection_id: cids.0,
            max_idle_timeout: Duration::from_millis(idle),
            stateless_reset_token: token,
            max_udp_payload_size: payload,
            initial_max_data: data[0],
            initial_max_stream_data_bidi_local: data[1],
            initial_max_stream_data_bidi_remote: data[2],
            initial_max_stream_data_uni: data[3],
            initial_max_streams_bidi: streams[0],
            initial_max_streams_uni: streams[1],
            ack_delay_exponent: delay.0,
            max_ack_delay: Duration::from_millis(delay.1),
            disable_active_migration: flag,
            preferred_address: flag.then(preferred),
            active_connection_id_limit: limit,
            initial_source_connection_id: cids.1,
            retry_source_connection_id: cids.2,
            version_information: versions
                .map(|(chosen, available)| VersionInformation::new(chosen, available)),
            reset_stream_at,
            max_datagram_frame_size: data[4],
            initial_max_path_id: paths,
            initial_max_path_id_draft10: paths.filter(|_| flag),
            grease_quic_bit: flag,
            // At most max_ack_delay.
            min_ack_delay: paths.map(|share| Duration::from_micros(
                u64::from(share) % (delay.1 * 1000 + 1)
            )),
            max_feedback_size: delay.0 * 3,
        }
    }
}

proptest! {
    #[test]
    fn round_trip(params in any_params()) {
        prop_assert_eq!(decode(&encode(&params, Side::Server)), Ok(params));
    }

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&bytes);
        let _ = TransportParameters::decode(&bytes, Side::Client);
    }

    /// What is accepted, however oddly coded, is written and read alike.
    #[test]
    fn damaged_parameters_are_read_without_panic(
        params in any_params(),
        at in any::<prop::sample::Index>(),
        value in any::<u8>(),
    ) {
        let mut bytes = encode(&params, Side::Server);
        prop_assume!(!bytes.is_empty());
        let at = at.index(bytes.len());
        bytes[at] = value;
        if let Ok(decoded) = decode(&bytes) {
            prop_assert_eq!(decode(&encode(&decoded, Side::Server)), Ok(decoded));
        }
    }
}
