//! Where the traffic secrets of a session come from when rustls can't make keys of them.
//!
//! rustls fixes the version of QUIC, and thereby the labels of all keys, when a session starts. A client
//! whose server moves it to another version (RFC 9368) needs other keys from the same secrets, and the
//! key log is the one place where rustls shows them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::KeyLog;
use zeroize::Zeroizing;

/// Traffic secrets of an epoch.
#[derive(Default)]
pub(crate) struct Pair {
    pub(crate) client: Zeroizing<Vec<u8>>,
    pub(crate) server: Zeroizing<Vec<u8>>,
}

#[derive(Default)]
struct Kept {
    /// Nothing is kept before somebody needs it.
    active: bool,
    handshake: Pair,
    application: Pair,
}

impl Kept {
    fn slot(&mut self, label: &str) -> Option<&mut Zeroizing<Vec<u8>>> {
        match label {
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => Some(&mut self.handshake.client),
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => Some(&mut self.handshake.server),
            "CLIENT_TRAFFIC_SECRET_0" => Some(&mut self.application.client),
            "SERVER_TRAFFIC_SECRET_0" => Some(&mut self.application.server),
            _ => None,
        }
    }
}

/// A key log that passes everything on and, once opened, keeps what the next keys are made of.
pub(crate) struct SecretTap {
    log: Arc<dyn KeyLog>,
    kept: Mutex<Kept>,
}

impl SecretTap {
    pub(crate) fn new(log: Arc<dyn KeyLog>) -> Self {
        Self {
            log,
            kept: Mutex::default(),
        }
    }

    /// Keeps secrets from now on.
    pub(crate) fn open(&self) {
        self.with(|kept| kept.active = true);
    }

    /// Takes the secrets of the Handshake epoch.
    pub(crate) fn take_handshake(&self) -> Pair {
        self.with(|kept| std::mem::take(&mut kept.handshake))
    }

    /// Takes the first secrets of the 1-RTT epoch.
    pub(crate) fn take_application(&self) -> Pair {
        self.with(|kept| std::mem::take(&mut kept.application))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        // Nothing panics while the lock is held, and half a change does not exist.
        act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl KeyLog for SecretTap {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        self.with(|kept| {
            if kept.active
                && let Some(slot) = kept.slot(label)
            {
                *slot = Zeroizing::new(secret.to_vec());
            }
        });
        if self.log.will_log(label) {
            self.log.log(label, client_random, secret);
        }
    }

    fn will_log(&self, label: &str) -> bool {
        let keeps = self.with(|kept| kept.active && kept.slot(label).is_some());
        keeps || self.log.will_log(label)
    }
}

impl fmt::Debug for SecretTap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretTap(..)")
    }
}
