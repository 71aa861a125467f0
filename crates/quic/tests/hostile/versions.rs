//! Version negotiation against peers and attackers with false versions (RFC 9368, section 4; RFC
//! 9369, section 4.1).

use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::wire::{
    ErrorCode, Frame, PartialHeader, TransportParameters, VERSION_1, VERSION_2, Writer, frame,
    write_version_negotiation,
};
use swiftwater_quic::{ConnectionError, Event};
use swiftwater_units::Side;

use crate::attack::{Attack, LoneClient, Setup, client_victim, server_victim};
use crate::coding::encode;
use crate::peer::RawPeer;
use crate::persona::Persona;

const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// The transport parameter `version_information`.
const VERSION_INFORMATION: u64 = 0x11;

/// A value of it: the chosen version, then those available.
fn information(versions: &[u32]) -> Vec<u8> {
    versions.iter().flat_map(|v| v.to_be_bytes()).collect()
}

/// A peer of `version` that declares `told` as its versions.
fn persona(version: u32, told: Option<&[u32]>) -> Persona {
    let value = told.map(information);
    let persona = Persona {
        version,
        ..Persona::default()
    };
    persona.edit(VERSION_INFORMATION, value.as_deref())
}

/// A handshake with this peer, as far as it goes.
fn shake(side: Side, persona: Persona, versions: &[u32], real_tls: bool) -> Attack {
    let setup = Setup {
        persona,
        versions: versions.to_vec(),
        real_tls,
        ..Setup::default()
    };
    let mut attack = match side {
        Side::Server => server_victim(setup),
        Side::Client => client_victim(setup).meet_server(),
    };
    attack.converse();
    attack
}

#[track_caller]
fn assert_connected(attack: &mut Attack, version: u32) {
    assert!(
        attack.victim.events.contains(&Event::Connected),
        "{:?}",
        attack.victim.events
    );
    assert_eq!(attack.victim.connection().stats().version, version);
}

#[test]
fn version_information_that_cannot_be_read_is_refused() {
    for side in SIDES {
        for value in [
            &[][..],
            &[0, 0, 1],
            &[0, 0, 0, 1, 0],
            &information(&[0]),
            &information(&[0, 1]),
            &information(&[1, 1, 0]),
        ] {
            let persona = Persona::default().edit(VERSION_INFORMATION, Some(value));
            let mut attack = shake(side, persona, &[VERSION_1, VERSION_2], false);
            attack.assert_closed_with(ErrorCode::TRANSPORT_PARAMETER_ERROR);
        }
    }
    // A client must offer what it chose; a server needn't.
    let hides_its_choice = persona(VERSION_1, Some(&[VERSION_1, VERSION_2]));
    let mut attack = shake(Side::Server, hides_its_choice, &[VERSION_1], false);
    attack.assert_closed_with(ErrorCode::TRANSPORT_PARAMETER_ERROR);
    for told in [&[VERSION_1][..], &[VERSION_1, 0x1a2a_3a4a, VERSION_2]] {
        let persona = persona(VERSION_1, Some(told));
        let mut attack = shake(Side::Client, persona, &[VERSION_1, VERSION_2], false);
        assert_connected(&mut attack, VERSION_1);
    }
}

#[test]
fn a_client_that_declares_another_version_than_it_uses_is_refused() {
    for version in [VERSION_1, VERSION_2] {
        let other = if version == VERSION_1 {
            VERSION_2
        } else {
            VERSION_1
        };
        let lies = persona(version, Some(&[other, version, other]));
        let mut attack = shake(Side::Server, lies, &[VERSION_1, VERSION_2], false);
        assert!(!attack.victim.events.contains(&Event::Connected));
        attack.assert_closed_with(ErrorCode::VERSION_NEGOTIATION_ERROR);
    }
}

#[test]
fn a_client_without_version_information_keeps_its_version() {
    for real_tls in [false, true] {
        for version in [VERSION_1, VERSION_2] {
            for ours in [[VERSION_1, VERSION_2], [VERSION_2, VERSION_1]] {
                let silent = persona(version, None);
                let mut attack = shake(Side::Server, silent, &ours, real_tls);
                assert_connected(&mut attack, version);
            }
        }
    }
}

#[test]
fn a_server_chooses_among_what_the_client_offers_by_its_own_order() {
    for (told, ours, expected) in [
        (
            &[VERSION_1, VERSION_1][..],
            [VERSION_2, VERSION_1],
            VERSION_1,
        ),
        (
            &[VERSION_1, VERSION_1, VERSION_2],
            [VERSION_1, VERSION_2],
            VERSION_1,
        ),
        // Unknown and reserved ones are skipped.
        (
            &[VERSION_1, 0x1a2a_3a4a, 7, VERSION_1],
            [VERSION_2, VERSION_1],
            VERSION_1,
        ),
    ] {
        let client = persona(VERSION_1, Some(told));
        let mut attack = shake(Side::Server, client, &ours, false);
        assert_connected(&mut attack, expected);
    }
    // A client that offers version 2 gets it, whatever its own order.
    for told in [
        [VERSION_1, VERSION_1, VERSION_2],
        [VERSION_1, VERSION_2, VERSION_1],
    ] {
        let client = persona(VERSION_1, Some(&told));
        let attack = shake(Side::Server, client, &[VERSION_2, VERSION_1], false);
        let hello = attack.peer.packets.iter().find(|packet| {
            let crypto = |frame: &Frame<'_>| matches!(frame, Frame::Crypto(_));
            packet.frames().any(|(_, frame)| crypto(&frame))
        });
        assert_eq!(hello.unwrap().version, VERSION_2);
    }
}

#[test]
fn a_client_accepts_a_version_only_if_the_handshake_confirms_it() {
    let ours = [VERSION_1, VERSION_2];
    for (speaks, told, good) in [
        (VERSION_1, None, true),
        (
            VERSION_2,
            Some(&[VERSION_2, VERSION_1, VERSION_2][..]),
            true,
        ),
        (VERSION_2, Some(&[VERSION_2]), true),
        // It says nothing of the change, or something else.
        (VERSION_2, None, false),
        (VERSION_2, Some(&[VERSION_1, VERSION_1, VERSION_2]), false),
        (VERSION_1, Some(&[VERSION_2, VERSION_1, VERSION_2]), false),
        (VERSION_1, Some(&[0x1a2a_3a4a, VERSION_1]), false),
    ] {
        // The null session can't change with the raw server; the version is in its keys, not its bytes.
        let mut attack = shake(Side::Client, persona(speaks, told), &ours, false);
        if good {
            assert_connected(&mut attack, speaks);
        } else {
            assert!(
                !attack.victim.events.contains(&Event::Connected),
                "{told:?}"
            );
            attack.assert_closed_with(ErrorCode::VERSION_NEGOTIATION_ERROR);
        }
    }
}

#[test]
fn a_client_follows_a_server_with_tls_too() {
    for (first, second) in [(VERSION_1, VERSION_2), (VERSION_2, VERSION_1)] {
        let server = persona(second, Some(&[second, first]));
        let setup = Setup {
            persona: server,
            versions: vec![first, second],
            real_tls: true,
            ..Setup::default()
        };
        let mut attack = client_victim(setup).meet_server();
        attack.establish();
        assert_connected(&mut attack, second);
        attack.assert_open();
        // Key updates follow the labels of the new version.
        attack.victim.connection().update_keys();
        attack.assert_open();
        attack.peer.update_keys();
        attack.assert_open();
        let updates = attack.victim.connection().stats().key_updates;
        assert!(updates >= 1, "{updates}");
    }
}

#[test]
fn a_client_follows_no_version_that_it_did_not_offer() {
    let server = persona(VERSION_2, Some(&[VERSION_2, VERSION_1]));
    let mut attack = shake(Side::Client, server, &[VERSION_1], false);
    assert!(
        attack.victim.events.is_empty(),
        "{:?}",
        attack.victim.events
    );
    let stats = attack.victim.connection().stats();
    assert_eq!(stats.version, VERSION_1);
    assert!(stats.packets_dropped.get() > 0);
}

#[test]
fn packets_that_only_look_like_another_version_change_nothing() {
    let mut lone = client_victim(Setup::default());
    let header = PartialHeader::parse(&lone.first, 0).unwrap();
    let mut forged = vec![0xd0];
    forged.extend(VERSION_2.to_be_bytes());
    forged.push(header.src_cid.len() as u8);
    forged.extend_from_slice(header.src_cid.as_bytes());
    forged.extend([1, 9, 0, 0x44, 0x00]);
    forged.resize(1200, 0x77);
    assert!(lone.receive(&forged).is_empty());
    let mut attack = lone.meet_server();
    attack.establish();
    assert_connected(&mut attack, VERSION_1);
}

#[test]
fn once_handshake_bytes_came_the_version_stays() {
    let mut attack = client_victim(Setup::default()).meet_server();
    // The server's first flight, and then Initial and Handshake packets of version 2.
    attack.converse();
    assert_connected(&mut attack, VERSION_1);
    let dropped = attack.victim.connection().stats().packets_dropped;
    attack.peer.version = VERSION_2;
    for level in [EncryptionLevel::Initial, EncryptionLevel::Handshake] {
        let payload = encode(&[Frame::Ping]);
        let datagram = match level {
            EncryptionLevel::Initial => attack.peer.seal_initial(&payload, 1200),
            level => attack.peer.seal(&crate::peer::Packet::new(level, &payload)),
        };
        attack.deliver(&datagram);
    }
    let now = attack.victim.connection().stats().packets_dropped;
    assert_eq!(now.get() - dropped.get(), 2);
    attack.peer.version = VERSION_1;
    assert_connected(&mut attack, VERSION_1);
}

/// A Version Negotiation packet that answers `first`.
fn negotiation(first: &[u8], versions: &[u32]) -> Vec<u8> {
    let header = PartialHeader::parse(first, 0).unwrap();
    let (dst, src) = (header.src_cid, header.dst_cid);
    let mut out = vec![0; 7 + dst.len() + src.len() + 4 * versions.len()];
    let mut w = Writer::new(&mut out);
    write_version_negotiation(&mut w, 0x15, dst.as_bytes(), src.as_bytes(), versions);
    out
}

/// A client that received, truly or not, that its server supports version 2 only; it has begun again.
fn restarted(persona: Persona, ours: &[u32]) -> (LoneClient, Vec<u8>) {
    let mut lone = client_victim(Setup {
        persona,
        versions: ours.to_vec(),
        ..Setup::default()
    });
    let first = lone.first.clone();
    let mut second = lone.receive(&negotiation(&first, &[0x1a2a_3a4a, VERSION_2]));
    assert_eq!(second.len(), 1);
    (lone, second.remove(0))
}

#[test]
fn a_client_begins_again_in_another_version() {
    let server = persona(VERSION_2, Some(&[VERSION_2, VERSION_2]));
    let (mut lone, second) = restarted(server, &[VERSION_1, VERSION_2]);
    let [old, new] = [&lone.first, &second].map(|packet| PartialHeader::parse(packet, 0).unwrap());
    assert_eq!(new.version, VERSION_2);
    assert!(second.len() >= 1200);
    // To the server it is a new connection.
    assert_ne!(new.dst_cid, old.dst_cid);

    // What comes for the first attempt, and another Version Negotiation, is ignored.
    let first = lone.first.clone();
    for late in [
        negotiation(&first, &[VERSION_2]),
        negotiation(&second, &[VERSION_1]),
        negotiation(&second, &[0x1a2a_3a4a]),
        RawPeer::retry(&*lone.crypto.primitives(), &first, new.src_cid, b"token"),
    ] {
        assert!(lone.receive(&late).is_empty());
    }
    let mut attack = lone.meet(&second, false);
    let told = attack.peer.victims_parameters();
    assert_eq!(told.version_information.unwrap().chosen, VERSION_2);
    attack.establish();
    assert_connected(&mut attack, VERSION_2);
    attack.assert_open();
}

#[test]
fn a_retry_after_version_negotiation_is_followed() {
    let server = persona(VERSION_2, Some(&[VERSION_2, VERSION_2]));
    let (mut lone, second) = restarted(server, &[VERSION_1, VERSION_2]);
    let primitives = lone.crypto.primitives();
    let src = crate::coding::cid(b"retrycid");
    let third = lone.receive(&RawPeer::retry(&*primitives, &second, src, b"token"));
    let header = PartialHeader::parse(&third[0], 0).unwrap();
    assert_eq!((header.version, header.dst_cid), (VERSION_2, src));
    lone.first = second;
    let mut attack = lone.meet(&third[0], true);
    attack.establish();
    assert_connected(&mut attack, VERSION_2);
}

#[test]
fn version_negotiation_that_hid_the_better_version_is_found_out() {
    for told in [
        // The server supports version 1 as well, which the client would have taken.
        Some(&[VERSION_2, VERSION_2, VERSION_1][..]),
        Some(&[VERSION_2, VERSION_1]),
        // Nothing can be compared.
        Some(&[VERSION_2]),
        None,
    ] {
        let server = persona(VERSION_2, told);
        let (lone, second) = restarted(server, &[VERSION_1, VERSION_2]);
        let mut attack = lone.meet(&second, false);
        attack.converse();
        assert!(
            !attack.victim.events.contains(&Event::Connected),
            "{told:?}"
        );
        attack.assert_closed_with(ErrorCode::VERSION_NEGOTIATION_ERROR);
    }
}

/// RFC 9368, section 8: servers of version 1 only need not support version_information.
#[test]
fn a_client_falls_back_to_a_server_of_version_1_only() {
    let mut lone = client_victim(Setup {
        persona: persona(VERSION_1, None),
        versions: vec![VERSION_2, VERSION_1],
        ..Setup::default()
    });
    let first = lone.first.clone();
    let second = lone.receive(&negotiation(&first, &[VERSION_1])).remove(0);
    let mut attack = lone.meet(&second, false);
    attack.establish();
    assert_connected(&mut attack, VERSION_1);
}

#[test]
fn version_negotiation_with_reserved_versions_alone_ends_the_attempt() {
    let mut lone = client_victim(Setup::default());
    let first = lone.first.clone();
    assert!(
        lone.receive(&negotiation(&first, &[0x1a2a_3a4a]))
            .is_empty()
    );
    assert_eq!(lone.victim.reasons(), [&ConnectionError::VersionMismatch]);
}

#[test]
fn what_clients_offer_is_compatible_and_holds_a_reserved_version() {
    for (grease, count) in [(true, 3), (false, 2)] {
        let lone = client_victim(Setup {
            grease,
            ..Setup::default()
        });
        let attack = lone.meet_server();
        let told: TransportParameters = attack.peer.victims_parameters();
        let information = told.version_information.unwrap();
        assert_eq!(information.chosen, VERSION_1);
        assert_eq!(information.available().len(), count);
        assert!(information.available().ends_with(&[VERSION_1, VERSION_2]));
        assert_eq!(told.grease_quic_bit, grease);
    }
}

#[test]
fn a_first_message_in_pieces_is_read_before_the_version_is_chosen() {
    let client = persona(VERSION_1, Some(&[VERSION_1, VERSION_1, VERSION_2]));
    let mut attack = server_victim(Setup {
        persona: client,
        versions: vec![VERSION_2, VERSION_1],
        ..Setup::default()
    });
    let hello = attack.peer.take_crypto(EncryptionLevel::Initial);
    let (head, tail) = hello.split_at(hello.len() / 2);
    for (offset, data) in [(0, head), (head.len() as u64, tail)] {
        assert!(attack.peer.packets.iter().all(|p| p.version == VERSION_1));
        let payload = encode(&[Frame::Crypto(frame::Crypto { offset, data })]);
        let datagram = attack.peer.seal_initial(&payload, 1200);
        attack.deliver(&datagram);
    }
    let last = attack.peer.packets.last().unwrap();
    assert_eq!(last.version, VERSION_2);
    assert_eq!(attack.victim.connection().stats().version, VERSION_2);
}
