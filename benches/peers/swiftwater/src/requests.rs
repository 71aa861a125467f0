//! Small requests, many at a time.

use std::time::{Duration, Instant};

use bytes::Bytes;
use job::{Failure, Incoming, Latencies, Outgoing, Wanted, events};
use swiftwater::Connection;
use tokio::task::JoinSet;

use crate::streams::Reader;

/// Keeps `in_flight` requests waiting for an answer, for `duration`, each of `sizes` (up, down) bytes.
pub(crate) async fn run(
    connection: &Connection,
    duration: Duration,
    in_flight: u32,
    (up, down): (u64, u64),
) -> Result<(), Failure> {
    let wanted = Wanted::Payload(down);
    let message = Outgoing::request(wanted, up).to_bytes();
    let expected = Incoming::new(wanted, up);
    events::start();
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..in_flight {
        let (connection, message, expected) =
            (connection.clone(), message.clone(), expected.clone());
        tasks.spawn(async move {
            let mut latencies = Latencies::default();
            let mut begun = Instant::now();
            while begun.duration_since(start) < duration {
                request(&connection, message.clone(), expected.clone()).await?;
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

/// One request, answered and checked.
pub(crate) async fn request(
    connection: &Connection,
    message: Bytes,
    mut incoming: Incoming,
) -> Result<(), Failure> {
    let (mut send, receive) = connection.open_bi().await?;
    send.write_last(&message).await?;
    let mut reader = Reader::new(receive);
    while reader.next(|data| incoming.receive(data)).await? {}
    Ok(incoming.check()?)
}
