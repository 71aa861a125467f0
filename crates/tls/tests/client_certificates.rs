//! Certificates of clients.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use std::sync::Arc;

use crate::sessions::{Peer, handshake};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, KeyUsagePurpose,
    RevokedCertParams, SerialNumber, date_time_ymd,
};
use swiftwater_quic::crypto::TlsError;
use swiftwater_tls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer};
use swiftwater_tls::{
    CipherSuite, ClientAuthorities, ClientTls, ConfigError, DevCertificate, MemorySessionStore,
    ServerTls, Tickets,
};
use swiftwater_wire::ErrorCode;

const REVOKED: ErrorCode = ErrorCode::crypto(44);
const EXPIRED: ErrorCode = ErrorCode::crypto(45);
const UNKNOWN_CA: ErrorCode = ErrorCode::crypto(48);

/// An authority for clients.
struct Authority {
    certificate: CertificateDer<'static>,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut parameters = CertificateParams::default();
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        parameters
            .distinguished_name
            .push(DnType::CommonName, "an authority");
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.self_signed(&key).unwrap().der().clone();
        Self {
            certificate,
            issuer: Issuer::new(parameters, key),
        }
    }

    /// A certificate with this serial number, and its key.
    fn issue(&self, serial: u64, change: impl FnOnce(&mut CertificateParams)) -> Identity {
        let mut parameters = CertificateParams::default();
        parameters
            .distinguished_name
            .push(DnType::CommonName, "alice");
        parameters.serial_number = Some(SerialNumber::from(serial));
        parameters.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        change(&mut parameters);
        let key = KeyPair::generate().unwrap();
        let certificate = parameters.signed_by(&key, &self.issuer).unwrap();
        (certificate.der().clone(), key.serialize_der())
    }

    /// A list that revokes `serial`, valid to the end of `until`.
    fn revoking(&self, serial: u64, until: i32) -> CertificateRevocationListDer<'static> {
        let list = CertificateRevocationListParams {
            this_update: date_time_ymd(2020, 1, 1),
            next_update: date_time_ymd(until, 12, 31),
            crl_number: SerialNumber::from(1),
            issuing_distribution_point: None,
            revoked_certs: vec![RevokedCertParams {
                serial_number: SerialNumber::from(serial),
                revocation_time: date_time_ymd(2020, 1, 1),
                reason_code: None,
                invalidity_date: None,
            }],
            key_identifier_method: KeyIdMethod::Sha256,
        };
        list.signed_by(&self.issuer).unwrap().into()
    }

    fn accepted(&self) -> Arc<ClientAuthorities> {
        Arc::new(ClientAuthorities::new([self.certificate.clone()], []).unwrap())
    }
}

type Identity = (CertificateDer<'static>, Vec<u8>);

fn server_certificate() -> DevCertificate {
    DevCertificate::deterministic(["server.example"]).unwrap()
}

fn server(clients: &Arc<ClientAuthorities>) -> ServerTls {
    ServerTls::from_dev_certificate(&server_certificate())
        .unwrap()
        .alpn(["h3"])
        .client_certificates(Arc::clone(clients) as _)
        .unwrap()
}

fn client(identity: Option<&Identity>) -> ClientTls {
    let tls = ClientTls::with_roots([server_certificate().certificate_der()])
        .unwrap()
        .alpn(["h3"]);
    match identity {
        Some((certificate, key)) => {
            let key = PrivateKeyDer::try_from(key.clone()).unwrap();
            tls.identity(vec![certificate.clone()], key).unwrap()
        }
        None => tls,
    }
}

fn connect(
    clients: &Arc<ClientAuthorities>,
    identity: Option<&Identity>,
) -> Result<(Peer, Peer), TlsError> {
    handshake(&client(identity), &server(clients), "server.example")
}

/// The error of a handshake.
fn refused(clients: &Arc<ClientAuthorities>, identity: &Identity) -> TlsError {
    let outcome = connect(clients, Some(identity)).map(|_| ());
    outcome.unwrap_err()
}

#[test]
fn a_server_learns_the_certificate_of_its_client_and_keeps_it() {
    let authority = Authority::new();
    let alice = authority.issue(1, |_| {});
    let (_, mut server) = connect(&authority.accepted(), Some(&alice)).unwrap();
    let chain = vec![alice.0.to_vec()];
    assert_eq!(server.session.peer_certificates(), chain);
    server.session.settle();
    assert_eq!(server.session.peer_certificates(), chain);
}

#[test]
fn a_client_without_a_certificate_passes_and_is_nobody() {
    let authority = Authority::new();
    let (_, server) = connect(&authority.accepted(), None).unwrap();
    assert!(server.session.peer_certificates().is_empty());
}

#[test]
fn a_certificate_is_shown_only_to_those_who_ask() {
    let alice = Authority::new().issue(1, |_| {});
    let server = ServerTls::from_dev_certificate(&server_certificate()).unwrap();
    let (_, server) = handshake(
        &client(Some(&alice)),
        &server.alpn(["h3"]),
        "server.example",
    )
    .unwrap();
    assert!(server.session.peer_certificates().is_empty());
}

#[test]
fn what_another_authority_issued_is_refused() {
    let (authority, other) = (Authority::new(), Authority::new());
    let error = refused(&authority.accepted(), &other.issue(1, |_| {}));
    // Both have the same name, so it is the signature that is wrong.
    let codes = [UNKNOWN_CA, ErrorCode::crypto(51), ErrorCode::crypto(42)];
    assert!(codes.contains(&error.code), "{error}");
}

#[test]
fn an_expired_certificate_is_refused() {
    let authority = Authority::new();
    let expired = authority.issue(1, |it| {
        it.not_before = date_time_ymd(2019, 1, 1);
        it.not_after = date_time_ymd(2020, 1, 1);
    });
    let error = refused(&authority.accepted(), &expired);
    assert_eq!(error.code, EXPIRED, "{error}");
}

#[test]
fn a_certificate_for_servers_is_refused() {
    let authority = Authority::new();
    let of_server = authority.issue(1, |it| {
        it.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    let error = refused(&authority.accepted(), &of_server);
    assert!(error.reason.contains("extended key usage"), "{error}");
}

#[test]
fn a_revoked_certificate_is_refused_and_others_are_not() {
    let authority = Authority::new();
    let (revoked, good) = (authority.issue(7, |_| {}), authority.issue(8, |_| {}));
    let with = |until| {
        let lists = [authority.revoking(7, until)];
        Arc::new(ClientAuthorities::new([authority.certificate.clone()], lists).unwrap())
    };
    let error = refused(&with(2120), &revoked);
    assert_eq!(error.code, REVOKED, "{error}");
    connect(&with(2120), Some(&good)).unwrap();
    // A list that has expired says nothing about later revocations.
    refused(&with(2020), &good);
}

#[test]
fn replaced_authorities_hold_for_the_next_handshake() {
    let (first, second) = (Authority::new(), Authority::new());
    let clients = first.accepted();
    let server = server(&clients);
    let identity = first.issue(1, |_| {});
    let client = client(Some(&identity));
    handshake(&client, &server, "server.example").unwrap();
    clients.replace_with(&second.accepted());
    assert!(handshake(&client, &server, "server.example").is_err());
}

#[test]
fn a_ticket_does_not_outlive_a_certificate() {
    let authority = Authority::new();
    let clients = authority.accepted();
    let tickets = Tickets::SingleUse { capacity: 8 };
    let server = server(&clients).tickets(tickets).unwrap();
    let identity = authority.issue(1, |_| {});
    let client = client(Some(&identity)).sessions(Arc::new(MemorySessionStore::default()));
    for _ in 0..2 {
        let (client, server) = handshake(&client, &server, "server.example").unwrap();
        assert!(!client.session.is_resumed() && !server.session.is_resumed());
    }
}

#[test]
fn suites_and_identity_do_not_replace_each_other() {
    let authority = Authority::new();
    let identity = authority.issue(1, |_| {});
    let suites = [CipherSuite::Aes256Gcm];
    let client = client(Some(&identity)).with_cipher_suites(&suites).unwrap();
    let server = server(&authority.accepted());
    let server = server.with_cipher_suites(&suites).unwrap();
    let (_, server) = handshake(&client, &server, "server.example").unwrap();
    assert_eq!(server.session.peer_certificates().len(), 1);
    let over_tcp = client.over_tcp().unwrap();
    assert!(over_tcp.client_auth_cert_resolver.has_certs());
}

#[test]
fn no_authority_and_no_certificate_are_errors() {
    assert!(matches!(
        ClientAuthorities::new([], []),
        Err(ConfigError::Verifier(_))
    ));
    let key = PrivateKeyDer::try_from(Authority::new().issue(1, |_| {}).1).unwrap();
    assert!(matches!(
        client(None).identity(Vec::new(), key),
        Err(ConfigError::NoCertificate)
    ));
}
