//! Access technologies and their order: which path opens first.
//!
//! The first path of a connection carries the handshake, and so decides about the latency of the first video frame. XLINK
//! (SIGCOMM 2021) takes the one of the best access technology by a table, which depends on the country.

/// What connects this host to the network.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum AccessTechnology {
    /// 5G with a core network of its own (SA).
    FiveGStandalone,
    /// 5G radio beside LTE, on its core network (NSA).
    FiveGNonStandalone,
    /// Wi-Fi.
    WiFi,
    /// LTE (4G).
    Lte,
}

/// Access technologies, the best for the first path first. The default is XLINK's table: 5G SA, 5G NSA, Wi-Fi, LTE.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct TechnologyOrder(Vec<AccessTechnology>);

impl TechnologyOrder {
    /// This order. Of a technology that is named twice the first place counts; those that are not named come last.
    pub fn new(order: impl IntoIterator<Item = AccessTechnology>) -> Self {
        Self(order.into_iter().collect())
    }

    /// The place of a technology, 0 being the best; one that isn't known or not named comes behind all others.
    pub fn place(&self, technology: Option<AccessTechnology>) -> usize {
        let place = technology.and_then(|of| self.0.iter().position(|named| *named == of));
        place.unwrap_or(self.0.len())
    }
}

impl Default for TechnologyOrder {
    fn default() -> Self {
        Self::new([
            AccessTechnology::FiveGStandalone,
            AccessTechnology::FiveGNonStandalone,
            AccessTechnology::WiFi,
            AccessTechnology::Lte,
        ])
    }
}
