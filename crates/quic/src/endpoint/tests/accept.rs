//! What a program decides about incoming connections.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use swiftwater_wire::PartialHeader;

use super::toy::*;
use crate::config::{AcceptDecision, Incoming, RetryPolicy, ServerConfig, TransportConfig};
use crate::endpoint::{Endpoint, Routed};

fn endpoint(
    retry: RetryPolicy,
    accept: impl Fn(&Incoming) -> AcceptDecision + Send + Sync + 'static,
) -> Endpoint {
    let server = ServerConfig {
        accept: Some(Arc::new(accept)),
        ..server_config(retry)
    };
    Endpoint::new(endpoint_config(), Some(Arc::new(server)), [7; 32])
}

#[test]
fn each_decision_has_its_effect() {
    let mut server = endpoint(RetryPolicy::Never, |incoming| {
        match incoming.remote.port() {
            1 => AcceptDecision::Refuse,
            2 => AcceptDecision::Ignore,
            3 => AcceptDecision::Retry,
            _ => AcceptDecision::Accept,
        }
    });
    assert!(matches!(
        route(&mut server, 1, &first_initial(1)).0,
        Routed::Response(_)
    ));
    assert!(matches!(
        route(&mut server, 2, &first_initial(2)).0,
        Routed::Dropped
    ));
    assert!(matches!(
        route(&mut server, 3, &first_initial(3)).0,
        Routed::Response(_)
    ));
    accepted(route(&mut server, 4, &first_initial(4)));
    let stats = server.stats();
    assert_eq!(
        (
            stats.refused,
            stats.ignored,
            stats.retries_sent,
            stats.accepted
        ),
        (1, 1, 1, 1)
    );
    assert_eq!(server.connections(), 1);
}

/// A client that returns the token of a Retry isn't sent another Retry.
#[test]
fn retry_is_asked_for_once() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&seen);
    let mut server = endpoint(RetryPolicy::Never, move |incoming| {
        log.lock()
            .unwrap()
            .push((incoming.address_validated, incoming.retried));
        AcceptDecision::Retry
    });
    let packet = answer(route(&mut server, 1, &first_initial(1)));
    let header = PartialHeader::parse(&packet, 8).unwrap();
    let token = packet[header.token.clone()].to_vec();
    accepted(route(
        &mut server,
        1,
        &initial(header.src_cid, cid(&[3; 8]), &token, 1200),
    ));
    assert_eq!(*seen.lock().unwrap(), [(false, false), (true, true)]);
}

#[test]
fn a_connection_gets_the_configuration_chosen_for_it() {
    let special = Arc::new(TransportConfig {
        max_concurrent_bidi_streams: 7,
        ..TransportConfig::default()
    });
    let chosen = Arc::clone(&special);
    let mut server = endpoint(RetryPolicy::Never, move |incoming| {
        if incoming.remote.port() == 1 {
            AcceptDecision::AcceptWith(Arc::clone(&chosen))
        } else {
            AcceptDecision::Accept
        }
    });
    let holders = Arc::strong_count(&special);
    let (_, _kept) = accepted(route(&mut server, 1, &first_initial(1)));
    assert!(Arc::strong_count(&special) > holders);
    let holders = Arc::strong_count(&special);
    let (_, _other) = accepted(route(&mut server, 2, &first_initial(2)));
    assert_eq!(Arc::strong_count(&special), holders);
}

/// The policy of the server still holds for those that are accepted, and packets that can't start a
/// connection are irrelevant.
#[test]
fn only_first_packets_are_asked_about() {
    static ASKED: AtomicUsize = AtomicUsize::new(0);
    let mut server = endpoint(RetryPolicy::Always, |_| {
        ASKED.fetch_add(1, Ordering::Relaxed);
        AcceptDecision::Accept
    });
    let short_initial = initial(cid(&[1; 8]), cid(&[2; 8]), &[], 1199);
    assert!(matches!(
        route(&mut server, 1, &short_initial).0,
        Routed::Dropped
    ));
    assert_eq!(ASKED.load(Ordering::Relaxed), 0);
    assert!(matches!(
        route(&mut server, 1, &first_initial(1)).0,
        Routed::Response(_)
    ));
    assert_eq!(
        (server.stats().retries_sent, ASKED.load(Ordering::Relaxed)),
        (1, 1)
    );
}
