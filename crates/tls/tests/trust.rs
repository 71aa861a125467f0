//! Trusted certificates, and the construction of configurations.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::time::Duration;

use crate::sessions::handshake;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};
use swiftwater_quic::crypto::TlsError;
use swiftwater_tls::pki_types::{CertificateDer, PrivateKeyDer};
use swiftwater_tls::{CipherSuite, ClientTls, ConfigError, DevCertificate, ServerTls};
use swiftwater_wire::ErrorCode;

const UNKNOWN_CA: ErrorCode = ErrorCode::crypto(48);
const BAD_CERTIFICATE: ErrorCode = ErrorCode::crypto(42);
const CERTIFICATE_EXPIRED: ErrorCode = ErrorCode::crypto(45);

/// 2015-01-01 and 2130-01-01, outside the validity of deterministic certificates.
const BEFORE: Duration = Duration::from_secs(1_420_070_400);
const AFTER: Duration = Duration::from_secs(5_049_129_600);

fn dev() -> DevCertificate {
    DevCertificate::deterministic(["localhost", "127.0.0.1", "::1"]).unwrap()
}

fn trusting(certificate: &DevCertificate) -> ClientTls {
    ClientTls::with_roots([certificate.certificate_der()]).unwrap()
}

fn connect(client: &ClientTls, certificate: &DevCertificate, name: &str) -> Result<(), TlsError> {
    let server = ServerTls::from_dev_certificate(certificate).unwrap();
    let server = server.alpn(["hq-interop"]);
    handshake(&client.clone().alpn(["hq-interop"]), &server, name).map(|_| ())
}

#[test]
fn a_trusted_certificate_serves_its_names_and_addresses() {
    for name in ["localhost", "127.0.0.1", "::1"] {
        connect(&trusting(&dev()), &dev(), name).unwrap();
    }
    let fresh = DevCertificate::generate(["localhost"]).unwrap();
    connect(&trusting(&fresh), &fresh, "localhost").unwrap();
}

#[test]
fn an_unknown_issuer_is_refused() {
    let other = DevCertificate::generate(["localhost"]).unwrap();
    let error = connect(&trusting(&other), &dev(), "localhost").unwrap_err();
    assert_eq!(error.code, UNKNOWN_CA, "{error}");
}

#[test]
fn another_name_is_refused() {
    for name in ["example.org", "sub.localhost", "127.0.0.2"] {
        let error = connect(&trusting(&dev()), &dev(), name).unwrap_err();
        assert_eq!(error.code, BAD_CERTIFICATE, "{error}");
    }
}

#[test]
fn a_certificate_outside_its_validity_is_refused() {
    for time in [BEFORE, AFTER] {
        let client = trusting(&dev()).at_unix_time(time);
        let error = connect(&client, &dev(), "localhost").unwrap_err();
        assert_eq!(error.code, CERTIFICATE_EXPIRED, "{error}");
    }
}

/// A self-signed certificate as `openssl req -x509` makes it: an authority's.
fn authority(names: &[&str]) -> (CertificateDer<'static>, KeyPair) {
    let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut parameters = CertificateParams::new(names).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.not_before = date_time_ymd(2020, 1, 1);
    parameters.not_after = date_time_ymd(2120, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = parameters.self_signed(&key).unwrap();
    (certificate.der().clone(), key)
}

fn serving(chain: Vec<CertificateDer<'static>>, key: &KeyPair) -> ServerTls {
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    ServerTls::new(chain, key).unwrap().alpn(["hq-interop"])
}

/// Whether a client that trusts `root` accepts `server` as `name`.
fn believes(
    root: &CertificateDer<'static>,
    server: &ServerTls,
    name: &str,
) -> Result<(), TlsError> {
    let client = ClientTls::with_roots([root.clone()]).unwrap();
    handshake(&client.alpn(["hq-interop"]), server, name).map(|_| ())
}

#[test]
fn an_authority_that_is_trusted_may_itself_be_the_server() {
    let (certificate, key) = authority(&["localhost", "127.0.0.1"]);
    let server = serving(vec![certificate.clone()], &key);
    for name in ["localhost", "127.0.0.1"] {
        believes(&certificate, &server, name).unwrap();
    }
    let error = believes(&certificate, &server, "example.org").unwrap_err();
    assert_eq!(error.code, BAD_CERTIFICATE, "{error}");
    assert!(error.reason.contains("not for example.org"), "{error}");
    for time in [BEFORE, AFTER] {
        let client = ClientTls::with_roots([certificate.clone()]).unwrap();
        let client = client.alpn(["hq-interop"]).at_unix_time(time);
        let error = handshake(&client, &server, "localhost")
            .map(|_| ())
            .unwrap_err();
        assert_eq!(error.code, CERTIFICATE_EXPIRED, "{error}");
    }
    // One that looks the same and is not.
    let (other, _) = authority(&["localhost", "127.0.0.1"]);
    let error = believes(&other, &server, "localhost").unwrap_err();
    assert!(error.reason.contains("authority's"), "{error}");
}

#[test]
fn a_trusted_certificate_needs_no_trusted_issuer() {
    let (_, issuer_key) = authority(&["issuer"]);
    let mut parameters = CertificateParams::new(vec!["issuer".to_owned()]).unwrap();
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let name = DnType::CommonName;
    parameters.distinguished_name.push(name, "issuer");
    let issuer = Issuer::new(parameters, issuer_key);
    let key = KeyPair::generate().unwrap();
    let mut leaf = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    leaf.distinguished_name.push(DnType::CommonName, "leaf");
    let leaf = leaf.signed_by(&key, &issuer).unwrap().der().clone();
    let server = serving(vec![leaf.clone()], &key);
    believes(&leaf, &server, "localhost").unwrap();
    let error = believes(&leaf, &server, "example.org").unwrap_err();
    assert_eq!(error.code, BAD_CERTIFICATE, "{error}");
    let error = connect(&trusting(&dev()), &dev(), "127.0.0.2").unwrap_err();
    assert_eq!(
        error.reason,
        "it is for localhost, 127.0.0.1, ::1, not for 127.0.0.2"
    );
    let (other, _) = authority(&["issuer"]);
    let error = believes(&other, &server, "localhost").unwrap_err();
    assert_eq!(error.code, UNKNOWN_CA, "{error}");
    assert_eq!(error.reason, "its issuer is not trusted");
}

#[test]
fn the_opt_out_accepts_all_of_these() {
    let client = ClientTls::dangerous_without_verification().unwrap();
    connect(&client, &dev(), "localhost").unwrap();
    connect(&client, &dev(), "example.org").unwrap();
    connect(&client.at_unix_time(AFTER), &dev(), "localhost").unwrap();
}

#[test]
fn a_key_of_another_certificate_is_refused() {
    let other = DevCertificate::generate(["localhost"]).unwrap();
    let made = ServerTls::new(vec![dev().certificate_der()], other.private_key_der());
    assert!(matches!(made, Err(ConfigError::Rustls(_))));
}

#[test]
fn pem_works_as_der_does() {
    let certificate = DevCertificate::generate(["localhost"]).unwrap();
    let chain = certificate.certificate_pem().as_bytes();
    let key = certificate.private_key_pem().as_bytes();
    let server = ServerTls::from_pem(chain, key).unwrap();
    handshake(&trusting(&certificate), &server, "localhost").unwrap();

    assert!(matches!(
        ServerTls::from_pem(b"no certificate here", key),
        Err(ConfigError::NoCertificate)
    ));
    assert!(matches!(
        ServerTls::from_pem(chain, chain),
        Err(ConfigError::Pem(_))
    ));
}

#[test]
fn rustls_configurations_are_taken_with_their_suites() {
    let provider = std::sync::Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions = &[&rustls::version::TLS13];
    let server = rustls::ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![dev().certificate_der()], dev().private_key_der())
        .unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(dev().certificate_der()).unwrap();
    let client = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(versions)
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();

    let client = ClientTls::from_rustls(client);
    let server = ServerTls::from_rustls(server);
    handshake(&client, &server, "localhost").unwrap();
    let suites = [CipherSuite::Aes128Gcm];
    assert!(matches!(
        client.with_cipher_suites(&suites),
        Err(ConfigError::FixedCipherSuites)
    ));
    assert!(matches!(
        server.with_cipher_suites(&suites),
        Err(ConfigError::FixedCipherSuites)
    ));
}

#[test]
fn impossible_configurations_are_errors() {
    assert!(matches!(
        ClientTls::with_roots([]),
        Err(ConfigError::Verifier(_))
    ));
    assert!(matches!(
        trusting(&dev()).with_cipher_suites(&[]),
        Err(ConfigError::NoCipherSuite)
    ));
    assert!(matches!(
        ServerTls::new(vec![], dev().private_key_der()),
        Err(ConfigError::NoCertificate)
    ));
    assert!(matches!(
        DevCertificate::generate(["ü"]),
        Err(ConfigError::Generation(_))
    ));
}

#[test]
fn deterministic_certificates_are_the_same_at_every_call() {
    assert_eq!(dev().certificate_der(), dev().certificate_der());
    assert_eq!(dev().private_key_der(), dev().private_key_der());
    let other = DevCertificate::deterministic(["example.org"]).unwrap();
    assert_ne!(dev().certificate_der(), other.certificate_der());
}

#[test]
fn generated_certificates_differ() {
    let make = || DevCertificate::generate(["localhost"]).unwrap();
    assert_ne!(make().certificate_der(), make().certificate_der());
    assert_ne!(make().private_key_der(), make().private_key_der());
}

#[test]
fn private_keys_are_never_printed() {
    let shown = format!("{:?}", dev());
    assert!(!shown.contains("key"), "{shown}");
}

/// Simulations rely on it: the same handshake twice has flights of the same lengths.
#[test]
fn flights_with_a_deterministic_certificate_have_constant_sizes() {
    let server = ServerTls::from_dev_certificate(&dev()).unwrap();
    let sizes = || {
        let (client, server) = handshake(&trusting(&dev()), &server, "localhost").unwrap();
        [
            client.said.map(|bytes| bytes.len()),
            server.said.map(|bytes| bytes.len()),
        ]
    };
    let first = sizes();
    for _ in 0..8 {
        assert_eq!(sizes(), first);
    }
}
