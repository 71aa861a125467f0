//! Whether a client's first packet starts a connection (RFC 9000, sections 5.2.2, 7.2, 8.1 and
//! 14.1).
//!
//! The cheap questions come first. Retry is answered without opening the packet, since it protects
//! against floods; everything that ends a client's attempt is preceded by authentication, so that a
//! damaged packet can't.

use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use swiftwater_units::{Instant, PathId, Side};
use swiftwater_wire::{
    ConnectionId, ErrorCode, PacketType, PartialHeader, PlainFirstByte, PreferredAddress,
    RETRY_TAG_LEN, Reader, TransportParameters, TruncatedPacketNumber, Writer, write_retry,
};

use super::close::Refusal;
use super::routing::ConnectionHandle;
use super::shares::ClientShares;
use super::{Endpoint, Routed, dropped, parameters, respond};
use crate::address_token::{Presented, TokenLifetimes, TokenStatus};
use crate::cid::{FIRST_DST_CID_LEN, random_cid};
use crate::config::{AcceptDecision, Incoming};
use crate::config::{EarlyData, RetryPolicy, ServerConfig, TransportConfig};
use crate::connection::Connection;
use crate::connection_setup::ConnectionSetup;
use crate::crypto::Keys;
use crate::datagram_size::MIN_INITIAL_SIZE;
use crate::handshake::{Crypto, Grease, Opening};
use crate::transmit::DatagramMeta;

/// A client's Initial that may start a connection.
struct Attempt<'a> {
    now: Instant,
    meta: &'a DatagramMeta,
    server: Arc<ServerConfig>,
    /// Configuration of the connection.
    transport: Arc<TransportConfig>,
    /// The accept policy refuses the connection.
    refused: bool,
    /// The client's address must be validated before state is kept for the connection.
    retry_required: bool,
    header: PartialHeader,
    datagram: &'a [u8],
    token: TokenStatus,
}

impl Attempt<'_> {
    /// True if the client is to validate its address by a Retry. One that answers a Retry would ignore
    /// another (RFC 9000, section 17.2.5.2): if its token has been used it goes on without validation.
    fn needs_retry(&self) -> bool {
        let validated = self.token.validating().is_some();
        self.retry_required && !validated && !self.token.answers_retry()
    }
}

impl Endpoint {
    /// Decides about a datagram with a long header, of a supported version, that belongs to no
    /// connection.
    pub(super) fn admit(
        &mut self,
        now: Instant,
        meta: &DatagramMeta,
        datagram: &[u8],
        out: &mut [u8],
    ) -> Routed {
        let Some(server) = self.server.clone() else {
            return dropped(&mut self.stats.dropped_not_accepting);
        };
        let Some(header) = self.first_initial(now, meta, datagram, server.early_data) else {
            return Routed::Dropped;
        };
        let mut attempt = Attempt {
            now,
            meta,
            token: self.check_token(now, meta, &header, datagram, &server),
            transport: Arc::clone(&server.transport),
            refused: false,
            retry_required: self.requires_retry(server.retry),
            server,
            header,
            datagram,
        };
        match self.ask_accept_policy(&attempt) {
            AcceptDecision::Accept => {}
            AcceptDecision::AcceptWith(transport) => attempt.transport = transport,
            AcceptDecision::Retry => attempt.retry_required = true,
            AcceptDecision::Refuse => {
                attempt.refused = true;
                attempt.retry_required = false;
            }
            AcceptDecision::Ignore => return dropped(&mut self.stats.ignored),
        }
        if attempt.needs_retry() {
            return self.send_retry(&attempt, out);
        }
        self.decide(&mut attempt, out)
    }

    /// The header of an Initial that may start a connection. Other datagrams are counted and dropped;
    /// 0-RTT packets are kept for a moment if they may be accepted.
    fn first_initial(
        &mut self,
        now: Instant,
        meta: &DatagramMeta,
        datagram: &[u8],
        early_data: EarlyData,
    ) -> Option<PartialHeader> {
        let header = PartialHeader::parse(datagram, self.cids.len())
            .ok()
            .filter(|header| header.quic_bit || self.config.grease);
        let Some(header) = header else {
            self.stats.dropped_malformed += 1;
            return None;
        };
        let counter = if header.packet_type == PacketType::ZeroRtt
            && early_data == EarlyData::Accept
            && self.zero_rtt.keep(now, meta, &header.dst_cid, datagram)
        {
            &mut self.stats.zero_rtt_kept
        } else if header.packet_type != PacketType::Initial {
            &mut self.stats.dropped_unknown
        } else if datagram.len() < MIN_INITIAL_SIZE {
            &mut self.stats.dropped_too_short
        } else if header.dst_cid.len() < FIRST_DST_CID_LEN {
            // The connection IDs of this server's Retry packets are that long too.
            &mut self.stats.dropped_malformed
        } else {
            return Some(header);
        };
        *counter += 1;
        None
    }

    /// What the token of a client's Initial proves.
    fn check_token(
        &mut self,
        now: Instant,
        meta: &DatagramMeta,
        header: &PartialHeader,
        datagram: &[u8],
        server: &ServerConfig,
    ) -> TokenStatus {
        let presented = Presented {
            now,
            remote: meta.remote,
            version: header.version,
            dst_cid: header.dst_cid,
        };
        let token = datagram.get(header.token.clone()).unwrap_or_default();
        let status = self.tokens.check(token, &presented, &lifetimes(server));
        self.stats.used_tokens += u64::from(status.is_used());
        status
    }

    /// What the accept policy decides, if the server has one.
    fn ask_accept_policy(&self, attempt: &Attempt<'_>) -> AcceptDecision {
        let Some(policy) = &attempt.server.accept else {
            return AcceptDecision::Accept;
        };
        policy.decide(&Incoming {
            remote: attempt.meta.remote,
            local_ip: attempt.meta.local_ip,
            version: attempt.header.version,
            address_validated: attempt.token.validating().is_some(),
            retried: attempt.token.answers_retry(),
            connections: self.routes.connections(),
            handshakes: self.routes.handshakes(),
        })
    }

    fn requires_retry(&self, policy: RetryPolicy) -> bool {
        match policy {
            RetryPolicy::Never => false,
            RetryPolicy::Above(limit) => {
                self.routes.handshakes() > self.config.worker.share(limit)
                    || self
                        .shares
                        .as_ref()
                        .is_some_and(ClientShares::needs_validation)
            }
            RetryPolicy::Always => true,
        }
    }

    /// Sends the client a token with which it validates its address (RFC 9000, section 8.1.2).
    fn send_retry(&mut self, attempt: &Attempt<'_>, out: &mut [u8]) -> Routed {
        let header = &attempt.header;
        let src = (self.cids.len() >= FIRST_DST_CID_LEN)
            .then(|| self.fresh_cid())
            .flatten()
            .unwrap_or_else(|| random_cid(&mut self.rng, FIRST_DST_CID_LEN));
        let token = self.tokens.issue_retry_token(
            &mut self.rng,
            attempt.now,
            header.version,
            attempt.meta.remote,
            [header.dst_cid, src],
        );
        let size = 7 + header.src_cid.len() + src.len() + token.len() + RETRY_TAG_LEN;
        // The key decides how long a token is; the answer must not amplify in any case.
        if size >= attempt.datagram.len() || size > out.len() {
            return dropped(&mut self.stats.dropped_no_room);
        }
        let random = self.rng.next_u32() as u8;
        let mut w = Writer::new(out);
        write_retry(&mut w, header.version, header.src_cid, src, &token, random);
        let primitives = attempt.server.crypto.primitives();
        let tag = primitives.retry_tag(header.version, &header.dst_cid, w.filled_mut());
        w.bytes(&tag);
        respond(&mut self.stats.retries_sent, attempt.meta, size)
    }

    /// Authenticates the packet, then accepts or refuses the connection.
    fn decide(&mut self, attempt: &mut Attempt<'_>, out: &mut [u8]) -> Routed {
        let header = &attempt.header;
        let primitives = attempt.server.crypto.primitives();
        let keys = primitives.initial_keys(header.version, &header.dst_cid, Side::Server);
        let packet = attempt
            .datagram
            .get(..header.packet_len)
            .unwrap_or_default();
        if !is_authentic(&mut self.scratch, &keys, packet, header.pn_offset) {
            // The destination may be an ID that another worker issued: then the packet belongs to a
            // connection there, and its keys derive from another ID.
            return match self.cids.other_worker(header.dst_cid.as_bytes()) {
                Some(worker) => self.hand_over(worker, false),
                None => dropped(&mut self.stats.dropped_unauthenticated),
            };
        }
        if let Some(code) = self.refusal(attempt) {
            return self.refuse(attempt, &keys, code, out);
        }
        let Some(local_cid) = self.fresh_cid() else {
            self.stats.refused += 1;
            return self.refuse(attempt, &keys, ErrorCode::CONNECTION_REFUSED, out);
        };
        self.use_token(attempt);
        if attempt.needs_retry() {
            return self.send_retry(attempt, out);
        }
        let client = attempt.meta.remote.ip();
        if let Some(shares) = &mut self.shares
            && !shares.acquire(client)
        {
            self.stats.refused += 1;
            self.stats.over_share += 1;
            return self.refuse(attempt, &keys, ErrorCode::CONNECTION_REFUSED, out);
        }
        let (handle, connection) = self.accept(attempt, keys, local_cid);
        self.stats.accepted += 1;
        Routed::NewConnection { handle, connection }
    }

    /// Why the connection is refused, if it is, apart from shares of the client's address; counted.
    fn refusal(&mut self, attempt: &Attempt<'_>) -> Option<ErrorCode> {
        if attempt.token == TokenStatus::InvalidRetry {
            self.stats.invalid_tokens += 1;
            return Some(ErrorCode::INVALID_TOKEN);
        }
        self.stats.turned_away += u64::from(self.refusing);
        let worker = self.config.worker;
        let full = self.refusing
            || attempt.refused
            || self.routes.connections() >= worker.share(self.config.max_connections)
            || self.routes.handshakes() >= worker.share(self.config.max_handshakes)
            || (self.cids.len() == 0 && self.routes.has_remote(attempt.meta.remote));
        self.stats.refused += u64::from(full);
        full.then_some(ErrorCode::CONNECTION_REFUSED)
    }

    /// Records the use of the client's token. Another worker may have done so since it was checked: then
    /// it no longer validates the address.
    fn use_token(&mut self, attempt: &mut Attempt<'_>) {
        let lifetimes = lifetimes(&attempt.server);
        if let Some(token) = attempt.token.validating()
            && !self.tokens.use_up(attempt.now, token, &lifetimes)
        {
            attempt.token = attempt.token.once_used();
            self.stats.used_tokens += 1;
        }
    }

    /// Answers the client's Initial with CONNECTION_CLOSE. The caller counts why.
    fn refuse(
        &mut self,
        attempt: &Attempt<'_>,
        keys: &Keys,
        code: ErrorCode,
        out: &mut [u8],
    ) -> Routed {
        let refusal = Refusal {
            keys,
            version: attempt.header.version,
            dst: attempt.header.src_cid,
            src: self.cids.generate(&mut self.rng),
            code,
        };
        match refusal.write(out) {
            Some(size) => respond(&mut self.stats.refusals_sent, attempt.meta, size),
            None => dropped(&mut self.stats.dropped_no_room),
        }
    }

    /// An ID for the preferred address; `None` without such an address, or without IDs.
    fn preferred_cid(&mut self) -> Option<ConnectionId> {
        if self.config.preferred_address.is_empty() || self.cids.len() == 0 {
            return None;
        }
        self.fresh_cid()
    }

    /// Makes the connection, with the keys that opened its first packet.
    fn accept(
        &mut self,
        attempt: &Attempt<'_>,
        initial_keys: Keys,
        local_cid: ConnectionId,
    ) -> (ConnectionHandle, Box<Connection>) {
        let Attempt {
            now, meta, server, ..
        } = attempt;
        let transport = fit_to(&attempt.transport, attempt.datagram.len());
        let first_dst = attempt.header.dst_cid;
        let retry_src_cid = attempt.token.original_dst_cid().map(|_| first_dst);
        let original_dst_cid = attempt.token.original_dst_cid().unwrap_or(first_dst);
        let preferred_cid = self.preferred_cid();
        let mut rng = ChaCha20Rng::from_rng(&mut self.rng);
        let grease = self.config.grease;
        let opening = Opening {
            crypto: Crypto::Server(server.crypto.clone()),
            parameters: TransportParameters {
                original_destination_connection_id: Some(original_dst_cid),
                retry_source_connection_id: retry_src_cid,
                ..self.server_parameters(&attempt.transport, local_cid, preferred_cid)
            },
            versions: self.versions(),
            early_data: server.early_data == EarlyData::Accept,
            grease: grease.then(|| Grease::new(&mut rng)),
        };
        let handle = self.routes.add_incoming(meta.remote, local_cid, first_dst);
        if let Some(cid) = preferred_cid {
            self.routes.add_cid(handle, cid);
        }
        let setup = ConnectionSetup {
            side: Side::Server,
            version: attempt.header.version,
            transport,
            opening,
            session: None,
            primitives: server.crypto.primitives(),
            key: self.config.key.clone(),
            cids: self.cids.clone(),
            local_cid,
            remote_cid: attempt.header.src_cid,
            original_dst_cid,
            retry_src_cid,
            initial_keys_cid: first_dst,
            initial_keys,
            preferred_cid,
            address: meta.path(),
            address_validated: attempt.token.validating().is_some(),
            token: Vec::new(),
            rng,
            grease,
            issues_tokens: !server.address_token_lifetime.is_zero(),
            half_rtt: server.half_rtt,
            early_packets: self.zero_rtt.take(*now, meta.remote, &first_dst),
        };
        (handle, Box::new(Connection::new(*now, setup)))
    }

    /// The transport parameters of a server, apart from those that repeat what the client sent.
    fn server_parameters(
        &self,
        transport: &TransportConfig,
        local_cid: ConnectionId,
        preferred_cid: Option<ConnectionId>,
    ) -> TransportParameters {
        let reset_token = |cid: &ConnectionId| self.config.key.reset_token(cid);
        TransportParameters {
            stateless_reset_token: (!local_cid.is_empty()).then(|| reset_token(&local_cid)),
            preferred_address: preferred_cid.map(|cid| PreferredAddress {
                ipv4: self.config.preferred_address.ipv4,
                ipv6: self.config.preferred_address.ipv6,
                cid,
                reset_token: reset_token(&cid),
            }),
            ..parameters::local_parameters(transport, local_cid, self.config.grease)
        }
    }
}

/// How long the server's tokens are valid.
fn lifetimes(server: &ServerConfig) -> TokenLifetimes {
    TokenLifetimes {
        retry: server.retry_token_lifetime,
        address: server.address_token_lifetime,
    }
}

/// True if the client's Initial `packet` opens with `keys`. The packet itself is left for the
/// connection; the work is done on a copy in `scratch`.
fn is_authentic(scratch: &mut Vec<u8>, keys: &Keys, packet: &[u8], pn_offset: usize) -> bool {
    if packet.len() < pn_offset + 4 + keys.header.remote.sample_len() {
        return false;
    }
    scratch.clear();
    scratch.extend_from_slice(packet);
    keys.header.remote.decrypt(pn_offset, scratch);
    let pn_len = PlainFirstByte(scratch[0]).packet_number_len();
    let (header, payload) = scratch.split_at_mut(pn_offset + pn_len);
    let Ok(number) = TruncatedPacketNumber::read(&mut Reader::new(&header[pn_offset..]), pn_len)
    else {
        return false;
    };
    keys.packet
        .remote
        .decrypt(PathId::ZERO, number.expand(None), header, payload)
        .is_ok()
}

/// The configuration of a connection whose first datagram had `size` bytes.
fn fit_to(transport: &Arc<TransportConfig>, size: usize) -> Arc<TransportConfig> {
    // No more than a search would try: what came in fragments is no size of packets.
    let largest = transport.mtu_discovery.map_or(0, |it| it.upper_bound);
    let size = u16::try_from(size).unwrap_or(u16::MAX).min(largest);
    if !transport.adopt_client_datagram_size || size <= transport.initial_max_datagram_size {
        return Arc::clone(transport);
    }
    Arc::new(TransportConfig {
        initial_max_datagram_size: size,
        ..TransportConfig::clone(transport)
    })
}
