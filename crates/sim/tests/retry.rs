//! Packets before a handshake: Retry and Version Negotiation, genuine and forged.

use swiftwater_quic::wire::{ErrorCode, PartialHeader};
use swiftwater_quic::{ConnectionError, RetryPolicy};
use swiftwater_sim::{Cipher, Direction, Pair};
use swiftwater_units::{Instant, Side};

use crate::support::{BOTH, CID_LEN, link, millis, negotiation, reason, secs};

/// A version that no other endpoint supports.
const OTHER_VERSION: u32 = 0x5a5a_0001;

/// Connects and moves a little both ways; true if all went well.
fn works(pair: &mut Pair) -> bool {
    if !pair.connect() {
        return false;
    }
    for direction in BOTH {
        pair.start_transfer(4_000, direction);
    }
    pair.finish_transfers()
}

#[test]
fn a_retry_that_comes_too_late_is_reported_so() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        let mut pair = Pair::builder()
            .cipher(cipher)
            .link(link(10, 50))
            .retry(RetryPolicy::Always)
            .server_settings(|server| server.retry_token_lifetime = millis(80))
            .build()
            .unwrap();
        assert!(!pair.connect());
        let Some(ConnectionError::PeerTransport(error)) = reason(&pair, Side::Client) else {
            panic!("{:?}", reason(&pair, Side::Client));
        };
        assert_eq!(error.code, ErrorCode::INVALID_TOKEN);
        // Two round trips: reported at once, not detected by a timeout.
        assert!(pair.now() < Instant::from_millis(210), "{}", pair.now());
        let host = pair.host(Side::Server);
        let stats = pair.network().endpoint_stats(host);
        assert_eq!((stats.accepted, stats.invalid_tokens), (0, 1));
    }
}

#[test]
fn retry_under_load_is_asked_of_those_above_the_limit() {
    let mut pair = Pair::builder()
        .retry(RetryPolicy::Above(1))
        .build()
        .unwrap();
    for _ in 0..4 {
        pair.start().unwrap();
    }
    assert!(pair.connect());
    pair.advance(secs(1));
    let host = pair.host(Side::Server);
    let stats = pair.network().endpoint_stats(host);
    assert_eq!(stats.accepted, 4);
    assert!((2..=3).contains(&stats.retries_sent), "{stats:?}");
}

#[test]
fn a_forged_retry_changes_nothing() {
    let mut pair = Pair::builder().build().unwrap();
    let sent = pair.record(Direction::ToServer);
    pair.start().unwrap();
    pair.advance(millis(1));
    let first = &sent.datagrams()[0].data;
    let header = PartialHeader::parse(first, CID_LEN).unwrap();
    let mut forged = vec![0xf0, 0, 0, 0, 1];
    forged.push(header.src_cid.len() as u8);
    forged.extend_from_slice(header.src_cid.as_bytes());
    forged.extend_from_slice(&[8, 1, 2, 3, 4, 5, 6, 7, 8]);
    forged.extend_from_slice(&[0x55; 40]);
    pair.inject(Direction::ToClient, &forged, None);
    assert!(works(&mut pair));
    assert_eq!(
        pair.stats(Side::Client).handshake_duration,
        Some(millis(20))
    );
    assert_eq!(pair.stats(Side::Client).packets_dropped.get(), 1);
}

#[test]
fn a_server_of_another_version_says_so() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        let mut pair = Pair::builder()
            .cipher(cipher)
            .endpoint(Side::Server, |config| config.versions = vec![OTHER_VERSION])
            .build()
            .unwrap();
        assert!(!pair.connect());
        assert_eq!(
            reason(&pair, Side::Client),
            Some(ConnectionError::VersionMismatch)
        );
        assert_eq!(pair.now(), Instant::from_millis(20), "one round trip");
        let host = pair.host(Side::Server);
        let stats = pair.network().endpoint_stats(host);
        assert_eq!((stats.versions_negotiated, stats.accepted), (1, 0));
    }
}

#[test]
fn version_negotiation_that_lists_the_version_in_use_or_comes_late_is_ignored() {
    let mut pair = Pair::builder().build().unwrap();
    let sent = pair.record(Direction::ToServer);
    pair.start().unwrap();
    pair.advance(millis(1));
    let first = sent.datagrams()[0].data.clone();
    pair.inject(
        Direction::ToClient,
        &negotiation(&first, &[OTHER_VERSION, 1]),
        None,
    );
    assert!(pair.run_until(|pair| !pair.client().is_handshaking()));
    pair.inject(
        Direction::ToClient,
        &negotiation(&first, &[OTHER_VERSION]),
        None,
    );
    assert!(works(&mut pair));
    assert_eq!(
        pair.stats(Side::Client).handshake_duration,
        Some(millis(20))
    );
}
