//! HKDF-Expand-Label (RFC 8446, section 7.1) with the hash of a cipher suite.

use aws_lc_rs::digest;
use aws_lc_rs::hkdf::{self, Prk};
use swiftwater_quic::crypto::CryptoError;

use crate::cipher_suite::CipherSuite;

/// Prefix of every label.
const PREFIX: &[u8] = b"tls13 ";

/// The hash of `suite`; secrets are as long as its output.
pub(crate) fn hash(suite: CipherSuite) -> &'static digest::Algorithm {
    match suite {
        CipherSuite::Aes128Gcm | CipherSuite::ChaCha20Poly1305 => &digest::SHA256,
        CipherSuite::Aes256Gcm => &digest::SHA384,
    }
}

/// Fills `out` with the output for `secret`, `label` and `context`. Fails if one of them exceeds
/// its limit: labels 249 bytes, contexts 255, `out` 255 hashes.
pub(crate) fn expand_label(
    suite: CipherSuite,
    secret: &[u8],
    label: &[u8],
    context: &[u8],
    out: &mut [u8],
) -> Result<(), CryptoError> {
    let algorithm = match suite {
        CipherSuite::Aes128Gcm | CipherSuite::ChaCha20Poly1305 => hkdf::HKDF_SHA256,
        CipherSuite::Aes256Gcm => hkdf::HKDF_SHA384,
    };
    let len = u16::try_from(out.len()).map_err(|_| CryptoError)?;
    let label_len = u8::try_from(PREFIX.len() + label.len()).map_err(|_| CryptoError)?;
    let context_len = u8::try_from(context.len()).map_err(|_| CryptoError)?;
    let info = [
        &len.to_be_bytes()[..],
        &[label_len],
        PREFIX,
        label,
        &[context_len],
        context,
    ];
    Prk::new_less_safe(algorithm, secret)
        .expand(&info, Len(out.len()))
        .and_then(|okm| okm.fill(out))
        .map_err(|_| CryptoError)
}

/// Output length of HKDF, bytes.
struct Len(usize);

impl hkdf::KeyType for Len {
    fn len(&self) -> usize {
        self.0
    }
}
