//! Several paths in the version of draft-ietf-quic-multipath-10, and which version two ends agree on.

use crate::support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_link::LinkConfig;
use swiftwater_policies::Policies;
use swiftwater_policies::schedulers::{MinRttConfig, RoundRobinConfig};
use swiftwater_quic::policy::{PathPreference, PathStatus};
use swiftwater_quic::wire::{ErrorCode, MultipathVersion};
use swiftwater_quic::{
    Event, MultipathConfig, MultipathVersions, OpenPathError, PathAddress, TransportConfig,
};
use swiftwater_sim::{Attachment, Cipher, Direction, OldAddress, Pair, PairBuilder, Verdict};
use swiftwater_units::{PathId, Side};

use support::{BOTH, SIDES, link, millis, secs};

const SECOND: PathId = PathId::new(1);

fn address(nth: u8) -> SocketAddr {
    ([192, 0, 2, nth], 50_000).into()
}

fn with_versions(versions: MultipathVersions) -> impl Fn(&mut TransportConfig) + Clone {
    move |config| {
        config.multipath = Some(MultipathConfig {
            versions,
            ..MultipathConfig::default()
        });
        let scheduler = Arc::new(MinRttConfig::default());
        config.policies = Arc::new(Policies::default().with_scheduler(scheduler));
    }
}

fn draft(config: &mut TransportConfig) {
    with_versions(MultipathVersions::Draft10)(config);
}

fn connected(builder: PairBuilder) -> Pair {
    let mut pair = builder.build().unwrap();
    assert!(pair.connect());
    // Connection IDs have gone back and forth.
    pair.advance(millis(300));
    pair
}

fn with_draft(first: LinkConfig) -> Pair {
    let mut pair = connected(Pair::builder().link(first).both_configs(draft));
    for side in SIDES {
        let version = pair.connection(side).unwrap().multipath_version();
        assert_eq!(version, Some(MultipathVersion::Draft10));
    }
    pair
}

fn attach(pair: &mut Pair, nth: u8, config: LinkConfig) -> Attachment {
    pair.attach_path(Side::Client, address(nth), config)
        .unwrap()
}

fn open(pair: &mut Pair, from: Attachment) -> Result<PathId, OpenPathError> {
    let now = pair.now();
    let remote = pair.address(Side::Server);
    let address = PathAddress {
        remote,
        local: from.local,
    };
    pair.client().open_path(now, address)
}

fn has_event(pair: &Pair, side: Side, is_it: impl Fn(&Event) -> bool) -> bool {
    pair.events(side).iter().any(is_it)
}

/// Opens a path and runs until both ends use it.
fn opened(pair: &mut Pair, from: Attachment) -> PathId {
    let id = open(pair, from).unwrap();
    let is_open = |event: &Event| matches!(event, Event::PathOpened { path, .. } if *path == id);
    assert!(pair.run_until(|pair| SIDES.into_iter().all(|side| has_event(pair, side, is_open))));
    id
}

fn stats_of(pair: &Pair, side: Side, id: PathId) -> swiftwater_quic::PathStats {
    let stats = pair.stats(side);
    stats.paths.into_iter().find(|path| path.id == id).unwrap()
}

#[test]
fn two_ends_use_a_version_that_both_declare() {
    use MultipathVersion as Version;
    use MultipathVersions::{Both, Draft10, Rfc10069};
    let all = [
        (Rfc10069, Rfc10069, Some(Version::Rfc10069)),
        (Draft10, Draft10, Some(Version::Draft10)),
        (Both, Draft10, Some(Version::Draft10)),
        (Draft10, Both, Some(Version::Draft10)),
        (Both, Rfc10069, Some(Version::Rfc10069)),
        (Both, Both, Some(Version::Rfc10069)),
        (Rfc10069, Draft10, None),
        (Draft10, Rfc10069, None),
    ];
    for (client, server, expected) in all {
        let builder = Pair::builder()
            .link(link(20, 10))
            .client_config(with_versions(client))
            .server_config(with_versions(server));
        let mut pair = connected(builder);
        for side in SIDES {
            let version = pair.connection(side).unwrap().multipath_version();
            assert_eq!(version, expected, "{client:?}, {server:?}");
        }
        let second = attach(&mut pair, 200, link(20, 10));
        match expected {
            Some(_) => drop(opened(&mut pair, second)),
            None => assert_eq!(open(&mut pair, second), Err(OpenPathError::NotNegotiated)),
        }
        assert!(pair.transfer(500_000, Direction::ToServer).verified);
    }
}

#[test]
fn two_paths_carry_data_in_both_directions() {
    for cipher in [Cipher::Null, Cipher::Tls] {
        for direction in BOTH {
            let builder = Pair::builder().link(link(20, 10)).both_configs(draft);
            let mut pair = connected(builder.cipher(cipher));
            let second = attach(&mut pair, 200, link(20, 10));
            assert_eq!(opened(&mut pair, second), SECOND);
            assert!(pair.transfer(5_000_000, direction).verified);
            for id in [PathId::ZERO, SECOND] {
                let sent = stats_of(&pair, direction.sender(), id).sent_bytes.get();
                assert!(sent > 1_500_000, "{id}: {sent}");
            }
        }
    }
}

/// The example of section 6.3: 50 ms one way on one path, 300 ms on the other.
#[test]
fn each_path_carries_its_own_acknowledgements() {
    let min_rtt = |versions, id| {
        let config = with_versions(versions);
        let mut pair = connected(Pair::builder().link(link(20, 50)).both_configs(
            move |transport: &mut TransportConfig| {
                config(transport);
                let scheduler = Arc::new(RoundRobinConfig::default());
                transport.policies = Arc::new(Policies::default().with_scheduler(scheduler));
            },
        ));
        let second = attach(&mut pair, 200, link(20, 300));
        opened(&mut pair, second);
        assert!(pair.transfer(3_000_000, Direction::ToServer).verified);
        stats_of(&pair, Side::Client, id).min_rtt
    };
    let range = |from, to| Duration::from_millis(from)..Duration::from_millis(to);
    let one_for_all = min_rtt(MultipathVersions::Rfc10069, SECOND);
    assert!(range(345, 500).contains(&one_for_all), "{one_for_all:?}");
    let own = min_rtt(MultipathVersions::Draft10, SECOND);
    assert!(range(595, 800).contains(&own), "{own:?}");
    let first = min_rtt(MultipathVersions::Draft10, PathId::ZERO);
    assert!(range(99, 300).contains(&first), "{first:?}");
}

#[test]
fn paths_are_abandoned_without_codes_of_the_rfc_and_identifiers_go_on() {
    for abandoning in SIDES {
        let mut pair = with_draft(link(20, 10));
        let second = attach(&mut pair, 200, link(20, 10));
        // More identifiers than the first limit allows: MAX_PATH_ID frames raise it.
        for round in 1..=6 {
            let id = opened(&mut pair, second);
            assert_eq!(id, PathId::new(round));
            let transfer = pair.start_transfer(1_000_000, Direction::ToClient);
            pair.advance(millis(100));
            let now = pair.now();
            let connection = pair.connection(abandoning).unwrap();
            connection.abandon_path(now, id).unwrap();
            assert!(pair.finish_transfers());
            assert!(pair.transfer_report(transfer).verified);
            let code = |by_peer| {
                move |event: &Event| match *event {
                    Event::PathAbandoned {
                        path,
                        error,
                        by_peer: is_peers,
                    } if path == id && by_peer == is_peers => {
                        let expected = if by_peer {
                            ErrorCode::NO_ERROR
                        } else {
                            ErrorCode::APPLICATION_ABANDON_PATH
                        };
                        assert_eq!(error, expected);
                        true
                    }
                    _ => false,
                }
            };
            assert!(has_event(&pair, abandoning, code(false)));
            assert!(has_event(&pair, !abandoning, code(true)));
            pair.advance(secs(2));
        }
    }
}

#[test]
fn the_first_path_can_be_abandoned() {
    let mut pair = with_draft(link(20, 10));
    let second = attach(&mut pair, 200, link(20, 10));
    opened(&mut pair, second);
    let transfer = pair.start_transfer(3_000_000, Direction::ToClient);
    pair.advance(millis(200));
    let now = pair.now();
    pair.client().abandon_path(now, PathId::ZERO).unwrap();
    assert!(pair.finish_transfers());
    assert!(pair.transfer_report(transfer).verified);
    let open: Vec<_> = pair.client().open_paths().collect();
    assert_eq!(open, [SECOND]);
}

#[test]
fn a_status_is_announced() {
    let mut pair = with_draft(link(20, 10));
    let second = attach(&mut pair, 200, link(20, 10));
    opened(&mut pair, second);
    for status in [PathStatus::Backup, PathStatus::Available] {
        let preference = PathPreference {
            status,
            ..PathPreference::default()
        };
        assert!(pair.client().set_path_preference(SECOND, preference));
        pair.advance(millis(200));
        let is_announced = |event: &Event| matches!(event, Event::PathStatusChanged { path: SECOND, status: now } if *now == status);
        assert!(has_event(&pair, Side::Server, is_announced), "{status:?}");
    }
}

#[test]
fn no_frame_reports_that_there_is_no_path_to_open() {
    // Both ends accept four paths, and the RFC's PATHS_BLOCKED would end the connection.
    let mut pair = with_draft(link(20, 10));
    let second = attach(&mut pair, 200, link(20, 10));
    for _ in 0..3 {
        opened(&mut pair, second);
    }
    assert_eq!(open(&mut pair, second), Err(OpenPathError::Limit));
    pair.advance(secs(1));
    assert!(pair.transfer(500_000, Direction::ToServer).verified);
    for side in SIDES {
        assert_eq!(support::reason(&pair, side), None);
    }
}

#[test]
fn a_rebinding_a_key_update_and_new_connection_ids_on_the_second_path() {
    let mut pair = with_draft(link(20, 10));
    let second = attach(&mut pair, 200, link(20, 10));
    opened(&mut pair, second);
    let transfer = pair.start_transfer(8_000_000, Direction::ToClient);
    pair.advance(millis(200));
    let moved: SocketAddr = ([192, 0, 2, 240], 1_234).into();
    let network = pair.network();
    drop(network.rebind(second.interface, moved, OldAddress::Lost));
    pair.advance(millis(300));
    pair.client().update_keys();
    pair.client().rotate_connection_ids();
    assert!(pair.finish_transfers());
    assert!(pair.transfer_report(transfer).verified);
    let remote = pair.server().address_of(SECOND).unwrap().remote;
    assert_eq!(remote, moved);
}

#[test]
fn data_leave_on_the_other_path_when_one_is_cut() {
    for victim in [PathId::ZERO, SECOND] {
        let mut pair = with_draft(link(20, 10));
        let second = attach(&mut pair, 200, link(20, 10));
        opened(&mut pair, second);
        let transfer = pair.start_transfer(8_000_000, Direction::ToClient);
        pair.advance(millis(500));
        let links = match victim {
            SECOND => [second.uplink, second.downlink],
            _ => BOTH.map(|direction| pair.link(direction)),
        };
        for link in links {
            pair.network().tap(link, |_| Verdict::Drop);
        }
        assert!(pair.finish_transfers());
        assert!(pair.transfer_report(transfer).verified);
        pair.advance(secs(15));
        let failed =
            |event: &Event| matches!(event, Event::PathAbandoned { path, .. } if *path == victim);
        assert!(SIDES.into_iter().any(|side| has_event(&pair, side, failed)));
    }
}
