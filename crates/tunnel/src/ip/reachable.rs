//! The routes that a proxy advertises: what its policy permits, within the scope of the request.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::address_range::{AddressRange, address, number};
use super::routes::{Route, Routes};
use crate::policy::{Prefix, TargetPolicy};

/// IPv4 addresses that are public: all but these (see [`reserved`](crate::policy::reserved)).
const RESERVED_V4: &[(u8, u8, u8, u8, u8)] = &[
    (0, 0, 0, 0, 8),
    (10, 0, 0, 0, 8),
    (100, 64, 0, 0, 10),
    (127, 0, 0, 0, 8),
    (169, 254, 0, 0, 16),
    (172, 16, 0, 0, 12),
    (192, 0, 0, 0, 24),
    (192, 0, 2, 0, 24),
    (192, 88, 99, 0, 24),
    (192, 168, 0, 0, 16),
    (198, 18, 0, 0, 15),
    (198, 51, 100, 0, 24),
    (203, 0, 113, 0, 24),
    (224, 0, 0, 0, 3),
];

/// IPv6 addresses that are public: those of this prefix,
const PUBLIC_V6: (u16, u8) = (0x2000, 3);

/// but those of these.
const RESERVED_V6: &[(u16, u16, u8)] = &[(0x2001, 0, 23), (0x2001, 0xdb8, 32), (0x3fff, 0, 20)];

/// The routes to what `policy` permits of `targets`, or of all addresses if there are none, for packets of `protocol`.
///
/// Ports are not part of routes. IPv6 addresses that stand for IPv4 ones are routed with their prefix, whether or not
/// the policy permits each.
pub fn reachable(
    policy: &TargetPolicy,
    targets: Option<&[AddressRange]>,
    protocol: Option<u8>,
) -> Routes {
    let mut routes = Vec::new();
    for is_ipv4 in [true, false] {
        let mut spans = public(is_ipv4);
        spans.extend(spans_of(&policy.allowed, is_ipv4));
        let mut spans = merged(spans);
        for denied in spans_of(&policy.denied, is_ipv4) {
            spans = without(&spans, denied);
        }
        if let Some(targets) = targets {
            let targets = targets.iter().filter(|target| target.is_ipv4() == is_ipv4);
            let targets = targets.map(|target| (number(target.first()), number(target.last())));
            spans = within(&spans, &merged(targets.collect()));
        }
        routes.extend(spans.into_iter().filter_map(|(first, last)| {
            let addresses = AddressRange::new(address(first, is_ipv4), address(last, is_ipv4))?;
            let protocol = protocol.unwrap_or(0);
            Some(Route {
                addresses,
                protocol,
            })
        }));
    }
    // In order by construction.
    Routes::new(routes).unwrap_or_default()
}

/// A first and a last address, as numbers.
type Span = (u128, u128);

fn public(is_ipv4: bool) -> Vec<Span> {
    let (all, reserved): (Vec<_>, Vec<_>) = if is_ipv4 {
        let reserved = RESERVED_V4
            .iter()
            .map(|&(a, b, c, d, length)| Prefix::new(Ipv4Addr::new(a, b, c, d).into(), length));
        let all = Prefix::new(Ipv4Addr::UNSPECIFIED.into(), 0);
        (all.into_iter().collect(), reserved.flatten().collect())
    } else {
        let v6 = |high: u16, low: u16| Ipv6Addr::new(high, low, 0, 0, 0, 0, 0, 0).into();
        let reserved = RESERVED_V6
            .iter()
            .map(|&(high, low, length)| Prefix::new(v6(high, low), length));
        let all = Prefix::new(v6(PUBLIC_V6.0, 0), PUBLIC_V6.1);
        (all.into_iter().collect(), reserved.flatten().collect())
    };
    let mut spans = spans_of(&all, is_ipv4);
    for span in spans_of(&reserved, is_ipv4) {
        spans = without(&spans, span);
    }
    spans
}

fn spans_of(prefixes: &[Prefix], is_ipv4: bool) -> Vec<Span> {
    let wanted = prefixes
        .iter()
        .filter(|prefix| prefix.address().is_ipv4() == is_ipv4);
    wanted
        .map(|prefix| (number(prefix.first()), number(prefix.last())))
        .collect()
}

/// The same addresses in order, without overlaps or neighbours.
fn merged(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    let mut merged: Vec<Span> = Vec::with_capacity(spans.len());
    for (first, last) in spans {
        match merged.last_mut() {
            Some(before) if first <= before.1.saturating_add(1) => before.1 = before.1.max(last),
            _ => merged.push((first, last)),
        }
    }
    merged
}

fn without(spans: &[Span], cut: Span) -> Vec<Span> {
    let mut left = Vec::with_capacity(spans.len() + 1);
    for &(first, last) in spans {
        if last < cut.0 || cut.1 < first {
            left.push((first, last));
            continue;
        }
        if first < cut.0 {
            left.push((first, cut.0 - 1));
        }
        if cut.1 < last {
            left.push((cut.1 + 1, last));
        }
    }
    left
}

fn within(spans: &[Span], bounds: &[Span]) -> Vec<Span> {
    let pairs = spans.iter().flat_map(|span| {
        bounds
            .iter()
            .map(|bound| (span.0.max(bound.0), span.1.min(bound.1)))
    });
    pairs.filter(|(first, last)| first <= last).collect()
}
