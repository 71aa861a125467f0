//! The endpoint: association of datagrams with connections, and what is sent without a connection (RFC 9000,
//! sections 5.2, 6, 8.1 and 10.3).
//!
//! The [`Endpoint`] finds the connection of each datagram, answers those that have none (Version
//! Negotiation, Retry, refusal, stateless reset), and makes new connections. It keeps bookkeeping
//! only (connection IDs, reset tokens, counts); the [`Connection`]s belong to the driver.
//!
//! It holds no state for a client that it did not admit, and nothing that it sends without a connection is
//! larger than the datagram that caused it. Further sources: RFC 8999; RFC 9000, sections 14.1 and 17.2.

mod admission;
mod close;
mod connect;
mod parameters;
mod reset;
mod routing;
mod shares;
mod stats;
#[cfg(test)]
mod tests;
mod version;
mod zero_rtt;

use std::net::SocketAddr;
use std::sync::Arc;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use swiftwater_units::{Instant, PathId};
use swiftwater_wire::{ConnectionId, InvariantHeader, PacketType, PartialHeader, VERSION_1};

use crate::address_token::TokenValidator;
use crate::cid::CidSource;
use crate::config::{EndpointConfig, ServerConfig};
use crate::connection::Connection;
use crate::datagram_size::MIN_INITIAL_SIZE;
use crate::events::{CidCollision, EndpointEvent};
use crate::transmit::{DatagramMeta, LocalAddress, Transmit};
use reset::ResetRate;
use routing::Routes;
use shares::ClientShares;
use zero_rtt::ZeroRttPackets;

pub use routing::ConnectionHandle;
pub use stats::EndpointStats;

/// Sorts datagrams to connections and decides about those that belong to none.
///
/// Deterministic: the same configuration, seed and calls give the same results.
#[derive(Debug)]
pub struct Endpoint {
    config: EndpointConfig,
    cids: CidSource,
    server: Option<Arc<ServerConfig>>,
    /// Every new connection is refused ([`Endpoint::set_refusing`]).
    refusing: bool,
    /// The local address of connections opened by this endpoint.
    local: LocalAddress,
    routes: Routes,
    rng: ChaCha20Rng,
    stats: EndpointStats,
    reset_rate: ResetRate,
    shares: Option<ClientShares>,
    tokens: TokenValidator,
    zero_rtt: ZeroRttPackets,
    /// Where the first packet of a would-be connection is opened for a check.
    scratch: Vec<u8>,
}

/// What is to be done with a datagram.
#[derive(Debug)]
#[non_exhaustive]
pub enum Routed {
    /// Give it to this connection.
    Connection(ConnectionHandle),
    /// Keep the new connection under `handle`, then give it the datagram.
    NewConnection {
        /// Its handle.
        handle: ConnectionHandle,
        /// The connection.
        connection: Box<Connection>,
    },
    /// Route it with the endpoint of another worker ([`Worker`](crate::Worker)).
    OtherWorker {
        /// Index of that worker.
        worker: u8,
        /// True for a packet with a short header, of a connection whose handshake is complete. Others are
        /// mostly made up: a connection ID that names a worker needs no knowledge in an Initial. The driver
        /// should bound them more tightly where datagrams wait for a worker.
        established: bool,
    },
    /// Send the answer that was written to the lent buffer.
    Response(Transmit),
    /// Nothing; [`EndpointStats`] counts why.
    Dropped,
}

impl Endpoint {
    /// An endpoint that accepts connections if there is a `server`. All its randomness comes from
    /// `seed`: it must be unpredictable wherever peers are real.
    ///
    /// Workers that share an address may share the seed too.
    pub fn new(
        mut config: EndpointConfig,
        server: Option<Arc<ServerConfig>>,
        seed: [u8; 32],
    ) -> Self {
        if config.versions.is_empty() {
            config.versions.push(VERSION_1);
        }
        let worker = config.worker;
        let resets = worker.share(config.stateless_resets_per_second as usize);
        let shares = config.share_by_address.then(|| {
            let connections = worker.share(config.max_connections);
            ClientShares::new(connections, worker.share(config.max_handshakes))
        });
        let mut rng = ChaCha20Rng::from_seed(seed);
        rng.set_stream(u64::from(config.worker.index));
        Self {
            cids: CidSource::new(config.cids.as_ref(), config.worker, &config.key),
            tokens: TokenValidator::new(&config.key, &config.used_tokens),
            config,
            server,
            refusing: false,
            local: LocalAddress::default(),
            routes: Routes::default(),
            rng,
            stats: EndpointStats::default(),
            reset_rate: ResetRate::new(resets),
            shares,
            zero_rtt: ZeroRttPackets::default(),
            scratch: Vec::new(),
        }
    }

    /// Accepts new connections from now on with this configuration, or with `None` no longer.
    /// Connections that exist are not affected.
    ///
    /// Without a configuration clients get no answer; with [`Endpoint::set_refusing`] they are refused.
    pub fn set_server_config(&mut self, server: Option<Arc<ServerConfig>>) {
        self.server = server;
    }

    /// While true, every new connection is closed with `CONNECTION_REFUSED`, before
    /// any state is kept for it (RFC 9000, section 5.2.2). For drivers that are busy, with a limit
    /// of their own. False at first; without a server configuration it changes nothing.
    pub fn set_refusing(&mut self, refusing: bool) {
        self.refusing = refusing;
    }

    /// Connections that are opened from now on start from this local address; socket 0 and the
    /// system's choice of an IP address at first.
    pub fn set_local_address(&mut self, local: LocalAddress) {
        self.local = local;
    }

    /// Decides what is to be done with one datagram (of a GRO batch: with each). An answer, if any, is
    /// written to the start of `out` and is smaller than the datagram; one that doesn't fit is
    /// dropped. 1200 bytes always suffice.
    pub fn route(
        &mut self,
        now: Instant,
        meta: &DatagramMeta,
        datagram: &[u8],
        out: &mut [u8],
    ) -> Routed {
        let header = InvariantHeader::parse(datagram, self.cids.len());
        if let Ok(header) = &header
            && let Some(handle) = self.routes.find(meta.remote, header)
        {
            return Routed::Connection(handle);
        }
        // Any datagram without a connection may be a stateless reset, even with a long header (section 10.3.1).
        if let Some(handle) = self.routes.find_reset(meta.remote, datagram) {
            self.stats.resets_received += 1;
            return Routed::Connection(handle);
        }
        let Ok(header) = header else {
            return dropped(&mut self.stats.dropped_malformed);
        };
        if let Some(worker) = self.other_worker(&header, datagram) {
            return self.hand_over(worker, !header.is_long);
        }
        match header.version {
            None => self.send_reset(now, meta, datagram, &header, out),
            // A Version Negotiation packet is never answered (section 6.1).
            Some(0) => dropped(&mut self.stats.dropped_unknown),
            Some(version) if self.config.versions.contains(&version) => {
                self.admit(now, meta, datagram, out)
            }
            Some(_) => self.negotiate_version(meta, datagram, &header, out),
        }
    }

    /// The other worker that the destination connection ID of a datagram names, if this worker has no such
    /// connection. A client chooses the ID of its first packets at random: the worker that receives those
    /// handles them.
    fn other_worker(&self, header: &InvariantHeader<'_>, datagram: &[u8]) -> Option<u8> {
        let worker = self.cids.other_worker(header.dst_cid)?;
        let is_chosen_by_client = self.server.is_some()
            && header.version.is_some_and(|version| version != 0)
            && PartialHeader::parse(datagram, self.cids.len()).is_ok_and(|header| {
                matches!(
                    header.packet_type,
                    PacketType::Initial | PacketType::ZeroRtt
                )
            });
        (!is_chosen_by_client).then_some(worker)
    }

    fn hand_over(&mut self, worker: u8, established: bool) -> Routed {
        self.stats.handed_over += 1;
        Routed::OtherWorker {
            worker,
            established,
        }
    }

    /// Handles an event of a connection; those of drained connections are ignored. What is returned is to be
    /// given to the same connection ([`Connection::handle_cid_collision`]), whose next endpoint events answer
    /// it.
    #[allow(clippy::needless_pass_by_value, reason = "an event is handled once")]
    pub fn handle_event(
        &mut self,
        handle: ConnectionHandle,
        event: EndpointEvent,
    ) -> Option<CidCollision> {
        match event {
            EndpointEvent::CidIssued(cid) => {
                if !self.routes.add_cid(handle, cid) {
                    self.stats.cid_collisions += 1;
                    return Some(CidCollision(cid));
                }
            }
            EndpointEvent::CidRetired(cid) => self.routes.remove_cid(handle, cid),
            EndpointEvent::PeerResetToken { remote, token } => {
                self.routes.add_reset_token(handle, remote, token);
            }
            EndpointEvent::PeerResetTokenRetired { remote, token } => {
                self.routes.remove_reset_token(handle, remote, token);
            }
            EndpointEvent::HandshakeDone => {
                let client = self.routes.finish_handshake(handle);
                self.release(client, None);
            }
            EndpointEvent::Drained => {
                let half_open = self.routes.finish_handshake(handle);
                let client = self.routes.remove(handle);
                self.release(half_open, client);
            }
        }
        None
    }

    /// Gives back what was counted for the addresses that connections were accepted from.
    fn release(&mut self, half_open: Option<SocketAddr>, connection: Option<SocketAddr>) {
        if let Some(shares) = &mut self.shares {
            if let Some(client) = half_open {
                shares.finish_handshake(client.ip());
            }
            if let Some(client) = connection {
                shares.release(client.ip());
            }
        }
    }

    /// Connections that are not drained yet, in both directions.
    pub fn connections(&self) -> usize {
        self.routes.connections()
    }

    /// True if there is no connection, and nothing is left of those that there were.
    pub fn is_idle(&self) -> bool {
        self.routes.is_empty() && self.routes.handshakes() == 0
    }

    /// Handshakes of accepted connections that are in progress.
    pub fn handshakes(&self) -> usize {
        self.routes.handshakes()
    }

    /// What the endpoint has done so far.
    pub fn stats(&self) -> EndpointStats {
        self.stats
    }

    /// The supported versions, for a connection.
    fn versions(&self) -> Vec<u32> {
        self.config.versions.clone()
    }

    /// The version that a client begins in.
    fn first_version(&self) -> u32 {
        let versions = &self.config.versions;
        let wanted = self.config.first_version;
        wanted
            .filter(|wanted| versions.contains(wanted))
            .unwrap_or(versions[0])
    }

    /// A connection ID that no connection has, for packets that the driver sorts out itself before
    /// [`Endpoint::route`]; `None` if the endpoint's IDs are shorter than 8 bytes. It names the endpoint's worker and
    /// host as the IDs of its connections do.
    pub fn unused_cid(&mut self) -> Option<ConnectionId> {
        /// Shorter ones can be guessed, and meet those of connections by chance.
        const MIN_LEN: usize = 8;
        if self.cids.len() < MIN_LEN {
            return None;
        }
        self.fresh_cid()
    }

    /// True if packets with `cid` could not be told from those of a connection: one ID is the beginning of the other. It
    /// takes a look at each connection.
    pub fn conflicts_with_cid(&self, cid: ConnectionId) -> bool {
        self.routes.conflicts_with_cid(cid)
    }

    /// A connection ID that no connection has, or `None` if the IDs are too short to find one.
    fn fresh_cid(&mut self) -> Option<ConnectionId> {
        /// Enough unless nearly all IDs of the length are taken.
        const TRIES: usize = 64;
        if self.cids.len() == 0 {
            return Some(ConnectionId::EMPTY);
        }
        (0..TRIES)
            .map(|_| self.cids.generate(&mut self.rng))
            .find(|cid| !self.routes.has_cid(*cid))
    }

    /// Sends a stateless reset for a packet of an unknown connection, if that is enabled and safe.
    fn send_reset(
        &mut self,
        now: Instant,
        meta: &DatagramMeta,
        datagram: &[u8],
        header: &InvariantHeader<'_>,
        out: &mut [u8],
    ) -> Routed {
        let cid = ConnectionId::new(header.dst_cid).filter(|cid| !cid.is_empty());
        let (Some(cid), true) = (cid, self.config.stateless_reset) else {
            return dropped(&mut self.stats.dropped_unknown);
        };
        if self.cids.is_elsewhere(&cid) || !reset::deserves_reset(datagram, self.config.grease) {
            return dropped(&mut self.stats.dropped_unknown);
        }
        if !self.reset_rate.permits(now) {
            return dropped(&mut self.stats.resets_withheld);
        }
        let token = self.config.key.reset_token(&cid);
        match reset::write(&mut self.rng, token, datagram.len(), out) {
            Some(size) => respond(&mut self.stats.resets_sent, meta, size),
            None => dropped(&mut self.stats.dropped_no_room),
        }
    }

    /// Sends a client the versions that it may try (section 6.1).
    fn negotiate_version(
        &mut self,
        meta: &DatagramMeta,
        datagram: &[u8],
        header: &InvariantHeader<'_>,
        out: &mut [u8],
    ) -> Routed {
        if self.server.is_none() {
            return dropped(&mut self.stats.dropped_not_accepting);
        }
        if datagram.len() < MIN_INITIAL_SIZE {
            return dropped(&mut self.stats.dropped_too_short);
        }
        let limit = out.len().min(datagram.len() - 1);
        let out = &mut out[..limit];
        let grease = self.config.grease;
        match version::write(&mut self.rng, header, &self.config.versions, grease, out) {
            Some(size) => respond(&mut self.stats.versions_negotiated, meta, size),
            None => dropped(&mut self.stats.dropped_no_room),
        }
    }
}

/// Counts a datagram that is thrown away.
fn dropped(counter: &mut u64) -> Routed {
    *counter += 1;
    Routed::Dropped
}

/// Counts an answer of `size` bytes to the sender of a datagram.
fn respond(counter: &mut u64, meta: &DatagramMeta, size: usize) -> Routed {
    *counter += 1;
    Routed::Response(Transmit::single(PathId::ZERO, &meta.path(), None, size))
}
