//! rustls's view of a [`SessionStore`] during one connection.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

use crate::sessions::{ServerId, SessionKind, SessionStore, StoredSession};

/// The sessions that one connection takes and leaves.
pub(crate) struct ConnectionSessions {
    store: Arc<dyn SessionStore>,
    server: Mutex<ServerId>,
    offered_alpn: Vec<Vec<u8>>,
    /// The application protocol of the session that was taken; `None` if it had none, too.
    taken: Mutex<Option<Vec<u8>>>,
    /// What the handshake agreed on; sessions that come before it are not kept.
    agreed: OnceLock<Option<Vec<u8>>>,
    /// The key exchange of the session that was taken, and later that of this handshake. Beginning with
    /// another one could cost a HelloRetryRequest, and with it the early data.
    group: Mutex<Option<NamedGroup>>,
}

impl ConnectionSessions {
    pub(crate) fn new(
        store: Arc<dyn SessionStore>,
        server: ServerId,
        offered_alpn: Vec<Vec<u8>>,
    ) -> Self {
        Self {
            store,
            server: Mutex::new(server),
            offered_alpn,
            taken: Mutex::default(),
            agreed: OnceLock::new(),
            group: Mutex::default(),
        }
    }

    /// The application protocol of the session that is being resumed.
    pub(crate) fn taken_alpn(&self) -> Option<Vec<u8>> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        taken.clone()
    }

    /// The handshake is complete with this application protocol.
    pub(crate) fn agree(&self, alpn: Option<&[u8]>) {
        self.agreed.get_or_init(|| alpn.map(<[u8]>::to_vec));
    }

    /// Keeps an address token beside the sessions.
    pub(crate) fn keep_token(&self, token: &[u8]) {
        self.store.put_token(&self.server(), token.to_vec());
    }

    /// The server moved the connection to another version: what it gives belongs to that.
    pub(crate) fn set_version(&self, version: u32) {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.version = version;
    }

    fn server(&self) -> ServerId {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.clone()
    }

    /// True if a session of this protocol is of use.
    fn offers(&self, alpn: Option<&[u8]>) -> bool {
        match alpn {
            Some(alpn) => self.offered_alpn.iter().any(|offered| offered == alpn),
            None => self.offered_alpn.is_empty(),
        }
    }
}

impl fmt::Debug for ConnectionSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConnectionSessions")
            .field("server", &self.server)
            .finish_non_exhaustive()
    }
}

impl ClientSessionStore for ConnectionSessions {
    fn set_kx_hint(&self, _: ServerName<'static>, group: NamedGroup) {
        *self.group.lock().unwrap_or_else(PoisonError::into_inner) = Some(group);
    }

    fn kx_hint(&self, _: &ServerName<'_>) -> Option<NamedGroup> {
        *self.group.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set_tls12_session(&self, _: ServerName<'static>, _: Tls12ClientSessionValue) {}

    fn tls12_session(&self, _: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        None
    }

    fn remove_tls12_session(&self, _: &ServerName<'static>) {}

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        if let Some(alpn) = self.agreed.get() {
            let session = StoredSession {
                kind: SessionKind::Rustls(
                    Box::new(value),
                    *self.group.lock().unwrap_or_else(PoisonError::into_inner),
                ),
                alpn: alpn.clone(),
            };
            self.store.put_session(&self.server(), session);
        }
    }

    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        while let Some(session) = self.store.take_session(&self.server()) {
            if let SessionKind::Rustls(value, group) = session.kind
                && self.offers(session.alpn.as_deref())
            {
                let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
                *taken = session.alpn;
                *self.group.lock().unwrap_or_else(PoisonError::into_inner) = group;
                return Some(*value);
            }
        }
        None
    }
}
