//! Does the jobs.

use std::time::{Duration, Instant};

use bytes::Bytes;
use job::{
    ClientArguments, Direction, ECHO, Failure, GREETING, Incoming, Job, Latencies, Outgoing,
    SERVER_NAME, Wanted, events,
};
use s2n_quic::client::Connect;
use s2n_quic::connection::Handle;
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Client, Connection};
use tokio::task::JoinSet;

use crate::settings;
use crate::streams::{supply, take};

/// Connections that are being opened at a time for `hold`.
const PARALLEL: u32 = 16;

pub(crate) async fn run(arguments: ClientArguments) -> Result<(), Failure> {
    let client = settings::client(&arguments)?;
    let server = Connect::new(arguments.connect).with_server_name(SERVER_NAME);
    match arguments.job {
        Job::Bulk { bytes, direction } => {
            let connection = client.connect(server).await?;
            bulk(&connection, bytes, direction).await?;
            end().await;
        }
        Job::Requests {
            seconds,
            in_flight,
            up,
            down,
        } => {
            let connection = client.connect(server).await?;
            let duration = Duration::from_secs_f64(seconds);
            requests(&connection, duration, in_flight, up, down).await?;
            end().await;
        }
        Job::Handshakes { count, parallel } => {
            handshakes(client, server, count, parallel).await?;
            end().await;
        }
        Job::Hold {
            connections,
            streams,
        } => {
            let held = hold(client, server, connections, streams).await?;
            end().await;
            drop(held);
        }
    }
    Ok(())
}

/// Keeps everything until the runner has seen enough.
async fn end() {
    let _ = tokio::task::spawn_blocking(events::wait_for_end).await;
}

async fn bulk(connection: &Connection, bytes: u64, direction: Direction) -> Result<(), Failure> {
    let (wanted, upload) = match direction {
        Direction::Download => (Wanted::Payload(bytes), 0),
        Direction::Upload => (Wanted::Checksum, bytes),
    };
    let mut incoming = Incoming::new(wanted, upload);
    events::start();
    let start = Instant::now();
    let mut stream = connection.handle().open_bidirectional_stream().await?;
    supply(&mut stream, Outgoing::request(wanted, upload)).await?;
    while take(&mut stream, |data| incoming.receive(data)).await? {}
    let took = start.elapsed();
    incoming.check()?;
    events::bulk_done(bytes, took);
    Ok(())
}

async fn requests(
    connection: &Connection,
    duration: Duration,
    in_flight: u32,
    up: u64,
    down: u64,
) -> Result<(), Failure> {
    let wanted = Wanted::Payload(down);
    let request = Outgoing::request(wanted, up).to_bytes();
    let answer = Incoming::new(wanted, up);
    events::start();
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for _ in 0..in_flight {
        let (handle, request, answer) = (connection.handle(), request.clone(), answer.clone());
        tasks.spawn(ask_again(handle, request, answer, start + duration));
    }
    let mut latencies = Latencies::default();
    while let Some(result) = tasks.join_next().await {
        latencies.merge(&result??);
    }
    events::requests_done(latencies, start.elapsed());
    Ok(())
}

/// One request after the other, until `end`.
async fn ask_again(
    mut handle: Handle,
    request: Bytes,
    answer: Incoming,
    end: Instant,
) -> Result<Latencies, Failure> {
    let mut latencies = Latencies::default();
    let mut now = Instant::now();
    while now < end {
        let asked = now;
        let mut stream = handle.open_bidirectional_stream().await?;
        let mut incoming = answer.clone();
        stream.send(request.clone()).await?;
        stream.finish()?;
        while take(&mut stream, |data| incoming.receive(data)).await? {}
        incoming.check()?;
        now = Instant::now();
        latencies.record(now - asked);
    }
    Ok(latencies)
}

async fn handshakes(
    client: Client,
    server: Connect,
    count: u32,
    parallel: u32,
) -> Result<(), Failure> {
    events::start();
    let start = Instant::now();
    let mut tasks = JoinSet::new();
    for lane in 0..parallel {
        let (client, server) = (client.clone(), server.clone());
        tasks.spawn(async move {
            for _ in (lane..count).step_by(parallel as usize) {
                let connection = client.connect(server.clone()).await?;
                connection.close(0_u8.into());
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(result) = tasks.join_next().await {
        result??;
    }
    events::handshakes_done(count, start.elapsed());
    Ok(())
}

/// A connection and its streams, for as long as they are held.
type Held = (Connection, Vec<BidirectionalStream>);

async fn hold(
    client: Client,
    server: Connect,
    connections: u32,
    streams: u32,
) -> Result<Vec<Held>, Failure> {
    let (wanted, upload) = match streams {
        0 => (Wanted::Payload(GREETING), GREETING),
        _ => (Wanted::Echo(ECHO), ECHO),
    };
    let request = Outgoing::request(wanted, upload);
    let answer = Incoming::new(wanted, upload);
    events::start();
    let mut tasks = JoinSet::new();
    for lane in 0..PARALLEL {
        let (client, server, answer) = (client.clone(), server.clone(), answer.clone());
        tasks.spawn(async move {
            let mut held = Vec::new();
            for _ in (lane..connections).step_by(PARALLEL as usize) {
                let connection = client.connect(server.clone()).await?;
                held.push(greet(connection, streams, request, &answer).await?);
            }
            Ok::<_, Failure>(held)
        });
    }
    let mut held = Vec::new();
    while let Some(result) = tasks.join_next().await {
        held.extend(result??);
    }
    events::hold_done(connections);
    Ok(held)
}

/// Exchanges a message on each stream of a new connection.
async fn greet(
    mut connection: Connection,
    streams: u32,
    request: Outgoing,
    answer: &Incoming,
) -> Result<Held, Failure> {
    let mut held = Vec::new();
    for _ in 0..streams.max(1) {
        let mut stream = connection.open_bidirectional_stream().await?;
        let mut incoming = answer.clone();
        supply(&mut stream, request).await?;
        while take(&mut stream, |data| incoming.receive(data)).await? {
            // A stream that stays open has no end.
            if streams > 0 && incoming.is_complete() {
                break;
            }
        }
        incoming.check()?;
        if streams > 0 {
            held.push(stream);
        }
    }
    Ok((connection, held))
}
