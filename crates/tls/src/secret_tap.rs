//! Captures the traffic secrets of a rustls session through its key log.
//!
//! rustls fixes the version of QUIC, and thereby the labels of all keys, when a session starts. A client
//! whose server changes the version (RFC 9368) needs other keys from the same secrets. rustls also
//! derives the keys of a phase only once, and keying material only while its connection exists, which is
//! far larger than the secrets. The key log is the only interface of rustls that exposes them.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::KeyLog;

use crate::secret::Secret;

/// Traffic secrets of an encryption level.
#[derive(Default)]
pub(crate) struct Pair {
    pub(crate) client: Secret,
    pub(crate) server: Secret,
}

/// Secrets to be captured, stored until they are taken.
#[derive(Default)]
struct Kept {
    handshake: Option<Pair>,
    application: Pair,
    exporter: Secret,
}

impl Kept {
    fn slot(&mut self, label: &str) -> Option<&mut Secret> {
        match label {
            "CLIENT_HANDSHAKE_TRAFFIC_SECRET" => self.handshake.as_mut().map(|of| &mut of.client),
            "SERVER_HANDSHAKE_TRAFFIC_SECRET" => self.handshake.as_mut().map(|of| &mut of.server),
            "CLIENT_TRAFFIC_SECRET_0" => Some(&mut self.application.client),
            "SERVER_TRAFFIC_SECRET_0" => Some(&mut self.application.server),
            "EXPORTER_SECRET" => Some(&mut self.exporter),
            _ => None,
        }
    }
}

/// A key log of one connection that forwards everything and stores the secrets from which keys are
/// derived.
pub(crate) struct SecretTap {
    log: Arc<dyn KeyLog>,
    kept: Mutex<Kept>,
}

impl SecretTap {
    /// Captures the first secrets of the 1-RTT encryption level, and the exporter's.
    pub(crate) fn new(log: Arc<dyn KeyLog>) -> Self {
        Self {
            log,
            kept: Mutex::default(),
        }
    }

    /// Captures the secrets of the Handshake encryption level, too, from now on.
    pub(crate) fn keep_handshake(&self) {
        self.with(|kept| kept.handshake = Some(Pair::default()));
    }

    /// Takes the secrets of the Handshake encryption level.
    pub(crate) fn take_handshake(&self) -> Pair {
        self.with(|kept| kept.handshake.take().unwrap_or_default())
    }

    /// Takes the first secrets of the 1-RTT encryption level.
    pub(crate) fn take_application(&self) -> Pair {
        self.with(|kept| std::mem::take(&mut kept.application))
    }

    /// Takes the exporter's secret.
    pub(crate) fn take_exporter(&self) -> Secret {
        self.with(|kept| std::mem::take(&mut kept.exporter))
    }

    fn with<T>(&self, act: impl FnOnce(&mut Kept) -> T) -> T {
        // No code panics while the lock is held, so the state is consistent.
        act(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl KeyLog for SecretTap {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        self.with(|kept| {
            if let Some(slot) = kept.slot(label) {
                *slot = Secret::new(secret);
            }
        });
        if self.log.will_log(label) {
            self.log.log(label, client_random, secret);
        }
    }

    fn will_log(&self, label: &str) -> bool {
        self.with(|kept| kept.slot(label).is_some()) || self.log.will_log(label)
    }
}

impl fmt::Debug for SecretTap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretTap(..)")
    }
}
