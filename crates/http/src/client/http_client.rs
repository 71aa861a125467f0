//! The public client: sends a request, retries where permitted, and returns the response.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use http::{Method, Request, Response};
use swiftwater_net::Connection;
use swiftwater_select::Arm;

use super::attempt::{Answered, Job};
use super::body::ClientBody;
use super::builder::Builder;
use super::error::Error;
use super::measurements::{Measurements, OnEnd, Recorder};
use super::origin::Origin;
use super::policy::{Policy, Way};
use super::pool::PoolStats;
#[cfg(doc)]
use super::protocol_choice::Chosen;
use super::quic_failures::KnownFailure;
use super::request_content::RequestContent;
#[cfg(doc)]
use super::selection::ArmChoice;
use super::selection::{Selection, SelectionSnapshot};
use super::state::{State, lock};
use super::timeouts::{Phase, within};
use crate::web::body::{Body, BoxError};

/// A client of HTTP/3, HTTP/2 and HTTP/1.1 that keeps its connections open. Clones share one client;
/// its connections are closed once the last clone and the last response content are dropped.
#[derive(Clone)]
pub struct HttpClient {
    state: Arc<State>,
    selection: Option<Arc<Selection>>,
}

impl HttpClient {
    /// Starts the configuration of a client.
    pub fn builder() -> Builder {
        Builder::default()
    }

    pub(super) fn new(state: Arc<State>, selection: Option<Arc<Selection>>) -> Self {
        Self { state, selection }
    }

    /// This client's states: each has connections of its own.
    fn states(&self) -> impl Iterator<Item = &Arc<State>> {
        let others = self.selection.iter().flat_map(|it| it.others());
        std::iter::once(&self.state).chain(others)
    }

    /// Sends `request` and returns when the head of the response was received; its content is read
    /// from the response's body. Dropping the future cancels the request.
    ///
    /// The request's URI is absolute, `https` or `http`. Its extensions may hold a [`Policy`] for it
    /// alone, and [`Measurements`] to be filled in. The response's extensions hold [`Chosen`],
    /// [`Measurements`], and [`ArmChoice`] if protocols are selected ([`Builder::protocol`]).
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
        let policy = policy.unwrap_or(self.state.policy);
        let measurements = head.extensions.remove::<Measurements>();
        let measurements = measurements.unwrap_or_default();
        let job = Job {
            head: &head,
            upload: &RequestContent::new(body),
            origin: &origin,
            measurements: &measurements,
        };
        let selection = self.selection.as_ref();
        match selection.filter(|_| policy == Policy::Race) {
            None => {
                let answered = self.state.answer(&job, Way::Policy(policy)).await?;
                let mut response = self.response(answered, &measurements, None);
                response.body_mut().settle().await;
                Ok(response)
            }
            Some(selection) => {
                // Two requests at once make it large.
                let chosen = Box::pin(selection.answer(&job)).await?;
                let on_end = Some(chosen.on_end);
                let mut response = self.response(chosen.answered, &measurements, on_end);
                response.extensions_mut().insert(chosen.choice);
                response.body_mut().settle().await;
                Ok(response)
            }
        }
    }

    /// The response as the application gets it, but for [`ClientBody::settle`].
    fn response(
        &self,
        answered: Answered,
        measurements: &Measurements,
        on_end: Option<OnEnd>,
    ) -> Response<ClientBody> {
        let Answered {
            answer,
            chosen,
            sent,
            ..
        } = answered;
        measurements.head_came(sent, answer.rtt);
        let recorder = Recorder::new(measurements.clone(), answer.share, on_end);
        let (mut head, source) = answer.response.into_parts();
        head.extensions.insert(chosen);
        head.extensions.insert(measurements.clone());
        let idle = self.state.timeouts.body;
        let body = ClientBody::new(source, idle, recorder, answer.release);
        Response::from_parts(head, body)
    }

    /// The QUIC connection under the open HTTP/3 connection to `origin`, if there is one: for
    /// operations of the transport, such as migration to another address. Later requests may use
    /// another connection at any time.
    pub fn http3_connection(&self, origin: &Origin) -> Option<Connection> {
        let sender = self
            .states()
            .find_map(|state| state.pool.http3_sender(origin))?;
        Some(sender.connection().clone())
    }

    /// Counters of the connection pool.
    pub fn pool_stats(&self) -> PoolStats {
        let stats = self.states().map(|state| state.pool.stats());
        stats.fold(PoolStats::default(), PoolStats::plus)
    }

    /// What the selection did so far; `None` without [`Builder::protocol`].
    pub fn selection(&self) -> Option<SelectionSnapshot> {
        self.selection
            .as_ref()
            .map(|selection| selection.snapshot())
    }

    /// The arm that is selected for `origin` on the present network; `None` without a selection, and if the
    /// origin is not known.
    pub fn selected_arm(&self, origin: &Origin) -> Option<Arm> {
        self.selection.as_ref()?.current(origin)
    }

    /// Writes the state file of the selection now, if there is one and something was learned since the last
    /// time. It is also written every 30 s and when the client is dropped.
    pub fn save_selection(&self) -> io::Result<()> {
        self.selection.as_ref().map_or(Ok(()), |it| it.save())
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
        for state in self.states() {
            state.pool.clear();
        }
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
