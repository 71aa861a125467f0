//! One tunnel: datagrams between a client and a target, in both directions, until the end.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http_body::Frame;
use http_body_util::channel::Sender;
use swiftwater_http::h3::DatagramError;
use swiftwater_http::udp::connect::{DatagramBatch, HttpDatagrams};
use swiftwater_http::web::body::Body;
use swiftwater_net::quic::{DatagramFate, DatagramOptions, SendDatagramError};
use swiftwater_units::Instant;
use thiserror::Error;
use tokio::io::Ready;
use tokio::select;

use super::capsules::{self, CapsuleError, Capsules};
use super::content::Content;
use super::idle::Idle;
use super::receive_buffers::ReceiveBuffers;
use super::repaired::Repaired;
use super::send_run::SendRun;
use super::stats::{Counters, Dropped, Passed};
use super::target_socket::TargetSocket;
use super::user_budget::{Direction, UserBudget};
use crate::MAX_UDP_PAYLOAD;
use crate::context::{self, ContextId};
use crate::policy::{Reflection, ReflectionLimit};
use crate::tecc::{Agreement, RepairLimits, data};

/// How long a datagram may wait for its turn to the client, where its sender has no reports: what is older, it has sent
/// again.
pub(super) const MAX_QUEUE_DELAY: Duration = Duration::from_millis(300);

/// Datagrams of a client that mostly wait together: a tunnel keeps room for so many.
const USUAL_BURST: usize = 64;

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
            from_client,
            reflection,
            budget,
            idle_timeout,
            counters,
        } = self;
        let mut target = ToTarget {
            socket: &socket,
            reflection: Reflection::new(reflection),
            opened_at: tokio::time::Instant::now(),
            budget: budget.as_deref(),
            counters: &counters,
        };
        let mut client = ToClient {
            datagrams: datagrams.clone(),
            content: to_client,
            repaired: agreement.map(|(agreement, limits)| Repaired::new(agreement, limits)),
            budget: budget.as_deref(),
            counters: &counters,
        };
        if let Some(datagrams) = &datagrams {
            // The target's packets are as large as they are, and what does not fit is dropped.
            datagrams.connection().seek_larger_datagrams();
        }
        let mut capsules = Capsules::new();
        let mut content = Content::new(from_client);
        let mut idle = Idle::new(idle_timeout);
        let mut waiting = Vec::new();
        loop {
            let report_in = client.report();
            select! {
                () = pause(report_in) => {}
                ready = socket.ready() => {
                    let received = ready.and_then(|ready| {
                        from_target(ready, &mut target, &mut client)
                    });
                    match received {
                        Ok(true) => idle.restart(),
                        Ok(false) => {}
                        Err(error) => return error.into(),
                    }
                }
                received = next_datagrams(datagrams.as_ref(), &mut waiting) => {
                    if received.is_none() {
                        return TunnelEnd::ClientGone;
                    }
                    idle.restart();
                    if let Err(error) = target.forward_all(waiting.drain(..)) {
                        return error.into();
                    }
                    if waiting.capacity() > 2 * USUAL_BURST {
                        waiting.shrink_to(USUAL_BURST);
                    }
                }
                piece = content.next() => match piece {
                    Some(Ok(piece)) => {
                        idle.restart();
                        capsules.push(piece);
                        if let Err(end) = target.forward_capsules(&mut capsules) {
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
                () = idle.wait() => return TunnelEnd::Idle,
            }
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
            client.forward_all(buffers.datagrams());
            target.reflection.on_answer();
        }
        Ok(received)
    })
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
    /// Sends the payloads of all capsules that are complete.
    fn forward_capsules(&mut self, capsules: &mut Capsules) -> Result<(), TunnelEnd> {
        while let Some(datagram) = capsules.next()? {
            self.forward_all(std::iter::once(datagram))?;
        }
        Ok(())
    }

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
                Err(error) if is_of_datagram(&error) => {}
                Err(error) => return Err(error),
            }
        }
        // Also if the system takes no runs after all, or has room for some only.
        for payload in run.datagrams() {
            match self.socket.send(payload) {
                Ok(()) => self.counters.on_datagrams_to_target(1, payload.len()),
                Err(error) if is_of_datagram(&error) => self.counters.on_drop(Dropped::Full, 1),
                Err(error) => return Err(error),
            }
        }
        Ok(())
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
    budget: Option<&'a UserBudget>,
    counters: &'a Counters,
}

impl ToClient<'_> {
    /// Sends UDP payloads of the target, or counts why not. It never waits: a queue before a slow client would
    /// only delay what follows.
    fn forward_all<'p>(&mut self, payloads: impl Iterator<Item = &'p [u8]>) {
        let Self {
            datagrams,
            content,
            repaired,
            budget,
            counters,
        } = self;
        let is_over_limit = |payload: &[u8]| !admits(*budget, Direction::ToClient, payload.len());
        let mut passed = Passed::default();
        let Some(datagrams) = datagrams else {
            for payload in payloads {
                let sent = if is_over_limit(payload) {
                    Err(Dropped::OverLimit)
                } else {
                    send_capsule(content, payload)
                };
                passed.add(payload, sent);
            }
            counters.on_passed_to_client(&passed);
            return;
        };
        let now = datagrams.connection().now();
        let options = deadline(now + MAX_QUEUE_DELAY);
        datagrams.send_batch(|batch| {
            for payload in payloads {
                let sent = match repaired {
                    _ if is_over_limit(payload) => Err(Dropped::OverLimit),
                    Some(repaired) if data::is_numbered(payload) => {
                        repaired.send(batch, now, payload)
                    }
                    _ => send_datagram(batch, [&context::UDP_HEAD, payload], options),
                };
                passed.add(payload, sent);
            }
        });
        counters.on_passed_to_client(&passed);
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
}

/// Whether a payload of `len` bytes may pass.
fn admits(budget: Option<&UserBudget>, direction: Direction, len: usize) -> bool {
    budget.is_none_or(|budget| budget.admit(direction, len))
}

fn send_capsule(content: &mut Sender<Bytes>, payload: &[u8]) -> Result<(), Dropped> {
    let datagram = context::encode(ContextId::UDP, payload);
    let frame = Frame::data(capsules::encode(datagram));
    content.try_send(frame).map_err(|_| Dropped::Full)
}

pub(super) fn deadline(until: Instant) -> DatagramOptions {
    let mut options = DatagramOptions::default();
    options.deadline = Some(until);
    options
}

pub(super) fn send_datagram(
    batch: &mut DatagramBatch<'_>,
    parts: [&[u8]; 2],
    options: DatagramOptions,
) -> Result<(), Dropped> {
    match batch.send_with(parts, options) {
        Ok(()) => Ok(()),
        // Not in a capsule instead: the target's sender would take it for a path of that size (RFC 9298,
        // section 5).
        Err(DatagramError::Transport(SendDatagramError::TooLarge { .. })) => Err(Dropped::Large),
        Err(_) => Err(Dropped::Full),
    }
}
