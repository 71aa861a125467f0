//! Does the jobs. Also part of noq's program, whose interface is the same.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use job::{
    ClientArguments, Direction, ECHO, Failure, GREETING, Incoming, Job, Latencies, Outgoing,
    SERVER_NAME, Wanted, events,
};
use tokio::task::JoinSet;

use crate::quic::{ClientConfig, Connection, Endpoint, RecvStream, SendStream, VarInt};
use crate::settings;
use crate::streams::{supply, take};

pub(crate) async fn run(arguments: ClientArguments) -> Result<(), Failure> {
    let (endpoint, config) = settings::client(&arguments)?;
    let client = Client {
        endpoint,
        config,
        server: arguments.connect,
    };
    match arguments.job {
        Job::Bulk { bytes, direction } => bulk(&client, bytes, direction).await,
        Job::Requests {
            seconds,
            in_flight,
            up,
            down,
        } => {
            let until = Duration::from_secs_f64(seconds);
            requests(&client, until, in_flight, (up, down)).await
        }
        Job::Handshakes { count, parallel } => handshakes(client, count, parallel).await,
        Job::Hold {
            connections,
            streams,
        } => hold(&client, connections, streams).await,
    }
}

#[derive(Clone)]
struct Client {
    endpoint: Endpoint,
    config: ClientConfig,
    server: SocketAddr,
}

impl Client {
    async fn connect(&self) -> Result<Connection, Failure> {
        let config = self.config.clone();
        let connecting = self
            .endpoint
            .connect_with(config, self.server, SERVER_NAME)?;
        Ok(connecting.await?)
    }

    /// Keeps everything until the runner has seen enough.
    async fn end(&self) -> Result<(), Failure> {
        tokio::task::spawn_blocking(events::wait_for_end).await?;
        self.endpoint.close(VarInt::from_u32(0), b"");
        // The close need not be delivered reliably.
        let farewell = Duration::from_millis(200);
        let _ = tokio::time::timeout(farewell, self.endpoint.wait_idle()).await;
        Ok(())
    }
}

async fn bulk(client: &Client, bytes: u64, direction: Direction) -> Result<(), Failure> {
    let (wanted, upload) = match direction {
        Direction::Download => (Wanted::Payload(bytes), 0),
        Direction::Upload => (Wanted::Checksum, bytes),
    };
    let mut incoming = Incoming::new(wanted, upload);
    let connection = client.connect().await?;
    events::start();
    let start = Instant::now();
    let (mut send, mut receive) = connection.open_bi().await?;
    supply(&mut send, Outgoing::request(wanted, upload)).await?;
    while take(&mut receive, |data| incoming.receive(data)).await? {}
    let took = start.elapsed();
    incoming.check()?;
    events::bulk_done(bytes, took);
    client.end().await
}

async fn requests(
    client: &Client,
    duration: Duration,
    in_flight: u32,
    (up, down): (u64, u64),
) -> Result<(), Failure> {
    let wanted = Wanted::Payload(down);
    let message = Outgoing::request(wanted, up).to_bytes();
    let expected = Incoming::new(wanted, up);
    let connection = client.connect().await?;
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
    client.end().await
}

async fn request(
    connection: &Connection,
    message: Bytes,
    mut incoming: Incoming,
) -> Result<(), Failure> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_chunk(message).await?;
    send.finish()?;
    while take(&mut receive, |data| incoming.receive(data)).await? {}
    Ok(incoming.check()?)
}

async fn handshakes(client: Client, count: u32, parallel: u32) -> Result<(), Failure> {
    events::start();
    let start = Instant::now();
    let begun = Arc::new(AtomicU32::new(0));
    let mut tasks = JoinSet::new();
    for _ in 0..parallel {
        let (client, begun) = (client.clone(), Arc::clone(&begun));
        tasks.spawn(async move {
            while begun.fetch_add(1, Ordering::Relaxed) < count {
                client.connect().await?.close(VarInt::from_u32(0), b"");
            }
            Ok::<_, Failure>(())
        });
    }
    while let Some(done) = tasks.join_next().await {
        done??;
    }
    events::handshakes_done(count, start.elapsed());
    client.end().await
}

async fn hold(client: &Client, connections: u32, streams: u32) -> Result<(), Failure> {
    let greeting = Wanted::Payload(GREETING);
    let message = Outgoing::request(greeting, GREETING).to_bytes();
    let expected = Incoming::new(greeting, GREETING);
    let echo = Incoming::new(Wanted::Echo(ECHO), ECHO);
    events::start();
    let mut held = Vec::new();
    for _ in 0..connections {
        let connection = client.connect().await?;
        let open = open_streams(&connection, streams, &echo).await?;
        if streams == 0 {
            request(&connection, message.clone(), expected.clone()).await?;
        }
        held.push((connection, open));
    }
    events::hold_done(connections);
    client.end().await
}

/// Streams that stay open, each of which has brought its echo.
async fn open_streams(
    connection: &Connection,
    count: u32,
    expected: &Incoming,
) -> Result<Vec<(SendStream, RecvStream)>, Failure> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let (mut send, receive) = connection.open_bi().await?;
        supply(&mut send, Outgoing::request(Wanted::Echo(ECHO), ECHO)).await?;
        streams.push((send, receive));
    }
    for (_, receive) in &mut streams {
        let mut incoming = expected.clone();
        while !incoming.is_complete() && take(receive, |data| incoming.receive(data)).await? {}
        incoming.check()?;
    }
    Ok(streams)
}
