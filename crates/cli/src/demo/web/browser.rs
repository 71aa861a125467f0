//! The client of a visit: loads the page as a browser does, and makes the API calls of its scripts.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Request, StatusCode};
use http_body_util::BodyExt;
use swiftwater_http::client::{
    Chosen, HttpClient, Measurements, Policy, Resolved, Resolver, Resolving, Timeouts,
};
use swiftwater_http::udp::ALPN_HTTP3;
use swiftwater_http::web::body::Body;
use tokio::task::JoinSet;
use tokio::time::{sleep_until, timeout};

use super::plan::WebProtocol;
use super::visit::Stage;
use super::website::{CALL_PRIORITY, Website};
use crate::exit::{Exit, Failure};
use crate::runtime::single_threaded;
use crate::transport::{Trust, build_failure, client};

/// The server's name, whatever its address.
const NAME: &str = "localhost";

/// A visit that takes longer has failed. Far more than any needs: it only ends a visit that hangs.
const TOO_LONG: Duration = Duration::from_secs(120);

/// Measurements of the client. Times count from the request of the page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Seen {
    /// Until the connection was ready for requests.
    pub handshake: Duration,
    /// Until the head of the page's HTML.
    pub first_byte: Duration,
    /// Until all critical objects were complete.
    pub critical: Duration,
    /// Until all objects were complete.
    pub page: Duration,
    /// Duration of each API call, from the time it was due to the end of its response.
    pub calls: Vec<Duration>,
}

/// Loads the page from `server` with a client without stored state.
pub(super) fn run(
    stage: &Arc<Stage>,
    protocol: WebProtocol,
    local: IpAddr,
    server: SocketAddr,
) -> Result<Seen, Failure> {
    let runtime = single_threaded()?;
    let seen = runtime.block_on(async {
        let client = new_client(stage, protocol, local, server.ip())?;
        let browser = Browser {
            client,
            protocol,
            origin: Arc::from(format!("https://{NAME}:{}", server.port())),
            website: Arc::clone(&stage.website),
            start: Instant::now(),
        };
        let late = |_| {
            let seconds = TOO_LONG.as_secs();
            Failure::new(
                Exit::Connection,
                format_args!("not finished after {seconds} s"),
            )
        };
        timeout(TOO_LONG, browser.visit()).await.map_err(late)?
    });
    // The remaining connections are to a server that is about to stop.
    runtime.shutdown_background();
    seen
}

/// A client for this demo's server only, over `protocol` only.
fn new_client(
    stage: &Stage,
    protocol: WebProtocol,
    local: IpAddr,
    server: IpAddr,
) -> Result<HttpClient, Failure> {
    let trust = Trust::Roots(vec![stage.trusted.clone()]);
    let builder = client(&trust, ALPN_HTTP3, &stage.tuning)
        .bind((local, 0).into())
        .http()
        .map_err(|error| build_failure(&error))?;
    let policy = match protocol {
        WebProtocol::Http3 => Policy::Http3Only,
        WebProtocol::Http2 => Policy::NoHttp3,
    };
    let built = builder
        .policy(policy)
        .resolver(Always(server))
        .timeouts(Timeouts {
            connect: TOO_LONG,
            handshake: TOO_LONG,
            quic: TOO_LONG,
            ..Timeouts::default()
        })
        .build();
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

/// A completed download.
enum Arrival {
    Object { nth: usize, at: Duration },
    Call { took: Duration },
}

#[derive(Clone)]
struct Browser {
    client: HttpClient,
    protocol: WebProtocol,
    origin: Arc<str>,
    website: Arc<Website>,
    start: Instant,
}

impl Browser {
    /// Requests the HTML, then each object as soon as it is referenced.
    async fn visit(self) -> Result<Seen, Failure> {
        let mut seen = Seen::default();
        let first = Measurements::new();
        let mut pending = JoinSet::new();
        pending.spawn(self.clone().object(0, first.clone()));
        while let Some(arrived) = pending.join_next().await {
            let arrived = arrived.map_err(|error| Failure::new(Exit::Failure, error))??;
            let (nth, at) = match arrived {
                Arrival::Call { took } => {
                    seen.calls.push(took);
                    continue;
                }
                Arrival::Object { nth, at } => (nth, at),
            };
            seen.page = seen.page.max(at);
            if self.website.objects[nth].critical {
                seen.critical = seen.critical.max(at);
            }
            if nth == 0 {
                let html = Instant::now();
                for call in 0..self.website.calls.len() {
                    pending.spawn(self.clone().call(call, html));
                }
            }
            for child in self.website.named_by(nth) {
                pending.spawn(self.clone().object(child, Measurements::new()));
            }
        }
        let measured = first.snapshot();
        let handshake = measured.handshake.unwrap_or_default();
        seen.handshake = measured.connect.unwrap_or_default() + handshake;
        seen.first_byte = measured.first_byte.unwrap_or_default();
        Ok(seen)
    }

    async fn object(self, nth: usize, measurements: Measurements) -> Result<Arrival, Failure> {
        let object = &self.website.objects[nth];
        self.fetch(&object.path, object.priority, &object.content, measurements)
            .await?;
        let at = self.start.elapsed();
        Ok(Arrival::Object { nth, at })
    }

    async fn call(self, nth: usize, html: Instant) -> Result<Arrival, Failure> {
        let call = &self.website.calls[nth];
        let due = html + call.at;
        sleep_until(due.into()).await;
        self.fetch(
            &call.path,
            CALL_PRIORITY,
            &call.content,
            Measurements::new(),
        )
        .await?;
        let took = due.elapsed();
        Ok(Arrival::Call { took })
    }

    /// Fetches `path`, and compares with `expected`.
    async fn fetch(
        &self,
        path: &str,
        priority: &str,
        expected: &Bytes,
        measurements: Measurements,
    ) -> Result<(), Failure> {
        let failed = |exit, why: &dyn std::fmt::Display| {
            let protocol = self.protocol;
            Failure::new(exit, format_args!("{path} over {protocol}: {why}"))
        };
        let request = Request::get(format!("{}{path}", self.origin))
            .header("priority", priority)
            .extension(measurements)
            .body(Body::empty())
            .map_err(|error| failed(Exit::Failure, &error))?;
        let response = self.client.send(request).await;
        let response = response.map_err(|error| failed(Exit::Connection, &error))?;
        if response.status() != StatusCode::OK {
            return Err(failed(Exit::Refused, &response.status()));
        }
        let chosen = response.extensions().get::<Chosen>();
        if chosen.is_none_or(|chosen| chosen.protocol != self.protocol.of_client()) {
            return Err(failed(
                Exit::Failure,
                &"the response came over another protocol",
            ));
        }
        let mut body = response.into_body();
        let mut rest = expected.clone();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| failed(Exit::Connection, &error))?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if !rest.starts_with(&data) {
                return Err(failed(
                    Exit::Differs,
                    &"the content differs from the original",
                ));
            }
            rest = rest.slice(data.len()..);
        }
        if rest.is_empty() {
            Ok(())
        } else {
            Err(failed(Exit::Differs, &"the end is missing"))
        }
    }
}
