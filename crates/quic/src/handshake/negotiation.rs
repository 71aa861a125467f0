//! The version of QUIC of a connection and how it is negotiated (RFC 9368; RFC 9369, section 4).
//!
//! A client begins in its most preferred version. A server that doesn't support it answers with
//! Version Negotiation, upon which the client begins again in another one (incompatible negotiation).
//! A server that does may go on in another version that the client offers (compatible negotiation).
//! Either way both ends compare in the handshake what was declared before it.

use swiftwater_wire::{ErrorCode, VERSION_1, VersionInformation, are_compatible};

use crate::error::TransportError;

/// The version of a connection, and how it came about.
#[derive(Debug)]
pub(crate) struct Negotiation {
    /// The versions that this end supports, best first.
    supported: Vec<u32>,
    /// That of the client's first packets, after Version Negotiation if there was one.
    original: u32,
    /// That of the connection as far as known.
    current: u32,
    /// Whether the server's choice is known.
    is_settled: bool,
    /// Whether the choice was reported to the owner.
    is_reported: bool,
    /// A client restarted because of a Version Negotiation packet.
    has_restarted: bool,
}

impl Negotiation {
    /// A connection whose first packets are of version `original`.
    pub(crate) fn new(supported: Vec<u32>, original: u32) -> Self {
        Self {
            supported,
            original,
            current: original,
            is_settled: false,
            is_reported: false,
            has_restarted: false,
        }
    }

    pub(crate) fn original(&self) -> u32 {
        self.original
    }

    pub(crate) fn current(&self) -> u32 {
        self.current
    }

    /// The version, the first time that this is asked after it was settled.
    pub(crate) fn take_settled(&mut self) -> Option<u32> {
        let is_new = self.is_settled && !std::mem::replace(&mut self.is_reported, self.is_settled);
        is_new.then_some(self.current)
    }

    /// The server's choice is `version`.
    pub(crate) fn settle(&mut self, version: u32) {
        self.is_settled = true;
        self.current = version;
    }

    /// True if the server may still choose `version` instead of the current one.
    pub(crate) fn may_become(&self, version: u32) -> bool {
        !self.is_settled
            && version != self.current
            && self.supported.contains(&version)
            && are_compatible(self.original, version)
    }

    /// What a client that reads a Version Negotiation packet with the versions `offered` begins again
    /// with. The packet is ignored (`Restart::Ignored`) if it is the second one or offers what was tried
    /// (RFC 9368, section 4).
    pub(crate) fn restart(&mut self, offered: &[u32]) -> Restart {
        if self.has_restarted || self.is_settled || offered.contains(&self.original) {
            return Restart::Ignored;
        }
        let Some(version) = first_common(&self.supported, offered) else {
            return Restart::Impossible;
        };
        self.has_restarted = true;
        self.original = version;
        self.current = version;
        Restart::With(version)
    }

    /// A server chooses the version that it prefers of those that the client could go on in. Nothing
    /// is chosen but the original version if the client sent no version information.
    pub(crate) fn choose(
        &self,
        client: Option<&VersionInformation>,
    ) -> Result<u32, TransportError> {
        let Some(client) = client else {
            return Ok(self.original);
        };
        if client.chosen != self.original {
            return Err(mismatch("the client chose another version than it uses"));
        }
        let chosen = self.supported.iter().copied().find(|version| {
            client.available().contains(version) && are_compatible(self.original, *version)
        });
        Ok(chosen.unwrap_or(self.original))
    }

    /// Whether the server's version information agrees with what the client has seen (RFC 9368,
    /// section 4).
    pub(crate) fn check_server(
        &self,
        server: Option<&VersionInformation>,
    ) -> Result<(), TransportError> {
        let Some(server) = server else {
            // A server of version 1 only need not support this (RFC 9368, section 8).
            let knows_one_only = self.current == VERSION_1 && self.current == self.original;
            if (self.has_restarted && !knows_one_only) || self.current != self.original {
                return Err(mismatch(
                    "the server does not confirm the change of version",
                ));
            }
            return Ok(());
        };
        if server.chosen != self.current {
            return Err(mismatch("the server chose another version than it uses"));
        }
        if !self.has_restarted {
            return Ok(());
        }
        // The same attempt must follow from what the server really supports.
        let mut offered = server.available().to_vec();
        if offered.is_empty() {
            return Err(mismatch(
                "the server's version information lists no version",
            ));
        }
        offered.push(self.current);
        if first_common(&self.supported, &offered) == Some(self.original) {
            Ok(())
        } else {
            Err(mismatch("Version Negotiation hid a better version"))
        }
    }
}

/// What a Version Negotiation packet makes a client do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Restart {
    /// Begin again in this version.
    With(u32),
    /// End of the attempt: there is no version in common.
    Impossible,
    /// Nothing.
    Ignored,
}

/// The first of `supported` that is among those offered.
fn first_common(supported: &[u32], offered: &[u32]) -> Option<u32> {
    supported
        .iter()
        .copied()
        .find(|version| offered.contains(version))
}

fn mismatch(reason: &str) -> TransportError {
    TransportError::new(ErrorCode::VERSION_NEGOTIATION_ERROR, reason)
}
