//! Memory budget of a process for response content that clients have not acknowledged or read yet: one
//! budget for all connections of all HTTP versions, shared by client addresses.
//!
//! A [`BudgetedBody`] charges each piece of content from the moment it is handed out until the last reference
//! to its bytes is dropped, whichever layer holds them: send buffers of HTTP/2, hyper's write queue, streams
//! of QUIC until they are acknowledged. One more piece is charged for sources that read ahead. Heads of
//! messages, state of connections and of TLS, buffers of sockets in the kernel, and other state of sources
//! (encoders, connections to upstreams) are not counted; other limits bound those.

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

/// The smallest piece requested from sources, and the first of each response, in bytes.
pub const MIN_PIECE: usize = 16 * 1024;

/// The largest piece requested from sources, in bytes.
pub const MAX_PIECE: usize = 64 * 1024;

/// Bytes of pieces that all responses of one connection share: with more responses at once, pieces are
/// smaller.
const CONNECTION_PIECES: usize = 512 * 1024;

/// Charge of every response while it is in progress, unless it is shorter: a piece that is handed out and
/// one that is read ahead. With it a response can always continue.
const FLOOR: usize = 2 * MIN_PIECE;

/// The bytes of responses that a process may hold. Cheap to clone; clones share the budget, so all
/// servers of a process can use one.
///
/// When it is used up, or a client's share of it ([`SharedLimit`] has the rule), new responses are refused.
/// Responses in progress continue with one piece of [`MIN_PIECE`] at a time. Sources that return larger
/// pieces than requested exceed the budget by these, one for each response at most.
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

    /// Bytes charged at present.
    pub fn held(&self) -> usize {
        self.limit.held()
    }

    /// Capacity, bytes.
    pub fn capacity(&self) -> usize {
        self.limit.capacity()
    }

    /// The budget for one connection.
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

/// A [`ResponseBudget`] for one connection. Clones are for the same connection.
#[derive(Clone, Debug)]
pub struct ConnectionBudget {
    limit: SharedLimit,
    /// Responses in progress on the connection.
    open: Arc<AtomicUsize>,
}

impl ConnectionBudget {
    /// Whether `client` may have another response. Call it before the service: a request refused then
    /// has had no effect. [`busy`] is the response.
    pub fn check(&self, client: IpAddr) -> Result<(), ShareError> {
        self.limit.check(client, FLOOR)
    }

    /// Charges `client` for `response` until its content is dropped; refused if the budget or the
    /// client's share is used up. `pieces` is the extension of the request.
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

/// Most remaining bytes of `body`.
fn remaining<B: HttpBody>(body: &B) -> usize {
    if body.is_end_stream() {
        return 0;
    }
    let upper = body.size_hint().upper();
    upper.map_or(usize::MAX, |upper| {
        usize::try_from(upper).unwrap_or(usize::MAX)
    })
}

/// The response to a request for which there is no memory: 503 (Service Unavailable), to be retried
/// after a second.
pub fn busy() -> Response<Body> {
    let text = "the server's memory for responses is in use";
    let mut response = text_response(StatusCode::SERVICE_UNAVAILABLE, text);
    let soon = HeaderValue::from_static("1");
    response.headers_mut().insert(RETRY_AFTER, soon);
    response
}

/// Size of the pieces of a response, in the extensions of its request. A source that can choose its piece
/// size, a file for instance, reads at most [`bytes`](Self::bytes) and queries it before each piece: it
/// grows while the client reads and the budget permits it. A source that reads ahead starts to when its
/// second piece is polled, so that a client that reads nothing costs one piece.
#[derive(Clone, Debug)]
pub struct PieceSize(Arc<AtomicUsize>);

impl PieceSize {
    /// [`MIN_PIECE`] at first.
    pub fn new() -> Self {
        Self(Arc::new(AtomicUsize::new(MIN_PIECE)))
    }

    /// Most bytes of the next piece: between [`MIN_PIECE`] and [`MAX_PIECE`].
    pub fn bytes(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for PieceSize {
    fn default() -> Self {
        Self::new()
    }
}

/// The charge of one response.
#[derive(Debug)]
struct Account {
    state: Mutex<Charge>,
    floor: usize,
}

#[derive(Debug)]
struct Charge {
    permit: SharedPermit,
    /// Bytes handed out and not dropped yet.
    outstanding: usize,
    /// Bytes that the source may have read ahead.
    ahead: usize,
    /// Waits until nothing is outstanding.
    waiting: Option<Waker>,
}

impl Account {
    /// Charges `bytes` more, and `ahead` for the next piece; both are charged or none.
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

    /// Records `bytes` that are handed out whether they can be charged or not.
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
            // Returning bytes can't fail.
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

/// The account of a response, and the inputs of its piece size.
#[derive(Debug)]
struct Charged {
    account: Arc<Account>,
    open: Arc<AtomicUsize>,
    pieces: PieceSize,
}

impl Charged {
    /// Charges for a piece of `bytes` with `left` to come; false if it must wait until those before it are
    /// gone. Determines the size of the next piece.
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
    /// The body of a response that is charged to a [`ResponseBudget`]: its pieces until they are dropped.
    #[derive(Debug)]
    pub struct BudgetedBody<B> {
        #[pin]
        inner: B,
        // `None`: nothing is charged.
        charged: Option<Charged>,
        // A piece that waits until the earlier ones are dropped.
        held_back: Option<Bytes>,
    }
}

impl<B> BudgetedBody<B> {
    /// `inner`, not charged: for short responses of a server itself.
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
