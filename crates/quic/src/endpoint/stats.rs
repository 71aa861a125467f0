//! Counters of what an endpoint did with datagrams and connections.

use std::ops::AddAssign;

/// What an endpoint has done with datagrams and connections so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
#[non_exhaustive]
pub struct EndpointStats {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections opened by this endpoint.
    pub opened: u64,
    /// First packets refused because of a limit or by the accept policy, because the driver accepted no connections, or
    /// because TLS could not start.
    pub refused: u64,
    /// Those of them that came while the driver accepted none
    /// ([`Endpoint::set_refusing`](crate::Endpoint::set_refusing)).
    pub turned_away: u64,
    /// Those of them whose client has its share of the connections already
    /// ([`EndpointConfig::share_by_address`](crate::EndpointConfig::share_by_address)).
    pub over_share: u64,
    /// First packets refused because of an invalid token of a Retry.
    pub invalid_tokens: u64,
    /// First packets with a token that had been used before, so that it validated no address
    /// ([`EndpointConfig::used_tokens`](crate::EndpointConfig::used_tokens)).
    pub used_tokens: u64,
    /// First packets that got no answer because the accept policy decided so.
    pub ignored: u64,
    /// CONNECTION_CLOSE packets sent to refuse a connection.
    pub refusals_sent: u64,
    /// Retry packets sent.
    pub retries_sent: u64,
    /// Version Negotiation packets sent.
    pub versions_negotiated: u64,
    /// Stateless resets sent.
    pub resets_sent: u64,
    /// Stateless resets not sent because too many were
    /// ([`EndpointConfig::stateless_resets_per_second`](crate::EndpointConfig::stateless_resets_per_second)).
    pub resets_withheld: u64,
    /// Datagrams without a known connection ID that ended in a peer's reset token.
    pub resets_received: u64,
    /// 0-RTT datagrams kept for a moment because their Initial had not arrived.
    pub zero_rtt_kept: u64,
    /// Connection IDs that connections issued though another one had them, and had to issue anew.
    pub cid_collisions: u64,
    /// Datagrams that belong to another worker.
    pub handed_over: u64,
    /// Datagrams dropped because they are no QUIC, or no valid first packet.
    pub dropped_malformed: u64,
    /// Datagrams dropped because they belong to no connection and can't start one.
    pub dropped_unknown: u64,
    /// Datagrams dropped because they are too short to start a connection.
    pub dropped_too_short: u64,
    /// First packets dropped because they failed authentication.
    pub dropped_unauthenticated: u64,
    /// First packets dropped because no connections are accepted.
    pub dropped_not_accepting: u64,
    /// Datagrams dropped because the answer didn't fit in the lent buffer, or would have been as
    /// large as the datagram.
    pub dropped_no_room: u64,
}

impl AddAssign for EndpointStats {
    /// Adds those of another worker.
    fn add_assign(&mut self, other: Self) {
        let Self {
            accepted,
            opened,
            refused,
            turned_away,
            over_share,
            invalid_tokens,
            used_tokens,
            ignored,
            refusals_sent,
            retries_sent,
            versions_negotiated,
            resets_sent,
            resets_withheld,
            resets_received,
            zero_rtt_kept,
            cid_collisions,
            handed_over,
            dropped_malformed,
            dropped_unknown,
            dropped_too_short,
            dropped_unauthenticated,
            dropped_not_accepting,
            dropped_no_room,
        } = other;
        self.accepted += accepted;
        self.opened += opened;
        self.refused += refused;
        self.turned_away += turned_away;
        self.over_share += over_share;
        self.invalid_tokens += invalid_tokens;
        self.used_tokens += used_tokens;
        self.ignored += ignored;
        self.refusals_sent += refusals_sent;
        self.retries_sent += retries_sent;
        self.versions_negotiated += versions_negotiated;
        self.resets_sent += resets_sent;
        self.resets_withheld += resets_withheld;
        self.resets_received += resets_received;
        self.zero_rtt_kept += zero_rtt_kept;
        self.cid_collisions += cid_collisions;
        self.handed_over += handed_over;
        self.dropped_malformed += dropped_malformed;
        self.dropped_unknown += dropped_unknown;
        self.dropped_too_short += dropped_too_short;
        self.dropped_unauthenticated += dropped_unauthenticated;
        self.dropped_not_accepting += dropped_not_accepting;
        self.dropped_no_room += dropped_no_room;
    }
}
