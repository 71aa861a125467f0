//! The version of the handshake and the Initial keys that depend on it: Retry (RFC 9000, section 8.1.2), Version
//! Negotiation (RFC 9368), and a server that chooses a compatible version (RFC 9369, section 4.1).

use swiftwater_wire::{ConnectionId, ErrorCode};

use crate::crypto::{EncryptionLevel, Keys, SessionError};
use crate::error::TransportError;

use super::{Handshake, Restart};

/// How a packet's version fits the connection.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Fit {
    /// It is the connection's.
    Current,
    /// It isn't, but the packet may be opened with keys of that version.
    Other,
    /// It may become the connection's.
    NotYet,
    /// The packet is not of this connection.
    Foreign,
}

impl Handshake {
    /// The version of packets that this end sends.
    pub(crate) fn version(&self) -> u32 {
        self.negotiation.current()
    }

    /// The version of the client's first packets, and of its 0-RTT packets throughout.
    pub(crate) fn original_version(&self) -> u32 {
        self.negotiation.original()
    }

    /// The version, returned once, as soon as it can't change any more.
    pub(crate) fn take_settled_version(&mut self) -> Option<u32> {
        self.negotiation.take_settled()
    }

    /// Derives new Initial keys after a Retry and sends the first flight again.
    pub(crate) fn restart(&mut self, initial_keys_cid: ConnectionId) {
        self.initial_keys_cid = initial_keys_cid;
        self.other_initial = None;
        self.initial_version = self.version();
        let keys = self.initial_keys(self.initial_version);
        self.protection.install_initial(keys);
        self.stream(EncryptionLevel::Initial).send_all_again();
    }

    /// Decides about a Version Negotiation packet that offers `offered`. The caller follows a
    /// [`Restart::With`] with [`Handshake::restart_in`].
    pub(crate) fn on_version_negotiation(&mut self, offered: &[u32]) -> Restart {
        self.negotiation.restart(offered)
    }

    /// Begins again with a session in `version`, towards `initial_keys_cid`.
    pub(crate) fn restart_in(
        &mut self,
        version: u32,
        initial_keys_cid: ConnectionId,
    ) -> Result<(), TransportError> {
        let Some(opening) = &self.opening else {
            return Ok(());
        };
        self.session = Some(opening.start(version).map_err(no_session)?);
        self.streams[EncryptionLevel::Initial as usize] = None;
        self.restart(initial_keys_cid);
        self.start().map(|_| ())
    }

    fn initial_keys(&self, version: u32) -> Keys {
        self.primitives
            .initial_keys(version, &self.initial_keys_cid, self.side)
    }

    /// How an Initial or Handshake packet of `version` fits.
    pub(crate) fn fit(&self, level: EncryptionLevel, version: u32) -> Fit {
        let negotiation = &self.negotiation;
        if version == negotiation.current() && level != EncryptionLevel::ZeroRtt {
            return Fit::Current;
        }
        let may_become = self.side.is_client() && negotiation.may_become(version);
        let was = self.side.is_server() && version == negotiation.original();
        match level {
            EncryptionLevel::Initial if may_become || was => Fit::Other,
            EncryptionLevel::Handshake if may_become => Fit::NotYet,
            // They stay with the version that they begin with (RFC 9369, section 4.1).
            EncryptionLevel::ZeroRtt if version == negotiation.original() => Fit::Current,
            _ => Fit::Foreign,
        }
    }

    /// Exchanges the Initial keys with those of `version`, until the next call.
    pub(crate) fn exchange_initial(&mut self, version: u32) {
        let keys = match self.other_initial.take() {
            Some(other) if other.0 == version => other.1,
            _ => self.initial_keys(version),
        };
        if let Some(former) = self.protection.replace_initial(keys) {
            self.other_initial = Some(Box::new((self.initial_version, former)));
            self.initial_version = version;
        }
    }

    /// The server chose `version`, as a packet of it shows that could be opened (RFC 9369, section
    /// 4.1). The keys are exchanged already.
    pub(crate) fn follow_server(&mut self, version: u32) -> Result<(), TransportError> {
        if let Some(session) = &mut self.session {
            session.set_version(version).map_err(no_session)?;
        }
        self.negotiation.settle(version);
        self.other_initial = None;
        Ok(())
    }

    /// True if `packet`, a Retry with its tag, answers this end's Initial to `original_dst_cid` (RFC 9001,
    /// section 5.8).
    pub(crate) fn retry_is_authentic(
        &self,
        original_dst_cid: &ConnectionId,
        packet: &[u8],
    ) -> bool {
        let Some((body, tag)) = packet.split_last_chunk::<16>() else {
            return false;
        };
        self.primitives
            .retry_tag(self.version(), original_dst_cid, body)
            == *tag
    }
}

/// A session could not be started, or not in that version.
pub(super) fn no_session(error: SessionError) -> TransportError {
    TransportError::new(ErrorCode::INTERNAL_ERROR, error.0)
}
