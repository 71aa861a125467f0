//! Several workers behind one address.

use std::sync::Arc;

use swiftwater_wire::{ConnectionId, PartialHeader};

use super::toy::*;
use crate::cid::{QuicLbCids, QuicLbCodec, QuicLbFormat, Worker};
use crate::config::{RetryPolicy, ServerConfig};
use crate::endpoint::{Endpoint, Routed};
use crate::events::EndpointEvent;

/// Worker `index` of `count`, all with the same seed, as a driver makes them.
fn worker(index: u8, count: u8, server: ServerConfig) -> Endpoint {
    let mut config = endpoint_config();
    config.worker = Worker { index, count };
    config.max_connections = 6;
    Endpoint::new(config, Some(Arc::new(server)), [7; 32])
}

fn pair(retry: RetryPolicy) -> [Endpoint; 2] {
    [0, 1].map(|index| worker(index, 2, server_config(retry)))
}

/// A packet with a short header to `dst`.
fn short(dst: ConnectionId) -> Vec<u8> {
    [&[0x40][..], dst.as_bytes(), &[0x55; 60]].concat()
}

fn other(routed: &(Routed, Vec<u8>)) -> Option<u8> {
    match routed.0 {
        Routed::OtherWorker { worker, .. } => Some(worker),
        _ => None,
    }
}

/// The ID with which the worker's Retry comes.
fn retry_id(endpoint: &mut Endpoint, n: u8) -> ConnectionId {
    let packet = answer(route(endpoint, 1, &first_initial(n)));
    PartialHeader::parse(&packet, 8).unwrap().src_cid
}

#[test]
fn packets_go_to_the_worker_that_issued_their_id() {
    let mut workers = pair(RetryPolicy::Always);
    for issuer in 0..2 {
        for n in 0..20 {
            let cid = retry_id(&mut workers[issuer], n);
            for (at, worker) in workers.iter_mut().enumerate() {
                let routed = route(worker, 9, &short(cid));
                let expected = (at != issuer).then_some(issuer as u8);
                assert_eq!(other(&routed), expected);
            }
        }
    }
    // At home, an ID that leads nowhere is answered with a reset as ever.
    let [one, two] = workers.map(|worker| worker.stats());
    assert_eq!([one.handed_over, two.handed_over], [20, 20]);
    assert_eq!([one.resets_sent, two.resets_sent], [20, 20]);
}

#[test]
fn known_ids_stay_where_they_are() {
    let [mut one, _] = pair(RetryPolicy::Never);
    let (handle, _) = accepted(route(&mut one, 1, &first_initial(1)));
    // Whatever worker the bytes seem to name.
    for byte in 0..=255 {
        let cid = cid(&[1, 2, 3, 4, 5, 6, 7, byte]);
        one.handle_event(handle, EndpointEvent::CidIssued(cid));
        assert_eq!(belongs(route(&mut one, 2, &short(cid))), handle);
    }
}

/// Clients choose the first destination at random: it may look like another worker's ID.
#[test]
fn first_packets_are_processed_by_the_worker_that_receives_them() {
    let [mut one, mut two] = pair(RetryPolicy::Always);
    let misleading = retry_id(&mut two, 1);
    assert_eq!(other(&route(&mut one, 1, &short(misleading))), Some(1));
    let [mut one, _] = pair(RetryPolicy::Never);
    let first = initial(misleading, cid(&[3; 8]), &[], 1200);
    accepted(route(&mut one, 1, &first));
}

/// A client in the middle of its handshake whose address changes: its Initial packets have the server's ID
/// and are protected with keys that only its connection has.
#[test]
fn initial_packets_of_others_are_handed_over() {
    let [mut one, mut two] = pair(RetryPolicy::Always);
    let theirs = retry_id(&mut two, 1);
    let [mut fresh, _] = pair(RetryPolicy::Never);
    let mut packet = initial(theirs, cid(&[3; 8]), &[], 1200);
    *packet.last_mut().unwrap() ^= 1;
    let routed = route(&mut fresh, 1, &packet).0;
    let expected = Routed::OtherWorker {
        worker: 1,
        established: false,
    };
    assert_eq!(format!("{routed:?}"), format!("{expected:?}"));
    // At its destination it goes no further.
    let [_, mut home] = pair(RetryPolicy::Never);
    assert!(matches!(route(&mut home, 1, &packet).0, Routed::Dropped));
    // Bytes that name no worker are dropped as ever.
    let mine = retry_id(&mut one, 2);
    let mut packet = initial(mine, cid(&[3; 8]), &[], 1200);
    *packet.last_mut().unwrap() ^= 1;
    assert!(matches!(route(&mut fresh, 1, &packet).0, Routed::Dropped));
}

#[test]
fn tokens_are_good_at_every_worker() {
    let [mut one, mut two] = pair(RetryPolicy::Always);
    let packet = answer(route(&mut one, 1, &first_initial(1)));
    let header = PartialHeader::parse(&packet, 8).unwrap();
    let token = packet[header.token.clone()].to_vec();
    let again = initial(header.src_cid, cid(&[3; 8]), &token, 1200);
    accepted(route(&mut two, 1, &again));
}

#[test]
fn each_worker_has_its_share_of_the_limits() {
    let mut worker = worker(0, 2, server_config(RetryPolicy::Never));
    let taken = (0..6)
        .filter(|&n| {
            matches!(
                route(&mut worker, 1, &first_initial(n)).0,
                Routed::NewConnection { .. }
            )
        })
        .count();
    assert_eq!((taken, worker.stats().refused), (3, 3));
}

/// The same seed, yet different choices: IDs must not repeat among workers.
#[test]
fn workers_make_different_random_choices() {
    let mut workers = pair(RetryPolicy::Always);
    let ids = [0, 1].map(|at| retry_id(&mut workers[at], 1));
    assert_ne!(ids[0].as_bytes()[..7], ids[1].as_bytes()[..7]);
}

/// Two hosts behind a load balancer that have the same key, against the documentation's advice: a
/// packet of a live connection that reaches the wrong one must not make it reveal the token (RFC
/// 9000, section 21.11).
#[test]
fn no_host_resets_the_connections_of_another() {
    let mut hosts = [1, 2].map(|id| {
        let codec = QuicLbCodec::new(QuicLbFormat::default(), None).unwrap();
        let mut config = endpoint_config();
        config.cids = Some(Arc::new(QuicLbCids::new(codec, &[id]).unwrap()));
        let server = server_config(RetryPolicy::Always);
        Endpoint::new(config, Some(Arc::new(server)), [id; 32])
    });
    for issuer in 0..2 {
        let packet = answer(route(&mut hosts[issuer], 1, &first_initial(1)));
        let cid = PartialHeader::parse(&packet, 17).unwrap().src_cid;
        for (at, host) in hosts.iter_mut().enumerate() {
            let (routed, _) = route(host, 9, &short(cid));
            let answers = matches!(routed, Routed::Response(_));
            assert_eq!(answers, at == issuer, "{routed:?}");
        }
    }
}

#[test]
fn a_single_worker_hands_nothing_over() {
    let config = endpoint_config();
    let server = Some(Arc::new(server_config(RetryPolicy::Never)));
    let mut endpoint = Endpoint::new(config, server, [7; 32]);
    for n in 0..=255 {
        let routed = route(&mut endpoint, 1, &short(cid(&[n; 8])));
        assert_eq!(other(&routed), None);
    }
}
