//! Adapter from rustls's session storage to a [`SessionStore`], for one connection.

use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionStore, Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls_pki_types::ServerName;

use crate::sessions::{ServerId, SessionKind, SessionStore, StoredSession};

/// The sessions that one connection takes from and adds to the store.
pub(crate) struct ConnectionSessions {
    store: Arc<dyn SessionStore>,
    server: Mutex<ServerId>,
    offered_alpn: Vec<Vec<u8>>,
    /// The application protocol of the session in use; `None` without a session, or if the session
    /// has none.
    taken: Mutex<Option<Vec<u8>>>,
    /// The negotiated application protocol; sessions received before it is known are not stored.
    agreed: OnceLock<Option<Vec<u8>>>,
    /// The key exchange group of the session in use, and later that of this handshake. Starting with
    /// another one could cause a HelloRetryRequest, and with it the loss of the early data.
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

    /// Stores an address validation token next to the sessions.
    pub(crate) fn keep_token(&self, token: &[u8]) {
        self.store.put_token(&self.server(), token.to_vec());
    }

    /// The server changed the connection to another version: its sessions and tokens belong to that
    /// version.
    pub(crate) fn set_version(&self, version: u32) {
        let mut server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.version = version;
    }

    fn server(&self) -> ServerId {
        let server = self.server.lock().unwrap_or_else(PoisonError::into_inner);
        server.clone()
    }

    /// True if a session of this protocol can be used.
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
