//! A request over the arm that is chosen for it, and over TCP as well if it may be sent twice and QUIC does
//! not answer.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;

use http::Method;
use swiftwater_net::Connection;
use swiftwater_select::{Hedge, Reason, Transport};
use tokio::time::{Instant, sleep, sleep_until};

use super::choice::{ArmChoice, ReplaySafe};
use super::chooser::{Place, Raced, Selection, Turn};
use super::ticket::Ticket;
use crate::client::attempt::{Answered, Job, Progress};
use crate::client::error::Error;
use crate::client::exchange::Link;
use crate::client::measurements::OnEnd;
use crate::client::policy::{Policy, Tcp, Way};
use crate::client::protocol_choice::{Protocol, Why};
use crate::client::state::{Selected, State};

/// A response's head, over the arm that was chosen.
pub(in crate::client) struct SelectedResponse {
    pub(in crate::client) answered: Answered,
    pub(in crate::client) choice: ArmChoice,
    /// Reports the outcome.
    pub(in crate::client) on_end: OnEnd,
}

/// A response's head.
struct Response {
    answered: Answered,
    /// It was sent over a second arm, too.
    hedged: bool,
    /// Nothing had come on the connection of the arm that was decided on: it counts if another one answered.
    silent: bool,
}

impl Selection {
    /// Sends the request over the arm that is chosen for it.
    pub(in crate::client) async fn answer(
        self: &Arc<Self>,
        job: &Job<'_>,
    ) -> Result<SelectedResponse, Error> {
        let place = self.place(job.origin);
        if self.is_new(place, job.origin) {
            return self.race(job, place).await;
        }
        let Some(turn) = self.decide(place, job.origin, is_replay_safe(job)) else {
            return self.race(job, place).await;
        };
        let ticket = Ticket::new(self, &turn.decision);
        log(job, &turn, turn.decision.reason);
        match self.send(job, place, &turn).await {
            Ok(response) => {
                let reason = turn.decision.reason;
                Ok(self.chosen(response, &turn, reason, ticket))
            }
            Err(error) => {
                ticket.failed(&error);
                Err(error)
            }
        }
    }

    /// A request to an origin of which it is not known what connects first: over what does.
    async fn race(
        self: &Arc<Self>,
        job: &Job<'_>,
        place: Place,
    ) -> Result<SelectedResponse, Error> {
        let (way, progress) = (self.way_to_new(), Progress::default());
        let selected = self.main.connection(job, way, &progress).await?;
        let raced = Raced {
            transport: transport(&selected),
            new: !selected.reused,
            hinted: !matches!(selected.why, Why::NoHint | Why::Policy),
        };
        let turn = self.decide_raced(place, job.origin, is_replay_safe(job), raced);
        let reason = Reason::ConnectedFirst;
        log(job, &turn, reason);
        let ticket = Ticket::new(self, &turn.decision);
        match self.main.answer_on(selected, job, way, progress).await {
            Ok(answered) => {
                let response = Response {
                    answered,
                    hedged: false,
                    silent: true,
                };
                Ok(self.chosen(response, &turn, reason, ticket))
            }
            Err(error) => {
                ticket.failed(&error);
                Err(error)
            }
        }
    }

    fn chosen(
        &self,
        response: Response,
        turn: &Turn,
        reason: Reason,
        ticket: Ticket,
    ) -> SelectedResponse {
        let Response {
            mut answered,
            hedged,
            silent,
        } = response;
        let transport = match answered.chosen.protocol {
            Protocol::Http3 => Transport::Quic,
            Protocol::Http1 | Protocol::Http2 => Transport::Tcp,
        };
        let arm = self.arms[self.of_transport(turn.arm, transport)]
            .arm
            .clone();
        if answered.chosen.why == Why::Policy {
            answered.chosen.why = Why::Selected;
        }
        let choice = ArmChoice {
            arm: arm.clone(),
            decided: turn.decision.arm.clone(),
            reason,
            hedged,
        };
        let times = (answered.sent, answered.waited);
        SelectedResponse {
            answered,
            choice,
            on_end: Box::new(move |snapshot, traffic| {
                ticket.ended((arm, silent, hedged), times, snapshot, traffic);
            }),
        }
    }

    /// The arm itself if it uses this transport, otherwise the first one that does.
    fn of_transport(&self, arm: usize, transport: Transport) -> usize {
        if self.arms[arm].arm.transport() == transport {
            return arm;
        }
        self.first(transport).unwrap_or(arm)
    }

    async fn send(
        self: &Arc<Self>,
        job: &Job<'_>,
        place: Place,
        turn: &Turn,
    ) -> Result<Response, Error> {
        let decision = &turn.decision;
        let arm = &self.arms[turn.arm];
        let (state, way) = if !arm.is_quic() {
            (&arm.state, Way::Policy(Policy::NoHttp3))
        } else if self.is_usable(turn.arm, place, job.origin) {
            (&arm.state, way_over_quic(turn, &arm.state))
        } else {
            (&self.main, Way::Policy(Policy::NoHttp3))
        };
        let progress = Progress::default();
        let selected = state.connection(job, way, &progress).await?;
        let connection = match &selected.link {
            Link::Http3(link, _) => Some(link.sender.connection().clone()),
            Link::Tcp(_) => None,
        };
        self.note_connection(place, turn.arm, &selected);
        let first = state.answer_on(selected, job, way, progress);
        if let (Some(hedge), Some(connection)) = (&decision.hedge, connection) {
            let wait = Wait::new(&connection);
            return self.hedged(first, wait, hedge, job, place).await;
        }
        let answered = first.await?;
        Ok(Response {
            answered,
            hedged: false,
            // Without a connection, if TCP answers.
            silent: true,
        })
    }

    fn note_connection(&self, place: Place, arm: usize, selected: &Selected) {
        if !selected.reused {
            self.connected(place, self.of_transport(arm, transport(selected)));
        }
    }

    /// Awaits the response to a request on QUIC. If there is none in time, or the connection fails, the
    /// request is sent over TCP as well; the first response is used, and the other request is cancelled.
    async fn hedged(
        self: &Arc<Self>,
        first: impl Future<Output = Result<Answered, Error>>,
        wait: Wait<'_>,
        hedge: &Hedge,
        job: &Job<'_>,
        place: Place,
    ) -> Result<Response, Error> {
        let mut first = pin!(first);
        let failed = tokio::select! {
            biased;
            done = &mut first => match done {
                Ok(answered) => return Ok(Response { answered, hedged: false, silent: false }),
                Err(error) => Some(error),
            },
            () = wait.overdue(hedge) => None,
        };
        tracing::debug!(origin = %job.origin, arm = %hedge.arm, "selection: sending a request over a second arm");
        self.hedging();
        let mut second = Box::pin(self.over_tcp(job, place, hedge));
        let answered = if failed.is_some() {
            second.await?
        } else {
            tokio::select! {
                biased;
                done = &mut first => match done {
                    Ok(answered) => answered,
                    Err(_) => second.await?,
                },
                done = &mut second => match done {
                    Ok(answered) => answered,
                    Err(_) => first.await?,
                },
            }
        };
        Ok(Response {
            answered,
            hedged: true,
            silent: failed.is_some() || wait.is_silent(),
        })
    }

    async fn over_tcp(
        self: &Arc<Self>,
        job: &Job<'_>,
        place: Place,
        hedge: &Hedge,
    ) -> Result<Answered, Error> {
        let arm = self.position(&hedge.arm).unwrap_or_default();
        let state = &self.arms[arm].state;
        let (way, progress) = (Way::Policy(Policy::NoHttp3), Progress::default());
        let selected = state.connection(job, way, &progress).await?;
        self.note_connection(place, arm, &selected);
        state.answer_on(selected, job, way, progress).await
    }
}

/// The wait for the response to a request on QUIC.
struct Wait<'a> {
    connection: &'a Connection,
    /// When the request was sent, and packets received by then.
    sent: Instant,
    before: u64,
}

impl<'a> Wait<'a> {
    /// For a request that is sent on `connection` now.
    fn new(connection: &'a Connection) -> Self {
        let mut wait = Self {
            connection,
            sent: Instant::now(),
            before: 0,
        };
        wait.before = wait.received();
        wait
    }

    fn received(&self) -> u64 {
        self.connection.stats().packets_received.get()
    }

    /// No packet has come since.
    fn is_silent(&self) -> bool {
        self.received() == self.before
    }

    /// Completes when the request has waited for so long that it is hedged.
    async fn overdue(&self, hedge: &Hedge) {
        sleep(hedge.without_packet.min(hedge.without_response)).await;
        if !self.is_silent() {
            sleep_until(self.sent + hedge.without_response).await;
        }
    }
}

/// How a connection of QUIC is opened. Nothing is sent before it is established, so that TCP may connect
/// meanwhile for any request.
fn way_over_quic(turn: &Turn, state: &State) -> Way {
    let (tcp, stagger) = match (&turn.decision.hedge, turn.decision.reason) {
        (Some(hedge), _) => (Tcp::AfterDelay, hedge.without_handshake),
        (None, Reason::Fixed) => (Tcp::AfterFailure, state.stagger()),
        (None, _) => (Tcp::AfterDelay, state.stagger()),
    };
    Way::Http3 { tcp, stagger }
}

fn transport(selected: &Selected) -> Transport {
    match selected.link {
        Link::Http3(..) => Transport::Quic,
        Link::Tcp(_) => Transport::Tcp,
    }
}

/// True if the request may be sent twice.
fn is_replay_safe(job: &Job<'_>) -> bool {
    let declared = job.head.extensions.get::<ReplaySafe>().is_some();
    let reads = [Method::GET, Method::HEAD].contains(&job.head.method);
    (reads || declared) && job.upload.is_empty()
}

fn log(job: &Job<'_>, turn: &Turn, reason: Reason) {
    let arm = &turn.decision.arm;
    tracing::debug!(
        origin = %job.origin,
        request = turn.decision.id.number(),
        %arm,
        reason = reason.name(),
        "selection: {arm}: {reason}"
    );
}
