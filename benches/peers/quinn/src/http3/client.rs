//! Does the jobs.

use std::future::poll_fn;
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes};
use h3::client::SendRequest;
use h3_quinn::OpenStreams;
use http::{Method, Request, StatusCode, Uri};
use job::{
    ClientArguments, Direction, Failure, HttpRequest, Incoming, Job, Latencies, NOT_OVER_HTTP,
    SERVER_NAME, Wanted, events,
};
use tokio::task::JoinSet;

use crate::quic::VarInt;
use crate::settings;

type Sender = SendRequest<OpenStreams, Bytes>;

pub(crate) async fn run(arguments: ClientArguments) -> Result<(), Failure> {
    let (endpoint, config) = settings::client(&arguments)?;
    let connecting = endpoint.connect_with(config, arguments.connect, SERVER_NAME)?;
    let connection = h3_quinn::Connection::new(connecting.await?);
    let mut builder = h3::client::builder();
    let (mut driver, mut sender) = builder
        .send_grease(false)
        .build::<_, _, Bytes>(connection)
        .await?;
    tokio::spawn(async move { poll_fn(|cx| driver.poll_close(cx)).await });
    let port = arguments.connect.port();
    // The settings of both ends arrive.
    Exchange::new(port, 0, 0)?.perform(&mut sender).await?;
    match arguments.job {
        Job::Bulk {
            bytes,
            direction: Direction::Download,
        } => {
            let exchange = Exchange::new(port, bytes, 0)?;
            events::start();
            let start = Instant::now();
            exchange.perform(&mut sender).await?;
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
            repeat(&sender, &exchange, in_flight, duration).await?;
        }
        _ => return Err(NOT_OVER_HTTP.into()),
    }
    tokio::task::spawn_blocking(events::wait_for_end).await?;
    endpoint.close(VarInt::from_u32(0x100), b"");
    // The close need not be delivered reliably.
    let farewell = Duration::from_millis(200);
    let _ = tokio::time::timeout(farewell, endpoint.wait_idle()).await;
    Ok(())
}

/// Keeps `in_flight` requests waiting for an answer, for `duration`.
async fn repeat(
    sender: &Sender,
    exchange: &Exchange,
    in_flight: u32,
    duration: Duration,
) -> Result<(), Failure> {
    events::start();
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..in_flight {
        let (mut sender, exchange) = (sender.clone(), exchange.clone());
        tasks.spawn(async move {
            let mut latencies = Latencies::default();
            let mut begun = Instant::now();
            while begun.duration_since(start) < duration {
                exchange.perform(&mut sender).await?;
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
    async fn perform(&self, sender: &mut Sender) -> Result<(), Failure> {
        let mut request = Request::new(());
        request.uri_mut().clone_from(&self.uri);
        if !self.content.is_empty() {
            *request.method_mut() = Method::POST;
            let length = self.content.len().into();
            request.headers_mut().insert("content-length", length);
        }
        let mut stream = sender.send_request(request).await?;
        if !self.content.is_empty() {
            stream.send_data(self.content.clone()).await?;
        }
        stream.finish().await?;
        let response = stream.recv_response().await?;
        if response.status() != StatusCode::OK {
            return Err(format!("the answer is {}", response.status()).into());
        }
        let mut incoming = self.expected.clone();
        while let Some(mut data) = stream.recv_data().await? {
            while data.has_remaining() {
                let chunk = data.chunk();
                incoming.receive(chunk);
                let len = chunk.len();
                data.advance(len);
            }
        }
        Ok(incoming.check()?)
    }
}
