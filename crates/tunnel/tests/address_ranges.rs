//! Ranges of addresses as prefixes, and what is left of them.
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use swiftwater_tunnel::ip::AddressRange;
use swiftwater_tunnel::policy::Prefix;

fn range(first: &str, last: &str) -> AddressRange {
    AddressRange::new(first.parse().unwrap(), last.parse().unwrap()).unwrap()
}

fn texts(prefixes: &[Prefix]) -> Vec<String> {
    prefixes.iter().map(ToString::to_string).collect()
}

#[test]
fn prefixes_of_known_ranges() {
    for (first, last, prefixes) in [
        ("0.0.0.0", "255.255.255.255", &["0.0.0.0/0"][..]),
        ("::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", &["::/0"]),
        ("192.0.2.7", "192.0.2.7", &["192.0.2.7/32"]),
        (
            "10.0.0.1",
            "10.0.0.4",
            &["10.0.0.1/32", "10.0.0.2/31", "10.0.0.4/32"],
        ),
        (
            "255.255.255.254",
            "255.255.255.255",
            &["255.255.255.254/31"],
        ),
        (
            "2001:db8::",
            "2001:db8:0:1:ffff:ffff:ffff:ffff",
            &["2001:db8::/63"],
        ),
    ] {
        assert_eq!(texts(&range(first, last).prefixes()), prefixes);
    }
}

#[test]
fn ranges_without_others() {
    let whole = range("10.0.0.0", "10.0.0.9");
    for (cut, left) in [
        (
            range("10.0.0.3", "10.0.0.4"),
            vec![range("10.0.0.0", "10.0.0.2"), range("10.0.0.5", "10.0.0.9")],
        ),
        (
            range("9.0.0.0", "10.0.0.4"),
            vec![range("10.0.0.5", "10.0.0.9")],
        ),
        (
            range("10.0.0.9", "10.0.0.200"),
            vec![range("10.0.0.0", "10.0.0.8")],
        ),
        (range("0.0.0.0", "255.255.255.255"), Vec::new()),
        (range("11.0.0.0", "11.0.0.1"), vec![whole]),
        (range("::", "ffff::"), vec![whole]),
    ] {
        assert_eq!(whole.without(&cut), left, "{cut}");
    }
}

fn addresses() -> impl Strategy<Value = (IpAddr, IpAddr)> {
    prop_oneof![
        any::<(u32, u32)>()
            .prop_map(|(a, b)| { (Ipv4Addr::from_bits(a).into(), Ipv4Addr::from_bits(b).into()) }),
        any::<(u128, u128)>()
            .prop_map(|(a, b)| { (Ipv6Addr::from_bits(a).into(), Ipv6Addr::from_bits(b).into()) }),
    ]
}

fn next(address: IpAddr) -> Option<IpAddr> {
    Some(match address {
        IpAddr::V4(v4) => Ipv4Addr::from_bits(v4.to_bits().checked_add(1)?).into(),
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits().checked_add(1)?).into(),
    })
}

proptest! {
    /// They begin and end where the range does, each follows the one before, and no two could be one.
    #[test]
    fn prefixes_are_the_range((a, b) in addresses()) {
        let whole = AddressRange::new(a.min(b), a.max(b)).unwrap();
        let prefixes = whole.prefixes();
        prop_assert_eq!(prefixes.first().unwrap().first(), whole.first());
        prop_assert_eq!(prefixes.last().unwrap().last(), whole.last());
        for pair in prefixes.windows(2) {
            prop_assert_eq!(next(pair[0].last()), Some(pair[1].first()));
            let shorter = Prefix::new(pair[0].first(), pair[0].length() - 1).unwrap();
            let is_one = pair[0].length() == pair[1].length()
                && shorter.first() == pair[0].first()
                && shorter.last() == pair[1].last();
            prop_assert!(!is_one);
        }
    }
}
