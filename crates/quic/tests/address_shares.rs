//! Shares of clients: one can't take what others need.

use std::collections::BTreeMap;
use std::net::IpAddr;

use proptest::collection::vec;
use proptest::prelude::*;
use swiftwater_quic::{AddressShares, ShareError};

fn v4(last: u8) -> IpAddr {
    IpAddr::from([192, 0, 2, last])
}

/// Takes places one by one until refused.
fn take_all(shares: &mut AddressShares, client: IpAddr) -> usize {
    let mut taken = 0;
    while shares.acquire(client, 1).is_ok() {
        taken += 1;
    }
    taken
}

#[test]
fn a_client_alone_gets_half() {
    let mut shares = AddressShares::new(1000);
    assert_eq!(take_all(&mut shares, v4(1)), 500);
    assert_eq!(shares.acquire(v4(1), 1), Err(ShareError::ShareExceeded));
}

#[test]
fn clients_with_many_connections_leave_room_for_a_newcomer() {
    let mut shares = AddressShares::new(1000);
    for client in 0..5 {
        take_all(&mut shares, v4(client));
    }
    assert!(take_all(&mut shares, v4(200)) >= 1000 / 128);
}

#[test]
fn a_single_place_can_be_had() {
    let mut shares = AddressShares::new(1);
    assert!(shares.acquire(v4(1), 1).is_ok());
    assert_eq!(shares.acquire(v4(2), 1), Err(ShareError::Full));
    shares.release(v4(1), 1);
    assert!(shares.acquire(v4(2), 1).is_ok());
}

#[test]
fn addresses_of_one_ipv6_network_are_one_client() {
    let mut shares = AddressShares::new(4);
    let client = |text: &str| text.parse::<IpAddr>().expect("an address");
    assert!(shares.acquire(client("2001:db8:0:1::1"), 2).is_ok());
    let refused = shares.acquire(client("2001:db8:0:1:ffff::2"), 1);
    assert_eq!(refused, Err(ShareError::ShareExceeded));
    assert!(shares.acquire(client("2001:db8:0:2::1"), 1).is_ok());
    // Mapped and plain IPv4 are the same.
    assert_eq!(shares.held_by(client("::ffff:192.0.2.1")), 0);
    assert!(shares.acquire(client("::ffff:192.0.2.1"), 1).is_ok());
    assert_eq!(shares.held_by(v4(1)), 1);
}

proptest! {
    #[test]
    fn counts_are_those_of_a_list(
        capacity in 0..50_usize,
        steps in vec((0..5_u8, 0..8_usize, any::<bool>()), 0..200),
    ) {
        let mut shares = AddressShares::new(capacity);
        let mut model: BTreeMap<u8, usize> = BTreeMap::new();
        for (client, places, acquire) in steps {
            let holds = model.get(&client).copied().unwrap_or(0);
            if acquire {
                let free = capacity - model.values().sum::<usize>();
                let admitted = shares.acquire(v4(client), places).is_ok();
                prop_assert_eq!(admitted, places <= free && (holds == 0 || holds + places <= free));
                if admitted {
                    *model.entry(client).or_default() += places;
                }
            } else {
                let places = places.min(holds);
                shares.release(v4(client), places);
                *model.entry(client).or_default() -= places;
            }
            prop_assert_eq!(shares.held(), model.values().sum::<usize>());
            prop_assert_eq!(shares.held_by(v4(client)), model.get(&client).copied().unwrap_or(0));
        }
    }
}
