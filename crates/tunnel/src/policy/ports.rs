//! Ports that a proxy reaches.

use std::ops::RangeInclusive;

/// Ports of services that answer small datagrams with large ones, or that only a network's own machines should
/// reach: chargen, DNS, NTP, SNMP, CLDAP, SSDP, memcached. They are refused unless they are listed one by one.
const AMPLIFYING: [u16; 7] = [19, 53, 123, 161, 389, 1900, 11_211];

/// A set of ports. The default is 443.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Ports(Vec<RangeInclusive<u16>>);

impl Default for Ports {
    fn default() -> Self {
        Self(vec![443..=443])
    }
}

impl Ports {
    /// The ports of these ranges. A range of more than one port does not include those of services that are
    /// used to amplify attacks (19, 53, 123, 161, 389, 1900, 11211).
    pub fn new(ranges: impl IntoIterator<Item = RangeInclusive<u16>>) -> Self {
        Self(ranges.into_iter().collect())
    }

    /// All ports that do not amplify.
    pub fn all() -> Self {
        Self::new([1..=u16::MAX])
    }

    /// True if `port` may be reached.
    pub fn contains(&self, port: u16) -> bool {
        self.0.iter().any(|range| {
            let is_explicit = range.start() == range.end();
            range.contains(&port) && (is_explicit || !AMPLIFYING.contains(&port))
        })
    }
}
