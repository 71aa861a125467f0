//! Client-side store of TLS sessions and address validation tokens.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use rustls::NamedGroup;
use rustls::client::Tls13ClientSessionValue;

use crate::null::NullTicket;

/// Key of the store: a server as identified by clients. Neither sessions nor tokens of one QUIC
/// version are used with another (RFC 9369, section 5).
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ServerId {
    /// The name that its certificate must match.
    pub name: String,
    /// The negotiated QUIC version.
    pub version: u32,
}

/// A session that can be resumed, once.
///
/// It stays in this process: rustls doesn't give its sessions away. A session of rustls is of use only
/// to a [`ClientTls`](crate::ClientTls) that has the same certificate verifier, so that no
/// configuration inherits the trust of another.
pub struct StoredSession {
    pub(crate) kind: SessionKind,
    /// The negotiated application protocol.
    pub(crate) alpn: Option<Vec<u8>>,
}

/// The server of the session.
pub(crate) enum SessionKind {
    /// With the key exchange group that the server chose.
    Rustls(Box<Tls13ClientSessionValue>, Option<NamedGroup>),
    Null(NullTicket),
}

impl StoredSession {
    /// The negotiated application protocol, if any.
    pub fn alpn(&self) -> Option<&[u8]> {
        self.alpn.as_deref()
    }
}

impl fmt::Debug for StoredSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredSession")
            .field("alpn", &self.alpn)
            .finish_non_exhaustive()
    }
}

/// Store of sessions and tokens of clients. Servers determine their number, so an implementation must
/// bound it.
pub trait SessionStore: Send + Sync + fmt::Debug {
    /// Stores a session.
    fn put_session(&self, server: &ServerId, session: StoredSession);

    /// Takes a session, the newest first; each at most once (RFC 8446, section C.4).
    fn take_session(&self, server: &ServerId) -> Option<StoredSession>;

    /// Stores an address validation token (RFC 9000, section 8.1.3).
    fn put_token(&self, server: &ServerId, token: Vec<u8>);

    /// Takes a token, the newest first; each at most once.
    fn take_token(&self, server: &ServerId) -> Option<Vec<u8>>;
}

/// Most sessions, and separately tokens, of one server; servers send one or two.
const PER_SERVER: usize = 4;

/// A [`SessionStore`] in memory. The least recently updated servers are evicted.
#[derive(Debug)]
pub struct MemorySessionStore {
    max_servers: usize,
    /// In order of the last update, the newest last.
    servers: Mutex<VecDeque<(ServerId, Remembered)>>,
}

#[derive(Debug, Default)]
struct Remembered {
    sessions: VecDeque<StoredSession>,
    tokens: VecDeque<Vec<u8>>,
}

impl MemorySessionStore {
    /// A store for up to `max_servers` servers, at least one, with four sessions and tokens each; a
    /// session takes a few kilobytes, most of it the certificate chain.
    pub fn new(max_servers: usize) -> Self {
        Self {
            max_servers: max_servers.max(1),
            servers: Mutex::default(),
        }
    }

    /// Removes everything.
    pub fn clear(&self) {
        self.with(VecDeque::clear);
    }

    fn with<T>(&self, act: impl FnOnce(&mut VecDeque<(ServerId, Remembered)>) -> T) -> T {
        act(&mut self.servers.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn put(&self, server: &ServerId, keep: impl FnOnce(&mut Remembered)) {
        self.with(|servers| {
            let at = servers.iter().position(|(id, _)| id == server);
            let mut entry = at
                .and_then(|at| servers.remove(at))
                .unwrap_or_else(|| (server.clone(), Remembered::default()));
            keep(&mut entry.1);
            servers.push_back(entry);
            if servers.len() > self.max_servers {
                servers.pop_front();
            }
        });
    }

    fn take<T>(
        &self,
        server: &ServerId,
        pick: impl FnOnce(&mut Remembered) -> Option<T>,
    ) -> Option<T> {
        self.with(|servers| {
            let entry = servers.iter_mut().find(|(id, _)| id == server);
            entry.and_then(|(_, remembered)| pick(remembered))
        })
    }
}

impl Default for MemorySessionStore {
    /// 256 servers.
    fn default() -> Self {
        Self::new(256)
    }
}

fn push_bounded<T>(queue: &mut VecDeque<T>, item: T) {
    if queue.len() >= PER_SERVER {
        queue.pop_front();
    }
    queue.push_back(item);
}

impl SessionStore for MemorySessionStore {
    fn put_session(&self, server: &ServerId, session: StoredSession) {
        self.put(server, |entry| push_bounded(&mut entry.sessions, session));
    }

    fn take_session(&self, server: &ServerId) -> Option<StoredSession> {
        self.take(server, |entry| entry.sessions.pop_back())
    }

    fn put_token(&self, server: &ServerId, token: Vec<u8>) {
        self.put(server, |entry| push_bounded(&mut entry.tokens, token));
    }

    fn take_token(&self, server: &ServerId) -> Option<Vec<u8>> {
        self.take(server, |entry| entry.tokens.pop_back())
    }
}
