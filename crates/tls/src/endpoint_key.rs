//! The keyed functions of an endpoint: stateless-reset tokens (RFC 9000, section 10.3.2) and
//! address validation tokens (section 8.1).

use std::fmt;

use aws_lc_rs::aead::quic::{AES_128, HeaderProtectionKey};
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce};
use aws_lc_rs::hkdf::{HKDF_SHA256, Salt};
use aws_lc_rs::{hmac, rand};
use swiftwater_quic::crypto::EndpointKey;
use swiftwater_wire::{ConnectionId, ResetToken};

use crate::config_error::ConfigError;

/// Shortest secret from which keys are derived, bytes.
const MIN_SECRET_LEN: usize = 32;

/// Why HKDF can't fail here.
const SHORT_KEY: &str = "a key is far shorter than the limit of HKDF";

/// 32 unpredictable bytes, for a key or a seed.
pub fn random_secret() -> [u8; MIN_SECRET_LEN] {
    let mut secret = [0; MIN_SECRET_LEN];
    rand::fill(&mut secret).expect("the generator of aws-lc never fails, it aborts");
    secret
}

/// Keys of an endpoint's tokens, derived from one secret: HMAC-SHA-256 for stateless reset tokens,
/// AES-256-GCM for address validation tokens, AES-128 for the mask of worker numbers in connection
/// IDs.
///
/// Processes that share the secret accept each other's tokens, also after a restart. One secret
/// should seal at most 2^32 tokens, the bound for random nonces.
pub struct EndpointSecrets {
    reset: hmac::Key,
    token: LessSafeKey,
    /// AES-128 of one block, of which the first bytes are used.
    mask: HeaderProtectionKey,
}

impl EndpointSecrets {
    /// Derives the keys from `secret`, which must be unpredictable and have at least 32 bytes.
    pub fn new(secret: &[u8]) -> Result<Self, ConfigError> {
        if secret.len() < MIN_SECRET_LEN {
            return Err(ConfigError::ShortSecret);
        }
        Ok(Self::derive(secret))
    }

    /// Keys with the lifetime of the process.
    pub fn random() -> Self {
        Self::derive(&random_secret())
    }

    /// Keys from a simulation's seed: the same seed gives the same tokens.
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self::derive(&seed)
    }

    fn derive(secret: &[u8]) -> Self {
        let prk = Salt::new(HKDF_SHA256, b"swiftwater endpoint secrets").extract(secret);
        let reset = prk
            .expand(&[b"stateless reset"], hmac::HMAC_SHA256)
            .expect(SHORT_KEY);
        let token = prk
            .expand(&[b"address token"], &AES_256_GCM)
            .expect(SHORT_KEY);
        let mask = prk
            .expand(&[b"connection ID mask"], &AES_128)
            .expect(SHORT_KEY);
        Self {
            reset: reset.into(),
            token: LessSafeKey::new(token.into()),
            mask: mask.into(),
        }
    }
}

impl fmt::Debug for EndpointSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EndpointSecrets(..)")
    }
}

impl EndpointKey for EndpointSecrets {
    fn reset_token(&self, cid: &ConnectionId) -> ResetToken {
        let tag = hmac::sign(&self.reset, cid.as_bytes());
        let mut token = [0; 16];
        token.copy_from_slice(&tag.as_ref()[..16]);
        ResetToken(token)
    }

    fn seal_token(&self, nonce: [u8; 12], plaintext: &[u8]) -> Vec<u8> {
        let tag_len = AES_256_GCM.tag_len();
        let mut token = Vec::with_capacity(NONCE_LEN + plaintext.len() + tag_len);
        token.extend_from_slice(&nonce);
        token.extend_from_slice(plaintext);
        let tag = self
            .token
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                Aad::empty(),
                &mut token[NONCE_LEN..],
            )
            .expect("a token is far shorter than the limit of an AEAD");
        token.extend_from_slice(tag.as_ref());
        token
    }

    fn open_token(&self, token: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = token.split_first_chunk::<NONCE_LEN>()?;
        let mut opened = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let len = self
            .token
            .open_in_place(nonce, Aad::empty(), &mut opened)
            .ok()?
            .len();
        opened.truncate(len);
        Some(opened)
    }

    fn mask(&self, input: &[u8; 16]) -> [u8; 4] {
        let [a, b, c, d, _] = self
            .mask
            .new_mask(input)
            .expect("the input has the size of a block");
        [a, b, c, d]
    }
}
