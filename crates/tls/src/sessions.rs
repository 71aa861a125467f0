//! What a client remembers of servers: TLS sessions to resume, and address tokens beside them.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use rustls::NamedGroup;
use rustls::client::Tls13ClientSessionValue;

use crate::null::NullTicket;

/// A server as a client knows it. Neither sessions nor tokens of one QUIC version are used with
/// another (RFC 9369, section 5).
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct ServerId {
    /// The name that it must prove to have.
    pub name: String,
    /// The QUIC version that was spoken.
    pub version: u32,
}

/// A session that can be resumed, once.
///
/// It stays in this process: rustls doesn't give its sessions away. A session of rustls is of use only
/// to a [`ClientTls`](crate::ClientTls) that has the same certificate verifier, so that nobody
/// inherits the trust of another configuration.
pub struct StoredSession {
    pub(crate) kind: SessionKind,
    /// The application protocol that was spoken.
    pub(crate) alpn: Option<Vec<u8>>,
}

/// Whose session it is.
pub(crate) enum SessionKind {
    /// With the key exchange that the server took.
    Rustls(Box<Tls13ClientSessionValue>, Option<NamedGroup>),
    Null(NullTicket),
}

impl StoredSession {
    /// The application protocol that was spoken, if one was negotiated.
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

/// Where clients keep sessions and tokens. Servers decide how many there are, so a store has to bound
/// them.
pub trait SessionStore: Send + Sync + fmt::Debug {
    /// Keeps a session.
    fn put_session(&self, server: &ServerId, session: StoredSession);

    /// Hands out a session, the newest first; each at most once (RFC 8446, section C.4).
    fn take_session(&self, server: &ServerId) -> Option<StoredSession>;

    /// Keeps an address token (RFC 9000, section 8.1.3).
    fn put_token(&self, server: &ServerId, token: Vec<u8>);

    /// Hands out a token, the newest first; each at most once.
    fn take_token(&self, server: &ServerId) -> Option<Vec<u8>>;
}

/// Sessions, and separately tokens, kept of one server; servers send one or two.
const PER_SERVER: usize = 4;

/// A [`SessionStore`] in memory. The servers that were heard of least recently give way.
#[derive(Debug)]
pub struct MemorySessionStore {
    max_servers: usize,
    /// The one heard of last is last.
    servers: Mutex<VecDeque<(ServerId, Remembered)>>,
}

#[derive(Debug, Default)]
struct Remembered {
    sessions: VecDeque<StoredSession>,
    tokens: VecDeque<Vec<u8>>,
}

impl MemorySessionStore {
    /// Remembers up to `max_servers` servers, one at least, with four sessions and tokens each; a
    /// session takes a few kilobytes, most of it the certificate chain.
    pub fn new(max_servers: usize) -> Self {
        Self {
            max_servers: max_servers.max(1),
            servers: Mutex::default(),
        }
    }

    /// Forgets everything.
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
