//! One path on the command line.

use std::net::SocketAddr;
use std::str::FromStr;

use swiftwater::paths::{LocalEnd, PathRule};
use thiserror::Error;

/// Longest name of an interface, bytes (Linux: 15).
const MAX_INTERFACE_NAME: usize = 63;

/// Where a path starts, and how it is used: `ADDR|IFACE[,backup][,cost=N][,to=ADDR:PORT]`.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct PathArg(pub PathRule);

/// A text that names no path.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error(
    "'{0}' names no path: write an address or an interface, then any of ,backup ,cost=N ,to=ADDR:PORT, such as wlan0 or 192.0.2.7,backup"
)]
pub struct PathArgError(String);

impl FromStr for PathArg {
    type Err = PathArgError;

    fn from_str(text: &str) -> Result<Self, PathArgError> {
        let fail = || PathArgError(text.chars().take(60).collect());
        let mut parts = text.split(',').map(str::trim);
        let local = parts.next().and_then(local_end).ok_or_else(fail)?;
        let mut rule = PathRule::new(local);
        for part in parts {
            rule = if part == "backup" {
                rule.backup()
            } else if let Some(cost) = part.strip_prefix("cost=") {
                rule.cost(cost.parse().map_err(|_| fail())?)
            } else if let Some(remote) = part.strip_prefix("to=") {
                let remote: SocketAddr = remote.parse().map_err(|_| fail())?;
                rule.to(remote)
            } else {
                return Err(fail());
            };
        }
        Ok(Self(rule))
    }
}

fn local_end(text: &str) -> Option<LocalEnd> {
    if let Ok(ip) = text.parse() {
        return Some(LocalEnd::Address(ip));
    }
    let is_name = |c: char| c.is_alphanumeric() || "-_.@".contains(c);
    let is_interface =
        !text.is_empty() && text.len() <= MAX_INTERFACE_NAME && text.chars().all(is_name);
    is_interface.then(|| LocalEnd::Interface(text.to_owned()))
}
