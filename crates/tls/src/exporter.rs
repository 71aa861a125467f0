//! Keying material for applications (RFC 8446, section 7.5) without the session that it comes from.
//!
//! rustls makes it as long as its connection lives, which is far larger than the one secret that this
//! takes. The key log is the one place where rustls shows that secret.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest;
use rustls::KeyLog;
use swiftwater_quic::crypto::CryptoError;
use zeroize::Zeroizing;

use crate::cipher_suite::CipherSuite;
use crate::expand_label::{expand_label, hash};

/// The label of the exporter's secret in key logs.
const EXPORTER_SECRET: &str = "EXPORTER_SECRET";

/// A key log that passes everything on and keeps the exporter's secret of one connection.
pub(crate) struct ExporterTap {
    log: Arc<dyn KeyLog>,
    kept: Mutex<Zeroizing<Vec<u8>>>,
}

impl ExporterTap {
    pub(crate) fn new(log: Arc<dyn KeyLog>) -> Self {
        Self {
            log,
            kept: Mutex::default(),
        }
    }

    /// The exporter of a session of `suite`, once its handshake is complete.
    pub(crate) fn exporter(&self, suite: CipherSuite) -> Option<Exporter> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = kept.len() == hash(suite).output_len();
        fits.then(|| Exporter {
            suite,
            secret: Zeroizing::new(kept.as_slice().into()),
        })
    }
}

impl KeyLog for ExporterTap {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        if label == EXPORTER_SECRET {
            let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
            *kept = Zeroizing::new(secret.to_vec());
        }
        if self.log.will_log(label) {
            self.log.log(label, client_random, secret);
        }
    }

    fn will_log(&self, label: &str) -> bool {
        label == EXPORTER_SECRET || self.log.will_log(label)
    }
}

impl fmt::Debug for ExporterTap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ExporterTap(..)")
    }
}

/// Makes keying material of the exporter's secret.
pub(crate) struct Exporter {
    suite: CipherSuite,
    secret: Zeroizing<Box<[u8]>>,
}

impl Exporter {
    /// `TLS-Exporter(label, context, out.len())`.
    pub(crate) fn export(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), CryptoError> {
        if out.is_empty() {
            return Err(CryptoError);
        }
        let algorithm = hash(self.suite);
        let nothing = digest::digest(algorithm, b"");
        let context = digest::digest(algorithm, context);
        let mut derived = Zeroizing::new(vec![0; self.secret.len()]);
        expand_label(
            self.suite,
            &self.secret,
            label,
            nothing.as_ref(),
            &mut derived,
        )?;
        expand_label(self.suite, &derived, b"exporter", context.as_ref(), out)
    }
}
