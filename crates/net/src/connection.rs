//! The application's handle of a connection.

use std::fmt;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use swiftwater_quic::crypto::CryptoError;
use swiftwater_quic::policy::{Hints, ReceivedFeedback, ResponseStart};
use swiftwater_quic::{
    Connection as Core, ConnectionError, ConnectionStats, EarlyDataOutcome, LocalAddress,
    MigrateError, PathAddress, SocketId, StreamPathError,
};
use swiftwater_units::{Bandwidth, ByteCount, Dir, Instant, PathId, Side, StreamId};

use crate::application::Application;
use crate::connection_shared::ConnectionRef;
use crate::connection_signals::{Wakeups, store_waker};
use crate::connection_state::{ConnectionState, SendHalf};
use crate::recv_stream::RecvStream;
use crate::send_stream::SendStream;

/// A QUIC connection: streams in both directions, datagrams, and how the path fares.
///
/// Clones are handles of the same connection. When the last handle is dropped, the handles of its
/// streams included, the connection closes with code 0, and what was not yet delivered is lost: let
/// the receiver close, or wait with [`SendStream::stopped`] before dropping.
///
/// All futures may be dropped at any time without losing streams or datagrams.
#[derive(Clone)]
pub struct Connection {
    pub(crate) handle: ConnectionRef,
}

impl Connection {
    pub(crate) fn new(handle: ConnectionRef) -> Self {
        Self { handle }
    }

    /// Opens a stream on which both ends send. Waits while the peer permits no more streams. The
    /// peer sees it with the first data (or its end).
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.open(Dir::Bi).await?;
        Ok(self.both(id))
    }

    /// Opens a stream on which only this end sends, like [`Connection::open_bi`].
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        let id = self.open(Dir::Uni).await?;
        Ok(SendStream::new(id, self.handle.clone()))
    }

    async fn open(&self, dir: Dir) -> Result<StreamId, ConnectionError> {
        let mut blocked = false;
        let mut open = |state: &mut ConnectionState| {
            if let Some(reason) = state.close_reason() {
                return Some(Err(reason));
            }
            let opened = state.connection.open(dir);
            if opened.is_none() && !blocked {
                // A STREAMS_BLOCKED frame is due.
                blocked = true;
                self.handle.touch();
            }
            if let Some(id) = opened {
                state.senders.insert(id, SendHalf::default());
            }
            opened.map(Ok)
        };
        // Mostly there is no need to wait, nor for a signal.
        let at_once = open(&mut self.handle.lock());
        if let Some(result) = at_once {
            return result;
        }
        let signal = self.handle.signals.available(dir);
        self.handle.wait_for(signal, open).await
    }

    /// Waits for a stream on which both ends send, opened by the peer.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        let id = self.accept(Dir::Bi).await?;
        Ok(self.both(id))
    }

    /// Waits for a stream on which only the peer sends.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        let id = self.accept(Dir::Uni).await?;
        Ok(RecvStream::new(id, self.handle.clone()))
    }

    async fn accept(&self, dir: Dir) -> Result<StreamId, ConnectionError> {
        let signal = self.handle.signals.opened(dir);
        let id = self
            .handle
            .wait_for(signal, |state| match state.connection.accept(dir) {
                // Streams that came before the end can still be read.
                Some(id) => {
                    if dir == Dir::Bi {
                        state.senders.insert(id, SendHalf::default());
                    }
                    Some(Ok(id))
                }
                None => state.close_reason().map(Err),
            })
            .await?;
        self.handle.touch();
        Ok(id)
    }

    fn both(&self, id: StreamId) -> (SendStream, RecvStream) {
        let send = SendStream::new(id, self.handle.clone());
        let recv = RecvStream::new(id, self.handle.clone());
        (send, recv)
    }

    /// The present time on the clock of the connection's endpoint, on which deadlines are given.
    pub fn now(&self) -> Instant {
        self.handle.worker.now()
    }

    /// Lets a protocol run on the connection, inside its worker. From now on it gets the events of
    /// streams and datagrams, fates of datagrams among them; the methods of this handle that wait for those
    /// never return. What
    /// happened before is delivered at once. For good: a second one replaces the first.
    pub fn host(&self, application: Arc<dyn Application>) {
        let mut wakeups = Wakeups::default();
        let now = self.handle.worker.now();
        self.handle.lock().host(now, application, &mut wakeups);
        self.handle.note_host();
        wakeups.deliver(&self.handle.signals);
        self.handle.touch();
    }

    /// Runs `act` on the connection itself, at the present time of its clock, and has its worker send
    /// what comes of it. For protocols given to [`Connection::host`].
    ///
    /// `act` runs under the connection's lock: it must not block, must not use this or other handles
    /// of the connection, and leaves `poll_event`, `poll_transmit` and timeouts to the worker.
    pub fn with_core<R>(&self, act: impl FnOnce(Instant, &mut Core) -> R) -> R {
        let now = self.handle.worker.now();
        let result = act(now, &mut self.handle.lock().connection);
        self.handle.touch();
        result
    }

    /// Reads from the connection itself. The worker is not woken. `look` runs under the connection's lock, as the
    /// argument of [`Connection::with_core`] does.
    pub fn inspect<R>(&self, look: impl FnOnce(&Core) -> R) -> R {
        look(&self.handle.lock().connection)
    }

    /// Sends a PING when nothing was sent or received for `interval`; `None`, as at first, leaves that to
    /// the configuration ([`keep_alive_interval`](swiftwater_quic::TransportConfig::keep_alive_interval)).
    ///
    /// Streams don't do this by themselves: an open stream doesn't show whether the application
    /// waits for something. An application that waits for the peer's answer asks for it, with half the idle timeout
    /// or less, and takes it back afterwards, so that idle connections still end.
    pub fn set_keep_alive(&self, interval: Option<std::time::Duration>) {
        self.with_core(|_, core| core.set_keep_alive(interval));
    }

    /// Closes the connection at once, with a code (below 2^62) and a reason for the peer. Data that
    /// the peer has not received yet is lost.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.handle.close(code, reason);
    }

    /// Waits until the connection is closed, by either end, and returns the reason.
    pub async fn closed(&self) -> ConnectionError {
        let signal = &self.handle.signals.state;
        self.handle
            .wait_for(signal, |state| state.close_reason())
            .await
    }

    /// Why the connection is closed; `None` while it isn't.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.handle.lock().close_reason()
    }

    /// Waits until the handshake is confirmed (RFC 9001, section 4.1.2): the peer has proved that it
    /// completed it too.
    pub async fn handshake_confirmed(&self) -> Result<(), ConnectionError> {
        let signal = &self.handle.signals.state;
        self.handle
            .wait_for(signal, |state| match &state.closed {
                _ if state.confirmed => Some(Ok(())),
                closed => closed.as_deref().cloned().map(Err),
            })
            .await
    }

    /// Waits until the handshake is complete and returns what became of early data; `None` if there were
    /// none. What a client sent early on streams is sent anew after a rejection, without its doing;
    /// datagrams are lost.
    pub async fn early_data(&self) -> Result<Option<EarlyDataOutcome>, ConnectionError> {
        let signal = &self.handle.signals.state;
        self.handle
            .wait_for(signal, |state| match &state.closed {
                _ if state.connected => Some(Ok(state.connection.early_data())),
                closed => closed.as_deref().cloned().map(Err),
            })
            .await
    }

    /// True until the handshake is complete. A server that has the connection already must reckon with
    /// what it receives being a recording of earlier early data that is replayed: it may read
    /// and answer what can happen twice without harm, and keeps the rest for after
    /// [`Connection::handshake_confirmed`].
    pub fn is_handshaking(&self) -> bool {
        self.handle.lock().connection.is_handshaking()
    }

    /// Lets the peer send stream data no faster than `rate` on average; `None` for no limit. Credit
    /// that it has already may still be used at once.
    pub fn set_receive_rate(&self, rate: Option<Bandwidth>) {
        let now = self.handle.worker.now();
        self.handle.lock().connection.set_receive_rate(now, rate);
        self.handle.touch();
    }

    /// Counters and measurements up to now, also after the end.
    pub fn stats(&self) -> ConnectionStats {
        self.handle.lock().connection.stats()
    }

    /// The peer's address, which may change during the connection.
    pub fn remote_address(&self) -> SocketAddr {
        self.handle.lock().connection.remote()
    }

    /// The address at which the peer reaches this end, which may change during the connection. Its IP
    /// address is the wildcard if the socket has no other and nothing was received yet.
    pub fn local_address(&self) -> SocketAddr {
        let local = self.path_address().local;
        let worker = &self.handle.worker;
        let bound = worker.socket_address(local.socket);
        let mut address = bound.unwrap_or_else(|| worker.local_address());
        if let Some(ip) = local.ip {
            address.set_ip(ip);
        }
        address
    }

    /// Both ends of the path in use, which may change during the connection.
    pub fn path_address(&self) -> PathAddress {
        self.handle.lock().connection.path_address()
    }

    /// Assigns the data of a stream to a path, or with `None` to all of them. They leave nowhere else while
    /// the path works; see [`quic::Connection::set_stream_path`](swiftwater_quic::Connection::set_stream_path).
    pub fn set_stream_path(
        &self,
        stream: StreamId,
        path: Option<PathId>,
    ) -> Result<(), StreamPathError> {
        let assigned = self.handle.lock().connection.set_stream_path(stream, path);
        self.handle.touch();
        assigned
    }

    /// Moves to another of the endpoint's sockets ([`Endpoint::add_socket`]), if the server can be
    /// reached from there: the path in use stays so until the new one is validated. Waits for the
    /// outcome, some seconds at most. Data flows all the while. Clients only.
    ///
    /// Dropping the future doesn't cancel the migration.
    ///
    /// [`Endpoint::add_socket`]: crate::Endpoint::add_socket
    pub async fn migrate(&self, socket: SocketId) -> Result<PathAddress, MigrateError> {
        self.move_to(socket, Core::migrate).await
    }

    /// [`Connection::migrate`] of one of several paths.
    pub async fn migrate_path(
        &self,
        path: PathId,
        socket: SocketId,
    ) -> Result<PathAddress, MigrateError> {
        let migrate = |core: &mut Core, now, local| core.migrate_path(now, path, local);
        self.move_to(socket, migrate).await
    }

    /// Moves to another of the endpoint's sockets at once, because the present one no longer works,
    /// and waits until the new path is validated. On [`MigrateError::Failed`] the connection remains
    /// there all the same. Clients only.
    ///
    /// [`Endpoint::rebind`](crate::Endpoint::rebind) does it for all connections.
    pub async fn rebind(&self, socket: SocketId) -> Result<PathAddress, MigrateError> {
        self.move_to(socket, Core::rebind).await
    }

    /// [`Connection::rebind`] of one of several paths.
    pub async fn rebind_path(
        &self,
        path: PathId,
        socket: SocketId,
    ) -> Result<PathAddress, MigrateError> {
        let rebind = |core: &mut Core, now, local| core.rebind_path(now, path, local);
        self.move_to(socket, rebind).await
    }

    async fn move_to(
        &self,
        socket: SocketId,
        how: impl FnOnce(&mut Core, Instant, LocalAddress) -> Result<(), MigrateError>,
    ) -> Result<PathAddress, MigrateError> {
        if self.handle.worker.socket_address(socket).is_none() {
            return Err(MigrateError::NoSuchSocket);
        }
        let asked = {
            let mut state = self.handle.lock();
            let now = self.handle.worker.now();
            how(&mut state.connection, now, LocalAddress::any(socket))?;
            state.begin_migration(Some(socket))
        };
        // An earlier request that is still waited for is over.
        self.handle.signals.state.notify_waiters();
        self.handle.touch();
        let signal = &self.handle.signals.state;
        self.handle
            .wait_for(signal, |state| {
                let last = state.migration.as_deref()?;
                if last.asked != asked {
                    return Some(Err(MigrateError::Replaced));
                }
                match last.outcome {
                    Some(outcome) => Some(outcome),
                    None if state.closed.is_some() => Some(Err(MigrateError::Closed)),
                    None => None,
                }
            })
            .await
    }

    /// Waits until the system refuses to send from the connection's local address: the interface is
    /// down, its address gone, or no route left. A hint that it may be time to move, no more: sending
    /// goes on, and may work again. `None` once the connection is closed.
    pub async fn local_unreachable(&self) -> Option<io::ErrorKind> {
        let signal = &self.handle.signals.state;
        self.handle
            .wait_for(signal, |state| match state.unreachable.take() {
                Some(kind) => Some(Some(kind)),
                None => state.closed.is_some().then_some(None),
            })
            .await
    }

    /// The application protocol that was negotiated, if any.
    pub fn alpn(&self) -> Option<Vec<u8>> {
        self.handle.lock().connection.alpn().map(<[u8]>::to_vec)
    }

    /// The server name that the client asked for.
    pub fn server_name(&self) -> Option<String> {
        self.handle
            .lock()
            .connection
            .server_name()
            .map(str::to_owned)
    }

    /// The peer's certificate chain, DER, end-entity first; empty if it sent none.
    pub fn peer_certificates(&self) -> Vec<Vec<u8>> {
        self.handle.lock().connection.peer_certificates()
    }

    /// Fills `out` with keying material that only the two ends have (RFC 8446, section 7.5).
    pub fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), CryptoError> {
        let state = self.handle.lock();
        state.connection.export_keying_material(out, label, context)
    }

    /// Which end this is.
    pub fn side(&self) -> Side {
        self.handle.lock().connection.side()
    }

    /// The runtime on which the connection's worker runs. With several workers each has a thread of its own: what is
    /// spawned there needs no wake-up across threads for each message, as long as it never blocks. Such tasks end
    /// with the endpoint's last connection at the latest. With one worker it is the runtime on which the endpoint was bound.
    pub fn runtime(&self) -> tokio::runtime::Handle {
        self.handle.worker.runtime()
    }

    /// A number that no other open connection of the same endpoint has.
    pub fn stable_id(&self) -> usize {
        self.handle.index()
    }

    /// Tells the policies what the application needs.
    pub fn update_hints(&self, change: impl FnOnce(&mut Hints)) {
        let now = self.handle.worker.now();
        self.handle.lock().connection.update_hints(now, change);
        self.handle.touch();
    }

    /// Tells the policies that a response of `bytes` starts on `stream`, whose request has just arrived: what Chorus'
    /// scheduler divides among paths.
    pub fn announce_response(&self, stream: StreamId, bytes: u64) {
        let requested_at = self.handle.worker.now();
        self.update_hints(|hints| {
            hints.response = Some(ResponseStart {
                stream,
                bytes: ByteCount::new(bytes),
                requested_at,
            });
        });
    }

    /// The newest message of the peer's feedback policy that was not read yet, one of each kind at most. Nothing
    /// arrives unless [`TransportConfig::max_feedback_size`](swiftwater_quic::TransportConfig::max_feedback_size) is
    /// set.
    pub fn recv_feedback(&self) -> Option<ReceivedFeedback> {
        self.handle.lock().connection.recv_feedback()
    }

    /// Starts a key update (RFC 9001, section 6) as soon as one is permitted.
    pub fn update_keys(&self) {
        self.handle.lock().connection.update_keys();
        self.handle.touch();
    }

    /// Goes over to fresh connection IDs, so that observers can't link what follows.
    pub fn rotate_connection_ids(&self) {
        self.handle.lock().connection.rotate_connection_ids();
        self.handle.touch();
    }

    /// Sends something that the peer must acknowledge, to keep the path in use or measured.
    pub fn ping(&self) {
        self.handle.lock().connection.ping();
        self.handle.touch();
    }

    /// The same on one path of several; false if it is not open.
    pub fn ping_path(&self, path: PathId) -> bool {
        let open = self.handle.lock().connection.ping_path(path);
        self.handle.touch();
        open
    }

    /// Takes the tokens for later connections that the server has sent (client only).
    pub fn take_tokens(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.handle.lock().tokens)
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("remote", &self.remote_address())
            .field("closed", &self.close_reason())
            .finish_non_exhaustive()
    }
}

/// A connection whose handshake is under way: a future of the [`Connection`]. Dropping it closes the connection.
#[must_use = "a connection that is not awaited is closed"]
pub struct Connecting {
    handle: Option<ConnectionRef>,
}

impl Connecting {
    pub(crate) fn new(handle: ConnectionRef) -> Self {
        Self {
            handle: Some(handle),
        }
    }

    /// The connection at once if a session with the server is resumed that permits early data (0-RTT);
    /// otherwise `self`, to be waited for.
    ///
    /// Early data can be recorded and replayed to the server, so they should only ask for what may happen twice.
    /// [`Connection::early_data`] reports later whether the server accepted them.
    ///
    /// # Panics
    ///
    /// If the future was polled to its end.
    pub fn into_early(mut self) -> Result<Connection, Self> {
        let handle = self.handle.as_ref().expect("not polled to completion");
        let may = handle.lock().connection.may_send_early_data();
        match self.handle.take_if(|_| may) {
            Some(handle) => Ok(Connection::new(handle)),
            None => Err(self),
        }
    }
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let handle = self.handle.as_ref().expect("not polled after completion");
        let outcome = {
            let mut state = handle.lock();
            match state.close_reason() {
                Some(reason) => Some(Err(reason)),
                None if state.connected => Some(Ok(())),
                None => {
                    store_waker(&mut state.connecting, cx.waker());
                    None
                }
            }
        };
        match outcome {
            None => Poll::Pending,
            Some(outcome) => {
                let handle = self.handle.take().expect("taken once, here");
                Poll::Ready(outcome.map(|()| Connection::new(handle)))
            }
        }
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connecting").finish_non_exhaustive()
    }
}
