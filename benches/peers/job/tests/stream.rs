//! The protocol on a stream, client and server joined without a library between them.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use swiftwater_peers_job::{Answer, Incoming, Outgoing, Wanted, payload};

/// All that is left of `outgoing`, in pieces of at most `piece` bytes.
fn pieces(mut outgoing: Outgoing, piece: usize) -> Vec<Vec<u8>> {
    let mut pieces = Vec::new();
    while outgoing.left() > 0 {
        let next = outgoing.next();
        let next = next[..next.len().min(piece)].to_vec();
        outgoing.advance(next.len());
        pieces.push(next);
    }
    pieces
}

/// The answer to a client that requests `wanted` after `upload` bytes.
fn exchange(wanted: Wanted, upload: u64, piece: usize) -> Incoming {
    let request = Outgoing::request(wanted, upload);
    assert_eq!(request.finishes(), !matches!(wanted, Wanted::Echo(_)));
    let mut answer = Answer::default();
    let mut early = None;
    for piece in pieces(request, piece) {
        if let Some(reply) = answer.receive(&piece) {
            assert!(early.replace(reply).is_none(), "answered twice");
        }
    }
    let reply = early.unwrap_or_else(|| answer.finish());
    let mut incoming = Incoming::new(wanted, upload);
    for piece in pieces(reply, piece) {
        assert!(!incoming.is_complete());
        incoming.receive(&piece);
    }
    incoming
}

#[test]
fn every_answer_is_what_was_asked_for() {
    let block = payload::BLOCK as u64;
    for wanted in [
        Wanted::Payload(0),
        Wanted::Payload(1),
        Wanted::Payload(2 * block + 3),
        Wanted::Checksum,
        Wanted::Echo(1000),
    ] {
        for upload in [0, 1000, block + 1] {
            let answered = !matches!(wanted, Wanted::Echo(bytes) if upload < bytes);
            for piece in [1 << 20, 1000, 7] {
                let incoming = exchange(wanted, upload, piece);
                assert_eq!(incoming.is_complete(), answered, "{wanted:?}, {upload}");
                assert_eq!(incoming.check().is_ok(), answered, "{wanted:?}, {upload}");
            }
        }
    }
}

#[test]
fn wrong_missing_and_surplus_bytes_are_found() {
    let good = payload::slice(0, 1000);
    let mut flipped = good.to_vec();
    flipped[999] ^= 1;
    let mut swapped = good.to_vec();
    swapped.swap(10, 11);
    let mut surplus = good.to_vec();
    surplus.push(0);
    assert!(good[10] != good[11]);
    for (bytes, is_right) in [
        (good, true),
        (&flipped[..], false),
        (&swapped, false),
        (&good[..999], false),
        (&surplus, false),
    ] {
        let mut incoming = Incoming::new(Wanted::Payload(1000), 0);
        incoming.receive(bytes);
        assert_eq!(incoming.check().is_ok(), is_right);
    }
}

#[test]
fn a_damaged_upload_has_another_checksum() {
    let mut request = Outgoing::request(Wanted::Checksum, 1000)
        .to_bytes()
        .to_vec();
    *request.last_mut().unwrap() ^= 1;
    let mut answer = Answer::default();
    assert!(answer.receive(&request).is_none());
    let mut incoming = Incoming::new(Wanted::Checksum, 1000);
    incoming.receive(&answer.finish().to_bytes());
    assert!(incoming.is_complete());
    assert!(incoming.check().is_err());
}

#[test]
fn a_request_that_is_cut_off_is_answered_with_nothing() {
    let mut answer = Answer::default();
    assert!(answer.receive(&[0, 0, 0]).is_none());
    let reply = answer.finish();
    assert_eq!((reply.left(), reply.finishes()), (0, true));
}

#[test]
fn what_is_wanted_survives_the_wire() {
    for wanted in [
        Wanted::Payload(0),
        Wanted::Payload((1 << 61) - 1),
        Wanted::Checksum,
        Wanted::Echo(0),
        Wanted::Echo(1 << 40),
    ] {
        assert_eq!(Wanted::from_bytes(wanted.to_bytes()), wanted);
    }
}

#[test]
fn the_payload_repeats_and_its_checksum_is_crc_32() {
    let block = payload::block();
    assert_eq!(block.len(), payload::BLOCK);
    let at = payload::BLOCK as u64;
    assert_eq!(payload::slice(at + 5, 10), &block[5..15]);
    // A piece ends with the block.
    assert_eq!(payload::slice(at - 3, 10), &block[payload::BLOCK - 3..]);
    let twice = [block, block].concat();
    assert_eq!(payload::checksum(2 * at), crc32fast::hash(&twice));
    assert_eq!(payload::checksum(0), 0);
    // The check value of CRC-32, as published with its parameters.
    assert_eq!(crc32fast::hash(b"123456789"), 0xcbf4_3926);
}

#[test]
fn bytes_without_a_copy_are_the_same() {
    let mut outgoing = Outgoing::request(Wanted::Payload(7), 3000);
    let whole = outgoing.to_bytes();
    let mut read = Vec::new();
    while outgoing.left() > 0 {
        let next = outgoing.next_bytes();
        outgoing.advance(next.len());
        read.extend_from_slice(&next);
    }
    assert_eq!(read, whole);
}
