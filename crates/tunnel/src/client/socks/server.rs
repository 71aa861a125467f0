//! The local address of a SOCKS server, and the handshake of its connections.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::association::Association;
use super::message::{Command, Greeting, MessageError, Reply, SocksRequest};
use super::replies;
use crate::client::datagram_relay::ForwardCounters;
use crate::client::listener::{Listener, ListenerCounters, ListenerLimits, ListenerStats};
use crate::client::tunnel_client::TunnelClient;

/// The longest message of a client's handshake, bytes.
const LONGEST: usize = 262;

/// The address in replies that have none to name.
const NOWHERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// How long a client gets to read why its request failed.
const LAST_READ: Duration = Duration::from_secs(2);

/// A SOCKS server (RFC 1928) without authentication, whose targets are reached through the proxy. The proxy resolves
/// their names.
#[derive(Debug)]
pub struct SocksServer {
    listener: Listener,
    client: TunnelClient,
    limits: ListenerLimits,
    counters: Arc<ListenerCounters>,
    udp: Arc<ForwardCounters>,
}

impl SocksServer {
    /// Binds `local`. Whoever reaches it may use the proxy: it should be a loopback address.
    pub async fn bind(
        local: SocketAddr,
        client: TunnelClient,
        limits: ListenerLimits,
    ) -> io::Result<Self> {
        Ok(Self {
            listener: Listener::bind(local, limits).await?,
            client,
            limits,
            counters: Arc::default(),
            udp: Arc::default(),
        })
    }

    /// The address that it is bound to.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Counters so far.
    pub fn stats(&self) -> ListenerStats {
        self.counters.stats(self.udp.stats())
    }

    /// Serves until the future is dropped, or the socket fails.
    pub async fn run(&self) -> io::Error {
        let serve = |stream, peer| {
            let connection = SocksConnection {
                stream,
                peer,
                received: Vec::new(),
                client: self.client.clone(),
                limits: self.limits,
                counters: Arc::clone(&self.counters),
                udp: Arc::clone(&self.udp),
            };
            connection.serve()
        };
        self.listener.run(&self.counters, serve).await
    }
}

/// Why a client does not get as far as a request.
#[derive(Debug, Error)]
enum HandshakeError {
    #[error("the client failed: {0}")]
    Io(#[from] io::Error),
    #[error(transparent)]
    Message(#[from] MessageError),
    #[error("the client needs authentication, which is not supported")]
    Method,
    #[error("the client sent too little in time")]
    Slow,
}

/// One connection of a client.
struct SocksConnection {
    stream: TcpStream,
    peer: SocketAddr,
    /// Received, but not decoded.
    received: Vec<u8>,
    client: TunnelClient,
    limits: ListenerLimits,
    counters: Arc<ListenerCounters>,
    udp: Arc<ForwardCounters>,
}

impl SocksConnection {
    async fn serve(mut self) {
        let handshake = timeout(self.limits.handshake, self.request()).await;
        let request = match handshake.unwrap_or(Err(HandshakeError::Slow)) {
            Ok(request) => request,
            Err(error) => {
                ListenerCounters::add(&self.counters.rejected);
                tracing::debug!(peer = %self.peer, %error, "no request of SOCKS");
                if let HandshakeError::Message(error) = &error
                    && let Some(reply) = replies::of_fault(error)
                {
                    self.refuse(reply).await;
                }
                return;
            }
        };
        match request.command {
            Command::Connect => self.connect(&request).await,
            Command::UdpAssociate => self.associate().await,
            Command::Bind | Command::Other(_) => {
                ListenerCounters::add(&self.counters.rejected);
                self.refuse(Reply::CommandNotSupported).await;
            }
        }
    }

    /// Agrees on no authentication, and reads the request.
    async fn request(&mut self) -> Result<SocksRequest, HandshakeError> {
        let greeting = self.next(Greeting::decode).await?;
        self.stream.write_all(&greeting.answer()).await?;
        if !greeting.without_authentication {
            self.stream.shutdown().await?;
            return Err(HandshakeError::Method);
        }
        self.next(SocksRequest::decode).await
    }

    /// The next message, and what follows it stays in `received`.
    async fn next<T>(
        &mut self,
        decode: impl Fn(&mut &[u8]) -> Result<T, MessageError>,
    ) -> Result<T, HandshakeError> {
        let mut buffer = [0; LONGEST];
        loop {
            let mut rest = &self.received[..];
            match decode(&mut rest) {
                Ok(message) => {
                    let used = self.received.len() - rest.len();
                    self.received.drain(..used);
                    return Ok(message);
                }
                Err(MessageError::Incomplete) => {}
                Err(error) => return Err(error.into()),
            }
            let count = self.stream.read(&mut buffer).await?;
            if count == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
            }
            self.received.extend_from_slice(&buffer[..count]);
        }
    }

    async fn connect(mut self, request: &SocksRequest) {
        let target = match request.address.target() {
            Ok(target) => target,
            Err(error) => {
                ListenerCounters::add(&self.counters.rejected);
                tracing::debug!(peer = %self.peer, %error, "no target");
                let reply = replies::of_fault(&error).unwrap_or(Reply::GeneralFailure);
                return self.refuse(reply).await;
            }
        };
        let tunnel = match self.client.open_tcp(&target).await {
            Ok(tunnel) => tunnel,
            Err(error) => {
                ListenerCounters::add(&self.counters.failed);
                tracing::warn!(%target, %error, "no tunnel");
                return self.refuse(replies::of_refusal(&error)).await;
            }
        };
        if self.reply(Reply::Succeeded, NOWHERE).await.is_err() {
            return;
        }
        // A client may send ahead of the reply.
        let (early, counters) = (self.received, self.counters);
        counters.forward(self.stream, &early, tunnel).await;
    }

    /// UDP of the client, until it ends the connection.
    async fn associate(mut self) {
        let bound = match self.stream.local_addr() {
            Ok(local) => Association::bind(local.ip(), self.peer.ip()).await,
            Err(error) => Err(error),
        };
        let (association, address) = match bound {
            Ok(bound) => bound,
            Err(error) => {
                ListenerCounters::add(&self.counters.failed);
                tracing::warn!(%error, "no socket for datagrams of a client");
                return self.refuse(Reply::GeneralFailure).await;
            }
        };
        if self.reply(Reply::Succeeded, address).await.is_err() {
            return;
        }
        let mut buffer = [0; LONGEST];
        let ended = async {
            // Nothing is to come on it.
            while matches!(self.stream.read(&mut buffer).await, Ok(count) if count > 0) {}
        };
        tokio::select! {
            () = ended => {}
            error = association.run(&self.client, self.limits, &self.udp) => {
                tracing::warn!(%error, "the socket for datagrams of a client failed");
            }
        }
    }

    async fn reply(&mut self, reply: Reply, bound: SocketAddr) -> io::Result<()> {
        let message = reply.encode(bound);
        let sent = timeout(self.limits.handshake, self.stream.write_all(&message)).await;
        sent.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
    }

    /// Says why not, and closes once the client has had the time to read it.
    async fn refuse(mut self, reply: Reply) {
        if self.reply(reply, NOWHERE).await.is_err() || self.stream.shutdown().await.is_err() {
            return;
        }
        let mut buffer = [0; LONGEST];
        // Unread bytes would make the end a reset, which may overtake the reply.
        let _ = timeout(LAST_READ, async {
            while matches!(self.stream.read(&mut buffer).await, Ok(count) if count > 0) {}
        })
        .await;
    }
}
