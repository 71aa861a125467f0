//! The capsules of IP proxying (RFC 9484, section 4.7): forms, and what is malformed.

use std::net::IpAddr;

use bytes::Bytes;
use proptest::prelude::*;
use swiftwater_http::h3::capsule::Capsule;
use swiftwater_tunnel::ip::{
    AddressRange, AssignedAddress, CapsuleError, IpCapsule, RequestedAddress, Route, Routes,
};
use swiftwater_tunnel::policy::Prefix;
use swiftwater_wire::VarInt;

fn decode(capsule_type: u64, value: &[u8]) -> Result<Option<IpCapsule>, CapsuleError> {
    let value = Bytes::copy_from_slice(value);
    IpCapsule::decode(&Capsule {
        capsule_type,
        value,
    })
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

fn route(first: &str, last: &str, protocol: u8) -> Route {
    let addresses = AddressRange::new(ip(first), ip(last)).unwrap();
    Route {
        addresses,
        protocol,
    }
}

#[test]
fn the_forms_are_those_of_the_rfc() {
    // Identifier 1, version 4, 192.0.2.42, 32 bits.
    let assigned = AssignedAddress {
        request_id: VarInt::from_u32(1),
        prefix: "192.0.2.42".parse().unwrap(),
    };
    let capsule = IpCapsule::AddressAssign(vec![assigned]).encode();
    assert_eq!(capsule.capsule_type, 1);
    assert_eq!(capsule.value, [1, 4, 192, 0, 2, 42, 32][..]);
    let requested = RequestedAddress {
        request_id: VarInt::from_u32(70),
        prefix: "::/128".parse().unwrap(),
    };
    let capsule = IpCapsule::AddressRequest(vec![requested]).encode();
    assert_eq!(capsule.capsule_type, 2);
    let mut expected = vec![0x40, 70, 6];
    expected.extend([0; 16]);
    expected.push(128);
    assert_eq!(capsule.value, expected);
    let routes = Routes::new(vec![route("0.0.0.0", "255.255.255.255", 17)]).unwrap();
    let capsule = IpCapsule::RouteAdvertisement(routes).encode();
    assert_eq!(capsule.capsule_type, 3);
    assert_eq!(capsule.value, [4, 0, 0, 0, 0, 255, 255, 255, 255, 17][..]);
}

#[test]
fn capsules_of_other_types_are_not_read() {
    assert_eq!(decode(0, b"anything"), Ok(None));
    assert_eq!(decode(4, b"anything"), Ok(None));
}

#[test]
fn no_addresses_and_no_routes_take_all_back() {
    let none = IpCapsule::AddressAssign(Vec::new());
    assert_eq!(decode(1, &[]), Ok(Some(none)));
    let none = IpCapsule::RouteAdvertisement(Routes::default());
    assert_eq!(decode(3, &[]), Ok(Some(none)));
}

#[test]
fn malformed_addresses_are_refused() {
    for (value, error) in [
        (&[0][..], CapsuleError::Truncated),
        (&[0, 4, 10, 0, 0], CapsuleError::Truncated),
        (&[0, 4, 10, 0, 0, 0], CapsuleError::Truncated),
        (&[0, 5, 10, 0, 0, 0, 8], CapsuleError::Version(5)),
        (&[0, 4, 10, 0, 0, 0, 33], CapsuleError::PrefixLength(33)),
        (&[0, 4, 10, 0, 0, 1, 31], CapsuleError::HostBits),
    ] {
        assert_eq!(decode(1, value), Err(error), "{value:?}");
    }
}

#[test]
fn requests_have_identifiers_and_addresses() {
    let request = |id: u8| [id, 4, 0, 0, 0, 0, 32];
    assert_eq!(decode(2, &[]), Err(CapsuleError::NoRequest));
    assert_eq!(decode(2, &request(0)), Err(CapsuleError::RequestIdZero));
    let twice = [request(3), request(2), request(3)].concat();
    assert_eq!(decode(2, &twice), Err(CapsuleError::RequestIdTwice(3)));
    assert!(decode(2, &[request(3), request(2)].concat()).is_ok());
}

#[test]
fn routes_are_in_order_and_disjoint() {
    let encoded = |routes: &[Route]| {
        let single = routes.iter().map(|route| {
            let routes = Routes::new(vec![*route]).unwrap();
            IpCapsule::RouteAdvertisement(routes).encode().value
        });
        decode(3, &single.collect::<Vec<_>>().concat())
    };
    let low = route("10.0.0.0", "10.0.0.9", 0);
    let middle = route("10.0.0.10", "10.0.0.10", 0);
    let overlapping = route("10.0.0.9", "10.0.0.20", 0);
    let of_udp = route("10.0.0.0", "10.0.0.9", 17);
    let v6 = route("::", "::1", 0);
    for routes in [
        &[low, middle][..],
        &[low, middle, of_udp, v6],
        &[low, of_udp],
    ] {
        let decoded = IpCapsule::RouteAdvertisement(Routes::new(routes.to_vec()).unwrap());
        assert_eq!(encoded(routes), Ok(Some(decoded)));
    }
    for routes in [
        &[middle, low][..],
        &[low, low],
        &[low, overlapping],
        &[of_udp, low],
        &[v6, low],
    ] {
        let error = encoded(routes).unwrap_err();
        assert!(matches!(error, CapsuleError::Order(_)), "{routes:?}");
    }
    let backwards = [4, 10, 0, 0, 2, 10, 0, 0, 1, 0];
    assert_eq!(decode(3, &backwards), Err(CapsuleError::Range));
    assert_eq!(decode(3, &[6; 20]), Err(CapsuleError::Truncated));
}

#[test]
fn routes_allow_their_protocol_and_icmp() {
    let routes = Routes::new(vec![route("10.0.0.0", "10.0.0.9", 17)]).unwrap();
    assert!(routes.allow(ip("10.0.0.9"), 17));
    assert!(routes.allow(ip("10.0.0.9"), 1));
    assert!(!routes.allow(ip("10.0.0.9"), 6));
    assert!(!routes.allow(ip("10.0.0.10"), 17));
}

fn prefix() -> impl Strategy<Value = Prefix> {
    let v4 = (any::<[u8; 4]>(), 0_u8..=32).prop_map(|(ip, length)| (IpAddr::from(ip), length));
    let v6 = (any::<[u8; 16]>(), 0_u8..=128).prop_map(|(ip, length)| (IpAddr::from(ip), length));
    prop_oneof![v4, v6].prop_map(|(address, length)| {
        let prefix = Prefix::new(address, length).unwrap();
        Prefix::new(prefix.first(), length).unwrap()
    })
}

proptest! {
    #[test]
    fn addresses_come_back(prefixes in prop::collection::vec((0_u32.., prefix()), 0..20)) {
        let addresses = prefixes.iter().map(|&(id, prefix)| AssignedAddress {
            request_id: VarInt::from_u32(id),
            prefix,
        });
        let sent = IpCapsule::AddressAssign(addresses.collect());
        prop_assert_eq!(IpCapsule::decode(&sent.encode()), Ok(Some(sent)));
    }

    #[test]
    fn any_bytes_are_read_or_refused(kind in 0_u64..5, value in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(Some(capsule)) = decode(kind, &value) {
            // Integers may have been longer than necessary; the meaning is the same.
            prop_assert_eq!(IpCapsule::decode(&capsule.encode()), Ok(Some(capsule)));
        }
    }

    #[test]
    fn bytes_like_routes_are_read_or_refused(mut value in prop::collection::vec(0_u8..8, 0..200)) {
        if let Some(first) = value.first_mut() {
            *first = 4;
        }
        if let Ok(Some(capsule)) = decode(3, &value) {
            prop_assert_eq!(capsule.encode().value, value);
        }
    }
}
