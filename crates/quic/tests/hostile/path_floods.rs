//! Peers that open paths again and again, challenge on all of them, or go on about paths that are over: what
//! that costs the victim, in memory and in datagrams (draft-ietf-quic-multipath-21, sections 3, 5 and 7).

use std::sync::{Arc, Mutex};
use std::time::Duration;

use swiftwater_quic::observe::{Observation, Observer, ObserverFactory, PathStage};
use swiftwater_quic::wire::frame::types;
use swiftwater_quic::wire::{ErrorCode, Frame, MultipathVersion, TransportParameters};
use swiftwater_quic::{MultipathConfig, TransportConfig};
use swiftwater_units::{Instant, PathId, Side};

use crate::attack::{Attack, Setup, home, on_server};
use crate::coding::{encode, varints};
use crate::persona::Persona;

/// The largest identifier at first: four paths.
const LAST: u32 = 3;
/// What a path that is open may hold, bytes.
const MAX_PER_PATH: i64 = 40_000;
/// What all that is over may leave behind, bytes: statistics of 16 paths, and buffers that have grown.
const MAX_LEFT: i64 = 40_000;

/// The paths that an observer was shown as opened.
#[derive(Clone, Debug, Default)]
struct OpenedPaths(Arc<Mutex<Vec<PathId>>>);

impl ObserverFactory for OpenedPaths {
    fn observer(&self, _: Side) -> Option<Box<dyn Observer>> {
        Some(Box::new(self.clone()))
    }
}

impl Observer for OpenedPaths {
    fn observe(&mut self, _: Instant, observation: &Observation<'_>) {
        if let Observation::PathProgress {
            path,
            stage: PathStage::Opened,
            ..
        } = observation
        {
            self.0.lock().unwrap().push(*path);
        }
    }
}

/// A server that accepts four paths, and a client that does as well.
fn on_multipath_server() -> Attack {
    on_observed_server(OpenedPaths::default())
}

/// The same, whose opened paths are noted.
fn on_observed_server(opened: OpenedPaths) -> Attack {
    let persona = Persona::default();
    on_server(Setup {
        transport: TransportConfig {
            multipath: Some(MultipathConfig::default()),
            observer: Some(Arc::new(opened)),
            ..TransportConfig::default()
        },
        persona: Persona {
            parameters: TransportParameters {
                initial_max_path_id: Some(LAST),
                ..persona.parameters
            },
            ..persona
        },
        ..Setup::default()
    })
}

fn paths() -> impl Iterator<Item = PathId> {
    (1..=LAST).map(PathId::new)
}

/// The peer issues its connection ID of a path, and opens it with a challenge.
fn open(attack: &mut Attack, path: PathId) {
    let issued = (attack.peer).issue_path_cid(MultipathVersion::Rfc10069, path);
    attack.send(&issued);
    let challenge = encode(&[Frame::PathChallenge { data: [7; 8] }]);
    on_path(attack, path, &challenge);
}

/// The peer sends a packet on a path, padded to a full datagram.
fn on_path(attack: &mut Attack, path: PathId, payload: &[u8]) {
    let mut payload = payload.to_vec();
    payload.resize(1_150, 0);
    let datagram = attack.peer.seal_on_path(path, &payload).unwrap();
    attack.deliver(&datagram);
}

/// The peer acknowledges what came on its paths, and answers challenges there.
fn answer(attack: &mut Attack) {
    for path in paths() {
        let of_path = |packet: &&crate::peer::Opened| packet.path == path;
        let packets: Vec<_> = attack.peer.packets.iter().filter(of_path).collect();
        // One by one: the victim skips numbers.
        let newest = packets.iter().rev().take(50);
        let acks: Vec<u8> = newest
            .flat_map(|it| varints(&[types::PATH_ACK, path.get().into(), it.number, 0, 0, 0]))
            .collect();
        let challenges = packets
            .iter()
            .flat_map(|it| it.frames())
            .filter_map(|(_, frame)| match frame {
                Frame::PathChallenge { data } => Some(data),
                _ => None,
            });
        let challenge = challenges.last();
        if !acks.is_empty() {
            attack.send(&acks);
        }
        if let Some(data) = challenge {
            on_path(attack, path, &encode(&[Frame::PathResponse { data }]));
        }
    }
}

/// The peer abandons a path, and accepts another one in its place.
fn abandon(attack: &mut Attack, path: PathId) {
    let abandonment = Frame::PathAbandon {
        path,
        error: ErrorCode::NO_ERROR,
        reason: &[],
    };
    let max = PathId::new(path.get() + LAST);
    attack.send_frames(&[abandonment, Frame::MaxPathId { max }]);
}

fn responses(attack: &Attack) -> usize {
    attack
        .peer
        .count(|frame| matches!(frame, Frame::PathResponse { .. }))
}

#[test]
fn no_more_paths_are_open_than_were_permitted_and_each_takes_little() {
    let mut attack = on_multipath_server();
    let before = attack.victim.meter.held();
    for path in paths() {
        open(&mut attack, path);
        answer(&mut attack);
    }
    assert_eq!(attack.victim.connection().open_paths().count(), 4);
    let grown = attack.victim.meter.held() - before;
    assert!(grown <= MAX_PER_PATH * 3, "{grown} bytes for three paths");
    // There is no connection ID of a fifth.
    assert_eq!(attack.peer.victims_cid_of(PathId::new(LAST + 1)), None);
    attack.assert_open();
}

#[test]
fn a_flood_of_paths_leaves_nothing_behind() {
    let mut attack = on_multipath_server();
    let mut least = None;
    for round in 1..=200 {
        let path = PathId::new(round);
        let permitted = attack.peer.victims_cid_of(path).is_some();
        assert!(permitted, "path {path} may not be opened");
        open(&mut attack, path);
        assert!(attack.victim.connection().open_paths().count() <= 4);
        abandon(&mut attack, path);
        // Until the victim has forgotten it and offers another one; both are many probe timeouts.
        attack.pass(Duration::from_secs(4));
        if round == 20 {
            least = Some(attack.victim.meter.held());
        }
    }
    attack.assert_open();
    assert_eq!(attack.victim.connection().open_paths().count(), 1);
    let grown = attack.victim.meter.held() - least.unwrap();
    assert!(
        grown <= MAX_LEFT,
        "{grown} bytes for 180 paths that are over"
    );
}

#[test]
fn paths_cannot_be_opened_faster_than_they_are_forgotten() {
    let mut attack = on_multipath_server();
    let before = attack.victim.meter.held();
    // At once: identifiers are offered only when others are forgotten.
    for path in paths() {
        open(&mut attack, path);
        abandon(&mut attack, path);
    }
    assert_eq!(attack.peer.victims_cid_of(PathId::new(LAST + 1)), None);
    let grown = attack.victim.meter.held() - before;
    assert!(grown <= MAX_PER_PATH * 3, "{grown} bytes");
    attack.pass(Duration::from_secs(10));
    assert!(attack.peer.victims_cid_of(PathId::new(LAST + 1)).is_some());
    attack.assert_open();
}

/// All paths together, not each, have ten in a round trip.
#[test]
fn challenges_on_all_paths_draw_few_datagrams() {
    let mut attack = on_multipath_server();
    for path in paths() {
        open(&mut attack, path);
        answer(&mut attack);
    }
    attack.pass(Duration::from_secs(5));
    let (answered, sent) = (responses(&attack), attack.sent.len());
    for n in 0..2_000_u32 {
        let data = u64::to_be_bytes(n.into());
        let path = PathId::new(n % (LAST + 1));
        on_path(&mut attack, path, &encode(&[Frame::PathChallenge { data }]));
    }
    assert_eq!(responses(&attack) - answered, 10);
    let sent = attack.sent.len() - sent;
    assert!(sent <= 2_000 + 10, "{sent} datagrams");
    attack.assert_open();
}

/// A datagram that is not authentic opens nothing, and observers are shown nothing of it.
#[test]
fn a_forged_packet_on_a_path_that_is_not_open_is_not_observed() {
    let opened = OpenedPaths::default();
    let mut attack = on_observed_server(opened.clone());
    let path = PathId::new(1);
    let issued = (attack.peer).issue_path_cid(MultipathVersion::Rfc10069, path);
    attack.send(&issued);
    let genuine = encode(&[Frame::PathChallenge { data: [7; 8] }]);
    let genuine = attack.peer.seal_on_path(path, &genuine).unwrap();
    let mut forged = genuine.clone();
    *forged.last_mut().unwrap() ^= 1;
    for _ in 0..100 {
        attack.deliver(&forged);
    }
    assert_eq!(attack.victim.connection().open_paths().count(), 1);
    assert_eq!(*opened.0.lock().unwrap(), []);
    attack.deliver(&genuine);
    assert_eq!(attack.victim.connection().open_paths().count(), 2);
    assert_eq!(*opened.0.lock().unwrap(), [path]);
    attack.assert_open();
}

#[test]
fn a_path_from_a_spoofed_address_is_not_amplified() {
    let mut attack = on_multipath_server();
    let path = PathId::new(1);
    let issued = (attack.peer).issue_path_cid(MultipathVersion::Rfc10069, path);
    attack.send(&issued);
    let victims = "198.51.100.1:7000".parse().unwrap();
    let ping = encode(&[Frame::Ping]);
    let datagram = attack.peer.seal_on_path(path, &ping).unwrap();
    attack.from = victims;
    attack.deliver(&datagram);
    attack.from = home();
    attack.pass(Duration::from_secs(30));
    let there: usize = (attack.sent.iter())
        .filter(|(to, _)| *to == victims)
        .map(|(_, size)| size)
        .sum();
    let received = datagram.len();
    assert!(there <= 3 * received, "{there} bytes for {received}");
    assert!(there > 0, "the path was not tried");
}

#[test]
fn frames_about_paths_that_are_over_are_ignored_and_cost_nothing() {
    let mut attack = on_multipath_server();
    let path = PathId::new(1);
    open(&mut attack, path);
    answer(&mut attack);
    abandon(&mut attack, path);
    attack.pass(Duration::from_secs(10));
    let held = attack.victim.meter.held();
    for n in 0..2_000 {
        // Also of packets that were never sent: there is no state left to tell.
        let ack = varints(&[types::PATH_ACK, 1, n, 0, 0, n]);
        attack.send(&ack);
        attack.send_frames(&[Frame::PathStatus {
            path,
            sequence: n,
            backup: n % 2 == 0,
        }]);
        if n % 50 == 0 {
            attack.pass(Duration::from_millis(50));
        }
    }
    attack.assert_open();
    attack.pass(Duration::from_secs(1));
    let grown = attack.victim.meter.held() - held;
    assert!(grown <= MAX_LEFT, "{grown} bytes");
}

#[test]
fn packets_of_another_path_do_not_open() {
    let mut attack = on_multipath_server();
    for path in paths() {
        open(&mut attack, path);
    }
    let dropped = attack.victim.connection().stats().packets_dropped;
    let ping = encode(&[Frame::Ping]);
    for (path, nonce) in [(1, 2), (2, 1), (1, 0), (0, 1)] {
        let (path, nonce) = (PathId::new(path), PathId::new(nonce));
        let datagram = attack.peer.seal_with_nonce(path, nonce, &ping).unwrap();
        attack.deliver(&datagram);
    }
    let now = attack.victim.connection().stats().packets_dropped;
    assert_eq!(now.get() - dropped.get(), 4);
    attack.assert_open();
}
