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
use swiftwater_net::quic::{DatagramFate, DatagramOptions, SendDatagramError};
use swiftwater_units::Instant;
use thiserror::Error;
use tokio::io::Ready;
use tokio::select;

use super::capsules::{self, CapsuleError, Capsules};
use super::idle::Idle;
use super::repaired::Repaired;
use super::stats::{Counters, Dropped};
use super::target_socket::{RECEIVE_BUFFER, TargetSocket};
use crate::MAX_UDP_PAYLOAD;
use crate::context::{self, ContextId};
use crate::policy::{Reflection, ReflectionLimit};
use crate::tecc::{Agreement, RepairLimits, data};

/// How long a datagram may wait for its turn to the client: what is older, the sender has sent again.
pub(super) const MAX_QUEUE_DELAY: Duration = Duration::from_millis(300);

/// What a tunnel needs.
pub(super) struct Tunnel {
    pub(super) socket: TargetSocket,
    /// Datagrams below HTTP; `None` with HTTP versions that have none.
    pub(super) datagrams: Option<HttpDatagrams>,
    /// The repair of losses on the way to the client, if it was agreed on.
    pub(super) agreement: Option<(Agreement, RepairLimits)>,
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
            agreement,
            to_client,
            mut from_client,
            reflection,
            idle_timeout,
            counters,
        } = self;
        let mut target = ToTarget {
            socket: &socket,
            reflection: Reflection::new(reflection),
            opened_at: tokio::time::Instant::now(),
            counters: &counters,
        };
        let mut client = ToClient {
            datagrams: datagrams.clone(),
            content: to_client,
            repaired: agreement.map(|(agreement, limits)| Repaired::new(agreement, limits)),
            counters: &counters,
        };
        let mut capsules = Capsules::new();
        let mut idle = Idle::new(idle_timeout);
        let mut buffer = Vec::new();
        loop {
            let report_in = client.report();
            select! {
                () = tokio::time::sleep(report_in.unwrap_or_default()), if report_in.is_some() => {}
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
                    if let Err(error) = target.forward(datagram) {
                        return error.into();
                    }
                }
                piece = next_piece(&mut from_client) => match piece {
                    Some(Ok(piece)) => {
                        idle.restart();
                        capsules.push(piece);
                        if let Err(end) = target.forward_all(&mut capsules) {
                            return end;
                        }
                    }
                    Some(Err(())) => return TunnelEnd::ClientGone,
                    None => return capsules.finish().map_or_else(Into::into, |()| TunnelEnd::Finished),
                },
                fate = next_fate(datagrams.as_ref()), if agreement.is_some() => {
                    let Some((number, fate)) = fate else {
                        return TunnelEnd::ClientGone;
                    };
                    client.on_fate(number, fate);
                }
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

async fn next_fate(datagrams: Option<&HttpDatagrams>) -> Option<(u64, DatagramFate)> {
    match datagrams {
        Some(datagrams) => datagrams.recv_fate().await.ok(),
        None => std::future::pending().await,
    }
}

/// The next piece of content; `Err` if it breaks off.
pub(super) async fn next_piece(content: &mut Body) -> Option<Result<Bytes, ()>> {
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
    opened_at: tokio::time::Instant,
    counters: &'a Counters,
}

impl ToTarget<'_> {
    /// Sends the payloads of all capsules that are complete.
    fn forward_all(&mut self, capsules: &mut Capsules) -> Result<(), TunnelEnd> {
        while let Some(datagram) = capsules.next()? {
            self.forward(datagram)?;
        }
        Ok(())
    }

    /// Sends the payload of an HTTP datagram, or counts why not. Fails if the network reports that the target can't be
    /// reached: the system says that once, to who sends or to who receives.
    fn forward(&mut self, datagram: Bytes) -> io::Result<()> {
        let dropped = match context::decode(datagram) {
            Some((ContextId::UDP, payload)) if payload.len() <= MAX_UDP_PAYLOAD => {
                self.send(&payload)?
            }
            _ => Some(Dropped::Unknown),
        };
        if let Some(dropped) = dropped {
            self.counters.on_drop(dropped);
        }
        Ok(())
    }

    fn send(&mut self, payload: &[u8]) -> io::Result<Option<Dropped>> {
        let at = self.opened_at.elapsed();
        if !self.reflection.admit(payload.len(), at) {
            return Ok(Some(Dropped::Unanswered));
        }
        match self.socket.send(payload) {
            Ok(()) => {
                self.counters.on_datagram_to_target(payload.len());
                Ok(None)
            }
            Err(error) if is_of_datagram(&error) => Ok(Some(Dropped::Full)),
            Err(error) => Err(error),
        }
    }
}

/// Whether an error concerns one datagram only: the system's buffer is full, or it is too large for the path.
fn is_of_datagram(error: &io::Error) -> bool {
    !matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::HostUnreachable
            | io::ErrorKind::NetworkUnreachable
    )
}

/// Datagrams to the client.
struct ToClient<'a> {
    datagrams: Option<HttpDatagrams>,
    content: Sender<Bytes>,
    repaired: Option<Repaired>,
    counters: &'a Counters,
}

impl ToClient<'_> {
    /// Sends a UDP payload of the target, or counts why not. It never waits: a queue before a slow client would
    /// only delay what follows.
    fn forward(&mut self, payload: &[u8]) {
        let sent = match (&self.datagrams, &mut self.repaired) {
            (Some(datagrams), Some(repaired)) if data::is_numbered(payload) => {
                repaired.send(datagrams, payload)
            }
            (Some(datagrams), _) => {
                let datagram = context::encode(ContextId::UDP, payload);
                let until = datagrams.connection().now() + MAX_QUEUE_DELAY;
                send_datagram(datagrams, &datagram, deadline(until))
            }
            (None, _) => self.send_capsule(context::encode(ContextId::UDP, payload)),
        };
        match sent {
            Ok(()) => self.counters.on_datagram_to_client(payload.len()),
            Err(dropped) => self.counters.on_drop(dropped),
        }
    }

    /// What became of the datagram of a numbered payload.
    fn on_fate(&mut self, number: u64, fate: DatagramFate) {
        let (Some(datagrams), Some(repaired)) = (&self.datagrams, &mut self.repaired) else {
            return;
        };
        if repaired.on_fate(datagrams, number, fate) {
            self.counters.on_repair();
        }
    }

    /// Reports if it is time to; returns in what time to ask again, although nothing passes.
    fn report(&mut self) -> Option<Duration> {
        let repaired = self.repaired.as_mut()?;
        repaired.report(self.datagrams.as_ref()?)
    }

    fn send_capsule(&mut self, datagram: Vec<u8>) -> Result<(), Dropped> {
        let frame = Frame::data(capsules::encode(datagram));
        self.content.try_send(frame).map_err(|_| Dropped::Full)
    }
}

pub(super) fn deadline(until: Instant) -> DatagramOptions {
    let mut options = DatagramOptions::default();
    options.deadline = Some(until);
    options
}

pub(super) fn send_datagram(
    datagrams: &HttpDatagrams,
    datagram: &[u8],
    options: DatagramOptions,
) -> Result<(), Dropped> {
    match datagrams.try_send_with(datagram, options) {
        Ok(()) => Ok(()),
        // Not in a capsule instead: the target's sender would take it for a path of that size (RFC 9298,
        // section 5).
        Err(DatagramError::Transport(SendDatagramError::TooLarge { .. })) => Err(Dropped::Large),
        Err(_) => Err(Dropped::Full),
    }
}
