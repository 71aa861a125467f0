//! Versions and suites of the configuration for TLS over TCP.

use std::sync::Arc;

use rustls::version::{TLS12, TLS13};
use rustls::{
    CipherSuite as Suite, ClientConfig, ClientConnection, Error, ProtocolVersion, ServerConfig,
    ServerConnection, SupportedProtocolVersion,
};
use swiftwater_tls::{CipherSuite, ClientTls, DevCertificate, error_text};

fn dev() -> DevCertificate {
    DevCertificate::deterministic(["localhost"]).unwrap()
}

fn server(version: &'static SupportedProtocolVersion) -> ServerConnection {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[version])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![dev().certificate_der()], dev().private_key_der())
        .unwrap();
    ServerConnection::new(Arc::new(config)).unwrap()
}

fn carry(from: &mut Vec<u8>, mut read: impl FnMut(&mut &[u8])) {
    let mut rest = &from[..];
    while !rest.is_empty() {
        read(&mut rest);
    }
    from.clear();
}

/// The client after the handshake.
fn handshake(
    config: ClientConfig,
    mut server: ServerConnection,
) -> Result<ClientConnection, Error> {
    let name = "localhost".try_into().unwrap();
    let mut client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut flight = Vec::new();
    while client.is_handshaking() || server.is_handshaking() {
        while client.wants_write() {
            client.write_tls(&mut flight).unwrap();
        }
        carry(&mut flight, |rest| {
            server.read_tls(rest).unwrap();
        });
        // What the server finds wrong, it says in an alert.
        let _ = server.process_new_packets();
        while server.wants_write() {
            server.write_tls(&mut flight).unwrap();
        }
        carry(&mut flight, |rest| {
            client.read_tls(rest).unwrap();
        });
        client.process_new_packets()?;
    }
    Ok(client)
}

fn trusting() -> ClientTls {
    ClientTls::with_roots([dev().certificate_der()]).unwrap()
}

#[test]
fn servers_of_both_versions_are_understood() {
    for (version, negotiated) in [
        (&TLS12, ProtocolVersion::TLSv1_2),
        (&TLS13, ProtocolVersion::TLSv1_3),
    ] {
        let client = handshake(trusting().over_tcp().unwrap(), server(version)).unwrap();
        assert_eq!(client.protocol_version(), Some(negotiated));
    }
}

#[test]
fn the_chosen_ciphers_hold_for_both_versions() {
    let client = trusting()
        .with_cipher_suites(&[CipherSuite::ChaCha20Poly1305])
        .unwrap();
    for (version, suite) in [
        (&TLS12, Suite::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256),
        (&TLS13, Suite::TLS13_CHACHA20_POLY1305_SHA256),
    ] {
        let client = handshake(client.over_tcp().unwrap(), server(version)).unwrap();
        assert_eq!(client.negotiated_cipher_suite().unwrap().suite(), suite);
    }
}

#[test]
fn trust_is_the_same_with_the_older_version() {
    let other = DevCertificate::generate(["localhost"]).unwrap();
    let client = ClientTls::with_roots([other.certificate_der()]).unwrap();
    let error = handshake(client.over_tcp().unwrap(), server(&TLS12)).unwrap_err();
    assert_eq!(error_text(&error), "its issuer is not trusted");
}
