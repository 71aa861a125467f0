//! What a request can be sent over: an HTTP version, with QUIC also its congestion controller and
//! recovery policy.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// Longest name of an arm, bytes.
const MAX_NAME: usize = 64;

/// The transport protocol of an arm. Models, rollback and the memory of blocked UDP go by it.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// TCP with TLS.
    Tcp,
    /// QUIC.
    Quic,
}

impl fmt::Display for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Tcp => "TCP",
            Self::Quic => "QUIC",
        })
    }
}

/// One of the ways to send a request: `h1`, `h2` or `h3`, for `h3` optionally followed by a congestion
/// controller (`h3:bbr1`) and a recovery policy (`h3+autorec`, `h3:bbr1+autorec`).
///
/// The crate gives no meaning to the parts after the version; the caller does.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Arm {
    name: Arc<str>,
    transport: Transport,
}

/// Why a text names no arm.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum ArmError {
    /// It begins with no known HTTP version.
    #[error("`{0}`: an arm is h1, h2 or h3, with :controller and +recovery after h3")]
    Version(String),
    /// A part is empty, or has characters other than `a-z0-9_.=,-`.
    #[error("`{0}`: the parts of an arm are words of a-z, 0-9 and _.=,-")]
    Part(String),
    /// It is longer than 64 bytes.
    #[error("the name of an arm has at most 64 bytes")]
    TooLong,
}

impl Arm {
    /// HTTP/2 over TCP.
    pub fn h2() -> Self {
        Self {
            name: "h2".into(),
            transport: Transport::Tcp,
        }
    }

    /// HTTP/3 over QUIC with the caller's default controller and recovery policy.
    pub fn h3() -> Self {
        Self {
            name: "h3".into(),
            transport: Transport::Quic,
        }
    }

    /// The name, as it is parsed.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The transport protocol.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// The congestion controller, if the name has one.
    pub fn controller(&self) -> Option<&str> {
        let head = self.name.split('+').next()?;
        head.split_once(':').map(|(_, controller)| controller)
    }

    /// The recovery policy, if the name has one.
    pub fn recovery(&self) -> Option<&str> {
        self.name.split_once('+').map(|(_, recovery)| recovery)
    }
}

fn is_word(text: &str) -> bool {
    let permitted = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "_.=,-".contains(c);
    !text.is_empty() && text.chars().all(permitted)
}

impl FromStr for Arm {
    type Err = ArmError;

    fn from_str(text: &str) -> Result<Self, ArmError> {
        if text.len() > MAX_NAME {
            return Err(ArmError::TooLong);
        }
        let (head, recovery) = match text.split_once('+') {
            Some((head, recovery)) => (head, Some(recovery)),
            None => (text, None),
        };
        let (version, controller) = match head.split_once(':') {
            Some((version, controller)) => (version, Some(controller)),
            None => (head, None),
        };
        let transport = match (version, controller.or(recovery)) {
            ("h1" | "h2", None) => Transport::Tcp,
            ("h3", _) => Transport::Quic,
            _ => return Err(ArmError::Version(text.to_owned())),
        };
        for part in [controller, recovery].into_iter().flatten() {
            if !is_word(part) {
                return Err(ArmError::Part(text.to_owned()));
            }
        }
        Ok(Self {
            name: text.into(),
            transport,
        })
    }
}

impl TryFrom<String> for Arm {
    type Error = ArmError;

    fn try_from(text: String) -> Result<Self, ArmError> {
        text.parse()
    }
}

impl From<Arm> for String {
    fn from(arm: Arm) -> Self {
        arm.name.as_ref().to_owned()
    }
}

impl fmt::Display for Arm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}
