//! Runs a race of connection attempts (RFC 8305): starts the attempts of the plan, returns the
//! first connection that is established, and cancels the others. QUIC attempts that TCP overtook
//! continue for a while, to find out whether QUIC works on this network.

use std::future::pending;
use std::net::SocketAddr;

use http::Request;
use tokio::task::{JoinError, JoinSet};
use tokio::time::{Instant, sleep_until};

use super::error::{AttemptCause, AttemptError, Error};
use super::pool::Pool;
use super::quic::{self, QuicOpened, QuicPlan};
use super::race::{AttemptTransport, Candidate, Race};
use super::tcp::{self, TcpLink, TcpOpened, TcpPlan};
use crate::web::body::Body;

type QuicTasks = JoinSet<(SocketAddr, Result<QuicOpened, AttemptCause>)>;
type TcpTasks = JoinSet<(SocketAddr, Result<TcpOpened, AttemptCause>)>;

/// A race and what its attempts need: endpoint, TLS configuration, addresses.
pub(super) struct Contest<'a> {
    pub(super) race: Race,
    /// Present if the race has QUIC candidates.
    pub(super) quic: Option<QuicPlan>,
    pub(super) tcp: TcpPlan,
    /// For the first attempt of QUIC.
    pub(super) early: Option<Request<Body>>,
    /// The pool, which may already hold an open connection over TCP.
    pub(super) pool: &'a Pool,
}

/// Winner of a race.
pub(super) enum Won {
    Quic(QuicOpened),
    Tcp(TcpOpened),
    /// A connection from the pool, found when a TCP attempt was due.
    Standing(TcpLink),
}

/// Outcome of a race.
pub(super) struct Outcome {
    pub(super) won: Won,
    pub(super) attempts: u32,
    /// At least one QUIC attempt failed, and none is left.
    pub(super) quic_failed: bool,
    /// QUIC attempts that TCP overtook.
    pub(super) unfinished: Option<Unfinished>,
}

/// QUIC attempts that continue after the race.
pub(super) struct Unfinished(QuicTasks);

impl Unfinished {
    /// Waits for the first connection, if any attempt succeeds.
    pub(super) async fn finish(mut self) -> Option<QuicOpened> {
        while let Some(done) = self.0.join_next().await {
            if let Ok((_, Ok(opened))) = done {
                return Some(opened);
            }
        }
        None
    }
}

/// The state of a running race.
#[derive(Default)]
struct Running {
    quic: QuicTasks,
    tcp: TcpTasks,
    errors: Vec<AttemptError>,
}

impl Contest<'_> {
    pub(super) async fn run(mut self) -> Result<Outcome, Error> {
        let mut running = Running::default();
        loop {
            while let Some(candidate) = self.race.start(Instant::now()) {
                if let Some(link) = self.begin(candidate, &mut running) {
                    return Ok(self.outcome(Won::Standing(link), running));
                }
            }
            if self.race.is_over() {
                return Err(Error::Unreachable(running.errors));
            }
            let wake = self.race.wake_at();
            tokio::select! {
                biased;
                Some(done) = running.quic.join_next() => {
                    if let Some(opened) = self.judge(AttemptTransport::Quic, done, &mut running.errors) {
                        return Ok(self.outcome(Won::Quic(opened), running));
                    }
                }
                Some(done) = running.tcp.join_next() => {
                    if let Some(opened) = self.judge(AttemptTransport::Tcp, done, &mut running.errors) {
                        return Ok(self.outcome(Won::Tcp(opened), running));
                    }
                }
                () = sleep_until_some(wake) => {}
            }
        }
    }

    /// Starts an attempt, unless the pool has a connection by now.
    fn begin(&mut self, candidate: Candidate, running: &mut Running) -> Option<TcpLink> {
        let address = candidate.address;
        match candidate.transport {
            AttemptTransport::Quic => {
                let early = self.early.take();
                if let Some(plan) = self.quic.clone() {
                    let attempt = async move { (address, quic::open(plan, address, early).await) };
                    running.quic.spawn(attempt);
                } else {
                    self.race.failed(Instant::now(), AttemptTransport::Quic);
                }
            }
            AttemptTransport::Tcp => {
                let standing = self.pool.tcp(&self.tcp.origin);
                if standing.is_some() {
                    return standing;
                }
                let plan = self.tcp.clone();
                let attempt = async move { (address, tcp::open(plan, address).await) };
                running.tcp.spawn(attempt);
            }
        }
        None
    }

    /// The connection of an attempt, or a note of its failure.
    fn judge<T>(
        &mut self,
        transport: AttemptTransport,
        done: Result<(SocketAddr, Result<T, AttemptCause>), JoinError>,
        errors: &mut Vec<AttemptError>,
    ) -> Option<T> {
        let (address, cause) = match done {
            Ok((_, Ok(opened))) => return Some(opened),
            Ok((address, Err(cause))) => (address, cause),
            Err(_) => (([0, 0, 0, 0], 0).into(), AttemptCause::GivenUp),
        };
        tracing::debug!(?transport, %address, %cause, "a connection attempt failed");
        self.race.failed(Instant::now(), transport);
        errors.push(AttemptError {
            transport,
            address,
            cause,
        });
        None
    }

    fn outcome(&self, won: Won, running: Running) -> Outcome {
        let over_tcp = !matches!(won, Won::Quic(_));
        let failed = |error: &AttemptError| error.transport == AttemptTransport::Quic;
        Outcome {
            won,
            attempts: self.race.started(),
            quic_failed: self.race.quic_is_over() && running.errors.iter().any(failed),
            unfinished: (over_tcp && self.race.quic_runs()).then_some(Unfinished(running.quic)),
        }
    }
}

async fn sleep_until_some(deadline: Option<Instant>) {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => pending().await,
    }
}
