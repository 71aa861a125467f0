//! One tunnel: datagrams between a client and a target, in both directions, until the end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::channel::Sender;
use swiftwater_http::udp::connect::HttpDatagrams;
use swiftwater_http::web::body::{Body, BoxError, MalformedMessage};
use swiftwater_net::quic::DatagramFate;
use thiserror::Error;
use tokio::io::Ready;
use tokio::select;

use super::capsules::{CapsuleError, Capsules, FromClient};
use super::content::Content;
use super::forwarding::{self, Agreed, Forwarding};
use super::idle::{Activity, Idle};
use super::receive_buffers::ReceiveBuffers;
use super::repaired::Repaired;
use super::send_run::SendRun;
use super::stats::{Counters, Dropped};
use super::target_socket::{TargetSocket, is_unreachable};
use super::to_client::ToClient;
use super::usage::TunnelPermit;
use super::user_budget::{Direction, UserBudget, admits};
use crate::MAX_UDP_PAYLOAD;
use crate::context::{self, ContextId};
use crate::forwarding::TooManyRegistrations;
use crate::policy::{Reflection, ReflectionLimit};
use crate::tecc::{Agreement, RepairLimits};

/// Datagrams of a client that mostly wait together: a tunnel keeps room for so many.
const USUAL_BURST: usize = 64;

/// What a tunnel needs.
pub(super) struct Tunnel {
    pub(super) socket: TargetSocket,
    /// Datagrams below HTTP; `None` with HTTP versions that have none.
    pub(super) datagrams: Option<HttpDatagrams>,
    /// The repair of losses on the way to the client, if it was agreed on.
    pub(super) agreement: Option<(Agreement, RepairLimits)>,
    /// The forwarding of packets beside the connection, if it was agreed on.
    pub(super) forwarding: Option<Agreed>,
    /// Content for the client: capsules.
    pub(super) to_client: Sender<Bytes, BoxError>,
    /// Content from the client: capsules.
    pub(super) from_client: Body,
    pub(super) reflection: ReflectionLimit,
    /// What the user may pass; `None` without a limit.
    pub(super) budget: Option<Arc<UserBudget>>,
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
    /// The client registers more than it may.
    #[error(transparent)]
    Registrations(#[from] TooManyRegistrations),
    /// The client does not read the answers to its capsules.
    #[error("the client does not read the answers to its capsules")]
    Unread,
    /// The network reports that the target can't be reached.
    #[error("the target can't be reached: {0}")]
    Target(#[from] io::Error),
    /// Nothing was received from either side.
    #[error("nothing was received for the idle timeout")]
    Idle,
}

impl Tunnel {
    /// Forwards until the end. The client sees an orderly end, or a reset if it did not keep to the protocol.
    pub(super) async fn run(self, permit: TunnelPermit) -> TunnelEnd {
        let counters = Arc::clone(&self.counters);
        counters.on_open();
        let end = self.forward().await;
        drop(permit);
        counters.on_close();
        end
    }

    async fn forward(self) -> TunnelEnd {
        let Self {
            socket,
            datagrams,
            agreement,
            forwarding,
            to_client,
            from_client,
            reflection,
            budget,
            idle_timeout,
            counters,
        } = self;
        let socket = Arc::new(socket);
        let activity = Arc::<Activity>::default();
        let forwarded_to = forwarding::Target {
            socket: Arc::clone(&socket),
            budget: budget.clone(),
            counters: Arc::clone(&counters),
            activity: Arc::clone(&activity),
        };
        let forwarding = datagrams.clone().zip(forwarding);
        let forwarding =
            forwarding.map(|(datagrams, agreed)| Forwarding::new(datagrams, agreed, forwarded_to));
        let mut target = ToTarget {
            socket: &socket,
            reflection: Reflection::new(reflection),
            opened_at: tokio::time::Instant::now(),
            budget: budget.as_deref(),
            counters: &counters,
        };
        let repaired = agreement.map(|(agreement, limits)| Repaired::new(agreement, limits));
        let mut client = ToClient {
            datagrams: datagrams.clone(),
            is_negotiated: false,
            content: to_client,
            repaired,
            forwarding,
            budget: budget.as_deref(),
            counters: &counters,
        };
        if let Some(datagrams) = &datagrams {
            // The target's packets are as large as they are, and what does not fit is dropped.
            datagrams.connection().seek_larger_datagrams();
        }
        let inputs = Inputs {
            socket: &socket,
            datagrams: datagrams.as_ref(),
            content: Content::new(from_client),
            idle: Idle::new(idle_timeout, activity),
            is_repaired: agreement.is_some(),
        };
        let end = forward_until_end(inputs, &mut target, &mut client).await;
        if let Some(fault) = end.fault_of_client() {
            client.abort(fault);
        }
        end
    }
}

impl TunnelEnd {
    /// Why the client sees a reset, not an orderly end.
    fn fault_of_client(&self) -> Option<BoxError> {
        match self {
            Self::Capsules(_) | Self::Registrations(_) => Some(MalformedMessage.into()),
            Self::Unread => Some(self.to_string().into()),
            _ => None,
        }
    }
}

/// What a tunnel receives.
struct Inputs<'a> {
    socket: &'a TargetSocket,
    datagrams: Option<&'a HttpDatagrams>,
    content: Content,
    idle: Idle,
    /// What became of datagrams is reported.
    is_repaired: bool,
}

/// Forwards in both directions until the end.
async fn forward_until_end(
    inputs: Inputs<'_>,
    target: &mut ToTarget<'_>,
    client: &mut ToClient<'_>,
) -> TunnelEnd {
    let Inputs {
        socket,
        datagrams,
        mut content,
        mut idle,
        is_repaired,
    } = inputs;
    let mut capsules = Capsules::new();
    if !client.permit_registrations() {
        return TunnelEnd::Unread;
    }
    let mut waiting = Vec::new();
    loop {
        let report_in = client.report();
        select! {
            () = pause(report_in) => {}
            ready = socket.ready() => {
                match ready.and_then(|ready| from_target(ready, target, client)) {
                    Ok(true) => {
                        idle.restart();
                        if !client.check_path() {
                            return TunnelEnd::Unread;
                        }
                    }
                    Ok(false) => {}
                    Err(error) => return error.into(),
                }
            }
            received = next_datagrams(datagrams, &mut waiting) => {
                if received.is_none() {
                    return TunnelEnd::ClientGone;
                }
                idle.restart();
                if !client.check_path() {
                    return TunnelEnd::Unread;
                }
                if let Err(error) = target.forward_all(waiting.drain(..)) {
                    return error.into();
                }
                if waiting.capacity() > 2 * USUAL_BURST {
                    waiting.shrink_to(USUAL_BURST);
                }
            }
            piece = content.next() => {
                idle.restart();
                if let Err(end) = take_content(piece, &mut capsules, target, client) {
                    return end;
                }
            }
            fate = next_fate(datagrams), if is_repaired => {
                let Some((number, fate)) = fate else {
                    return TunnelEnd::ClientGone;
                };
                client.on_fate(number, fate);
            }
            () = idle.wait() => return TunnelEnd::Idle,
        }
    }
}

/// Forwards what waits in the socket of the target; false if nothing did.
fn from_target(
    ready: Ready,
    target: &mut ToTarget<'_>,
    client: &mut ToClient<'_>,
) -> io::Result<bool> {
    ReceiveBuffers::lend(|buffers| {
        let received = target.socket.receive(ready, buffers)?;
        if received {
            client.forward_received(buffers);
            target.reflection.on_answer();
        }
        Ok(received)
    })
}

/// Acts on a piece of the content of the client, or its end.
fn take_content(
    piece: Option<Result<Bytes, ()>>,
    capsules: &mut Capsules,
    target: &mut ToTarget<'_>,
    client: &mut ToClient<'_>,
) -> Result<(), TunnelEnd> {
    match piece {
        Some(Ok(piece)) => capsules.push(piece),
        Some(Err(())) => return Err(TunnelEnd::ClientGone),
        None => {
            capsules.finish()?;
            return Err(TunnelEnd::Finished);
        }
    }
    while let Some(capsule) = capsules.next()? {
        match capsule {
            FromClient::Datagram(datagram) => target.forward_all(std::iter::once(datagram))?,
            FromClient::Cid(capsule) => {
                let is_read = client.check_path()
                    && client.register(capsule, target.reflection.has_answered())?;
                if !is_read {
                    return Err(TunnelEnd::Unread);
                }
            }
        }
    }
    Ok(())
}

/// Waits for this long, or for ever.
async fn pause(time: Option<Duration>) {
    match time {
        Some(time) => tokio::time::sleep(time).await,
        None => std::future::pending().await,
    }
}

/// All datagrams of the client that wait; `None` if there will be no more.
async fn next_datagrams(datagrams: Option<&HttpDatagrams>, waiting: &mut Vec<Bytes>) -> Option<()> {
    match datagrams {
        Some(datagrams) => datagrams.recv_all(waiting).await.ok(),
        None => std::future::pending().await,
    }
}

async fn next_fate(datagrams: Option<&HttpDatagrams>) -> Option<(u64, DatagramFate)> {
    match datagrams {
        Some(datagrams) => datagrams.recv_fate().await.ok(),
        None => std::future::pending().await,
    }
}

/// Datagrams to the target.
struct ToTarget<'a> {
    socket: &'a TargetSocket,
    reflection: Reflection,
    opened_at: tokio::time::Instant,
    budget: Option<&'a UserBudget>,
    counters: &'a Counters,
}

impl ToTarget<'_> {
    /// Sends the payloads of HTTP datagrams, or counts why not. Fails if the network reports that the target can't be
    /// reached: the system says that once, to who sends or to who receives.
    fn forward_all(&mut self, datagrams: impl Iterator<Item = Bytes>) -> io::Result<()> {
        let at = self.opened_at.elapsed();
        let max_count = self.socket.max_run();
        SendRun::lend(|run| {
            for datagram in datagrams {
                let payload = match context::decode(datagram) {
                    Some((ContextId::UDP, payload)) if payload.len() <= MAX_UDP_PAYLOAD => payload,
                    _ => {
                        self.counters.on_drop(Dropped::Unknown, 1);
                        continue;
                    }
                };
                if !self.reflection.admit(payload.len(), at) {
                    self.counters.on_drop(Dropped::Unanswered, 1);
                } else if !admits(self.budget, Direction::ToTarget, payload.len()) {
                    self.counters.on_drop(Dropped::OverLimit, 1);
                } else if !run.push(&payload, max_count) {
                    self.send(run)?;
                    run.clear();
                    run.push(&payload, max_count);
                }
            }
            self.send(run)
        })
    }

    /// Sends what a run has.
    fn send(&self, run: &SendRun) -> io::Result<()> {
        if run.count() > 1 {
            match self.socket.send_run(run) {
                Ok(()) => {
                    let (count, bytes) = (run.count(), run.content().len());
                    self.counters.on_datagrams_to_target(count, bytes);
                    return Ok(());
                }
                Err(error) if is_unreachable(&error) => return Err(error),
                Err(_) => {}
            }
        }
        // Also if the system takes no runs after all, or has room for some only.
        for payload in run.datagrams() {
            match self.socket.send(payload) {
                Ok(()) => self.counters.on_datagrams_to_target(1, payload.len()),
                Err(error) if is_unreachable(&error) => return Err(error),
                Err(_) => self.counters.on_drop(Dropped::Full, 1),
            }
        }
        Ok(())
    }
}
