//! Transport parameters that are wrong, missing, or say the wrong connection IDs (RFC 9000,
//! sections 7.3, 7.4 and 18).

use swiftwater_quic::wire::ErrorCode;
use swiftwater_quic::{Event, TransportConfig};
use swiftwater_units::Side;

use crate::attack::{Attack, Setup, client_victim, server_victim};
use crate::coding::{cid, varint};
use crate::persona::Persona;

const SIDES: [Side; 2] = [Side::Client, Side::Server];

/// A handshake of a victim on `side` with this peer, as far as it goes.
fn shake(side: Side, persona: Persona) -> Attack {
    let setup = Setup {
        persona,
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
fn refused(side: Side, persona: Persona) {
    let mut attack = shake(side, persona);
    assert!(!attack.victim.events.contains(&Event::Connected));
    attack.assert_closed_with(ErrorCode::TRANSPORT_PARAMETER_ERROR);
}

#[track_caller]
fn accepted(side: Side, persona: Persona) {
    let attack = shake(side, persona);
    assert!(
        attack.victim.events.contains(&Event::Connected),
        "{:?}",
        attack.victim.events
    );
}

fn with(id: u64, value: &[u8]) -> Persona {
    Persona::default().edit(id, Some(value))
}

fn without(id: u64) -> Persona {
    Persona::default().edit(id, None)
}

#[test]
fn integers_out_of_range_are_refused() {
    for side in SIDES {
        for (id, value) in [
            (0x03, 1199),          // max_udp_payload_size
            (0x08, (1 << 60) + 1), // initial_max_streams_bidi
            (0x09, (1 << 60) + 1), // initial_max_streams_uni
            (0x0a, 21),            // ack_delay_exponent
            (0x0b, 1 << 14),       // max_ack_delay
            (0x0e, 1),             // active_connection_id_limit
            (0x0e, 0),
        ] {
            refused(side, with(id, &varint(value)));
        }
    }
}

#[test]
fn integers_at_the_ends_of_their_ranges_are_accepted() {
    let last = (1 << 62) - 1;
    for side in SIDES {
        for (id, value) in [
            (0x01, 0),
            (0x01, last),
            (0x03, 1200),
            (0x03, last),
            (0x04, last),
            (0x05, last),
            (0x08, 1 << 60),
            (0x09, 1 << 60),
            (0x0a, 20),
            (0x0b, (1 << 14) - 1),
            (0x0e, 2),
            (0x0e, last),
            (0x20, last),
        ] {
            accepted(side, with(id, &varint(value)));
        }
    }
}

#[test]
fn values_of_the_wrong_length_are_refused() {
    for side in SIDES {
        for (id, value) in [
            // An integer with a byte too many, cut short, and empty.
            (0x01, &[0x00, 0x00][..]),
            (0x04, &[0x80, 0x01]),
            (0x05, &[]),
            // disable_active_migration with a value.
            (0x0c, &[1]),
            // A connection ID of 21 bytes.
            (0x0f, &[9; 21]),
        ] {
            refused(side, with(id, value));
        }
    }
    for value in [&[7; 15][..], &[7; 17], &[]] {
        refused(Side::Client, with(0x02, value));
    }
}

#[test]
fn parameters_given_twice_are_refused() {
    for side in SIDES {
        let persona = with(0x01, &[1]).edit(0x01, Some(&[1]));
        refused(side, persona);
        // Unknown ones too.
        let persona = with(31 * 7 + 27, b"x").edit(31 * 7 + 27, Some(b"y"));
        refused(side, persona);
    }
}

#[test]
fn unknown_parameters_are_ignored() {
    for side in SIDES {
        accepted(side, with(31 * 99 + 27, b"whatever this is"));
        accepted(side, with((1 << 62) - 5, &[]));
    }
}

#[test]
fn bytes_that_are_no_parameters_are_refused() {
    for side in SIDES {
        for encoded in [&[0x01][..], &[0x01, 0x05, 0x00], &[0xff; 3]] {
            let persona = Persona {
                encoded: Some(encoded.to_vec()),
                ..Persona::default()
            };
            refused(side, persona);
        }
    }
}

#[test]
fn parameters_that_only_servers_may_send_are_refused_from_clients() {
    let preferred = preferred_address(b"12345678");
    for (id, value) in [
        (0x00, &b"firstdst"[..]),
        (0x02, &[7; 16]),
        (0x0d, &preferred),
        (0x10, b"12345678"),
    ] {
        refused(Side::Server, with(id, value));
    }
}

fn preferred_address(cid: &[u8]) -> Vec<u8> {
    let mut value = vec![192, 0, 2, 1, 0x11, 0x51];
    value.extend([0; 18]);
    value.push(cid.len() as u8);
    value.extend_from_slice(cid);
    value.extend([7; 16]);
    value
}

#[test]
fn preferred_addresses_that_are_malformed_are_refused() {
    accepted(Side::Client, with(0x0d, &preferred_address(b"12345678")));
    refused(Side::Client, with(0x0d, &preferred_address(b"")));
    refused(Side::Client, with(0x0d, &preferred_address(&[1; 21])));
    let mut cut = preferred_address(b"12345678");
    cut.pop();
    refused(Side::Client, with(0x0d, &cut));
    let mut long = preferred_address(b"12345678");
    long.push(0);
    refused(Side::Client, with(0x0d, &long));
    // A server without a connection ID has no use for another address (section 18.2).
    let persona = Persona {
        cid: cid(b""),
        ..with(0x0d, &preferred_address(b"12345678"))
    };
    refused(Side::Client, persona);
}

#[test]
fn the_source_connection_id_is_authenticated() {
    for side in SIDES {
        refused(side, without(0x0f));
        refused(side, with(0x0f, b"not mine"));
        refused(side, with(0x0f, b""));
        let persona = Persona {
            cid: cid(b""),
            ..Persona::default()
        };
        accepted(side, persona);
        let persona = Persona {
            cid: cid(&[5; 20]),
            ..Persona::default()
        };
        accepted(side, persona);
    }
}

#[test]
fn the_first_destination_is_authenticated() {
    refused(Side::Client, without(0x00));
    refused(Side::Client, with(0x00, b"somebody"));
    // No Retry happened.
    refused(Side::Client, with(0x10, b"somebody"));
    refused(Side::Client, with(0x10, b""));
}

#[test]
fn the_source_of_a_retry_is_authenticated() {
    for (edits, good) in [
        (vec![], true),
        (vec![(0x10, None)], false),
        (vec![(0x10, Some(b"somebody".to_vec()))], false),
        // The destination after the Retry instead of the first one.
        (vec![(0x00, Some(b"retrycid".to_vec()))], false),
    ] {
        let persona = Persona {
            edits,
            ..Persona::default()
        };
        let mut lone = client_victim(Setup {
            persona,
            ..Setup::default()
        });
        let primitives = lone.crypto.primitives();
        let retry =
            crate::peer::RawPeer::retry(&*primitives, &lone.first, cid(b"retrycid"), b"token");
        let second = lone.receive(&retry);
        assert_eq!(second.len(), 1, "the client follows a Retry");
        let mut attack = lone.meet(&second[0], true);
        attack.converse();
        if good {
            assert!(attack.victim.events.contains(&Event::Connected));
        } else {
            attack.assert_closed_with(ErrorCode::TRANSPORT_PARAMETER_ERROR);
        }
    }
}

#[test]
fn a_limit_of_connection_ids_below_two_is_not_declared() {
    // The local configuration: a peer may rely on what was declared, whatever is configured.
    let transport = TransportConfig {
        active_connection_id_limit: 0,
        ..TransportConfig::default()
    };
    let mut attack = crate::attack::on_server(Setup {
        transport,
        ..Setup::default()
    });
    assert_eq!(
        attack.peer.victims_parameters().active_connection_id_limit,
        2
    );
    attack.send_frames(&[crate::cids::issue(1, 0, b"another1")]);
    attack.assert_open();
}
