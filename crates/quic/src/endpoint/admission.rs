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
use swiftwater_wire::PreferredAddress;
use swiftwater_wire::{
    ConnectionId, ErrorCode, PacketType, PartialHeader, PlainFirstByte, RETRY_TAG_LEN, Reader,
    TruncatedPacketNumber, Writer, write_retry,
};

use super::accept::{Decision, Incoming};
use super::close::Refusal;
use super::routing::ConnectionHandle;
use super::shares::Shares;
use super::token::{self, Lifetimes, Presented, Verdict};
use super::{
    Endpoint, FIRST_DST_CID_LEN, MIN_INITIAL_DATAGRAM, Routed, dropped, parameters, respond,
};
use crate::cid::random_cid;
use crate::config::{EarlyData, RetryPolicy, ServerConfig, TransportConfig};
use crate::connection::{Connection, ConnectionSetup};
use crate::crypto::Keys;
use crate::handshake::{Crypto, Grease, Opening};
use crate::transmit::DatagramMeta;

/// A client's first packet that has passed the first checks.
struct Attempt<'a> {
    now: Instant,
    meta: &'a DatagramMeta,
    server: Arc<ServerConfig>,
    /// Configuration of the connection.
    transport: Arc<TransportConfig>,
    /// The program wants it refused.
    refused: bool,
    header: PartialHeader,
    datagram: &'a [u8],
    verdict: Verdict,
}

impl Endpoint {
    /// Decides about a datagram with a long header of a version that we speak and without a
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
        let Ok(header) = PartialHeader::parse(datagram, self.cids.len()) else {
            return dropped(&mut self.stats.dropped_malformed);
        };
        if !header.quic_bit && !self.config.grease {
            return dropped(&mut self.stats.dropped_malformed);
        }
        if header.packet_type == PacketType::ZeroRtt && server.early_data == EarlyData::Accept {
            let kept = (self.early_packets).keep(now, meta, &header.dst_cid, datagram);
            if kept {
                self.stats.early_kept += 1;
                return Routed::Dropped;
            }
        }
        if header.packet_type != PacketType::Initial {
            return dropped(&mut self.stats.dropped_unknown);
        }
        if datagram.len() < MIN_INITIAL_DATAGRAM {
            return dropped(&mut self.stats.dropped_too_short);
        }
        // Our own Retry asks for an ID of that length too.
        if header.dst_cid.len() < FIRST_DST_CID_LEN {
            return dropped(&mut self.stats.dropped_malformed);
        }
        let presented = Presented {
            now,
            remote: meta.remote,
            version: header.version,
            dst_cid: header.dst_cid,
        };
        let lifetimes = Lifetimes {
            retry: server.retry_token_lifetime,
            address: server.address_token_lifetime,
        };
        let token = datagram.get(header.token.clone()).unwrap_or_default();
        let verdict = token::check(&*self.config.key, token, &presented, &lifetimes);
        let mut attempt = Attempt {
            now,
            meta,
            transport: Arc::clone(&server.transport),
            refused: false,
            server,
            header,
            datagram,
            verdict,
        };
        let wants_retry = match self.ask(&attempt) {
            Decision::Accept => self.wants_retry(attempt.server.retry),
            Decision::AcceptWith(transport) => {
                attempt.transport = transport;
                self.wants_retry(attempt.server.retry)
            }
            Decision::Retry => true,
            Decision::Refuse => {
                attempt.refused = true;
                false
            }
            Decision::Ignore => return dropped(&mut self.stats.ignored),
        };
        if verdict == Verdict::Nothing && wants_retry {
            return self.send_retry(&attempt, out);
        }
        self.decide(&attempt, out)
    }

    /// What the program says to it, if it wants to be asked.
    fn ask(&self, attempt: &Attempt<'_>) -> Decision {
        let Some(policy) = &attempt.server.accept else {
            return Decision::Accept;
        };
        policy.decide(&Incoming {
            remote: attempt.meta.remote,
            local_ip: attempt.meta.local_ip,
            version: attempt.header.version,
            address_validated: matches!(attempt.verdict, Verdict::Address | Verdict::Retry { .. }),
            retried: matches!(
                attempt.verdict,
                Verdict::Retry { .. } | Verdict::InvalidRetry
            ),
            connections: self.routes.connections(),
            handshakes: self.routes.handshakes(),
        })
    }

    fn wants_retry(&self, policy: RetryPolicy) -> bool {
        match policy {
            RetryPolicy::Never => false,
            RetryPolicy::Above(limit) => {
                self.routes.handshakes() > self.config.worker.share(limit)
                    || self.shares.as_ref().is_some_and(Shares::want_proof)
            }
            RetryPolicy::Always => true,
        }
    }

    /// Asks the client to come back with a token (RFC 9000, section 8.1.2).
    fn send_retry(&mut self, attempt: &Attempt<'_>, out: &mut [u8]) -> Routed {
        let header = &attempt.header;
        let src = if self.cids.len() >= FIRST_DST_CID_LEN {
            self.cids.generate(&mut self.rng)
        } else {
            random_cid(&mut self.rng, FIRST_DST_CID_LEN)
        };
        let token = token::issue_retry_token(
            &*self.config.key,
            &mut self.rng,
            attempt.now,
            header.version,
            attempt.meta.remote,
            [header.dst_cid, src],
        );
        let size = 7 + header.src_cid.len() + src.len() + token.len() + RETRY_TAG_LEN;
        // The token is the key's; however long it is, the answer must not amplify.
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
    fn decide(&mut self, attempt: &Attempt<'_>, out: &mut [u8]) -> Routed {
        let header = &attempt.header;
        let primitives = attempt.server.crypto.primitives();
        let keys = primitives.initial_keys(header.version, &header.dst_cid, Side::Server);
        let packet = attempt
            .datagram
            .get(..header.packet_len)
            .unwrap_or_default();
        if !is_authentic(&mut self.scratch, &keys, packet, header.pn_offset) {
            // A first packet that a client didn't make up the ID of: it is for the connection of
            // another worker, whose keys differ.
            return match self.cids.other_worker(header.dst_cid.as_bytes()) {
                Some(worker) => self.hand_over(worker),
                None => dropped(&mut self.stats.dropped_unauthenticated),
            };
        }
        if attempt.verdict == Verdict::InvalidRetry {
            self.stats.invalid_tokens += 1;
            return self.refuse(attempt, &keys, ErrorCode::INVALID_TOKEN, out);
        }
        self.stats.turned_away += u64::from(self.refusing);
        let worker = self.config.worker;
        let full = self.refusing
            || attempt.refused
            || self.routes.connections() >= worker.share(self.config.max_connections)
            || self.routes.handshakes() >= worker.share(self.config.max_handshakes)
            || (self.cids.len() == 0 && self.routes.has_remote(attempt.meta.remote));
        let Some(local_cid) = self.fresh_cid().filter(|_| !full) else {
            self.stats.refused += 1;
            return self.refuse(attempt, &keys, ErrorCode::CONNECTION_REFUSED, out);
        };
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

    /// Tells the client that it gets no connection. The caller counts why.
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

    /// An ID for our preferred address; `None` if we have no such address, or no IDs.
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
            now,
            meta,
            server,
            transport,
            header,
            verdict,
            ..
        } = attempt;
        let (original_dst_cid, retry_src_cid) = match *verdict {
            Verdict::Retry { original_dst_cid } => (original_dst_cid, Some(header.dst_cid)),
            _ => (header.dst_cid, None),
        };
        let grease = self.config.grease;
        let mut local_parameters = parameters::local_parameters(transport, local_cid, grease);
        local_parameters.original_destination_connection_id = Some(original_dst_cid);
        local_parameters.retry_source_connection_id = retry_src_cid;
        local_parameters.stateless_reset_token =
            (!local_cid.is_empty()).then(|| self.config.key.reset_token(&local_cid));
        let preferred_cid = self.preferred_cid();
        local_parameters.preferred_address = preferred_cid.map(|cid| PreferredAddress {
            ipv4: self.config.preferred_address.ipv4,
            ipv6: self.config.preferred_address.ipv6,
            cid,
            reset_token: self.config.key.reset_token(&cid),
        });
        let mut rng = ChaCha20Rng::from_rng(&mut self.rng);
        let opening = Opening {
            crypto: Crypto::Server(server.crypto.clone()),
            parameters: local_parameters,
            versions: self.versions(),
            early_data: server.early_data == EarlyData::Accept,
            grease: grease.then(|| Grease::new(&mut rng)),
        };
        let early_packets = self.early_packets.take(*now, meta.remote, &header.dst_cid);

        let handle = self
            .routes
            .add_incoming(meta.remote, local_cid, header.dst_cid);
        if let Some(cid) = preferred_cid {
            self.routes.add_cid(handle, cid);
        }
        let setup = ConnectionSetup {
            side: Side::Server,
            version: header.version,
            transport: Arc::clone(transport),
            opening,
            session: None,
            primitives: server.crypto.primitives(),
            key: self.config.key.clone(),
            cids: self.cids.clone(),
            local_cid,
            remote_cid: header.src_cid,
            original_dst_cid,
            retry_src_cid,
            initial_keys_cid: header.dst_cid,
            initial_keys,
            preferred_cid,
            address: meta.path(),
            address_validated: *verdict != Verdict::Nothing,
            token: Vec::new(),
            rng,
            grease,
            address_token_lifetime: Some(server.address_token_lifetime)
                .filter(|lifetime| !lifetime.is_zero()),
            half_rtt: server.half_rtt,
            early_packets,
        };
        (handle, Box::new(Connection::new(*now, setup)))
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
