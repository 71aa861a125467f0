//! How much of responses a process keeps in memory for clients that have not taken it yet: one budget for
//! all connections of all versions of HTTP, shared by the addresses of clients.
//!
//! A [`BudgetedBody`] charges each piece of content from the moment it is handed out until the last reference
//! to its bytes is dropped, wherever they are kept below: send buffers of HTTP/2, hyper's write queue,
//! streams of QUIC until they are acknowledged. One more piece is charged for sources that read ahead.
//! Heads of messages, state of connections and of TLS, buffers of sockets in the kernel, and what sources
//! keep besides (encoders, connections to upstreams) are not covered; other limits bound those.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{HeaderValue, Response, StatusCode};
use http_body::{Body as HttpBody, Frame, SizeHint};
use pin_project_lite::pin_project;
use swiftwater_quic::ShareError;

use super::body::{Body, text_response};
use super::shared_limit::{SharedLimit, SharedPermit};

/// The smallest piece that sources are asked for, and the first of each response, in bytes.
pub const MIN_PIECE: usize = 16 * 1024;

/// The largest piece that sources are asked for, in bytes.
pub const MAX_PIECE: usize = 64 * 1024;

/// Bytes of pieces that all responses of one connection share: with more responses at once, pieces are
/// smaller.
const CONNECTION_PIECES: usize = 512 * 1024;

/// What every response is charged as long as it lasts, unless it is shorter: a piece that is handed out and
/// one that is read ahead. With it a response can always go on.
const FLOOR: usize = 2 * MIN_PIECE;

/// The bytes of responses that a process may keep. Cheap to clone; clones are the same budget, for all
/// servers of a process to share.
///
/// When it is used up, or a client's share of it ([`SharedLimit`] has the rule), new responses are refused.
/// Responses under way go on with one piece of [`MIN_PIECE`] at a time. Sources that give larger pieces than
/// they are asked for exceed the budget by these, one for each response at most.
#[derive(Clone, Debug)]
pub struct ResponseBudget {
    limit: SharedLimit,
}

impl ResponseBudget {
    /// The default: 256 MiB, enough for 8192 long responses at once.
    pub const DEFAULT_BYTES: usize = 256 * 1024 * 1024;

    /// A budget of `bytes`.
    pub fn new(bytes: usize) -> Self {
        Self {
            limit: SharedLimit::new(bytes),
        }
    }

    /// Bytes that are charged now.
    pub fn held(&self) -> usize {
        self.limit.held()
    }

    /// All bytes.
    pub fn capacity(&self) -> usize {
        self.limit.capacity()
    }

    /// The budget as one connection draws on it.
    pub fn connection(&self) -> ConnectionBudget {
        ConnectionBudget {
            limit: self.limit.clone(),
            open: Arc::default(),
        }
    }
}

impl Default for ResponseBudget {
    fn default() -> Self {
        Self::new(Self::DEFAULT_BYTES)
    }
}

/// A [`ResponseBudget`] as one connection draws on it. Clones are the same connection.
#[derive(Clone, Debug)]
pub struct ConnectionBudget {
    limit: SharedLimit,
    /// Responses under way on the connection.
    open: Arc<AtomicUsize>,
}

impl ConnectionBudget {
    /// Whether `client` may have another response, to be asked before the service is: a request that is
    /// refused then has had no effect. [`busy`] is the answer to one.
    pub fn check(&self, client: IpAddr) -> Result<(), ShareError> {
        self.limit.try_acquire(client, FLOOR).map(drop)
    }

    /// Charges `client` for `response` until its content is gone; refused if the budget or the client's
    /// share is used up. `pieces` is what was put into the extensions of the request.
    pub fn admit<B: HttpBody>(
        &self,
        client: IpAddr,
        response: Response<B>,
        pieces: PieceSize,
    ) -> Result<Response<BudgetedBody<B>>, ShareError> {
        let floor = remaining(response.body()).min(FLOOR);
        if floor == 0 {
            return Ok(response.map(BudgetedBody::free));
        }
        let permit = self.limit.try_acquire(client, floor)?;
        self.open.fetch_add(1, Ordering::Relaxed);
        let account = Account {
            state: Mutex::new(Charge {
                permit,
                outstanding: 0,
                ahead: 0,
                waiting: None,
            }),
            floor,
        };
        let charged = Charged {
            account: Arc::new(account),
            open: Arc::clone(&self.open),
            pieces,
        };
        Ok(response.map(|inner| BudgetedBody {
            inner,
            charged: Some(charged),
            held_back: None,
        }))
    }
}

/// Bytes that are still to come of `body`, at most.
fn remaining<B: HttpBody>(body: &B) -> usize {
    if body.is_end_stream() {
        return 0;
    }
    let upper = body.size_hint().upper();
    upper.map_or(usize::MAX, |upper| {
        usize::try_from(upper).unwrap_or(usize::MAX)
    })
}

/// The answer to a request for whose response there is no memory: 503 (Service Unavailable), to be tried
/// again after a second.
pub fn busy() -> Response<Body> {
    let text = "too much is on its way to clients";
    let mut response = text_response(StatusCode::SERVICE_UNAVAILABLE, text);
    let soon = HeaderValue::from_static("1");
    response.headers_mut().insert(RETRY_AFTER, soon);
    response
}

/// How large the pieces of a response should be, in the extensions of its request. A source that reads as
/// it likes, from a file for instance, reads [`bytes`](Self::bytes) at most and asks anew before each piece:
/// they grow while the client takes them and the budget permits it. A source that reads ahead begins with it
/// when its second piece is asked for, not before, so that a client that takes nothing costs one piece.
#[derive(Clone, Debug)]
pub struct PieceSize(Arc<AtomicUsize>);

impl PieceSize {
    /// [`MIN_PIECE`] at first.
    pub fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(MIN_PIECE)))
    }

    /// Bytes that the next piece should have at most: between [`MIN_PIECE`] and [`MAX_PIECE`].
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for PieceSize {
    fn default() -> Self {
        Self::new()
    }
}

/// What one response is charged with.
#[derive(Debug)]
struct Account {
    state: Mutex<Charge>,
    floor: usize,
}

#[derive(Debug)]
struct Charge {
    permit: SharedPermit,
    /// Bytes that were handed out and are still kept somewhere.
    outstanding: usize,
    /// Bytes that the source may have read ahead.
    ahead: usize,
    /// Waits until nothing is outstanding.
    waiting: Option<Waker>,
}

impl Account {
    /// Charges `bytes` more, and `ahead` for what comes next; both are charged or none.
    fn grow(&self, bytes: usize, ahead: usize) -> bool {
        let mut charge = self.lock();
        let outstanding = charge.outstanding + bytes;
        let wanted = (outstanding + ahead).max(self.floor);
        if charge.permit.resize(wanted).is_err() {
            return false;
        }
        charge.outstanding = outstanding;
        charge.ahead = ahead;
        true
    }

    /// Notes `bytes` that are handed out whether they can be charged or not.
    fn exceed(&self, bytes: usize) {
        let mut charge = self.lock();
        charge.outstanding += bytes;
        charge.ahead = 0;
    }

    fn release(&self, bytes: usize) {
        let mut charge = self.lock();
        charge.outstanding -= bytes;
        let wanted = (charge.outstanding + charge.ahead).max(self.floor);
        if wanted < charge.permit.places() {
            // Giving back does not fail.
            let _ = charge.permit.resize(wanted);
        }
        let waiting = (charge.outstanding == 0).then(|| charge.waiting.take());
        drop(charge);
        if let Some(waker) = waiting.flatten() {
            waker.wake();
        }
    }

    /// Ready when nothing is outstanding.
    fn poll_idle(&self, cx: &Context<'_>) -> Poll<()> {
        let mut charge = self.lock();
        if charge.outstanding == 0 {
            return Poll::Ready(());
        }
        charge.waiting = Some(cx.waker().clone());
        Poll::Pending
    }

    fn lock(&self) -> MutexGuard<'_, Charge> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A piece of content that is charged until it is dropped.
#[derive(Debug)]
struct ChargedPiece {
    bytes: Bytes,
    account: Arc<Account>,
}

impl AsRef<[u8]> for ChargedPiece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for ChargedPiece {
    fn drop(&mut self) {
        self.account.release(self.bytes.len());
    }
}

/// The account of a response, and what its pieces depend on.
#[derive(Debug)]
struct Charged {
    account: Arc<Account>,
    open: Arc<AtomicUsize>,
    pieces: PieceSize,
}

impl Charged {
    /// Charges for a piece of `bytes` with `left` to come; false if it must wait until those before it are
    /// gone. Settles how large the next may be.
    fn poll_charge(&self, bytes: usize, left: usize, cx: &Context<'_>) -> Poll<()> {
        let open = self.open.load(Ordering::Relaxed).max(1);
        let fair = (CONNECTION_PIECES / open).clamp(MIN_PIECE, MAX_PIECE);
        let grown = (2 * self.pieces.bytes()).min(fair);
        for next in [grown, MIN_PIECE] {
            if self.account.grow(bytes, next.min(left)) {
                self.pieces.0.store(next, Ordering::Relaxed);
                return Poll::Ready(());
            }
        }
        ready!(self.account.poll_idle(cx));
        self.pieces.0.store(MIN_PIECE, Ordering::Relaxed);
        self.account.exceed(bytes);
        Poll::Ready(())
    }

    fn charge(&self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(ChargedPiece {
            bytes,
            account: Arc::clone(&self.account),
        })
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        self.open.fetch_sub(1, Ordering::Relaxed);
    }
}

pin_project! {
    /// The body of a response that is charged to a [`ResponseBudget`]: its pieces as long as they are kept.
    #[derive(Debug)]
    pub struct BudgetedBody<B> {
        #[pin]
        inner: B,
        // None: nothing is charged.
        charged: Option<Charged>,
        // A piece that waits until those before it are gone.
        held_back: Option<Bytes>,
    }
}

impl<B> BudgetedBody<B> {
    /// `inner`, charged to nobody: for short answers of a server itself.
    pub fn free(inner: B) -> Self {
        Self {
            inner,
            charged: None,
            held_back: None,
        }
    }
}

impl<B: HttpBody<Data = Bytes>> HttpBody for BudgetedBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let mut this = self.project();
        let Some(charged) = this.charged else {
            return this.inner.poll_frame(cx);
        };
        let data = match this.held_back.take() {
            Some(data) => data,
            None => match ready!(this.inner.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) if !data.is_empty() => data,
                    Ok(data) => return Poll::Ready(Some(Ok(Frame::data(data)))),
                    Err(other) => return Poll::Ready(Some(Ok(other))),
                },
                other => return Poll::Ready(other),
            },
        };
        let left = remaining(&*this.inner);
        if charged.poll_charge(data.len(), left, cx).is_pending() {
            *this.held_back = Some(data);
            return Poll::Pending;
        }
        Poll::Ready(Some(Ok(Frame::data(charged.charge(data)))))
    }

    fn is_end_stream(&self) -> bool {
        self.held_back.is_none() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = self.inner.size_hint();
        if let Some(data) = &self.held_back {
            let held = data.len() as u64;
            if let Some(upper) = hint.upper() {
                hint.set_upper(upper + held);
            }
            hint.set_lower(hint.lower() + held);
        }
        hint
    }
}
