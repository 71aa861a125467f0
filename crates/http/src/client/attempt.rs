//! One request over the connections of one state: connects, sends, and sends again where permitted.

use std::sync::Arc;
use std::time::Duration;

use http::header::ALT_SVC;
use http::{StatusCode, request};

use super::error::Error;
use super::exchange::{Answer, Failure, Link, Outgoing};
use super::measurements::{ConnectionShare, Measurements};
use super::origin::Origin;
use super::policy::Way;
use super::protocol_choice::Chosen;
use super::request_content::RequestContent;
use super::retry::{self, Fate};
use super::state::{Selected, State, lock};

/// The parts of a request that stay the same when it is sent again.
pub(super) struct Job<'a> {
    pub(super) head: &'a request::Parts,
    pub(super) upload: &'a RequestContent,
    pub(super) origin: &'a Origin,
    pub(super) measurements: &'a Measurements,
}

/// Progress of a request.
#[derive(Default)]
pub(super) struct Progress {
    attempts: u32,
    sent: u32,
    /// Early data must not be used any more.
    patient: bool,
}

/// The response's head was received, and how.
pub(super) struct Answered {
    pub(super) answer: Answer,
    pub(super) chosen: Chosen,
    /// From the start of the request to its sending.
    pub(super) sent: Duration,
    /// Of that, how long it waited for the connection that it was sent on.
    pub(super) waited: Duration,
}

impl State {
    /// Sends the request until there is a response or a final error.
    pub(super) async fn answer(
        self: &Arc<Self>,
        job: &Job<'_>,
        way: Way,
    ) -> Result<Answered, Error> {
        let progress = Progress::default();
        let selected = self.connection(job, way, &progress).await?;
        self.answer_on(selected, job, way, progress).await
    }

    /// The same, on a connection that is there.
    pub(super) async fn answer_on(
        self: &Arc<Self>,
        mut selected: Selected,
        job: &Job<'_>,
        way: Way,
        mut progress: Progress,
    ) -> Result<Answered, Error> {
        loop {
            if let Some(answered) = self.exchange(selected, job, &mut progress).await? {
                return Ok(answered);
            }
            selected = self.connection(job, way, &progress).await?;
        }
    }

    /// A connection for the request.
    pub(super) async fn connection(
        self: &Arc<Self>,
        job: &Job<'_>,
        way: Way,
        progress: &Progress,
    ) -> Result<Selected, Error> {
        let outgoing = self.outgoing(job);
        let may_be_early = self.early_data
            && !progress.patient
            && job.head.method.is_safe()
            && job.upload.is_empty();
        let early =
            may_be_early.then_some(|alternative: Option<&_>| outgoing.http3_request(alternative));
        self.select(job.origin, way, early, job.measurements).await
    }

    fn outgoing<'a>(&'a self, job: &Job<'a>) -> Outgoing<'a> {
        Outgoing {
            head: job.head,
            upload: job.upload,
            origin: job.origin,
            pool: &self.tcp_pool,
            tcp_statistics: self.tcp_statistics.as_ref(),
            limit: self.timeouts.head,
        }
    }

    /// Sends the request once. `None` if it is to be sent again.
    async fn exchange(
        &self,
        selected: Selected,
        job: &Job<'_>,
        progress: &mut Progress,
    ) -> Result<Option<Answered>, Error> {
        let outgoing = self.outgoing(job);
        progress.attempts += selected.attempts;
        progress.sent += 1;
        let Selected {
            link,
            why,
            reused,
            waited,
            ..
        } = selected;
        let sent = job.measurements.leaves(link.is_early());
        let is_over_tcp = matches!(link, Link::Tcp(_));
        let stale = reused && job.head.method.is_idempotent();
        let again = |fate| retry::again(fate, job.upload.is_whole(), stale, progress.sent);
        let answer = match outgoing.send(link).await {
            Ok(answer) => answer,
            Err(Failure { fate, error }) if again(fate) => {
                tracing::debug!(%error, "sending a request again");
                if is_over_tcp && fate == Fate::ConnectionGone {
                    // The others may be gone as well, and a new one shows more.
                    self.tcp_pool.drop_tcp(job.origin);
                }
                return Ok(None);
            }
            Err(failure) => return Err(failure.error),
        };
        self.note_alternatives(job.origin, &answer);
        let fate = fate_of(&answer);
        if fate == Fate::Misdirected {
            // Also if this request can't be sent again.
            lock(&self.alternatives).discard(job.origin);
            self.pool.drop_http3(job.origin);
        }
        if again(fate) {
            progress.patient |= fate != Fate::Misdirected;
            return Ok(None);
        }
        let chosen = Chosen {
            protocol: answer.protocol,
            why,
            attempts: progress.attempts,
            sent: progress.sent,
            reused,
            early: answer.early,
        };
        Ok(Some(Answered {
            answer,
            chosen,
            sent,
            waited,
        }))
    }

    /// Records from a response what later requests use: Alt-Svc, settings, failures.
    fn note_alternatives(&self, origin: &Origin, answer: &Answer) {
        let headers = answer.response.headers();
        // One in a 421 is ignored (RFC 7838, section 6).
        let counts = answer.response.status() != StatusCode::MISDIRECTED_REQUEST;
        if counts && origin.is_https() && headers.contains_key(ALT_SVC) {
            let now = tokio::time::Instant::now();
            lock(&self.alternatives).update(origin, headers, now);
        }
        let settings = answer
            .share
            .as_ref()
            .and_then(ConnectionShare::take_peer_settings);
        if let Some(settings) = settings {
            self.remember_settings(origin, settings);
        }
    }
}

fn fate_of(answer: &Answer) -> Fate {
    match answer.response.status() {
        StatusCode::TOO_EARLY if answer.early => Fate::TooEarly,
        StatusCode::MISDIRECTED_REQUEST if answer.alternative => Fate::Misdirected,
        _ => Fate::Unknown,
    }
}
