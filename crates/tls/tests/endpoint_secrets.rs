//! Reset tokens and address tokens.

#![allow(
    clippy::unwrap_used,
    reason = "a helper that fails is a test that fails"
)]

use proptest::prelude::*;
use swiftwater_quic::crypto::EndpointKey;
use swiftwater_tls::{ConfigError, EndpointSecrets};
use swiftwater_wire::ConnectionId;

const NONCE: [u8; 12] = *b"fresh nonce!";

fn key() -> EndpointSecrets {
    EndpointSecrets::from_seed([7; 32])
}

fn cid(bytes: &[u8]) -> ConnectionId {
    ConnectionId::new(bytes).unwrap()
}

#[test]
fn reset_tokens_belong_to_one_connection_id_and_one_secret() {
    let token = key().reset_token(&cid(b"12345678"));
    assert_eq!(token, key().reset_token(&cid(b"12345678")));
    assert_ne!(token, key().reset_token(&cid(b"12345679")));
    assert_ne!(token, key().reset_token(&cid(b"1234567")));
    let other = EndpointSecrets::from_seed([8; 32]);
    assert_ne!(token, other.reset_token(&cid(b"12345678")));
}

#[test]
fn processes_with_one_secret_understand_each_other() {
    let secret = b"a secret that is shared by two processes";
    let (ours, theirs) = (EndpointSecrets::new(secret), EndpointSecrets::new(secret));
    let (ours, theirs) = (ours.unwrap(), theirs.unwrap());
    let token = ours.seal_token(NONCE, b"192.0.2.1");
    assert_eq!(theirs.open_token(&token).unwrap(), b"192.0.2.1");
    assert_eq!(
        ours.reset_token(&ConnectionId::EMPTY),
        theirs.reset_token(&ConnectionId::EMPTY)
    );
}

#[test]
fn a_token_of_another_secret_is_not_accepted() {
    let token = EndpointSecrets::random().seal_token(NONCE, b"192.0.2.1");
    assert_eq!(key().open_token(&token), None);
    assert_eq!(EndpointSecrets::random().open_token(&token), None);
}

#[test]
fn short_secrets_are_refused() {
    assert!(EndpointSecrets::new(&[0; 32]).is_ok());
    assert!(matches!(
        EndpointSecrets::new(&[0; 31]),
        Err(ConfigError::ShortSecret)
    ));
}

#[test]
fn a_token_hides_its_content_and_is_28_bytes_longer() {
    let token = key().seal_token(NONCE, &[0; 40]);
    assert_eq!(token.len(), 40 + 28);
    assert!(token[12..].windows(8).all(|bytes| bytes != [0; 8]));
}

#[test]
fn a_changed_byte_anywhere_is_noticed() {
    let token = key().seal_token(NONCE, b"192.0.2.1 at noon");
    for at in 0..token.len() {
        let mut changed = token.clone();
        changed[at] ^= 0x20;
        assert_eq!(key().open_token(&changed), None);
    }
}

proptest! {
    #[test]
    fn what_is_sealed_can_be_opened(nonce: [u8; 12], plaintext: Vec<u8>) {
        let token = key().seal_token(nonce, &plaintext);
        prop_assert_eq!(key().open_token(&token), Some(plaintext));
        prop_assert_eq!(key().open_token(&token[..token.len() - 1]), None);
    }

    #[test]
    fn other_bytes_cannot(token: Vec<u8>) {
        prop_assert_eq!(key().open_token(&token), None);
    }
}
