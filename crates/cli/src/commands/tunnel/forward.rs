//! What `-L` says: a local address, and the target that it leads to.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

use swiftwater_tunnel::target::Target;
use thiserror::Error;

/// What a local address carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Carried {
    /// Datagrams.
    Udp,
    /// Connections.
    Tcp,
}

/// A local address and a target, written `[udp:|tcp:][ADDRESS:]PORT:HOST:PORT`; UDP by default.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Forward {
    /// What passes.
    pub carried: Carried,
    /// The local address; of the loopback network by default.
    pub local: SocketAddr,
    /// The target.
    pub target: Target,
}

/// Text that is no forward.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "{0:?} is not [udp:|tcp:][ADDRESS:]PORT:HOST:PORT, such as 8443:server.example:443 or tcp:2222:server.example:22"
)]
pub struct ForwardError(String);

impl FromStr for Forward {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<Self, ForwardError> {
        let (carried, rest) = match (text.strip_prefix("tcp:"), text.strip_prefix("udp:")) {
            (Some(rest), _) => (Carried::Tcp, rest),
            (None, rest) => (Carried::Udp, rest.unwrap_or(text)),
        };
        // Addresses have colons, too: the first one that leaves an address on its left and a target on its right.
        let mut places = rest.match_indices(':').map(|(place, _)| place);
        places
            .find_map(|place| {
                let (local, target) = (&rest[..place], &rest[place + 1..]);
                Some(Self {
                    carried,
                    target: target.parse().ok()?,
                    local: local_address(local).ok()?,
                })
            })
            .ok_or_else(|| ForwardError(text.to_owned()))
    }
}

/// An address and a port, or a port of the loopback network.
pub fn local_address(text: &str) -> Result<SocketAddr, String> {
    match text.parse::<u16>() {
        Ok(port) => Ok((Ipv4Addr::LOCALHOST, port).into()),
        Err(_) => text
            .parse()
            .map_err(|_| "[ADDRESS:]PORT was expected, such as 1080 or [::1]:1080".to_owned()),
    }
}

impl fmt::Display for Carried {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        })
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.carried, self.local, self.target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_of_forwards() {
        for (text, shown) in [
            (
                "8443:server.example:443",
                "udp:127.0.0.1:8443:server.example:443",
            ),
            ("udp:0:192.0.2.1:53", "udp:127.0.0.1:0:192.0.2.1:53"),
            ("tcp:2222:a:22", "tcp:127.0.0.1:2222:a:22"),
            ("0.0.0.0:8443:a:1", "udp:0.0.0.0:8443:a:1"),
            (
                "tcp:[::1]:8443:[2001:db8::1]:443",
                "tcp:[::1]:8443:[2001:db8::1]:443",
            ),
            ("1:[::1]:2", "udp:127.0.0.1:1:[::1]:2"),
        ] {
            assert_eq!(
                text.parse::<Forward>().map(|it| it.to_string()),
                Ok(shown.to_owned())
            );
        }
        for text in [
            "",
            "8443",
            "tcp:",
            "sctp:1:a:1",
            "a:1",
            "8443:a",
            "99999:a:1",
            "8443:a:0",
            "::1:8443:a:1",
            "1:2:3:4:5",
        ] {
            assert!(text.parse::<Forward>().is_err(), "{text}");
        }
    }
}
