//! What `tunnel connect` prints: when a local address listens or a network interface is up, and when it ends.

use std::fmt;
use std::net::IpAddr;

use http::Version;
use serde::Serialize;
use swiftwater_tunnel::client::ListenerStats;

use crate::exit::Failure;
use crate::output;

/// One object of `--json`.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Event<'a> {
    Listening {
        #[serde(flatten)]
        end: &'a End<'a>,
        #[serde(flatten)]
        proxy: &'a Reached<'a>,
    },
    Ended {
        #[serde(flatten)]
        end: &'a End<'a>,
        tunnels: u64,
        failed: u64,
        #[serde(flatten)]
        udp: Option<Udp>,
        #[serde(flatten)]
        tcp: Option<Tcp>,
    },
}

/// One object of `--json` about a network interface.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(super) enum InterfaceEvent<'a> {
    Listening {
        kind: &'static str,
        /// Its name.
        local: &'a str,
        addresses: &'a [IpAddr],
        routes: Vec<String>,
        /// Bytes.
        mtu: u16,
        #[serde(flatten)]
        proxy: &'a Reached<'a>,
    },
    Ended {
        kind: &'static str,
        local: &'a str,
        packets_sent: u64,
        packets_received: u64,
        packets_dropped: u64,
    },
}

/// The proxies.
#[derive(Clone, Serialize)]
pub(super) struct Reached<'a> {
    /// Host and port of the last one.
    pub(super) proxy: &'a str,
    /// The version of HTTP to it.
    pub(super) http: &'static str,
    /// Those before it, the nearest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) via: Vec<&'a str>,
}

impl fmt::Display for Reached<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for proxy in &self.via {
            write!(f, "{proxy}, then ")?;
        }
        write!(f, "{} ({})", self.proxy, self.http)
    }
}

/// A local address.
#[derive(Serialize)]
pub(super) struct End<'a> {
    pub(super) kind: &'a str,
    pub(super) local: &'a str,
    /// Where it leads; `None` if its clients say that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) target: Option<&'a str>,
}

#[derive(Serialize)]
struct Udp {
    #[serde(rename = "datagrams_sent")]
    sent: u64,
    #[serde(rename = "datagrams_received")]
    received: u64,
    #[serde(rename = "datagrams_dropped")]
    dropped: u64,
}

#[derive(Serialize)]
struct Tcp {
    bytes_sent: u64,
    bytes_received: u64,
    rejected: u64,
}

impl End<'_> {
    fn has_udp(&self) -> bool {
        matches!(self.kind, "udp" | "socks")
    }

    fn has_tcp(&self) -> bool {
        self.kind != "udp"
    }

    pub(super) fn listening(&self, proxy: &Reached<'_>, json: bool) -> Result<(), Failure> {
        if json {
            let end = self;
            return output::json(&Event::Listening { end, proxy });
        }
        let local = self.local;
        output::line(&match (self.kind, self.target) {
            (kind, Some(target)) => {
                let protocol = kind.to_ascii_uppercase();
                format!("{protocol} {local} leads to {target} through {proxy}")
            }
            ("socks", None) => format!("SOCKS 5 at {local} leads through {proxy}"),
            (_, None) => format!("HTTP CONNECT at {local} leads through {proxy}"),
        })
    }

    pub(super) fn ended(&self, stats: &ListenerStats, json: bool) -> Result<(), Failure> {
        let udp = Udp {
            sent: stats.udp.sent,
            received: stats.udp.received,
            dropped: stats.udp.dropped,
        };
        let tcp = Tcp {
            bytes_sent: stats.bytes_sent,
            bytes_received: stats.bytes_received,
            rejected: stats.rejected,
        };
        let (tunnels, failed) = (
            stats.opened + stats.udp.opened,
            stats.failed + stats.udp.failed,
        );
        if json {
            return output::json(&Event::Ended {
                end: self,
                tunnels,
                failed,
                udp: self.has_udp().then_some(udp),
                tcp: self.has_tcp().then_some(tcp),
            });
        }
        let name = self.target.unwrap_or(self.local);
        let mut parts = vec![format!("{name}: {tunnels} tunnels ({failed} failed)")];
        if self.has_tcp() {
            parts.push(format!(
                "{} bytes sent, {} received, {} connections rejected",
                tcp.bytes_sent, tcp.bytes_received, tcp.rejected
            ));
        }
        if self.has_udp() {
            parts.push(format!(
                "{} datagrams sent, {} received, {} dropped",
                udp.sent, udp.received, udp.dropped
            ));
        }
        output::line(&parts.join(", "))
    }
}

impl InterfaceEvent<'_> {
    pub(super) fn print(&self, json: bool) -> Result<(), Failure> {
        if json {
            return output::json(self);
        }
        output::line(&match self {
            Self::Listening {
                local,
                addresses,
                routes,
                mtu,
                proxy,
                ..
            } => {
                let addresses: Vec<String> = addresses.iter().map(ToString::to_string).collect();
                let addresses = addresses.join(", ");
                let routes = match &routes[..] {
                    few @ ([_] | [_, _] | [_, _, _]) => few.join(", "),
                    many => format!("{} prefixes", many.len()),
                };
                format!(
                    "TUN {local} has {addresses}, and leads to {routes} through {proxy}; MTU {mtu}"
                )
            }
            Self::Ended {
                local,
                packets_sent,
                packets_received,
                packets_dropped,
                ..
            } => format!(
                "{local}: {packets_sent} packets sent, {packets_received} received, {packets_dropped} dropped"
            ),
        })
    }
}

/// The name of a version of HTTP.
pub(super) fn name_of(version: Version) -> &'static str {
    match version {
        Version::HTTP_3 => "h3",
        Version::HTTP_2 => "h2",
        _ => "h1",
    }
}
