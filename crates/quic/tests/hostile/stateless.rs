//! Version Negotiation, Retry, stateless reset: packets without protection (RFC 9000, sections 6,
//! 8.1, 10.3 and 17.2.5).

use std::time::Duration;

use swiftwater_quic::crypto::EncryptionLevel;
use swiftwater_quic::wire::frame;
use swiftwater_quic::wire::{
    ConnectionId, ErrorCode, Frame, PartialHeader, ResetToken, VERSION_1, Writer,
    write_version_negotiation,
};
use swiftwater_quic::{ConnectionError, Event, RetryPolicy};
use swiftwater_units::Side;

use crate::attack::{Attack, LoneClient, Setup, client_victim, home, on, on_client, server_victim};
use crate::coding::{cid, encode};
use crate::peer::{Packet, RawPeer};
use crate::persona::Persona;

/// A Version Negotiation packet that answers `first`.
fn negotiation(first: &[u8], versions: &[u32]) -> Vec<u8> {
    let header = PartialHeader::parse(first, 0).unwrap();
    negotiation_between(header.src_cid, header.dst_cid, versions)
}

fn negotiation_between(dst: ConnectionId, src: ConnectionId, versions: &[u32]) -> Vec<u8> {
    let mut out = vec![0; 7 + dst.len() + src.len() + 4 * versions.len()];
    let mut w = Writer::new(&mut out);
    write_version_negotiation(&mut w, 0x15, dst.as_bytes(), src.as_bytes(), versions);
    out
}

fn retry(lone: &LoneClient, src: &[u8], token: &[u8]) -> Vec<u8> {
    RawPeer::retry(&*lone.crypto.primitives(), &lone.first, cid(src), token)
}

fn token_of(datagram: &[u8]) -> Vec<u8> {
    let header = PartialHeader::parse(datagram, 0).unwrap();
    datagram[header.token].to_vec()
}

#[test]
fn version_negotiation_without_a_common_version_ends_the_attempt() {
    let mut lone = client_victim(Setup::default());
    let said = lone.receive(&negotiation(
        &lone.first.clone(),
        &[0x1a2a_3a4a, 0x0000_0002],
    ));
    assert!(said.is_empty());
    assert_eq!(lone.victim.reasons(), [&ConnectionError::VersionMismatch]);
    assert!(lone.victim.events.contains(&Event::Drained));
}

#[test]
fn version_negotiation_that_lists_the_version_in_use_is_a_forgery() {
    let lone = client_victim(Setup::default());
    assert_ignored(lone, |first| negotiation(first, &[0x1a2a_3a4a, VERSION_1]));
}

#[test]
fn version_negotiation_for_another_connection_is_ignored() {
    assert_ignored(client_victim(Setup::default()), |first| {
        let header = PartialHeader::parse(first, 0).unwrap();
        negotiation_between(header.src_cid, cid(b"somebody"), &[0x6b33_43cf])
    });
    assert_ignored(client_victim(Setup::default()), |first| {
        let header = PartialHeader::parse(first, 0).unwrap();
        negotiation_between(cid(b"somebody"), header.dst_cid, &[0x6b33_43cf])
    });
    // A list that is empty, or cut.
    assert_ignored(client_victim(Setup::default()), |first| {
        negotiation(first, &[])
    });
    assert_ignored(client_victim(Setup::default()), |first| {
        let mut packet = negotiation(first, &[0x6b33_43cf]);
        packet.pop();
        packet
    });
}

/// The client connects as if the packet that `forge` makes of its first one had not arrived.
fn assert_ignored(mut lone: LoneClient, forge: impl Fn(&[u8]) -> Vec<u8>) {
    let said = lone.receive(&forge(&lone.first.clone()));
    assert!(said.is_empty());
    assert!(lone.victim.events.is_empty(), "{:?}", lone.victim.events);
    let mut attack = lone.meet_server();
    attack.establish();
}

#[test]
fn version_negotiation_after_a_packet_of_the_server_is_ignored() {
    let lone = client_victim(Setup::default());
    let forged = negotiation(&lone.first, &[0x6b33_43cf]);
    let mut attack = lone.meet_server();
    let hello = attack.peer.take_crypto(EncryptionLevel::Initial);
    let payload = encode(&[Frame::Crypto(frame::Crypto {
        offset: 0,
        data: &hello,
    })]);
    let datagram = attack.peer.seal_initial(&payload, 1200);
    attack.deliver(&datagram);
    attack.deliver(&forged);
    attack.establish();
    attack.deliver(&forged);
    attack.assert_open();
}

#[test]
fn servers_ignore_version_negotiation_and_retry() {
    let mut attack = on(Side::Server);
    let (dst, src) = (attack.peer.dst, attack.peer.cid);
    attack.deliver(&negotiation_between(dst, src, &[0x6b33_43cf]));
    let mut retry = vec![0xf0, 0, 0, 0, 1, 8];
    retry.extend_from_slice(dst.as_bytes());
    retry.push(8);
    retry.extend([9; 8 + 20 + 16]);
    attack.deliver(&retry);
    attack.assert_open();
    assert!(attack.victim.answers.is_empty());
}

#[test]
fn servers_offer_their_versions_to_clients_of_others() {
    let mut attack = server_victim(Setup::default());
    let mut datagram = attack.peer.answers().pop().unwrap();
    datagram[1..5].copy_from_slice(&0x6b33_43d0_u32.to_be_bytes());
    attack.deliver(&datagram);
    let answer = attack.victim.answers.pop().unwrap();
    let header = PartialHeader::parse(&answer, 0).unwrap();
    assert_eq!(header.version, 0);
    assert_eq!(
        (header.dst_cid, header.src_cid),
        (attack.peer.cid, attack.peer.dst)
    );
    assert!(
        header
            .supported_versions(&answer)
            .any(|version| version == VERSION_1)
    );
    assert!(!attack.victim.has_connection());
}

#[test]
fn a_retry_is_followed_once() {
    let mut lone = client_victim(Setup::default());
    let second = lone.receive(&retry(&lone, b"retrycid", b"token"));
    assert_eq!(second.len(), 1);
    assert_eq!(token_of(&second[0]), b"token");
    let header = PartialHeader::parse(&second[0], 0).unwrap();
    assert_eq!(header.dst_cid, cid(b"retrycid"));
    assert!(
        lone.receive(&retry(&lone, b"retrycid", b"token"))
            .is_empty()
    );
    assert!(
        lone.receive(&retry(&lone, b"retry2nd", b"token"))
            .is_empty()
    );
    let mut attack = lone.meet(&second[0], true);
    attack.establish();
    attack.assert_open();
}

#[test]
fn forged_retries_are_ignored() {
    let lone = || client_victim(Setup::default());
    let original = |first: &[u8]| PartialHeader::parse(first, 0).unwrap().dst_cid;
    let tagged = |first: &[u8], src: &[u8], token: &[u8]| {
        RawPeer::retry(&*lone().crypto.primitives(), first, cid(src), token)
    };
    // A wrong tag, and damage anywhere.
    let len = tagged(&lone().first, b"retrycid", b"token").len();
    for at in [0, 6, 15, len - 18, len - 1] {
        assert_ignored(lone(), |first| {
            let mut packet = tagged(first, b"retrycid", b"token");
            packet[at] ^= if at == 0 { 0x01 } else { 0x10 };
            packet
        });
    }
    // The client's own choice as source (section 17.2.5.1).
    assert_ignored(lone(), |first| {
        tagged(first, original(first).as_bytes(), b"token")
    });
    // An empty token (section 17.2.5.2).
    assert_ignored(lone(), |first| tagged(first, b"retrycid", b""));
}

#[test]
fn a_retry_after_a_packet_of_the_server_is_ignored() {
    let lone = client_victim(Setup::default());
    let late = retry(&lone, b"retrycid", b"token");
    let mut attack = lone.meet_server();
    let hello = attack.peer.take_crypto(EncryptionLevel::Initial);
    let payload = encode(&[Frame::Crypto(frame::Crypto {
        offset: 0,
        data: &hello,
    })]);
    let datagram = attack.peer.seal_initial(&payload, 1200);
    attack.deliver(&datagram);
    attack.deliver(&late);
    attack.establish();
}

#[test]
fn a_retry_with_a_huge_token_does_not_break_the_client() {
    let mut lone = client_victim(Setup::default());
    let said = lone.receive(&retry(&lone, b"retrycid", &[7; 1400]));
    // Whatever it does, its Initial datagrams stay datagrams of a path's size.
    assert!(said.iter().all(|datagram| datagram.len() == 1200));
    let end = lone.now + Duration::from_secs(60);
    while let Some(at) = lone
        .victim
        .connection()
        .poll_timeout()
        .filter(|&at| at <= end)
    {
        lone.now = lone.now.max(at);
        lone.victim.connection().handle_timeout(lone.now);
        for (_, datagram) in lone.victim.transmits(lone.now) {
            assert_eq!(datagram.len(), 1200);
        }
    }
    assert!(lone.victim.connection().is_drained());
}

#[test]
fn servers_refuse_tokens_of_a_retry_that_was_not_theirs() {
    let mut attack = server_victim(Setup {
        retry: RetryPolicy::Always,
        ..Setup::default()
    });
    let first = attack.peer.answers().pop().unwrap();
    attack.deliver(&first);
    let retry = attack.victim.answers.pop().unwrap();
    let token = token_of(&retry);
    assert!(!attack.victim.has_connection());
    // Damaged, the token is no token of a Retry: the client gets another Retry.
    let hello = encode(&[Frame::Crypto(frame::Crypto {
        offset: 0,
        data: &[1; 800],
    })]);
    let mut forged = token.clone();
    *forged.last_mut().unwrap() ^= 1;
    let mut payload = hello.clone();
    payload.resize(1200, 0);
    let datagram = attack.peer.seal(&Packet {
        token: &forged,
        ..Packet::new(EncryptionLevel::Initial, &payload)
    });
    attack.deliver(&datagram);
    assert!(!attack.victim.has_connection());
    assert_eq!(attack.victim.answers.len(), 1);
    // Genuine but from another address: INVALID_TOKEN.
    attack.victim.answers.clear();
    let src = PartialHeader::parse(&retry, 0).unwrap().src_cid;
    attack.from = "192.0.2.99:9999".parse().unwrap();
    let datagram = attack.peer.seal(&Packet {
        token: &token,
        dst: Some(src),
        ..Packet::new(EncryptionLevel::Initial, &payload)
    });
    attack.deliver(&datagram);
    assert!(!attack.victim.has_connection());
}

/// The reset that a server which lost its state would send for the ID that the client uses.
fn reset(token: &ResetToken, len: usize) -> Vec<u8> {
    let mut datagram = vec![0x5a; len];
    datagram[0] = 0x41;
    datagram[len - 16..].copy_from_slice(&token.0);
    datagram
}

const TOKEN: ResetToken = ResetToken(*b"sixteen bytes ok");

fn client_with_token() -> Attack {
    let mut persona = Persona::default();
    persona.parameters.stateless_reset_token = Some(TOKEN);
    on_client(Setup {
        persona,
        ..Setup::default()
    })
}

#[track_caller]
fn assert_reset(attack: &mut Attack) {
    assert_eq!(attack.victim.reasons(), [&ConnectionError::Reset]);
    let sent = attack.sent.len();
    attack.wait(Duration::from_secs(60));
    assert_eq!(attack.sent.len(), sent, "nothing is said after a reset");
    assert!(attack.victim.connection().is_drained());
}

#[test]
fn a_reset_with_the_right_token_ends_the_connection() {
    for len in [21, 22, 40, 1200] {
        let mut attack = client_with_token();
        attack.deliver(&reset(&TOKEN, len));
        assert_reset(&mut attack);
    }
}

#[test]
fn a_reset_counts_whatever_its_header_looks_like() {
    // Section 10.3: any packet that ends in a valid token. Long header of another version, long
    // header of ours, no fixed bit; to an unknown ID and to one that leads to the connection.
    for first in [0x80, 0xc3, 0xe0, 0x01, 0x41] {
        for known in [false, true] {
            for version in [VERSION_1, 0x6b33_43cf, 0] {
                let mut attack = client_with_token();
                let mut datagram = reset(&TOKEN, 100);
                datagram[0] = first;
                let dst = attack.peer.dst;
                if first & 0x80 != 0 {
                    datagram[1..5].copy_from_slice(&version.to_be_bytes());
                    datagram[5] = 8;
                    if known {
                        datagram[6..14].copy_from_slice(dst.as_bytes());
                    }
                    datagram[14] = 8;
                } else if known {
                    datagram[1..9].copy_from_slice(dst.as_bytes());
                }
                attack.deliver(&datagram);
                assert_reset(&mut attack);
            }
        }
    }
}

#[test]
fn a_reset_with_a_wrong_token_is_ignored() {
    let mut attack = client_with_token();
    for at in 0..16 {
        let mut token = TOKEN;
        token.0[at] ^= 1;
        attack.deliver(&reset(&token, 43));
    }
    // The right one, but not at the end; and a datagram too small for a reset.
    let mut datagram = reset(&TOKEN, 43);
    datagram.push(0);
    attack.deliver(&datagram);
    attack.assert_open();
}

#[test]
fn a_token_inside_an_authentic_packet_is_no_reset() {
    let mut attack = client_with_token();
    let mut payload = encode(&[Frame::Ping]);
    payload.extend([0; 30]);
    let mut datagram = attack.peer.seal_payload(&payload);
    datagram.extend_from_slice(&TOKEN.0);
    // Trailing bytes break the packet's protection: a packet that can't be opened and ends in the
    // token is a reset; the packet itself is not.
    datagram.truncate(datagram.len() - 16);
    attack.deliver(&datagram);
    attack.assert_open();
}

#[test]
fn a_reset_from_elsewhere_is_ignored() {
    let mut attack = client_with_token();
    attack.from = "192.0.2.99:9999".parse().unwrap();
    attack.deliver(&reset(&TOKEN, 43));
    attack.from = home();
    attack.assert_open();
}

#[test]
fn no_token_no_reset() {
    // The server gave none, and none of all zeros either.
    let mut attack = on(Side::Client);
    attack.deliver(&reset(&TOKEN, 43));
    attack.deliver(&reset(&ResetToken([0; 16]), 43));
    attack.assert_open();
}

#[test]
fn a_reset_during_the_handshake_is_ignored() {
    let mut persona = Persona::default();
    persona.parameters.stateless_reset_token = Some(TOKEN);
    let mut attack = client_victim(Setup {
        persona,
        ..Setup::default()
    })
    .meet_server();
    attack.deliver(&reset(&TOKEN, 43));
    assert!(attack.victim.reasons().is_empty());
    attack.establish();
    attack.assert_open();
}

#[test]
fn tokens_of_spare_ids_do_not_reset_and_those_in_use_do() {
    let mut attack = client_with_token();
    attack.send_frames(&[crate::cids::issue(1, 0, b"spare id")]);
    attack.assert_open();
    let spare = ResetToken(*b"spare id\0\0\0\0\0\0\0\0");
    attack.deliver(&reset(&spare, 43));
    attack.assert_open();
    // The handshake's ID is retired: its token with it.
    attack.send_frames(&[crate::cids::issue(2, 1, b"third id")]);
    attack.converse();
    attack.deliver(&reset(&TOKEN, 43));
    attack.assert_open();
    attack.deliver(&reset(&spare, 43));
    assert_reset(&mut attack);
}

#[test]
fn a_server_is_reset_by_the_token_of_the_id_that_it_uses() {
    let mut attack = on(Side::Server);
    // The client's handshake ID has no token.
    attack.send_frames(&[crate::cids::issue(1, 1, b"other id")]);
    attack.assert_open();
    let token = ResetToken(*b"other id\0\0\0\0\0\0\0\0");
    attack.deliver(&reset(&token, 43));
    assert_reset(&mut attack);
}

#[test]
fn an_endpoint_without_state_resets_and_never_for_ever() {
    let mut attack = on(Side::Server);
    let token = attack
        .peer
        .victims_parameters()
        .stateless_reset_token
        .unwrap();
    let old = attack.peer.dst;
    let payload = encode(&[Frame::Ping]);
    // The connection is gone.
    attack.send_frames(&[Frame::ConnectionClose(frame::ConnectionClose::Transport {
        error: ErrorCode::NO_ERROR,
        frame_type: 0,
        reason: b"",
    })]);
    attack.wait(Duration::from_secs(10));
    assert_eq!(attack.victim.endpoint.connections(), 0);
    for padding in [0, 10, 100, 1000] {
        let mut payload = payload.clone();
        payload.resize(1 + padding, 0);
        let datagram = attack.peer.seal(&Packet {
            dst: Some(old),
            ..Packet::new(EncryptionLevel::OneRtt, &payload)
        });
        attack.victim.receive(attack.now, home(), &datagram);
        let answer = attack.victim.answers.pop().unwrap();
        assert!(answer.ends_with(&token.0));
        assert!((21..datagram.len()).contains(&answer.len()));
        assert_eq!(answer[0] & 0xc0, 0x40);
    }
    // Two endpoints without each other's state stop sending: each answer is smaller.
    let mut datagram = attack.peer.seal_payload(&payload);
    let mut rounds = 0;
    loop {
        attack.victim.receive(attack.now, home(), &datagram);
        let Some(answer) = attack.victim.answers.pop() else {
            break;
        };
        assert!(answer.len() < datagram.len());
        datagram = answer;
        rounds += 1;
    }
    assert!(rounds < 100);
}

/// Sections 5.2.3 and 21.11: as long as a connection exists, no packet gets one of its tokens out of the
/// endpoint, whatever is sent to its IDs, from wherever.
#[test]
fn no_packet_makes_an_endpoint_reveal_the_token_of_a_live_connection() {
    for side in [Side::Client, Side::Server] {
        let mut attack = on(side);
        let mut ids: Vec<ConnectionId> = attack.peer.issued().iter().map(|new| new.1).collect();
        ids.push(attack.peer.dst);
        let elsewhere = "198.51.100.9:9999".parse().unwrap();
        for id in ids {
            for from in [home(), elsewhere] {
                for len in [21, 22, 43, 100, 1200] {
                    // Short headers with and without the QUIC bit, and long ones of every type and
                    // of another version.
                    for first in [0x40, 0x7f, 0x00, 0xc0, 0xd0, 0xe0, 0xf0, 0x80] {
                        for version in [VERSION_1, 0x6b33_43ff, 0] {
                            let mut datagram = vec![first; len];
                            if first & 0x80 == 0 {
                                datagram[1..9].copy_from_slice(id.as_bytes());
                            } else {
                                datagram[1..5].copy_from_slice(&u32::to_be_bytes(version));
                                datagram[5] = 8;
                                datagram[6..14].copy_from_slice(id.as_bytes());
                                datagram[14] = 0;
                            }
                            attack.victim.receive(attack.now, from, &datagram);
                        }
                    }
                }
            }
        }
        assert!(attack.victim.answers.is_empty());
        attack.assert_open();
    }
}
