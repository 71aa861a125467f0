//! Which targets a proxy allows, and how much it sends to those that do not answer.

use std::net::IpAddr;
use std::time::Duration;

use proptest::prelude::*;
use swiftwater_tunnel::ip::{Routes, reachable};
use swiftwater_tunnel::policy::{
    Ports, Prefix, Reflection, ReflectionLimit, Reserved, TargetPolicy, reserved,
};

#[test]
fn addresses_that_are_not_public() {
    use Reserved::{
        Broadcast, LinkLocal, Loopback, Multicast, Private, SharedByCarrier, Special, Unallocated,
        Unspecified,
    };
    for (address, expected) in [
        ("0.0.0.0", Unspecified),
        ("::", Unspecified),
        ("127.8.9.1", Loopback),
        ("::1", Loopback),
        ("::ffff:127.0.0.1", Loopback),
        ("::127.0.0.1", Loopback),
        ("64:ff9b::7f00:1", Loopback),
        ("64:ff9b:1::7f00:1", Special),
        ("64:ff9b:1:a00:1:0:808:808", Special),
        ("2002:7f00:1::", Loopback),
        ("2001:0:0:0:0:0:80ff:fffe", Loopback),
        ("169.254.169.254", LinkLocal),
        ("fe80::1", LinkLocal),
        ("10.0.0.1", Private),
        ("172.31.255.255", Private),
        ("192.168.0.1", Private),
        ("::ffff:192.168.0.1", Private),
        ("fd00::1", Private),
        ("100.127.0.1", SharedByCarrier),
        ("224.0.0.1", Multicast),
        ("ff02::1", Multicast),
        ("255.255.255.255", Broadcast),
        ("198.19.0.1", Special),
        ("2001:db8::1", Special),
        ("250.0.0.1", Unallocated),
        ("4000::1", Unallocated),
    ] {
        let address: IpAddr = address.parse().unwrap();
        assert_eq!(reserved(address), Some(expected), "{address}");
        assert!(TargetPolicy::default().check_address(address).is_err());
    }
    for address in [
        "8.8.8.8",
        "172.32.0.1",
        "100.128.0.1",
        "2606:4700::1111",
        "::ffff:8.8.8.8",
        "64:ff9b::808:808",
    ] {
        let address: IpAddr = address.parse().unwrap();
        assert_eq!(reserved(address), None, "{address}");
        assert!(TargetPolicy::default().check_address(address).is_ok());
    }
}

#[test]
fn what_is_denied_stays_denied() {
    let policy = TargetPolicy {
        allowed: vec!["10.0.0.0/8".parse().unwrap()],
        denied: vec!["10.9.0.0/16".parse().unwrap(), "8.8.8.8".parse().unwrap()],
        ..TargetPolicy::default()
    };
    let check = |text: &str| policy.check_address(text.parse().unwrap()).is_ok();
    assert!(check("10.1.0.1") && check("::ffff:10.1.0.1") && check("9.9.9.9"));
    for address in [
        "10.9.0.1",
        "::ffff:10.9.0.1",
        "8.8.8.8",
        "64:ff9b::808:808",
        "127.0.0.1",
    ] {
        assert!(!check(address), "{address}");
    }
}

#[test]
fn ports_that_amplify_must_be_named() {
    let all = Ports::all();
    assert!(all.contains(443) && all.contains(1) && all.contains(65_535));
    assert!(!all.contains(53) && !all.contains(11_211) && !all.contains(0));
    assert!(Ports::new([53..=53]).contains(53));
    assert!(Ports::default().contains(443) && !Ports::default().contains(80));
}

#[test]
fn text_of_prefixes() {
    let contains = |prefix: &str, address: &str| {
        let prefix: Prefix = prefix.parse().unwrap();
        prefix.contains(address.parse().unwrap())
    };
    assert!(contains("0.0.0.0/0", "203.0.113.9") && !contains("0.0.0.0/0", "::1"));
    assert!(contains("10.0.0.0/9", "10.127.0.1") && !contains("10.0.0.0/9", "10.128.0.1"));
    assert!(contains("::/0", "2001:db8::1") && contains("2001:db8::1", "2001:db8::1"));
    assert!(!contains("2001:db8::/127", "2001:db8::2"));
    for text in [
        "",
        "10.0.0.0/33",
        "10.0.0/8",
        "::/129",
        "10.0.0.0/",
        "10.0.0.0/-1",
        "a/8",
    ] {
        assert!(text.parse::<Prefix>().is_err(), "{text}");
    }
}

#[test]
fn a_target_that_comes_up_late_can_still_answer() {
    let mut reflection = Reflection::new(ReflectionLimit::default());
    let admitted = |reflection: &mut Reflection, len, at| {
        let at = Duration::from_millis(at);
        (0..100).filter(|_| reflection.admit(len, at)).count()
    };
    assert_eq!(admitted(&mut reflection, 1200, 0), 10);
    assert_eq!(admitted(&mut reflection, 1200, 999), 0);
    assert_eq!(admitted(&mut reflection, 1200, 1000), 1);
    assert_eq!(admitted(&mut reflection, 1200, 100_000), 10);
    // A clock that goes back gives nothing.
    assert_eq!(admitted(&mut reflection, 1200, 90_000), 0);
    reflection.on_answer();
    assert_eq!(admitted(&mut reflection, 1200, 90_000), 100);
}

proptest! {
    #[test]
    fn what_a_silent_target_gets_is_limited(
        datagrams in 0_u32..20,
        bytes in 0_u64..20_000,
        per in 0_u64..20_000,
        sent in prop::collection::vec((0_usize..3000, 0_u64..2000), 0..300),
    ) {
        let per = Duration::from_millis(per);
        let mut reflection = Reflection::new(ReflectionLimit { datagrams, bytes, per });
        let mut at = Duration::ZERO;
        let (mut admitted, mut admitted_bytes) = (0_u32, 0);
        for (len, later) in sent {
            at += Duration::from_millis(later);
            if reflection.admit(len, at) {
                admitted += 1;
                admitted_bytes += len as u64;
            }
            if per > Duration::ZERO {
                let limits = 1.0 + at.as_secs_f64() / per.as_secs_f64();
                prop_assert!(f64::from(admitted) <= f64::from(datagrams) * limits + 1e-3);
                prop_assert!(admitted_bytes as f64 <= bytes as f64 * limits + 1.0);
            }
        }
    }
}

/// Whether one of `routes` has `address`.
fn has(routes: &Routes, address: IpAddr) -> bool {
    let mut ranges = routes.as_slice().iter().map(|route| route.addresses);
    ranges.any(|range| (range.first()..=range.last()).contains(&address))
}

/// The addresses at both sides of each end of `routes`.
fn edges(routes: &Routes) -> Vec<IpAddr> {
    let ends = routes.as_slice().iter().map(|route| route.addresses);
    let ends = ends.flat_map(|range| [range.first(), range.last()]);
    ends.flat_map(|end| match end {
        IpAddr::V4(v4) => [-1, 0, 1]
            .map(|step| v4.to_bits().wrapping_add_signed(step))
            .map(|bits| IpAddr::from(bits.to_be_bytes())),
        IpAddr::V6(v6) => [-1, 0, 1]
            .map(|step| v6.to_bits().wrapping_add_signed(step))
            .map(|bits| IpAddr::from(bits.to_be_bytes())),
    })
    .collect()
}

#[test]
fn what_is_advertised_ends_where_what_is_permitted_ends() {
    let routes = reachable(&TargetPolicy::default(), None, None);
    let edges = edges(&routes);
    assert!(edges.len() > 40, "{}", edges.len());
    for address in edges {
        assert_eq!(
            has(&routes, address),
            reserved(address).is_none(),
            "{address}"
        );
    }
}

proptest! {
    #[test]
    fn what_is_advertised_is_what_is_permitted(v4 in any::<[u8; 4]>(), v6 in any::<[u8; 16]>(), is_global in any::<bool>()) {
        let routes = reachable(&TargetPolicy::default(), None, None);
        let mut v6 = v6;
        if is_global {
            v6[0] = 0x20 | v6[0] & 0x1f;
        }
        // Those stand for addresses of IPv4, and are routed with their prefix.
        prop_assume!(v6[..2] != [0x20, 0x02]);
        for address in [IpAddr::from(v4), IpAddr::from(v6)] {
            prop_assert_eq!(has(&routes, address), reserved(address).is_none(), "{}", address);
        }
    }
}
