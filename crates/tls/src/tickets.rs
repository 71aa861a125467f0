//! Session tickets of a server, and the settings to which they are bound.
//!
//! Every ticket is bound to the QUIC version (RFC 9369, section 5) and to the transport limits in
//! effect: a client may use these for early data, so a ticket from before they were reduced does not
//! resume a session.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::server::{ProducesTickets, StoresServerSessions};
use swiftwater_quic::EarlyLimits;

/// The kind of tickets that a server issues.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Tickets {
    /// None: every handshake is a full one.
    #[default]
    Off,
    /// Single-use tickets that refer to a session in this server's memory. Only they permit early
    /// data, because a replay finds no session (RFC 8446, section 8.1). They don't outlive the
    /// process, and other servers can't accept them.
    SingleUse {
        /// Capacity in sessions; the oldest are evicted. Each takes about 300 bytes, and two are
        /// created for each connection.
        capacity: usize,
    },
    /// Tickets that carry the session, sealed with a key that changes every six hours. They take no
    /// memory, but can be used any number of times within a day, so they permit no early data.
    Stateless,
}

/// The settings to which a ticket is bound.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Binding {
    version: u32,
    limits: Option<EarlyLimits>,
}

/// Length of a binding in front of a session, bytes.
const BINDING_LEN: usize = 4 + 1 + EarlyLimits::ENCODED_LEN;

impl Binding {
    /// The binding for a server with the transport parameters `parameters`.
    pub(crate) fn new(version: u32, parameters: &[u8]) -> Self {
        Self {
            version,
            limits: EarlyLimits::of_encoded(parameters),
        }
    }

    /// True if clients may use the limits for early data.
    pub(crate) fn has_limits(&self) -> bool {
        self.limits.is_some()
    }

    fn prepend(&self, session: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BINDING_LEN + session.len());
        bytes.extend_from_slice(&self.version.to_be_bytes());
        bytes.push(u8::from(self.limits.is_some()));
        let limits = self.limits.map(|limits| limits.to_bytes());
        bytes.extend_from_slice(&limits.unwrap_or([0; EarlyLimits::ENCODED_LEN]));
        bytes.extend_from_slice(session);
        bytes
    }

    /// The session in `bytes`, if its binding is the same.
    fn strip<'a>(&self, bytes: &'a [u8]) -> Option<&'a [u8]> {
        let (version, rest) = bytes.split_first_chunk::<4>()?;
        let (&[has_limits], rest) = rest.split_first_chunk::<1>()?;
        let (limits, session) = rest.split_first_chunk::<{ EarlyLimits::ENCODED_LEN }>()?;
        let earlier = (has_limits == 1).then(|| EarlyLimits::from_bytes(limits));
        let covered = match (self.limits, earlier) {
            (_, None) => true,
            (Some(present), Some(earlier)) => present.cover(&earlier),
            (None, Some(_)) => false,
        };
        (covered && u32::from_be_bytes(*version) == self.version).then_some(session)
    }
}

/// Sessions in memory, each for single use.
pub(crate) struct SingleUse {
    capacity: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    sessions: HashMap<Vec<u8>, Vec<u8>>,
    /// Keys by age; may refer to used sessions.
    order: VecDeque<Vec<u8>>,
}

impl SingleUse {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity,
            kept: Mutex::default(),
        }
    }

    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        if self.capacity == 0 {
            return false;
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        while kept.order.len() >= self.capacity
            && let Some(oldest) = kept.order.pop_front()
        {
            kept.sessions.remove(&oldest);
        }
        kept.order.push_back(key.clone());
        kept.sessions.insert(key, value);
        true
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.sessions.remove(key)
    }
}

impl fmt::Debug for SingleUse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SingleUse")
            .field("capacity", &self.capacity)
            .finish_non_exhaustive()
    }
}

/// [`SingleUse`] for servers with one binding.
#[derive(Debug)]
pub(crate) struct BoundSessions {
    pub(crate) sessions: Arc<SingleUse>,
    pub(crate) binding: Binding,
}

impl StoresServerSessions for BoundSessions {
    fn put(&self, key: Vec<u8>, value: Vec<u8>) -> bool {
        self.sessions.put(key, self.binding.prepend(&value))
    }

    /// Only for TLS 1.2, which permits to use a session again.
    fn get(&self, _: &[u8]) -> Option<Vec<u8>> {
        None
    }

    fn take(&self, key: &[u8]) -> Option<Vec<u8>> {
        let bytes = self.sessions.take(key)?;
        self.binding.strip(&bytes).map(<[u8]>::to_vec)
    }

    fn can_cache(&self) -> bool {
        true
    }
}

/// Sealed tickets for servers with one binding.
#[derive(Debug)]
pub(crate) struct BoundTicketer {
    pub(crate) ticketer: Arc<dyn ProducesTickets>,
    pub(crate) binding: Binding,
}

impl ProducesTickets for BoundTicketer {
    fn enabled(&self) -> bool {
        self.ticketer.enabled()
    }

    fn lifetime(&self) -> u32 {
        self.ticketer.lifetime()
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.ticketer.encrypt(&self.binding.prepend(plain))
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        let bytes = self.ticketer.decrypt(cipher)?;
        self.binding.strip(&bytes).map(<[u8]>::to_vec)
    }
}
