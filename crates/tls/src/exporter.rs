//! Exported keying material (RFC 8446, section 7.5) without the session.

use aws_lc_rs::digest;
use swiftwater_quic::crypto::CryptoError;
use zeroize::Zeroizing;

use crate::cipher_suite::CipherSuite;
use crate::expand_label::{expand_label, hash};
use crate::secret::Secret;

/// Derives keying material from the exporter's secret.
pub(crate) struct Exporter {
    suite: CipherSuite,
    secret: Secret,
}

impl Exporter {
    /// The exporter of a session with `suite`; `None` if `secret` doesn't have the length of its
    /// hash.
    pub(crate) fn new(suite: CipherSuite, secret: Secret) -> Option<Self> {
        (secret.len() == hash(suite).output_len()).then_some(Self { suite, secret })
    }

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
