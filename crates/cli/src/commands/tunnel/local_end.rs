//! The local addresses of `tunnel connect`.

use std::io;
use std::net::SocketAddr;

use swiftwater_tunnel::client::{
    HttpConnectServer, ListenerLimits, ListenerStats, LocalForward, LocalTcpForward, SocksServer,
    TunnelClient,
};

use super::args::ConnectArgs;
use super::forward::{Carried, Forward};
use crate::exit::{Exit, Failure, plain_io_error};

/// What is wanted for at a local address.
pub(super) enum WantedEnd<'a> {
    Forward(&'a Forward),
    Socks(SocketAddr),
    Http(SocketAddr),
}

/// A bound local address.
pub(super) enum LocalEnd {
    Udp(LocalForward),
    Tcp(LocalTcpForward),
    Socks(SocksServer),
    Http(HttpConnectServer),
}

impl<'a> WantedEnd<'a> {
    /// All that the flags ask for. Servers for any target must be at loopback addresses, unless a flag permits others.
    pub(super) fn all(args: &'a ConnectArgs) -> Result<Vec<Self>, Failure> {
        let mut servers = Vec::new();
        servers.extend(args.socks.iter().map(|&local| Self::Socks(local)));
        servers.extend(args.http.iter().map(|&local| Self::Http(local)));
        let exposed = servers
            .iter()
            .find(|wanted| !wanted.local().ip().is_loopback());
        if let Some(exposed) = exposed.filter(|_| !args.allow_remote_clients) {
            let (kind, local) = (exposed.kind(), exposed.local());
            return Err(Failure::new(
                Exit::Usage,
                format_args!(
                    "--{kind} {local}: whoever reaches this address could use the proxy; give a loopback address, or \
                     --allow-remote-clients"
                ),
            ));
        }
        let mut all: Vec<_> = args.forwards.iter().map(Self::Forward).collect();
        all.append(&mut servers);
        Ok(all)
    }

    /// Its name in what is printed.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Forward(forward) => match forward.carried {
                Carried::Udp => "udp",
                Carried::Tcp => "tcp",
            },
            Self::Socks(_) => "socks",
            Self::Http(_) => "http",
        }
    }

    /// Where it leads; `None` if its clients say that.
    pub(super) fn target(&self) -> Option<String> {
        match self {
            Self::Forward(forward) => Some(forward.target.to_string()),
            Self::Socks(_) | Self::Http(_) => None,
        }
    }

    fn local(&self) -> SocketAddr {
        match self {
            Self::Forward(forward) => forward.local,
            Self::Socks(local) | Self::Http(local) => *local,
        }
    }

    pub(super) async fn bind(
        &self,
        tunnels: &TunnelClient,
        args: &ConnectArgs,
    ) -> Result<LocalEnd, Failure> {
        let (local, client) = (self.local(), tunnels.clone());
        let limits = ListenerLimits {
            idle_timeout: args.idle_timeout,
            ..ListenerLimits::default()
        };
        let bound = match self {
            Self::Forward(forward) => {
                let target = forward.target.clone();
                match forward.carried {
                    Carried::Udp => LocalForward::bind(local, client, target, args.idle_timeout)
                        .await
                        .map(LocalEnd::Udp),
                    Carried::Tcp => LocalTcpForward::bind(local, client, target, limits)
                        .await
                        .map(LocalEnd::Tcp),
                }
            }
            Self::Socks(_) => SocksServer::bind(local, client, limits)
                .await
                .map(LocalEnd::Socks),
            Self::Http(_) => HttpConnectServer::bind(local, client, limits)
                .await
                .map(LocalEnd::Http),
        };
        bound.map_err(|error| {
            let (kind, why) = (self.kind(), plain_io_error(&error));
            let protocol = if kind == "udp" { "UDP" } else { "TCP" };
            Failure::new(
                Exit::Listen,
                format_args!("cannot listen on {protocol} {local}: {why}"),
            )
        })
    }
}

impl LocalEnd {
    pub(super) fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Self::Udp(end) => end.local_addr(),
            Self::Tcp(end) => end.local_addr(),
            Self::Socks(end) => end.local_addr(),
            Self::Http(end) => end.local_addr(),
        }
    }

    /// Serves until the future is dropped, or the socket fails.
    pub(super) async fn run(&self) -> io::Error {
        match self {
            Self::Udp(end) => end.run().await,
            Self::Tcp(end) => end.run().await,
            Self::Socks(end) => end.run().await,
            Self::Http(end) => end.run().await,
        }
    }

    pub(super) fn stats(&self) -> ListenerStats {
        match self {
            Self::Udp(end) => {
                let mut stats = ListenerStats::default();
                stats.udp = end.stats();
                stats
            }
            Self::Tcp(end) => end.stats(),
            Self::Socks(end) => end.stats(),
            Self::Http(end) => end.stats(),
        }
    }
}
