//! A session: somebody clicks at given times, whatever became of the requests before, and every response is checked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Instant;

use http::{Request, StatusCode};
use http_body_util::BodyExt;
use swiftwater_http::client::{HttpClient, Resolved, Resolver, Resolving};
use swiftwater_http::udp::ALPN_HTTP3;
use swiftwater_http::web::body::Body;
use tokio::task::JoinSet;
use tokio::time::sleep_until;

use super::content::Object;
use super::network::Network;
use super::record::{End, Over, Record};
use super::variant::{Stage, Variant};
use crate::digest::sha256;
use crate::exit::{Exit, Failure};
use crate::runtime::single_threaded;
use crate::transport::{Trust, build_failure, client};

/// The server's name, whatever its address.
const NAME: &str = "localhost";

/// Browses from `local`, while what happens to `network` happens.
pub(super) fn run(
    stage: &Arc<Stage>,
    variant: &Arc<Variant>,
    network: &Arc<Network>,
    server: SocketAddr,
) -> Result<(), Failure> {
    let runtime = single_threaded()?;
    let local = network.client();
    let browsed = runtime.block_on(async {
        let client = new_client(stage, variant, local, server.ip())?;
        let session = Session {
            client,
            origin: Arc::from(format!("https://{NAME}:{}", server.port())),
            stage: Arc::clone(stage),
            variant: Arc::clone(variant),
            start: Instant::now(),
        };
        session.browse(network).await;
        Ok(())
    });
    // The remaining connections are to a server that is about to stop.
    runtime.shutdown_background();
    browsed
}

/// A client for this server only, without stored state.
fn new_client(
    stage: &Stage,
    variant: &Variant,
    local: IpAddr,
    server: IpAddr,
) -> Result<HttpClient, Failure> {
    let plan = &stage.plan;
    let trust = Trust::Roots(vec![stage.trusted.clone()]);
    let builder = client(&trust, ALPN_HTTP3, &plan.tuning)
        .transport(|transport| transport.max_idle_timeout = Some(plan.idle))
        .bind((local, 0).into())
        .http()
        .map_err(|error| build_failure(&error))?;
    let builder = builder.resolver(Always(server));
    let built = variant.strategy.apply(builder, plan.seed)?.build();
    built.map_err(|error| Failure::new(Exit::Failure, error))
}

/// Resolves one host.
#[derive(Debug)]
struct Always(IpAddr);

impl Resolver for Always {
    fn resolve<'a>(&'a self, _: &'a str, _: u16) -> Resolving<'a> {
        let resolved = Resolved {
            addresses: vec![self.0],
            https: None,
        };
        Box::pin(std::future::ready(Ok(resolved)))
    }
}

#[derive(Clone)]
struct Session {
    client: HttpClient,
    origin: Arc<str>,
    stage: Arc<Stage>,
    variant: Arc<Variant>,
    start: Instant,
}

impl Session {
    async fn browse(&self, network: &Arc<Network>) {
        let plan = &self.stage.plan;
        let changes = self.variant.course.changes(plan.session);
        for change in changes.iter().filter(|change| change.at.is_zero()) {
            network.change(change);
        }
        let start = self.start;
        let happening = {
            let network = Arc::clone(network);
            let later = changes.into_iter().filter(|change| !change.at.is_zero());
            let later: Vec<_> = later.collect();
            tokio::spawn(async move {
                for change in later {
                    sleep_until((start + change.at).into()).await;
                    network.change(&change);
                }
            })
        };
        let mut requests = JoinSet::new();
        for click in &plan.browsing.clicks {
            sleep_until((start + click.at).into()).await;
            self.note_switches();
            for &object in &click.objects {
                let nth = self.variant.note(Record::sent(start.elapsed()));
                requests.spawn(self.clone().request(nth, object));
            }
        }
        let end = start + plan.session + plan.grace;
        loop {
            tokio::select! {
                done = requests.join_next() => if done.is_none() { break },
                () = sleep_until(end.into()) => break,
            }
        }
        requests.shutdown().await;
        happening.abort();
        self.note_switches();
        self.variant.give_up(start.elapsed());
    }

    fn note_switches(&self) {
        if let Some(selection) = self.client.selection() {
            let stats = selection.stats;
            let switches = stats.switches + stats.rollbacks + stats.failovers;
            self.variant.switches(switches);
        }
    }

    /// Gets an object. A response that breaks off, or does not come, is requested once more.
    async fn request(self, nth: usize, object: usize) {
        let begun = Instant::now();
        let object = &self.stage.plan.browsing.objects[object];
        let mut outcome = self.get(object).await;
        if outcome.is_err() {
            self.variant.repeated(nth);
            outcome = self.get(object).await;
        }
        let took = begun.elapsed();
        let end = match outcome {
            Ok((over, intact)) => End::Complete { took, over, intact },
            Err(why) => End::Failed { took, why },
        };
        self.variant.ended(nth, end);
    }

    /// What the response came over, and whether it is right.
    async fn get(&self, object: &Object) -> Result<(Over, bool), String> {
        let request = Request::get(format!("{}{}", self.origin, object.path));
        let request = request.body(Body::empty());
        let request = request.map_err(|error| error.to_string())?;
        let response = self.client.send(request).await;
        let response = response.map_err(|error| error.to_string())?;
        if response.status() != StatusCode::OK {
            return Err(response.status().to_string());
        }
        let over = Over::of(response.extensions());
        let over = over.ok_or_else(|| "the client does not say over what it came".to_owned())?;
        let content = response.into_body().collect().await;
        let content = content.map_err(|error| error.to_string())?.to_bytes();
        Ok((over, sha256(&content) == object.sha256))
    }
}
