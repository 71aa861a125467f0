//! The objects of one system, one after the other, and what is measured of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Request;
use http_body_util::{BodyExt, Empty};
use sha2::{Digest, Sha256};
use swiftwater::Connection;
use tokio::time::{interval, timeout};

use super::course::{Course, Stage};
use super::plan::Plan;
use crate::exit::{Exit, Failure};

/// An object that takes longer has failed. Far more than any needs.
const TOO_LONG: Duration = Duration::from_secs(60);

/// Interval at which the queue of the proxy is looked at.
const SAMPLING: Duration = Duration::from_millis(5);

/// Measurements of one size.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    /// From the request to the last byte, one for each object.
    pub(super) completion: Vec<Duration>,
    /// Bytes of stream data that the server sent for the first time.
    pub(super) new_bytes: u64,
    /// Bytes of stream data that arrived at the client.
    pub(super) arrived_bytes: u64,
    /// How long data that arrived at the proxy then waited for what was there before them.
    pub(super) queue: Vec<Duration>,
    /// Objects whose content differed.
    pub(super) differ: usize,
    /// The first failure.
    pub(super) error: Option<String>,
}

/// Measurements while they are made, by size.
#[derive(Clone, Debug)]
pub(super) struct Record(Arc<Mutex<Vec<Measured>>>);

impl Record {
    pub(super) fn new(plan: &Plan) -> Self {
        Self(Arc::new(Mutex::new(vec![
            Measured::default();
            plan.sizes.len()
        ])))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Vec<Measured>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Gets all objects: each size in turn, so that all meet the same network. Stops at the first failure.
pub(super) async fn run(plan: &Plan, stage: &Stage, course: &Course, record: &Record) {
    let digests = plan.sizes.iter().map(|&size| {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        Sha256::digest(&stage.content[..size.min(stage.content.len())])
    });
    let digests: Vec<[u8; 32]> = digests.map(Into::into).collect();
    for _ in 0..plan.flows {
        for (at, (&size, digest)) in plan.sizes.iter().zip(&digests).enumerate() {
            let before = Counters::of(course);
            let begun = Instant::now();
            let mut queue = Vec::new();
            let got = tokio::select! {
                got = timeout(TOO_LONG, get(course, size)) => got,
                never = sample(course.at_proxy(), &mut queue) => match never {},
            };
            let took = begun.elapsed();
            let after = Counters::of(course);
            let mut all = record.lock();
            let measured = &mut all[at];
            measured.queue.append(&mut queue);
            let error = match got {
                Ok(Ok(arrived)) => {
                    measured.completion.push(took);
                    measured.differ += usize::from(arrived != *digest);
                    measured.new_bytes += after.new_bytes - before.new_bytes;
                    measured.arrived_bytes += after.arrived_bytes - before.arrived_bytes;
                    continue;
                }
                Ok(Err(failure)) => failure.to_string(),
                Err(_) => format!("not complete after {} s", TOO_LONG.as_secs()),
            };
            measured.error = Some(error);
            return;
        }
    }
}

/// Gets an object, and returns its digest.
async fn get(course: &Course, size: u64) -> Result<[u8; 32], Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::new(Exit::Connection, error);
    let request = Request::get(format!("https://localhost/{size}"));
    let request = request
        .body(Empty::<Bytes>::new())
        .map_err(|error| failed(&error))?;
    let response = course.requests.send(request).await;
    let mut body = response.map_err(|error| failed(&error))?.into_body();
    let mut digest = Sha256::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(|error| failed(&error))?.into_data() {
            digest.update(&data);
        }
    }
    Ok(digest.finalize().into())
}

/// Notes how long the datagrams that wait at the proxy have to.
async fn sample(proxy: Option<Connection>, delays: &mut Vec<Duration>) -> std::convert::Infallible {
    let Some(proxy) = proxy else {
        return std::future::pending().await;
    };
    let mut ticks = interval(SAMPLING);
    loop {
        ticks.tick().await;
        let stats = proxy.stats();
        let Some(path) = stats.paths.first() else {
            continue;
        };
        let queue = stats.datagram_bytes_unsent;
        delays.push(path.granted_rate().time_to_send(queue.get()));
    }
}

/// Bytes so far.
struct Counters {
    new_bytes: u64,
    arrived_bytes: u64,
}

impl Counters {
    fn of(course: &Course) -> Self {
        let server = course.at_server();
        let new_bytes = server.map_or(0, |server| server.stats().repair.new_bytes.get());
        Self {
            new_bytes,
            arrived_bytes: course.connection.stats().stream_bytes_received.get(),
        }
    }
}
