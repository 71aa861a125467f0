//! The memory of responses in progress: what is charged, when it is returned, and the behaviour when it is
//! used up.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http::Response;
use http_body::{Body as _, Frame, SizeHint};
use swiftwater_http::web::body::Body;
use swiftwater_http::web::response_budget::{
    BudgetedBody, ConnectionBudget, MAX_PIECE, MIN_PIECE, PieceSize, ResponseBudget, busy,
};
use swiftwater_quic::ShareError;

fn client(number: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2, number).into()
}

/// Content of a given length, in pieces of the requested size.
struct Source {
    left: usize,
    pieces: PieceSize,
}

impl http_body::Body for Source {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let size = self.pieces.bytes().min(self.left);
        self.left -= size;
        Poll::Ready((size > 0).then(|| Ok(Frame::data(Bytes::from(vec![0; size])))))
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left as u64)
    }
}

fn respond(
    connection: &ConnectionBudget,
    client: IpAddr,
    length: usize,
) -> Result<BudgetedBody<Source>, ShareError> {
    let pieces = PieceSize::new();
    let body = Source {
        left: length,
        pieces: pieces.clone(),
    };
    let response = connection.admit(client, Response::new(body), pieces)?;
    Ok(response.into_body())
}

/// The next piece; `None` if there is none yet.
fn next(body: &mut BudgetedBody<Source>) -> Option<Bytes> {
    let mut cx = Context::from_waker(Waker::noop());
    match Pin::new(body).poll_frame(&mut cx) {
        Poll::Ready(frame) => Some(frame.unwrap().unwrap().into_data().unwrap()),
        Poll::Pending => None,
    }
}

const LONG: usize = 1 << 30;

#[test]
fn pieces_are_charged_until_their_last_reference_is_gone() {
    let budget = ResponseBudget::new(1 << 20);
    let mut body = respond(&budget.connection(), client(1), LONG).unwrap();
    let first = next(&mut body).unwrap();
    let second = next(&mut body).unwrap();
    let part = second.slice(5..6);
    assert!(budget.held() >= first.len() + second.len());
    let before = budget.held();
    let lengths = (first.len(), second.len());
    drop(first);
    assert_eq!(budget.held(), before - lengths.0);
    drop(second);
    drop(body);
    assert!(budget.held() >= lengths.1, "a part is kept still");
    drop(part);
    assert_eq!(budget.held(), 0);
}

#[test]
fn a_short_response_is_charged_its_length() {
    let budget = ResponseBudget::new(1 << 20);
    let mut body = respond(&budget.connection(), client(1), 100).unwrap();
    assert_eq!(budget.held(), 100);
    let piece = next(&mut body).unwrap();
    drop(body);
    assert_eq!(budget.held(), 100);
    drop(piece);
    assert_eq!(budget.held(), 0);
    let empty = respond(&budget.connection(), client(1), 0).unwrap();
    assert!(empty.is_end_stream());
    assert_eq!(budget.held(), 0);
}

#[test]
fn pieces_grow_while_they_are_taken() {
    let budget = ResponseBudget::new(1 << 20);
    let mut body = respond(&budget.connection(), client(1), LONG).unwrap();
    let lengths: Vec<usize> = (0..4).map(|_| next(&mut body).unwrap().len()).collect();
    assert_eq!(lengths, [MIN_PIECE, 2 * MIN_PIECE, MAX_PIECE, MAX_PIECE]);
}

#[test]
fn many_responses_of_a_connection_have_small_pieces() {
    let budget = ResponseBudget::new(64 << 20);
    let connection = budget.connection();
    let mut bodies: Vec<_> = (0..100)
        .map(|_| respond(&connection, client(1), LONG).unwrap())
        .collect();
    for body in &mut bodies {
        for _ in 0..4 {
            assert_eq!(next(body).unwrap().len(), MIN_PIECE);
        }
    }
}

#[test]
fn held_bytes_never_exceed_the_budget_and_every_response_goes_on() {
    let budget = ResponseBudget::new(1 << 20);
    let mut bodies = Vec::new();
    let mut refused = 0;
    for number in 0..60 {
        match respond(&budget.connection(), client(number), LONG) {
            Ok(body) => bodies.push(body),
            Err(_) => refused += 1,
        }
    }
    assert!(refused > 0, "the budget is too small for all");
    // No client reads: all responses stall.
    let mut kept = Vec::new();
    loop {
        let pieces: Vec<_> = bodies.iter_mut().filter_map(next).collect();
        if pieces.is_empty() {
            break;
        }
        kept.extend(pieces);
        assert!(budget.held() <= budget.capacity());
    }
    let bytes: usize = kept.iter().map(Bytes::len).sum();
    assert!(bytes <= budget.capacity());
    // One at a time, all continue once their pieces are read.
    drop(kept);
    for body in &mut bodies {
        for _ in 0..10 {
            assert!(next(body).is_some());
        }
    }
}

#[test]
fn a_response_that_waits_is_woken_when_its_pieces_are_gone() {
    let budget = ResponseBudget::new(3 * MIN_PIECE);
    let mut body = respond(&budget.connection(), client(1), LONG).unwrap();
    let mut kept = Vec::new();
    while let Some(piece) = next(&mut body) {
        kept.push(piece);
        assert!(kept.len() < 10, "nothing bounds it");
    }
    let mut waiting = polled_once(body);
    assert!(!waiting.woken());
    drop(kept);
    assert!(waiting.woken());
}

/// A body that is polled once with a waker that notes its use.
fn polled_once(mut body: BudgetedBody<Source>) -> Noted {
    let flag = std::sync::Arc::new(Flag::default());
    let waker = Waker::from(std::sync::Arc::clone(&flag));
    let polled = Pin::new(&mut body).poll_frame(&mut Context::from_waker(&waker));
    assert!(polled.is_pending());
    Noted { flag, _body: body }
}

struct Noted {
    flag: std::sync::Arc<Flag>,
    _body: BudgetedBody<Source>,
}

impl Noted {
    fn woken(&mut self) -> bool {
        self.flag.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

#[derive(Default)]
struct Flag(std::sync::atomic::AtomicBool);

impl std::task::Wake for Flag {
    fn wake(self: std::sync::Arc<Self>) {
        self.0.store(true, std::sync::atomic::Ordering::Relaxed);
    }
}

#[test]
fn one_address_leaves_room_for_others() {
    let budget = ResponseBudget::new(100 * 2 * MIN_PIECE);
    let connection = budget.connection();
    let mut bodies = Vec::new();
    while let Ok(body) = respond(&connection, client(1), LONG) {
        bodies.push(body);
    }
    assert_eq!(bodies.len(), 50);
    assert_eq!(
        connection.check(client(1)).unwrap_err(),
        ShareError::ShareExceeded
    );
    connection.check(client(2)).unwrap();
    respond(&connection, client(2), LONG).unwrap();
}

#[test]
fn the_refusal_says_when_to_try_again() {
    let response: Response<Body> = busy();
    assert_eq!(response.status(), 503);
    assert_eq!(response.headers()["retry-after"], "1");
}
