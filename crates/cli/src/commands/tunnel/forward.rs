//! What `-L` says: a local address, and the target that it leads to.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::str::FromStr;

use swiftwater_tunnel::target::Target;
use thiserror::Error;

/// A local address and a target, written `[ADDRESS:]PORT:HOST:PORT`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Forward {
    /// The local address; of the loopback network by default.
    pub local: SocketAddr,
    /// The target.
    pub target: Target,
}

/// Text that is no forward.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{0:?} is not [ADDRESS:]PORT:HOST:PORT, such as 8443:server.example:443")]
pub struct ForwardError(String);

impl FromStr for Forward {
    type Err = ForwardError;

    fn from_str(text: &str) -> Result<Self, ForwardError> {
        // Addresses have colons, too: the first one that leaves an address on its left and a target on its right.
        let mut places = text.match_indices(':').map(|(place, _)| place);
        places
            .find_map(|place| {
                let (local, target) = (&text[..place], &text[place + 1..]);
                let target = target.parse().ok()?;
                let local = match local.parse::<u16>() {
                    Ok(port) => (Ipv4Addr::LOCALHOST, port).into(),
                    Err(_) => local.parse().ok()?,
                };
                Some(Self { local, target })
            })
            .ok_or_else(|| ForwardError(text.to_owned()))
    }
}

impl fmt::Display for Forward {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.local, self.target)
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
                "127.0.0.1:8443:server.example:443",
            ),
            ("0:192.0.2.1:53", "127.0.0.1:0:192.0.2.1:53"),
            ("0.0.0.0:8443:a:1", "0.0.0.0:8443:a:1"),
            (
                "[::1]:8443:[2001:db8::1]:443",
                "[::1]:8443:[2001:db8::1]:443",
            ),
            ("1:[::1]:2", "127.0.0.1:1:[::1]:2"),
        ] {
            assert_eq!(
                text.parse::<Forward>().map(|it| it.to_string()),
                Ok(shown.to_owned())
            );
        }
        for text in [
            "",
            "8443",
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
