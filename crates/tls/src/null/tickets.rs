//! Tickets of the null handshake. They contain the session itself in plain text.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use swiftwater_quic::EarlyLimits;

use super::keys::Secret;

/// Capacity of the record of unused tickets.
const MAX_OUTSTANDING: usize = 8192;

/// A ticket, and with it a session.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct NullTicket {
    pub(super) id: u64,
    pub(super) secret: Secret,
    pub(super) version: u32,
    /// Early data may be sent with it.
    pub(super) early_data: bool,
    /// Limits of the server that issued it; `None` if they were invalid.
    pub(super) limits: Option<EarlyLimits>,
    pub(super) alpn: Vec<u8>,
    /// The server's transport parameters; stored by the client only, not on the wire.
    pub(super) parameters: Vec<u8>,
}

impl NullTicket {
    /// The encoded form.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        bytes.extend_from_slice(&self.id.to_be_bytes());
        bytes.extend_from_slice(&self.secret.0.to_be_bytes());
        bytes.extend_from_slice(&self.version.to_be_bytes());
        bytes.push(u8::from(self.early_data));
        bytes.push(u8::from(self.limits.is_some()));
        let limits = self.limits.map(|limits| limits.to_bytes());
        bytes.extend_from_slice(&limits.unwrap_or([0; EarlyLimits::ENCODED_LEN]));
        bytes.extend_from_slice(&self.alpn);
        bytes
    }

    /// Undoes [`NullTicket::encode`]; `None` if it is malformed.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (id, rest) = bytes.split_first_chunk()?;
        let (secret, rest) = rest.split_first_chunk()?;
        let (version, rest) = rest.split_first_chunk()?;
        let (&[early_data, has_limits], rest) = rest.split_first_chunk()?;
        let (limits, alpn) = rest.split_first_chunk::<{ EarlyLimits::ENCODED_LEN }>()?;
        Some(Self {
            id: u64::from_be_bytes(*id),
            secret: Secret(u64::from_be_bytes(*secret)),
            version: u32::from_be_bytes(*version),
            early_data: early_data == 1,
            limits: (has_limits == 1).then(|| EarlyLimits::from_bytes(limits)),
            alpn: alpn.to_vec(),
            parameters: Vec::new(),
        })
    }
}

/// The record of issued, unused tickets of a server.
#[derive(Default)]
pub(super) struct Issued {
    state: Mutex<(u64, BTreeSet<u64>)>,
}

impl Issued {
    /// The number of a new ticket.
    pub(super) fn issue(&self) -> u64 {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (next, outstanding) = &mut *state;
        let id = *next;
        *next += 1;
        outstanding.insert(id);
        if outstanding.len() > MAX_OUTSTANDING {
            outstanding.pop_first();
        }
        id
    }

    /// True the first time that a ticket is presented.
    pub(super) fn redeem(&self, id: u64) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.1.remove(&id)
    }
}

impl fmt::Debug for Issued {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Issued(..)")
    }
}
