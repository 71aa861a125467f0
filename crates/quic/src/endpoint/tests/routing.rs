//! Which connection a datagram goes to, and limits of connecting.

use std::sync::Arc;

use swiftwater_units::{Instant, Side};
use swiftwater_wire::{
    ConnectionId, TransportParameters, VERSION_1, VERSION_2, Writer, is_reserved,
    write_version_negotiation,
};

use super::toy::*;
use crate::cid::RandomCids;
use crate::config::RetryPolicy;
use crate::endpoint::{Endpoint, Routed, parameters};
use crate::error::ConnectError;
use crate::events::{CidCollision, EndpointEvent};
use crate::handshake::{Crypto, Grease, Opening};

fn without_cids() -> Endpoint {
    let mut config = endpoint_config();
    config.cids = Some(Arc::new(RandomCids::new(0)));
    Endpoint::new(config, None, [3; 32])
}

#[test]
fn repeated_first_packet_goes_to_the_same_connection() {
    let mut server = server(RetryPolicy::Never);
    let (handle, _) = accepted(route(&mut server, 1, &first_initial(1)));
    assert_eq!(belongs(route(&mut server, 1, &first_initial(1))), handle);
    // Even when the network held it back for long.
    server.handle_event(handle, EndpointEvent::HandshakeDone);
    assert_eq!(belongs(route(&mut server, 1, &first_initial(1))), handle);
    assert_eq!((server.connections(), server.stats().accepted), (1, 1));
    // The same destination chosen by another client is another connection.
    let (other, _) = accepted(route(&mut server, 2, &first_initial(1)));
    assert_ne!(other, handle);
}

#[test]
fn issued_ids_lead_to_the_connection_until_retired() {
    let mut server = server(RetryPolicy::Never);
    let (first, _) = accepted(route(&mut server, 1, &first_initial(1)));
    let (second, _) = accepted(route(&mut server, 2, &first_initial(2)));
    let ids = [cid(&[0xa1; 8]), cid(&[0xa2; 8])];
    for (handle, id) in [(first, ids[0]), (second, ids[1])] {
        let collision = server.handle_event(handle, EndpointEvent::CidIssued(id));
        assert_eq!(collision, None);
    }
    // Addresses don't matter: the client may have moved.
    assert_eq!(
        belongs(route(&mut server, 77, &short_packet(ids[0], 30))),
        first
    );
    assert_eq!(
        belongs(route(&mut server, 78, &short_packet(ids[1], 30))),
        second
    );
    // No connection takes away or retires the ID of another.
    let collision = server.handle_event(second, EndpointEvent::CidIssued(ids[0]));
    assert_eq!(collision, Some(CidCollision(ids[0])));
    assert_eq!(server.stats().cid_collisions, 1);
    server.handle_event(second, EndpointEvent::CidRetired(ids[0]));
    assert_eq!(
        belongs(route(&mut server, 77, &short_packet(ids[0], 30))),
        first
    );
    server.handle_event(first, EndpointEvent::CidRetired(ids[0]));
    assert!(!matches!(
        route(&mut server, 77, &short_packet(ids[0], 30)).0,
        Routed::Connection(_)
    ));
}

#[test]
fn drained_connections_leave_nothing_behind() {
    let mut server = server(RetryPolicy::Never);
    let (old, _) = accepted(route(&mut server, 1, &first_initial(1)));
    let id = cid(&[0xa1; 8]);
    server.handle_event(old, EndpointEvent::CidIssued(id));
    server.handle_event(old, EndpointEvent::Drained);
    assert_eq!((server.connections(), server.handshakes()), (0, 0));
    assert!(matches!(
        route(&mut server, 1, &short_packet(id, 60)).0,
        Routed::Response(_)
    ));

    // The slot is used again, but the old handle stays without effect.
    let (new, _) = accepted(route(&mut server, 1, &first_initial(1)));
    assert_eq!(new.index(), old.index());
    server.handle_event(old, EndpointEvent::CidIssued(id));
    server.handle_event(old, EndpointEvent::HandshakeDone);
    server.handle_event(old, EndpointEvent::Drained);
    assert_eq!((server.connections(), server.handshakes()), (1, 1));
    assert!(!matches!(
        route(&mut server, 1, &short_packet(id, 60)).0,
        Routed::Connection(_)
    ));
}

#[test]
fn packets_for_a_client_are_routed_by_its_id_whatever_their_version() {
    let mut endpoint = client();
    let (handle, _) = endpoint
        .connect(Instant::ZERO, &client_config(), addr(443), "host")
        .unwrap();
    // The ID that the client chose shows in the parameters only; find it through a twin.
    let mut twin = client();
    let local = twin.fresh_cid().unwrap();
    let mut packet = vec![0; 40];
    let mut w = Writer::new(&mut packet);
    write_version_negotiation(&mut w, 0, local.as_bytes(), &[1; 8], &[VERSION_1]);
    let size = w.written();
    assert_eq!(belongs(route(&mut endpoint, 443, &packet[..size])), handle);
}

#[test]
fn empty_ids_are_routed_by_address() {
    let mut endpoint = without_cids();
    let connect = |endpoint: &mut Endpoint, port| {
        endpoint
            .connect(Instant::ZERO, &client_config(), addr(port), "host")
            .map(|pair| pair.0)
    };
    let first = connect(&mut endpoint, 1).unwrap();
    let second = connect(&mut endpoint, 2).unwrap();
    assert_eq!(
        connect(&mut endpoint, 2).unwrap_err(),
        ConnectError::InvalidAddress(addr(2)),
        "the two could not be distinguished"
    );
    let packet = short_packet(ConnectionId::EMPTY, 50);
    assert_eq!(belongs(route(&mut endpoint, 1, &packet)), first);
    assert_eq!(belongs(route(&mut endpoint, 2, &packet)), second);
    assert!(matches!(
        route(&mut endpoint, 3, &packet).0,
        Routed::Dropped
    ));
    endpoint.handle_event(second, EndpointEvent::Drained);
    assert!(matches!(
        route(&mut endpoint, 2, &packet).0,
        Routed::Dropped
    ));
    connect(&mut endpoint, 2).unwrap();
}

#[test]
fn connecting_checks_address_name_and_limit() {
    let mut config = endpoint_config();
    config.max_connections = 1;
    let mut endpoint = Endpoint::new(config, None, [3; 32]);
    let mut connect = |remote: &str, name: &str| {
        let remote = remote.parse().unwrap();
        endpoint
            .connect(Instant::ZERO, &client_config(), remote, name)
            .map(|pair| pair.0)
    };
    for remote in ["192.0.2.1:0", "0.0.0.0:443", "[::]:443", "224.0.0.1:443"] {
        let error = connect(remote, "host").unwrap_err();
        assert_eq!(error, ConnectError::InvalidAddress(remote.parse().unwrap()));
    }
    let error = connect("192.0.2.1:443", "refused").unwrap_err();
    assert_eq!(error, ConnectError::Tls("refused".into()));
    connect("192.0.2.1:443", "host").unwrap();
    let error = connect("192.0.2.1:443", "host").unwrap_err();
    assert_eq!(error, ConnectError::TooManyConnections(1));
    assert_eq!((endpoint.connections(), endpoint.stats().opened), (1, 1));
    assert_eq!(endpoint.handshakes(), 0, "only accepted connections count");
}

#[test]
fn ids_that_ran_out_are_an_error() {
    let mut config = endpoint_config();
    config.cids = Some(Arc::new(RandomCids::new(1)));
    let mut endpoint = Endpoint::new(config, None, [3; 32]);
    let connected = (0..1000)
        .map_while(|_| {
            endpoint
                .connect(Instant::ZERO, &client_config(), addr(443), "host")
                .ok()
        })
        .count();
    assert!((100..=256).contains(&connected), "{connected}");
}

#[test]
fn parameters_follow_the_configuration_within_their_ranges() {
    use crate::config::TransportConfig;
    use std::time::Duration;
    use swiftwater_units::ByteCount;

    let local = cid(&[1; 8]);
    let config = TransportConfig {
        max_idle_timeout: None,
        stream_receive_window: ByteCount::new(77),
        receive_window: ByteCount::MAX,
        max_concurrent_bidi_streams: u64::MAX,
        max_concurrent_uni_streams: 3,
        ack_delay_exponent: 200,
        max_ack_delay: Duration::from_mins(1),
        max_datagram_frame_size: None,
        active_connection_id_limit: 0,
        migration: false,
        ..TransportConfig::default()
    };
    let ours = parameters::local_parameters(&config, local, true);
    assert_eq!(ours.max_idle_timeout, Duration::ZERO);
    assert_eq!(ours.initial_max_stream_data_bidi_local, 77);
    assert_eq!(ours.initial_max_stream_data_bidi_remote, 77);
    assert_eq!(ours.initial_max_stream_data_uni, 77);
    assert_eq!(ours.initial_max_data, (1 << 62) - 1);
    assert_eq!(ours.initial_max_streams_bidi, 1 << 60);
    assert_eq!(ours.initial_max_streams_uni, 3);
    assert_eq!(ours.initial_source_connection_id, Some(local));
    assert_eq!(ours.max_datagram_frame_size, 0);
    assert!(ours.disable_active_migration);
    // A peer accepts them, the reserved one included.
    let mut rng = rng();
    for nth in 0..50 {
        let opening = Opening {
            crypto: Crypto::Server(Arc::new(Toy)),
            parameters: ours,
            versions: vec![VERSION_2, 0x5a5a_0001, VERSION_1],
            early_data: false,
            grease: (nth > 0).then(|| Grease::new(&mut rng)),
        };
        for side in [Side::Client, Side::Server] {
            let bytes = opening.encode(side, VERSION_1);
            let mut read = TransportParameters::decode(&bytes, side).unwrap();
            let information = read.version_information.take().unwrap();
            assert_eq!(read, ours);
            assert_eq!(information.chosen, VERSION_1);
            let (reserved, real): (Vec<u32>, Vec<u32>) = information
                .available()
                .iter()
                .partition(|&&version| is_reserved(version));
            assert_eq!(reserved.len(), usize::from(nth > 0));
            match side {
                Side::Client => assert_eq!(real, [VERSION_2, VERSION_1]),
                Side::Server => assert_eq!(real, [VERSION_2, 0x5a5a_0001, VERSION_1]),
            }
        }
    }
}
