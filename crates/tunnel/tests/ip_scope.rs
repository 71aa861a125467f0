//! Scopes of requests for IP proxying (RFC 9484, section 4.6), and the routes within a policy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;
use swiftwater_tunnel::ip::{AddressRange, Scope, ScopeError, ScopeTarget, reachable};
use swiftwater_tunnel::policy::{Prefix, TargetPolicy};
use swiftwater_tunnel::target::Template;

fn prefix(text: &str) -> Prefix {
    text.parse().unwrap()
}

fn policy(allowed: &[&str], denied: &[&str]) -> TargetPolicy {
    TargetPolicy {
        allowed: allowed.iter().map(|text| prefix(text)).collect(),
        denied: denied.iter().map(|text| prefix(text)).collect(),
        ..TargetPolicy::default()
    }
}

#[test]
fn paths_name_scopes() {
    let template = Template::new("proxy.example:8443").unwrap();
    let name = ScopeTarget::Name("host.example".to_owned());
    for (target, protocol, path) in [
        (ScopeTarget::Any, None, "*/*/"),
        (
            ScopeTarget::Prefix(prefix("192.0.2.42")),
            Some(17),
            "192.0.2.42/17/",
        ),
        (
            ScopeTarget::Prefix(prefix("192.0.2.0/24")),
            None,
            "192.0.2.0%2F24/*/",
        ),
        (
            ScopeTarget::Prefix(prefix("2001:db8::/32")),
            Some(0),
            "2001%3Adb8%3A%3A%2F32/0/",
        ),
        (name, Some(132), "host.example/132/"),
    ] {
        let scope = Scope { target, protocol };
        let path = format!("/.well-known/masque/ip/{path}");
        let uri = scope.uri(&template).unwrap();
        assert_eq!(uri.to_string(), format!("https://proxy.example:8443{path}"));
        assert_eq!(Scope::from_path(&path).as_ref(), Ok(&scope));
    }
    let encoded = Scope::from_path("/.well-known/masque/ip/%2A/%2a/");
    assert_eq!(encoded, Ok(Scope::ANY));
}

#[test]
fn other_paths_name_none() {
    let read = |variables: &str| Scope::from_path(&format!("/.well-known/masque/ip/{variables}"));
    for path in ["", "*", "*/*/x", "%ff/*/"] {
        assert_eq!(read(path), Err(ScopeError::Path), "{path}");
    }
    for target in [
        "",
        "192.0.2.1%2F24",
        "192.0.2.0%2F33",
        "a..b",
        "fe80::1%25eth0",
        "**",
        "1.2.3",
    ] {
        let read = read(&format!("{target}/*/"));
        assert!(
            matches!(read, Err(ScopeError::Target(_))),
            "{target}: {read:?}"
        );
    }
    for protocol in ["", "256", "+6", "-1", "tcp", "0x6"] {
        let read = read(&format!("*/{protocol}/"));
        assert!(
            matches!(read, Err(ScopeError::Protocol(_))),
            "{protocol}: {read:?}"
        );
    }
}

#[test]
fn routes_are_public_addresses_and_what_is_allowed() {
    let policy = policy(
        &["10.1.0.0/16", "fd00::/8"],
        &["10.1.2.0/24", "8.8.8.8", "2600::/16"],
    );
    let routes = reachable(&policy, None, None);
    for (address, is_routed) in [
        ("1.1.1.1", true),
        ("10.1.0.1", true),
        ("10.1.2.1", false),
        ("10.2.0.1", false),
        ("8.8.8.8", false),
        ("8.8.8.9", true),
        ("127.0.0.1", false),
        ("224.0.0.1", false),
        ("255.255.255.255", false),
        ("fd12::1", true),
        ("fe80::1", false),
        ("2600::1", false),
        ("2a00::1", true),
        ("2001:db8::1", false),
        ("::1", false),
    ] {
        assert_eq!(
            routes.allow(address.parse().unwrap(), 6),
            is_routed,
            "{address}"
        );
    }
    assert!(routes.as_slice().iter().all(|route| route.protocol == 0));
}

#[test]
fn routes_are_within_the_scope() {
    let targets = [
        prefix("9.9.0.0/16"),
        prefix("9.9.9.0/24"),
        prefix("10.0.0.0/8"),
    ];
    let targets = targets.map(AddressRange::from);
    let routes = reachable(&policy(&[], &["9.9.9.9"]), Some(&targets), Some(17));
    let ranges: Vec<String> = routes
        .as_slice()
        .iter()
        .map(|route| format!("{} {}", route.addresses, route.protocol))
        .collect();
    assert_eq!(ranges, ["9.9.0.0-9.9.9.8 17", "9.9.9.10-9.9.255.255 17"]);
}

proptest! {
    /// Routes agree with the policy, whose addresses are checked one by one in another way.
    #[test]
    fn routes_agree_with_the_policy(seeds in prop::collection::vec((any::<u32>(), any::<u128>(), 0_u8..=32), 1..6), probes in prop::collection::vec((any::<u32>(), any::<u128>()), 20)) {
        let v4 = |bits: u32| IpAddr::from(Ipv4Addr::from_bits(bits));
        let v6 = |bits: u128| IpAddr::from(Ipv6Addr::from_bits(bits));
        let mut policy = TargetPolicy::default();
        for (at, &(low, high, length)) in seeds.iter().enumerate() {
            let prefixes = [Prefix::new(v4(low), length), Prefix::new(v6(high), length)];
            let list = if at % 2 == 0 { &mut policy.denied } else { &mut policy.allowed };
            list.extend(prefixes.into_iter().flatten());
        }
        let routes = reachable(&policy, None, None);
        let edges = seeds.iter().flat_map(|&(low, high, _)| [v4(low), v6(high)]);
        let probes = probes.iter().flat_map(|&(low, high)| [v4(low), v6(high), v6(high >> 3 | 1 << 125)]);
        for address in edges.chain(probes) {
            // IPv6 addresses that stand for IPv4 ones are routed with their prefix.
            let stands_for_v4 = matches!(address, IpAddr::V6(v6) if {
                let segments = v6.segments();
                segments[0] == 0x2002 || segments[0] == 0x64 || segments[..2] == [0x2001, 0] || segments[0] == 0
            });
            if !stands_for_v4 {
                prop_assert_eq!(routes.allow(address, 6), policy.check_address(address).is_ok(), "{}", address);
            }
        }
    }
}
