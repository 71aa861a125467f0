//! The public client: sends a request, retries where permitted, and returns the response.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, request};
use swiftwater_net::Connection;

use super::body::ClientBody;
use super::builder::Builder;
use super::error::Error;
use super::exchange::{Answer, Failure, Outgoing};
use super::measurements::{Measurements, QuicShare, Recorder};
use super::origin::Origin;
use super::policy::Policy;
use super::pool::PoolStats;
use super::protocol_choice::Chosen;
use super::quic_failures::KnownFailure;
use super::request_content::RequestContent;
use super::retry::{self, Fate};
use super::state::{Selected, State, lock};
use super::timeouts::{Phase, within};
use crate::web::body::{Body, BoxError};

/// A client of HTTP/3, HTTP/2 and HTTP/1.1 that keeps its connections open. Clones share one client;
/// its connections are closed once the last clone and the last response content are dropped.
#[derive(Clone)]
pub struct HttpClient {
    state: Arc<State>,
}

/// The parts of a request that stay the same when it is sent again.
struct Job<'a> {
    outgoing: Outgoing<'a>,
    policy: Policy,
    measurements: Measurements,
}

/// Progress of a request.
#[derive(Default)]
struct Progress {
    attempts: u32,
    sent: u32,
    /// Early data must not be used any more.
    patient: bool,
}

impl HttpClient {
    /// Starts the configuration of a client.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(super) fn new(state: State) -> Self {
        Self {
            state: Arc::new(state),
        }
    }

    /// Sends `request` and returns when the head of the response was received; its content is read
    /// from the response's body. Dropping the future cancels the request.
    ///
    /// The request's URI is absolute, `https` or `http`. Its extensions may hold a [`Policy`] for it
    /// alone, and [`Measurements`] to be filled in. The response's extensions hold [`Chosen`] and
    /// [`Measurements`].
    ///
    /// A request is sent again only if none of its content was read and it was certainly not processed; or if its method is
    /// idempotent and a reused connection was lost (RFC 9110, section 9.2.2). Redirects, cookies and content codings are
    /// left to layers above.
    pub async fn send<B>(&self, request: Request<B>) -> Result<Response<ClientBody>, Error>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let request = request.map(Body::new);
        match self.state.timeouts.total {
            Some(limit) => within(limit, Phase::Total, self.run(request)).await?,
            None => self.run(request).await,
        }
    }

    async fn run(&self, request: Request<Body>) -> Result<Response<ClientBody>, Error> {
        let (mut head, body) = request.into_parts();
        if head.method == Method::CONNECT {
            return Err(Error::Connect);
        }
        let origin = Origin::of(&head.uri)?;
        let policy = head.extensions.remove::<Policy>();
        let measurements = head.extensions.remove::<Measurements>();
        let upload = RequestContent::new(body);
        let job = Job {
            outgoing: self.outgoing(&head, &upload, &origin),
            policy: policy.unwrap_or(self.state.policy),
            measurements: measurements.unwrap_or_default(),
        };
        let mut progress = Progress::default();
        loop {
            if let Some(response) = self.attempt(&job, &mut progress).await? {
                return Ok(response);
            }
        }
    }

    fn outgoing<'a>(
        &'a self,
        head: &'a request::Parts,
        upload: &'a RequestContent,
        origin: &'a Origin,
    ) -> Outgoing<'a> {
        Outgoing {
            head,
            upload,
            origin,
            pool: &self.state.pool,
            limit: self.state.timeouts.head,
        }
    }

    /// Sends the request once. `None` if it is to be sent again.
    async fn attempt(
        &self,
        job: &Job<'_>,
        progress: &mut Progress,
    ) -> Result<Option<Response<ClientBody>>, Error> {
        let outgoing = &job.outgoing;
        let may_be_early = self.state.early_data
            && !progress.patient
            && outgoing.head.method.is_safe()
            && outgoing.upload.is_empty();
        let early =
            may_be_early.then_some(|alternative: Option<&_>| outgoing.http3_request(alternative));
        let selected = self
            .state
            .select(outgoing.origin, job.policy, early, &job.measurements)
            .await?;
        progress.attempts += selected.attempts;
        progress.sent += 1;
        let Selected {
            link, why, reused, ..
        } = selected;
        job.measurements.leaves(link.is_early());
        let stale = reused && outgoing.head.method.is_idempotent();
        let again = |fate| retry::again(fate, outgoing.upload.is_whole(), stale, progress.sent);
        let answer = match outgoing.send(link).await {
            Ok(answer) => answer,
            Err(Failure { fate, error }) if again(fate) => {
                tracing::debug!(%error, "sending a request again");
                return Ok(None);
            }
            Err(failure) => return Err(failure.error),
        };
        self.note_alternatives(outgoing.origin, &answer);
        let fate = fate_of(&answer);
        if again(fate) {
            match fate {
                Fate::Misdirected => {
                    lock(&self.state.alternatives).discard(outgoing.origin);
                    self.state.pool.drop_http3(outgoing.origin);
                }
                _ => progress.patient = true,
            }
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
        Ok(Some(self.finish(answer, chosen, &job.measurements).await))
    }

    /// Records from a response what later requests use: Alt-Svc, settings, failures.
    fn note_alternatives(&self, origin: &Origin, answer: &Answer) {
        if origin.is_https() {
            let now = tokio::time::Instant::now();
            lock(&self.state.alternatives).update(origin, answer.response.headers(), now);
        }
        let settings = answer.quic.as_ref().and_then(QuicShare::peer_settings);
        if let Some(settings) = settings {
            self.state.remember_settings(origin, settings);
        }
    }

    async fn finish(
        &self,
        answer: Answer,
        chosen: Chosen,
        measurements: &Measurements,
    ) -> Response<ClientBody> {
        measurements.head_came();
        measurements.note(|snapshot| snapshot.rtt = answer.rtt);
        let recorder = Recorder::new(measurements.clone(), answer.quic);
        let (mut head, source) = answer.response.into_parts();
        head.extensions.insert(chosen);
        head.extensions.insert(measurements.clone());
        let idle = self.state.timeouts.body;
        let mut body = ClientBody::new(source, idle, recorder, answer.release);
        body.settle().await;
        Response::from_parts(head, body)
    }

    /// The QUIC connection under the open HTTP/3 connection to `origin`, if there is one: for
    /// operations of the transport, such as migration to another address. Later requests may use
    /// another connection at any time.
    pub fn http3_connection(&self, origin: &Origin) -> Option<Connection> {
        let sender = self.state.pool.http3_sender(origin)?;
        Some(sender.connection().clone())
    }

    /// Counters of the connection pool.
    pub fn pool_stats(&self) -> PoolStats {
        self.state.pool.stats()
    }

    /// True while QUIC to `origin` is not attempted on the present network because it failed.
    pub fn is_http3_broken(&self, origin: &Origin) -> bool {
        self.state.is_broken(origin)
    }

    /// The record of QUIC failures, to be stored for a later client ([`Builder::known_failures`]).
    /// Attempts in progress are not included.
    pub fn known_failures(&self) -> Vec<KnownFailure> {
        let broken = lock(&self.state.broken);
        broken.export(tokio::time::Instant::now(), SystemTime::now())
    }

    /// Stops the use of all open connections for new requests; requests in progress complete.
    pub fn close_idle(&self) {
        self.state.pool.clear();
    }
}

fn fate_of(answer: &Answer) -> Fate {
    match answer.response.status() {
        StatusCode::TOO_EARLY if answer.early => Fate::TooEarly,
        StatusCode::MISDIRECTED_REQUEST if answer.alternative => Fate::Misdirected,
        _ => Fate::Unknown,
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient")
            .field("policy", &self.state.policy)
            .field("pool", &self.pool_stats())
            .finish_non_exhaustive()
    }
}
