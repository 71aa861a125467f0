//! How urgent a stream is (RFC 9218, section 4).

/// Priority of a stream's data among that of its connection's other streams, in the terms of RFC
/// 9218. The order is that of sending: the smaller goes first.
///
/// - Of streams of different urgency the more urgent one goes first, but for a share that keeps the
///   others from starving ([`TransportConfig::starvation_share`](crate::TransportConfig)).
/// - Of one urgency, streams that are not incremental go before incremental ones, one after another
///   in the order of their identifiers: half of each of two such streams would be of no use.
/// - Incremental streams of one urgency take turns, packet by packet.
///
/// Lost data go before new data of the same urgency.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Priority {
    /// 0 (first) to 7 (last); larger values count as 7. Default 3 (RFC 9218, section 4.1).
    pub urgency: u8,
    /// True if the receiver can use the data as they come. Default true, so that streams without a
    /// priority share; in HTTP/3 the default is false (RFC 9218, section 4.2).
    pub incremental: bool,
}

impl Priority {
    /// The least urgent level.
    pub const MAX_URGENCY: u8 = 7;

    /// The priority of `urgency`, cut to 7, `incremental` or not.
    pub const fn new(urgency: u8, incremental: bool) -> Self {
        Self {
            urgency: if urgency > Self::MAX_URGENCY {
                Self::MAX_URGENCY
            } else {
                urgency
            },
            incremental,
        }
    }

    /// Its place among the sixteen priorities, the first being 0.
    pub(crate) const fn rank(self) -> u8 {
        let valid = Self::new(self.urgency, self.incremental);
        2 * valid.urgency + valid.incremental as u8
    }
}

impl Default for Priority {
    fn default() -> Self {
        Self::new(3, true)
    }
}
