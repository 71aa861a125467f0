//! The network interface of `tunnel connect`.

#[cfg(not(target_os = "linux"))]
pub(super) use elsewhere::IpEnd;
#[cfg(target_os = "linux")]
pub(super) use linux::IpEnd;

#[cfg(target_os = "linux")]
mod linux {
    use std::net::IpAddr;
    use std::time::Duration;

    use swiftwater_tunnel::client::interface::{
        InterfaceError, InterfaceStats, IpInterface, WantedRoutes,
    };
    use swiftwater_tunnel::client::{IpTunnel, OpenError, TunnelClient};
    use swiftwater_tunnel::ip::Scope;
    use swiftwater_tunnel::policy::Prefix;
    use tokio::time::{Instant, sleep_until, timeout};

    use super::super::args::ConnectArgs;
    use super::super::outage::Outages;
    use super::super::report::{InterfaceEvent, Reached, name_of};
    use crate::exit::{Exit, Failure};
    use crate::output;
    use crate::proxies::ProxyChain;
    use crate::transport::resolve;

    const KIND: &str = "ip";

    /// Default of `--tun-retry-max-time`.
    const RETRY_MAX_TIME: Duration = Duration::from_secs(60);

    /// Why there is no tunnel.
    enum Cause {
        /// A later attempt may succeed.
        Temporary(Failure),
        Lasting(Failure),
    }

    impl Cause {
        fn into_failure(self) -> Failure {
            match self {
                Self::Temporary(failure) | Self::Lasting(failure) => failure,
            }
        }
    }

    impl From<OpenError> for Cause {
        fn from(error: OpenError) -> Self {
            let is_temporary = error.is_temporary();
            let failure = Failure::new(Exit::Connection, error);
            if is_temporary {
                Self::Temporary(failure)
            } else {
                Self::Lasting(failure)
            }
        }
    }

    impl From<InterfaceError> for Cause {
        fn from(error: InterfaceError) -> Self {
            match error {
                InterfaceError::Tunnel(_) => Self::Temporary(failure(error)),
                _ => Self::Lasting(failure(error)),
            }
        }
    }

    /// A TUN device that leads into a tunnel, once there is one.
    pub(in super::super) struct IpEnd {
        name: String,
        interface: IpInterface,
        tunnel: Option<IpTunnel>,
    }

    /// A device that was removed.
    pub(in super::super) struct ClosedIpEnd {
        name: String,
        stats: InterfaceStats,
    }

    impl IpEnd {
        /// Makes the device, if one is asked for. Packets to the nearest proxy of `chain` don't go into it, nor do lookups of
        /// its name: its addresses remain those of now.
        pub(in super::super) async fn open(
            args: &ConnectArgs,
            chain: &ProxyChain,
        ) -> Result<Option<Self>, Failure> {
            let Some(name) = args.tun.clone() else {
                return Ok(None);
            };
            let (host, port) = chain.nearest();
            let found = resolve(host, port).await?;
            let proxy: Vec<IpAddr> = found.iter().map(|it| it.ip().to_canonical()).collect();
            chain.fix_addresses(found);
            let wanted: Vec<Prefix> = args.routes.iter().map(|it| it.0).collect();
            let interface = IpInterface::open(&name, WantedRoutes::within(&wanted), &proxy);
            Ok(Some(Self {
                interface: interface.map_err(failure)?,
                name,
                tunnel: None,
            }))
        }

        /// Opens the tunnel, waits for its addresses and routes, and says what it has.
        pub(in super::super) async fn begin(
            &mut self,
            tunnels: &TunnelClient,
            args: &ConnectArgs,
            proxy: &Reached<'_>,
        ) -> Result<(), Failure> {
            let begun = self.configure(tunnels, args).await;
            let begun = begun.map_err(Cause::into_failure);
            let begun = begun.and_then(|()| self.announce(proxy, args.json));
            if begun.is_err() {
                self.interface.close().await;
            }
            begun
        }

        async fn configure(
            &mut self,
            tunnels: &TunnelClient,
            args: &ConnectArgs,
        ) -> Result<(), Cause> {
            let scope = args.tun_scope.as_ref().unwrap_or(&Scope::ANY);
            let mut tunnel = tunnels.open_ip(scope).await?;
            let time_limit = args.trust.connect_timeout;
            let Ok(configured) = timeout(time_limit, tunnel.configured()).await else {
                return Err(Cause::Temporary(Failure::new(
                    Exit::Connection,
                    format_args!("the proxy assigned no address in {time_limit:?}"),
                )));
            };
            configured.map_err(InterfaceError::from)?;
            self.interface.configure(&mut tunnel).await?;
            self.tunnel = Some(tunnel);
            Ok(())
        }

        fn announce(&self, proxy: &Reached<'_>, json: bool) -> Result<(), Failure> {
            let state = self.interface.state();
            let event = InterfaceEvent::Listening {
                kind: KIND,
                local: &self.name,
                addresses: &state.addresses,
                routes: state.routes.iter().map(ToString::to_string).collect(),
                mtu: state.mtu,
                proxy,
            };
            event.print(json)
        }

        /// Forwards until there is no tunnel any more; for ever if there is no device.
        pub(in super::super) async fn run(
            end: Option<&mut Self>,
            tunnels: &TunnelClient,
            args: &ConnectArgs,
            proxy: &Reached<'_>,
        ) -> Failure {
            match end {
                Some(end) => end.forward(tunnels, args, proxy).await,
                None => std::future::pending().await,
            }
        }

        /// Forwards through one tunnel after the other.
        async fn forward(
            &mut self,
            tunnels: &TunnelClient,
            args: &ConnectArgs,
            proxy: &Reached<'_>,
        ) -> Failure {
            let max_time = args.tun_retry_max_time.unwrap_or(RETRY_MAX_TIME);
            let mut outages = Outages::default();
            let mut opened = Instant::now();
            loop {
                let mut cause = match self.tunnel.take() {
                    Some(mut tunnel) => Cause::from(self.interface.run(&mut tunnel).await),
                    None => std::future::pending().await,
                };
                outages.tunnel_ended(opened, Instant::now(), max_time);
                loop {
                    let next = match &cause {
                        Cause::Temporary(_) => outages.next_attempt(Instant::now()),
                        Cause::Lasting(_) => None,
                    };
                    let Some(next) = next else {
                        return cause.into_failure();
                    };
                    let failure = cause.into_failure();
                    output::note(&format!(
                        "note: {}: {failure}; a new tunnel is opened",
                        self.name
                    ));
                    sleep_until(next).await;
                    opened = Instant::now();
                    match self.configure(tunnels, args).await {
                        Ok(()) => break,
                        Err(error) => cause = error,
                    }
                }
                if let Err(failure) = self.announce_again(tunnels, proxy, args.json).await {
                    return failure;
                }
            }
        }

        /// Says what the device has now. The version of HTTP may be another one than before.
        async fn announce_again(
            &self,
            tunnels: &TunnelClient,
            proxy: &Reached<'_>,
            json: bool,
        ) -> Result<(), Failure> {
            let version = tunnels.connected().await;
            let http = version.map_or(proxy.http, name_of);
            let proxy = Reached {
                http,
                ..proxy.clone()
            };
            self.announce(&proxy, json)
        }

        /// Removes the device, and what the kernel has because of it.
        pub(in super::super) async fn close(mut self) -> ClosedIpEnd {
            self.interface.close().await;
            ClosedIpEnd {
                stats: self.interface.stats(),
                name: self.name,
            }
        }
    }

    impl ClosedIpEnd {
        /// Says what passed.
        pub(in super::super) fn print(&self, json: bool) -> Result<(), Failure> {
            let stats = &self.stats;
            let event = InterfaceEvent::Ended {
                kind: KIND,
                local: &self.name,
                packets_sent: stats.sent,
                packets_received: stats.received,
                packets_dropped: stats.dropped,
            };
            event.print(json)
        }
    }

    fn failure(error: InterfaceError) -> Failure {
        let exit = match error {
            InterfaceError::Tunnel(_) => Exit::Connection,
            _ => Exit::Failure,
        };
        Failure::new(exit, error)
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use swiftwater_tunnel::client::TunnelClient;

    use super::super::args::ConnectArgs;
    use super::super::report::Reached;
    use crate::exit::{Exit, Failure};
    use crate::proxies::ProxyChain;

    /// There is no such interface here.
    pub(in super::super) enum IpEnd {}

    impl IpEnd {
        pub(in super::super) async fn open(
            args: &ConnectArgs,
            _: &ProxyChain,
        ) -> Result<Option<Self>, Failure> {
            match args.tun {
                Some(_) => Err(Failure::new(Exit::Usage, "--tun needs Linux")),
                None => Ok(None),
            }
        }

        pub(in super::super) async fn begin(
            &mut self,
            _: &TunnelClient,
            _: &ConnectArgs,
            _: &Reached<'_>,
        ) -> Result<(), Failure> {
            match *self {}
        }

        pub(in super::super) async fn run(
            end: Option<&mut Self>,
            _: &TunnelClient,
            _: &ConnectArgs,
            _: &Reached<'_>,
        ) -> Failure {
            match end {
                Some(end) => match *end {},
                None => std::future::pending().await,
            }
        }

        pub(in super::super) async fn close(self) -> Self {
            self
        }

        pub(in super::super) fn print(&self, _: bool) -> Result<(), Failure> {
            match *self {}
        }
    }
}
