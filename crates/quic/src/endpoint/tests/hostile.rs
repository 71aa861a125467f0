//! Arbitrary datagrams: never a panic, never an answer as large as the question.

use std::sync::Arc;

use proptest::collection::vec;
use proptest::prelude::*;
use swiftwater_units::Instant;
use swiftwater_wire::{ConnectionId, VERSION_1};

use super::toy::*;
use crate::address_token::issue_address_token;
use crate::cid::RandomCids;
use crate::config::RetryPolicy;
use crate::endpoint::{Endpoint, Routed};
use crate::events::EndpointEvent;

/// Datagrams from nearly valid to noise.
fn datagram() -> impl Strategy<Value = Vec<u8>> {
    let noise = vec(any::<u8>(), 0..1500);
    let long = (any::<u8>(), version(), vec(any::<u8>(), 0..1500))
        .prop_map(|(first, v, rest)| [&[first | 0xc0][..], &v.to_be_bytes(), &rest].concat());
    let id = |range| vec(any::<u8>(), range).prop_map(|bytes| ConnectionId::new(&bytes).unwrap());
    let client = (id(0..21), id(0..21), token(), 1100_usize..1500)
        .prop_map(|(dst, src, token, size)| initial(dst, src, &token, size))
        .boxed();
    let damaged = (
        client.clone(),
        vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
    )
        .prop_map(|(mut datagram, changes)| {
            for (at, byte) in changes {
                let at = at.index(datagram.len());
                datagram[at] = byte;
            }
            datagram
        });
    let cut = (client.clone(), any::<prop::sample::Index>())
        .prop_map(|(datagram, at)| datagram[..at.index(datagram.len())].to_vec());
    let short = (id(8..9), 9_usize..1500).prop_map(|(dst, size)| short_packet(dst, size));
    prop_oneof![noise, long, client, damaged, cut, short]
}

fn version() -> impl Strategy<Value = u32> {
    prop_oneof![Just(VERSION_1), Just(0), any::<u32>()]
}

fn token() -> impl Strategy<Value = Vec<u8>> {
    let good = (0_u64..300).prop_map(|second| {
        let now = Instant::from_millis(second * 1000);
        issue_address_token(&Toy, &mut rng(), now, VERSION_1, [192, 0, 2, 1].into())
    });
    let bad = (
        prop_oneof![Just(0x52), Just(0x41), any::<u8>()],
        vec(any::<u8>(), 0..300),
    )
        .prop_map(|(kind, rest)| [&[kind][..], &rest].concat());
    prop_oneof![Just(Vec::new()), good, bad]
}

fn policy() -> impl Strategy<Value = RetryPolicy> {
    prop_oneof![
        Just(RetryPolicy::Never),
        (0_usize..4).prop_map(RetryPolicy::Above),
        Just(RetryPolicy::Always)
    ]
}

proptest! {
    #[test]
    fn answers_are_smaller_than_their_triggers(
        datagrams in vec((datagram(), 0_u16..3, any::<u8>()), 1..30),
        policy in policy(),
        cid_len in 0_usize..25,
        room in prop_oneof![Just(1500_usize), 0_usize..200],
    ) {
        let mut config = endpoint_config();
        config.cids = Some(Arc::new(RandomCids::new(cid_len)));
        config.max_connections = 6;
        config.max_handshakes = 4;
        let server = Some(Arc::new(server_config(policy)));
        let mut endpoint = Endpoint::new(config, server, [0; 32]);
        let mut out = vec![0; room];
        let mut handles = Vec::new();
        for (second, (datagram, port, choice)) in datagrams.iter().enumerate() {
            let now = Instant::from_millis(second as u64 * 10_000);
            match endpoint.route(now, &meta(*port), datagram, &mut out) {
                Routed::Response(transmit) => {
                    prop_assert!(transmit.size < datagram.len());
                    prop_assert!(transmit.size > 0 && transmit.size <= room);
                }
                Routed::NewConnection { handle, .. } => handles.push(handle),
                Routed::Connection(handle) => prop_assert!(handles.contains(&handle)),
                Routed::Dropped | Routed::OtherWorker { .. } => {}
            }
            if !handles.is_empty() {
                // Handles that are gone stay in the list on purpose.
                let handle = handles[usize::from(*choice) % handles.len()];
                let event = match choice % 5 {
                    0 => EndpointEvent::Drained,
                    1 => EndpointEvent::HandshakeDone,
                    2 => EndpointEvent::CidIssued(cid(&[*choice; 8])),
                    3 => EndpointEvent::CidRetired(cid(&[*choice ^ 1; 8])),
                    _ => continue,
                };
                endpoint.handle_event(handle, event);
            }
            prop_assert!(endpoint.connections() <= 6);
            prop_assert!(endpoint.handshakes() <= 4);
        }
        for handle in handles {
            endpoint.handle_event(handle, EndpointEvent::Drained);
        }
        prop_assert_eq!((endpoint.connections(), endpoint.handshakes()), (0, 0));
        prop_assert!(endpoint.routes.is_empty(), "a map still leads to a connection that is gone");
    }
}
