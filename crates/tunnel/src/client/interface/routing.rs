//! Which destinations are routed to the interface.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::ip::{AddressRange, Routes};
use crate::policy::Prefix;

/// The most routes that the kernel gets. A proxy that advertises all public addresses needs some 150, and at most 125 more
/// for each public address of its own.
const MOST: usize = 4096;

/// The destinations that may be routed into a tunnel, of those that the proxy advertises.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct WantedRoutes(Vec<Prefix>);

impl WantedRoutes {
    /// All that the proxy advertises.
    pub const ALL: Self = Self(Vec::new());

    /// Those within `prefixes`; all if there is none.
    pub fn within(prefixes: &[Prefix]) -> Self {
        Self(prefixes.to_vec())
    }

    /// The prefixes for the kernel out of what the proxy advertises, in order and without overlaps: of the versions of
    /// IP that `versions` have, and never loopback, link-local and multicast addresses. `None` if they are too many.
    ///
    /// A default route is two halves, so that the one that there is stays.
    pub(super) fn of(&self, advertised: &Routes, versions: &[IpAddr]) -> Option<Vec<Prefix>> {
        let has_version = |range: &AddressRange| {
            let mut versions = versions.iter();
            versions.any(|version| version.is_ipv4() == range.is_ipv4())
        };
        let advertised = advertised.as_slice().iter().map(|route| route.addresses);
        let mut ranges: Vec<AddressRange> = advertised.filter(has_version).collect();
        if !self.0.is_empty() {
            let pairs = ranges
                .iter()
                .flat_map(|range| self.0.iter().map(move |wanted| (range, *wanted)));
            ranges = pairs
                .filter_map(|(range, wanted)| range.intersection(&wanted.into()))
                .collect();
        }
        for never in never_routed() {
            ranges = ranges
                .iter()
                .flat_map(|range| range.without(&never.into()))
                .collect();
        }
        let mut prefixes = Vec::new();
        for range in ranges {
            for prefix in range.prefixes() {
                prefixes.extend(halves(prefix));
            }
            if prefixes.len() > MOST {
                return None;
            }
        }
        // Ranges of several protocols, and wanted prefixes, may overlap.
        prefixes.sort_by_key(|prefix| (prefix.first(), prefix.length()));
        prefixes.dedup_by(|next, kept| kept.contains(next.first()));
        Some(prefixes)
    }
}

/// The prefix, or if it is a default route its two halves.
fn halves(prefix: Prefix) -> Vec<Prefix> {
    if prefix.length() > 0 {
        return vec![prefix];
    }
    let upper: IpAddr = match prefix.first() {
        IpAddr::V4(_) => Ipv4Addr::new(128, 0, 0, 0).into(),
        IpAddr::V6(_) => Ipv6Addr::new(0x8000, 0, 0, 0, 0, 0, 0, 0).into(),
    };
    let halves = [prefix.first(), upper].map(|first| Prefix::new(first, 1));
    halves.into_iter().flatten().collect()
}

fn never_routed() -> Vec<Prefix> {
    let v4 = |a, b, length| Prefix::new(Ipv4Addr::new(a, b, 0, 0).into(), length);
    let v6 = |a, h, length| Prefix::new(Ipv6Addr::new(a, 0, 0, 0, 0, 0, 0, h).into(), length);
    let all = [
        v4(0, 0, 8),
        v4(127, 0, 8),
        v4(169, 254, 16),
        v4(224, 0, 3),
        v6(0, 0, 127),
        v6(0xfe80, 0, 10),
        v6(0xff00, 0, 8),
    ];
    all.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ip::Route;

    fn routes(ranges: &[(&str, &str, u8)]) -> Routes {
        let routes = ranges.iter().map(|&(first, last, protocol)| Route {
            addresses: AddressRange::new(first.parse().expect("one"), last.parse().expect("one"))
                .expect("a range"),
            protocol,
        });
        Routes::new(routes.collect()).expect("in order")
    }

    fn text(prefixes: Option<Vec<Prefix>>) -> Vec<String> {
        let prefixes = prefixes.expect("not too many");
        prefixes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_is_routed() {
        let both: Vec<IpAddr> = ["10.9.0.2", "fd00::2"]
            .map(|it| it.parse().expect("an address"))
            .to_vec();
        let all = routes(&[("0.0.0.0", "255.255.255.255", 0)]);
        let everything = text(WantedRoutes::ALL.of(&all, &both));
        // The default route is never replaced, and what belongs to the machine or its links stays.
        let covers = |address: &str| {
            let address: IpAddr = address.parse().expect("an address");
            let mut prefixes = everything
                .iter()
                .map(|it| it.parse::<Prefix>().expect("one"));
            prefixes.any(|it| it.contains(address))
        };
        assert!(covers("1.0.0.1") && covers("10.1.2.3") && covers("126.255.255.255"));
        assert!(covers("192.0.2.1") && covers("223.255.255.255"));
        for address in [
            "0.0.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "224.0.0.1",
            "255.255.255.255",
        ] {
            assert!(!covers(address), "{address}");
        }
        let wanted = WantedRoutes::within(&["10.0.0.0/8".parse().expect("a prefix")]);
        assert_eq!(text(wanted.of(&all, &both)), ["10.0.0.0/8"]);
        // Both protocols of a range become one route; what was not wanted or has no address is none.
        let some = routes(&[
            ("10.0.0.0", "10.0.0.255", 6),
            ("10.0.0.128", "10.0.1.255", 17),
            ("fd00:1::", "fd00:1::ff", 0),
        ]);
        let found = text(WantedRoutes::ALL.of(&some, &both));
        assert_eq!(found, ["10.0.0.0/24", "10.0.1.0/24", "fd00:1::/120"]);
        assert_eq!(
            text(WantedRoutes::ALL.of(&some, &both[1..])),
            ["fd00:1::/120"]
        );
        assert_eq!(
            text(wanted.of(&some, &both)),
            ["10.0.0.0/24", "10.0.1.0/24"]
        );
        let elsewhere = WantedRoutes::within(&["192.0.2.0/24".parse().expect("a prefix")]);
        assert!(text(elsewhere.of(&some, &both)).is_empty());
    }

    #[test]
    fn a_default_route_is_two_halves() {
        let halves = |it: &str| -> Vec<String> {
            let found = halves(it.parse().expect("a prefix"));
            found.iter().map(ToString::to_string).collect()
        };
        assert_eq!(halves("0.0.0.0/0"), ["0.0.0.0/1", "128.0.0.0/1"]);
        assert_eq!(halves("::/0"), ["::/1", "8000::/1"]);
        assert_eq!(halves("10.0.0.0/8"), ["10.0.0.0/8"]);
    }

    #[test]
    fn too_many_routes() {
        // Every second address: a prefix for each.
        let ranges = (0..5000_u32).map(|number| {
            let address = Ipv4Addr::from_bits(0x0a00_0000 + 2 * number).into();
            Route {
                addresses: AddressRange::new(address, address).expect("a range"),
                protocol: 0,
            }
        });
        let routes = Routes::new(ranges.collect()).expect("in order");
        let own = ["10.9.0.2".parse().expect("an address")];
        assert_eq!(WantedRoutes::ALL.of(&routes, &own), None);
    }
}
