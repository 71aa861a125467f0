//! Self-signed certificates for development, tests and simulations.

use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rcgen::{
    CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PublicKeyData, SerialNumber,
    date_time_ymd,
};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};

use crate::config_error::ConfigError;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// DER prefix of the 32 bytes of an Ed25519 private key in PKCS #8 (RFC 8410, section 7).
const ED25519_PKCS8_PREFIX: [u8; 16] = [
    0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20,
];

/// The private key of deterministic certificates. It is public and protects nothing.
const DETERMINISTIC_KEY: [u8; 32] = *b"swiftwater deterministic dev key";

/// A self-signed certificate with its private key.
///
/// To trust it, pass it to [`ClientTls::with_roots`](crate::ClientTls::with_roots).
#[derive(Clone)]
pub struct DevCertificate {
    certificate: CertificateDer<'static>,
    key: Vec<u8>,
    certificate_pem: String,
    key_pem: String,
}

impl DevCertificate {
    /// A new ECDSA P-256 certificate for `names` (DNS names and IP addresses), valid from yesterday,
    /// so that clocks may differ, for one year.
    pub fn generate(
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, ConfigError> {
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
        let mut params = params(names, &key)?;
        // A clock before 1970 gives an expired certificate, which the verifier reports.
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let epoch = date_time_ymd(1970, 1, 1);
        params.not_before = epoch + now.saturating_sub(DAY);
        params.not_after = epoch + now + 365 * DAY;
        Self::sign(&params, &key)
    }

    /// An Ed25519 certificate for `names` that is identical at every call, and whose signatures
    /// have a constant size, so that handshakes in simulations are reproducible. Valid from 2020 to
    /// 2119.
    ///
    /// Its private key is part of the source code. Never trust it outside a simulation.
    pub fn deterministic(
        names: impl IntoIterator<Item = impl Into<String>>,
    ) -> Result<Self, ConfigError> {
        let mut pkcs8 = ED25519_PKCS8_PREFIX.to_vec();
        pkcs8.extend_from_slice(&DETERMINISTIC_KEY);
        let key =
            KeyPair::from_pkcs8_der_and_sign_algo(&PrivatePkcs8KeyDer::from(pkcs8), &PKCS_ED25519)?;
        let mut params = params(names, &key)?;
        params.serial_number = Some(SerialNumber::from(1));
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(2119, 12, 31);
        Self::sign(&params, &key)
    }

    fn sign(params: &CertificateParams, key: &KeyPair) -> Result<Self, ConfigError> {
        let certificate = params.self_signed(key)?;
        Ok(Self {
            certificate: certificate.der().clone(),
            key: key.serialize_der(),
            certificate_pem: certificate.pem(),
            key_pem: key.serialize_pem(),
        })
    }

    /// The certificate, DER.
    pub fn certificate_der(&self) -> CertificateDer<'static> {
        self.certificate.clone()
    }

    /// The private key, PKCS #8 DER.
    pub fn private_key_der(&self) -> PrivateKeyDer<'static> {
        PrivatePkcs8KeyDer::from(self.key.clone()).into()
    }

    /// The certificate, PEM.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The private key, PKCS #8 PEM. Keep the file readable by its owner only.
    pub fn private_key_pem(&self) -> &str {
        &self.key_pem
    }
}

impl fmt::Debug for DevCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DevCertificate")
            .field("certificate_len", &self.certificate.len())
            .finish_non_exhaustive()
    }
}

fn params(
    names: impl IntoIterator<Item = impl Into<String>>,
    key: &KeyPair,
) -> Result<CertificateParams, ConfigError> {
    let names: Vec<String> = names.into_iter().map(Into::into).collect();
    let mut params = CertificateParams::new(names)?;
    // A separate subject for each key: a verifier that trusts another development certificate then
    // reports an unknown issuer, not a bad signature.
    let tail = key.der_bytes().iter().rev().take(4);
    let id = tail.fold(0, |id: u32, &byte| id << 8 | u32::from(byte));
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(
        DnType::CommonName,
        format!("Swiftwater development {id:08x}"),
    );
    params.is_ca = IsCa::ExplicitNoCa;
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    Ok(params)
}
