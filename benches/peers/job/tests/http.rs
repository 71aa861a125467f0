//! Requests over HTTP, client and server joined without a library between them.

#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

use swiftwater_peers_job::{HttpAnswer, HttpRequest, Incoming, Wanted};

#[test]
fn a_request_is_answered_with_what_it_asks_for() {
    for (down, up) in [(0, 0), (1024, 100), (3 << 20, 0), (7, 2 << 20)] {
        let request = HttpRequest::new(down, up);
        let mut answer = HttpAnswer::new(&request.path()).unwrap();
        for piece in request.content().to_bytes().chunks(1000) {
            answer.receive(piece);
        }
        let content = answer.finish().unwrap();
        assert_eq!(content.left(), down);
        let mut incoming = Incoming::new(Wanted::Payload(down), 0);
        incoming.receive(&content.to_bytes());
        incoming.check().unwrap();
    }
}

#[test]
fn damaged_and_incomplete_content_is_not_answered() {
    let request = HttpRequest::new(1024, 100);
    let content = request.content().to_bytes();
    let mut damaged = content.to_vec();
    damaged[99] ^= 1;
    for wrong in [&damaged[..], &content[..99], &[]] {
        let mut answer = HttpAnswer::new(&request.path()).unwrap();
        answer.receive(wrong);
        assert!(answer.finish().is_none());
    }
}

#[test]
fn other_paths_are_not_requests() {
    for path in ["", "/", "/1", "1/00000000", "/x/00000000", "/1/x", "/1/2/3"] {
        assert!(HttpAnswer::new(path).is_none(), "{path}");
    }
}
