//! Opening of connections by clients (RFC 9000, sections 7.2 and 8.1.3).

use std::net::SocketAddr;

use rand_chacha::ChaCha20Rng;
use rand_core::SeedableRng;
use swiftwater_units::{Instant, Side};
use swiftwater_wire::ConnectionId;

use super::routing::ConnectionHandle;
use super::{Endpoint, parameters};
use crate::cid::{FIRST_DST_CID_LEN, random_cid};
use crate::config::ClientConfig;
use crate::connection::Connection;
use crate::connection_setup::ConnectionSetup;
use crate::error::ConnectError;
use crate::handshake::{Crypto, Grease, Opening};
use crate::transmit::PathAddress;

impl Endpoint {
    /// Starts a connection to `remote`, which must prove to be `server_name`. The driver keeps the
    /// connection under the handle. If the TLS adapter has stored a session with that server, it is
    /// resumed; [`Connection::may_send_early_data`] is true if data may be sent at once.
    ///
    /// With zero-length connection IDs there is one connection to an address at a time; another
    /// is [`ConnectError::InvalidAddress`].
    pub fn connect(
        &mut self,
        now: Instant,
        config: &ClientConfig,
        remote: SocketAddr,
        server_name: &str,
    ) -> Result<(ConnectionHandle, Connection), ConnectError> {
        self.connect_with_token(now, config, remote, server_name, Vec::new())
    }

    /// Like [`Endpoint::connect`], with a token from an earlier connection to the same server
    /// ([`Event::NewToken`](crate::Event::NewToken)), which saves the validation of the client's address. Each
    /// token should be used once (RFC 9000, section 8.1.3).
    pub fn connect_with_token(
        &mut self,
        now: Instant,
        config: &ClientConfig,
        remote: SocketAddr,
        server_name: &str,
        token: Vec<u8>,
    ) -> Result<(ConnectionHandle, Connection), ConnectError> {
        self.check_remote(remote)?;
        let local_cid = self
            .fresh_cid()
            .ok_or_else(|| ConnectError::TooManyConnections(self.routes.connections()))?;
        let first_dst = random_cid(&mut self.rng, FIRST_DST_CID_LEN);
        let version = self.first_version();
        let mut rng = ChaCha20Rng::from_rng(&mut self.rng);
        let opening = self.opening(config, server_name, local_cid, &mut rng);
        let session = opening
            .start(version)
            .map_err(|error| ConnectError::Tls(error.0))?;
        let token = Some(token)
            .filter(|token| !token.is_empty())
            .or_else(|| config.crypto.take_token(version, server_name))
            .unwrap_or_default();
        let handle = self.routes.add_outgoing(remote, local_cid);
        self.stats.opened += 1;
        let primitives = config.crypto.primitives();
        let setup = ConnectionSetup {
            side: Side::Client,
            version,
            transport: config.transport.clone(),
            opening,
            session: Some(session),
            initial_keys: primitives.initial_keys(version, &first_dst, Side::Client),
            primitives,
            key: self.config.key.clone(),
            cids: self.cids.clone(),
            local_cid,
            remote_cid: first_dst,
            original_dst_cid: first_dst,
            retry_src_cid: None,
            initial_keys_cid: first_dst,
            preferred_cid: None,
            address: PathAddress {
                remote,
                local: self.local,
            },
            address_validated: true,
            token,
            rng,
            grease: self.config.grease,
            issues_tokens: false,
            half_rtt: false,
            early_packets: Vec::new(),
        };
        Ok((handle, Connection::new(now, setup)))
    }

    /// What the TLS session of a connection to `server_name` is made from.
    fn opening(
        &self,
        config: &ClientConfig,
        server_name: &str,
        local_cid: ConnectionId,
        rng: &mut ChaCha20Rng,
    ) -> Opening {
        let grease = self.config.grease;
        Opening {
            crypto: Crypto::Client {
                crypto: config.crypto.clone(),
                server_name: server_name.to_owned(),
            },
            parameters: parameters::local_parameters(&config.transport, local_cid, grease),
            versions: self.versions(),
            early_data: false,
            grease: grease.then(|| Grease::new(rng)),
        }
    }

    /// An error if no connection to `remote` can be opened.
    fn check_remote(&self, remote: SocketAddr) -> Result<(), ConnectError> {
        let ip = remote.ip();
        let occupied = self.cids.len() == 0 && self.routes.has_remote(remote);
        if remote.port() == 0 || ip.is_unspecified() || ip.is_multicast() || occupied {
            return Err(ConnectError::InvalidAddress(remote));
        }
        let limit = self.config.worker.share(self.config.max_connections);
        if self.routes.connections() >= limit {
            return Err(ConnectError::TooManyConnections(limit));
        }
        Ok(())
    }
}
