//! One tunnel: datagrams between a client and a target, in both directions, until the end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body as _, Frame};
use http_body_util::channel::Sender;
use swiftwater_http::h3::DatagramError;
use swiftwater_http::udp::connect::HttpDatagrams;
use swiftwater_http::web::body::Body;
use swiftwater_net::quic::{DatagramOptions, SendDatagramError};
use thiserror::Error;
use tokio::io::Ready;
use tokio::select;

use super::capsules::{self, CapsuleError, Capsules};
use super::idle::Idle;
use super::stats::{Counters, Dropped};
use super::target_socket::{RECEIVE_BUFFER, TargetSocket};
use crate::MAX_UDP_PAYLOAD;
use crate::context::{self, ContextId};
use crate::policy::{Reflection, ReflectionLimit};

/// How long a datagram may wait for its turn to the client: what is older, the sender has sent again.
const MAX_QUEUE_DELAY: Duration = Duration::from_millis(300);

/// What a tunnel needs.
pub(super) struct Tunnel {
    pub(super) socket: TargetSocket,
    /// Datagrams below HTTP; `None` with HTTP versions that have none.
    pub(super) datagrams: Option<HttpDatagrams>,
    /// Content for the client: capsules.
    pub(super) to_client: Sender<Bytes>,
    /// Content from the client: capsules.
    pub(super) from_client: Body,
    pub(super) reflection: ReflectionLimit,
    pub(super) idle_timeout: Duration,
    pub(super) counters: Arc<Counters>,
}

/// Why a tunnel ended.
#[derive(Debug, Error)]
pub(super) enum TunnelEnd {
    /// The client ended its content.
    #[error("the client ended it")]
    Finished,
    /// The client reset the request, or its connection is gone.
    #[error("the client is gone")]
    ClientGone,
    /// The client's content is malformed.
    #[error(transparent)]
    Capsules(#[from] CapsuleError),
    /// The network reports that the target can't be reached.
    #[error("the target can't be reached: {0}")]
    Target(#[from] io::Error),
    /// Nothing was received from either side.
    #[error("nothing was received for the idle timeout")]
    Idle,
}

impl Tunnel {
    /// Forwards until the end.
    pub(super) async fn run(self) -> TunnelEnd {
        let counters = Arc::clone(&self.counters);
        counters.on_open();
        let end = self.forward().await;
        counters.on_close();
        end
    }

    async fn forward(self) -> TunnelEnd {
        let Self {
            socket,
            datagrams,
            to_client,
            mut from_client,
            reflection,
            idle_timeout,
            counters,
        } = self;
        let mut target = ToTarget {
            socket: &socket,
            reflection: Reflection::new(reflection),
            counters: &counters,
        };
        let mut client = ToClient {
            datagrams: datagrams.clone(),
            content: to_client,
            counters: &counters,
        };
        let mut capsules = Capsules::new();
        let mut idle = Idle::new(idle_timeout);
        let mut buffer = Vec::new();
        loop {
            select! {
                ready = socket.ready() => {
                    let received = ready.and_then(|ready| {
                        from_target(ready, &mut target, &mut client, &mut buffer)
                    });
                    match received {
                        Ok(true) => idle.restart(),
                        Ok(false) => {}
                        Err(error) => return error.into(),
                    }
                }
                datagram = next_datagram(datagrams.as_ref()) => {
                    let Some(datagram) = datagram else {
                        return TunnelEnd::ClientGone;
                    };
                    idle.restart();
                    target.forward(datagram);
                }
                piece = next_piece(&mut from_client) => match piece {
                    Some(Ok(piece)) => {
                        idle.restart();
                        capsules.push(piece);
                        loop {
                            match capsules.next() {
                                Ok(Some(datagram)) => target.forward(datagram),
                                Ok(None) => break,
                                Err(error) => return error.into(),
                            }
                        }
                    }
                    Some(Err(())) => return TunnelEnd::ClientGone,
                    None => return capsules.finish().map_or_else(Into::into, |()| TunnelEnd::Finished),
                },
                () = idle.wait() => {
                    if idle.is_over() {
                        return TunnelEnd::Idle;
                    }
                }
            }
        }
    }
}

/// Forwards what waits in the socket of the target; false if nothing did.
fn from_target(
    ready: Ready,
    target: &mut ToTarget<'_>,
    client: &mut ToClient<'_>,
    buffer: &mut Vec<u8>,
) -> io::Result<bool> {
    buffer.resize(RECEIVE_BUFFER, 0);
    let received = target
        .socket
        .receive(ready, buffer, |payload| client.forward(payload))?;
    if received {
        target.reflection.on_answer();
    }
    Ok(received)
}

async fn next_datagram(datagrams: Option<&HttpDatagrams>) -> Option<Bytes> {
    match datagrams {
        Some(datagrams) => datagrams.recv().await.ok(),
        None => std::future::pending().await,
    }
}

/// The next piece of content; `Err` if it breaks off.
async fn next_piece(content: &mut Body) -> Option<Result<Bytes, ()>> {
    loop {
        let frame = std::future::poll_fn(|cx| Pin::new(&mut *content).poll_frame(cx)).await?;
        match frame.map(Frame::into_data) {
            Ok(Ok(piece)) => return Some(Ok(piece)),
            // Trailers have no meaning here.
            Ok(Err(_)) => {}
            Err(_) => return Some(Err(())),
        }
    }
}

/// Datagrams to the target.
struct ToTarget<'a> {
    socket: &'a TargetSocket,
    reflection: Reflection,
    counters: &'a Counters,
}

impl ToTarget<'_> {
    /// Sends the payload of an HTTP datagram, or counts why not.
    fn forward(&mut self, datagram: Bytes) {
        let payload = match context::decode(datagram) {
            Some((ContextId::UDP, payload)) if payload.len() <= MAX_UDP_PAYLOAD => payload,
            _ => return self.counters.on_drop(Dropped::Unknown),
        };
        if !self.reflection.admit(payload.len()) {
            return self.counters.on_drop(Dropped::Unanswered);
        }
        match self.socket.send(&payload) {
            Ok(()) => self.counters.on_datagram_to_target(payload.len()),
            // An error of the network is reported to who receives, too.
            Err(_) => self.counters.on_drop(Dropped::Full),
        }
    }
}

/// Datagrams to the client.
struct ToClient<'a> {
    datagrams: Option<HttpDatagrams>,
    content: Sender<Bytes>,
    counters: &'a Counters,
}

impl ToClient<'_> {
    /// Sends a UDP payload of the target, or counts why not. It never waits: a queue before a slow client would
    /// only delay what follows.
    fn forward(&mut self, payload: &[u8]) {
        let datagram = context::encode(ContextId::UDP, payload);
        let sent = match &self.datagrams {
            Some(datagrams) => send_datagram(datagrams, &datagram),
            None => self.send_capsule(datagram),
        };
        match sent {
            Ok(()) => self.counters.on_datagram_to_client(payload.len()),
            Err(dropped) => self.counters.on_drop(dropped),
        }
    }

    fn send_capsule(&mut self, datagram: Vec<u8>) -> Result<(), Dropped> {
        let frame = Frame::data(capsules::encode(datagram));
        self.content.try_send(frame).map_err(|_| Dropped::Full)
    }
}

fn send_datagram(datagrams: &HttpDatagrams, datagram: &[u8]) -> Result<(), Dropped> {
    let now = datagrams.connection().now();
    let mut options = DatagramOptions::default();
    options.deadline = Some(now + MAX_QUEUE_DELAY);
    match datagrams.try_send_with(datagram, options) {
        Ok(()) => Ok(()),
        // Not in a capsule instead: the target's sender would take it for a path of that size (RFC 9298,
        // section 5).
        Err(DatagramError::Transport(SendDatagramError::TooLarge { .. })) => Err(Dropped::Large),
        Err(_) => Err(Dropped::Full),
    }
}
