//! Does the jobs.

use std::time::{Duration, Instant};

use bytes::Bytes;
use http::{Method, Request, StatusCode, Uri};
use http_body_util::BodyExt;
use job::{
    ClientArguments, Direction, Failure, HttpRequest, Incoming, Job, Latencies, NOT_OVER_HTTP,
    SERVER_NAME, Wanted, events,
};
use swiftwater::HttpClient;
use swiftwater::http::web::body::Body;
use tokio::task::JoinSet;

use crate::settings;

pub(crate) async fn run(arguments: &ClientArguments) -> Result<(), Failure> {
    let client = settings::http_client(arguments)?;
    let port = arguments.connect.port();
    // Connects.
    Exchange::new(port, 0, 0)?.perform(&client).await?;
    match arguments.job {
        Job::Bulk {
            bytes,
            direction: Direction::Download,
        } => {
            let exchange = Exchange::new(port, bytes, 0)?;
            events::start();
            let start = Instant::now();
            exchange.perform(&client).await?;
            events::bulk_done(bytes, start.elapsed());
        }
        Job::Requests {
            seconds,
            in_flight,
            up,
            down,
        } => {
            let exchange = Exchange::new(port, down, up)?;
            let duration = Duration::from_secs_f64(seconds);
            repeat(&client, &exchange, in_flight, duration).await?;
        }
        _ => return Err(NOT_OVER_HTTP.into()),
    }
    tokio::task::spawn_blocking(events::wait_for_end).await?;
    Ok(())
}

/// Keeps `in_flight` requests waiting for an answer, for `duration`.
async fn repeat(
    client: &HttpClient,
    exchange: &Exchange,
    in_flight: u32,
    duration: Duration,
) -> Result<(), Failure> {
    events::start();
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..in_flight {
        let (client, exchange) = (client.clone(), exchange.clone());
        tasks.spawn(async move {
            let mut latencies = Latencies::default();
            let mut begun = Instant::now();
            while begun.duration_since(start) < duration {
                exchange.perform(&client).await?;
                let now = Instant::now();
                latencies.record(now.duration_since(begun));
                begun = now;
            }
            Ok::<_, Failure>(latencies)
        });
    }
    let mut latencies = Latencies::default();
    while let Some(done) = tasks.join_next().await {
        latencies.merge(&done??);
    }
    events::requests_done(latencies, start.elapsed());
    Ok(())
}

/// A request that can be sent often, and what the answer must be.
#[derive(Clone)]
struct Exchange {
    uri: Uri,
    content: Bytes,
    expected: Incoming,
}

impl Exchange {
    fn new(port: u16, down: u64, up: u64) -> Result<Self, Failure> {
        let request = HttpRequest::new(down, up);
        Ok(Self {
            uri: format!("https://{SERVER_NAME}:{port}{}", request.path()).parse()?,
            content: request.content().to_bytes(),
            expected: Incoming::new(Wanted::Payload(down), 0),
        })
    }

    /// Sends the request, a POST if it has content, and checks the answer.
    async fn perform(&self, client: &HttpClient) -> Result<(), Failure> {
        let (method, body) = if self.content.is_empty() {
            (Method::GET, Body::empty())
        } else {
            (Method::POST, Body::full(self.content.clone()))
        };
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        let response = client.send(request).await?;
        if response.status() != StatusCode::OK {
            return Err(format!("the answer is {}", response.status()).into());
        }
        let mut body = response.into_body();
        let mut incoming = self.expected.clone();
        while let Some(frame) = body.frame().await {
            if let Some(data) = frame?.data_ref() {
                incoming.receive(data);
            }
        }
        Ok(incoming.check()?)
    }
}
