//! Does the jobs.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use job::{
    ClientArguments, Direction, ECHO, Failure, GREETING, Incoming, Job, Outgoing, SERVER_NAME,
    Wanted, events,
};
use swiftwater::{Connection, SendStream};
use tokio::task::JoinSet;

use crate::hosted;
use crate::requests::{self, request};
use crate::settings;
use crate::streams::{Reader, supply};

pub(crate) async fn run(arguments: &ClientArguments) -> Result<(), Failure> {
    let client = Client {
        client: Arc::new(settings::client(arguments)?),
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
            let connection = client.connect().await?;
            let duration = Duration::from_secs_f64(seconds);
            if arguments.settings.tuned {
                hosted::requests(&connection, duration, in_flight, (up, down)).await?;
            } else {
                requests::run(&connection, duration, in_flight, (up, down)).await?;
            }
            client.end().await
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
    client: Arc<swiftwater::Client>,
    server: SocketAddr,
}

impl Client {
    async fn connect(&self) -> Result<Connection, Failure> {
        Ok(self.client.connect_to(self.server, SERVER_NAME).await?)
    }

    /// Keeps everything until the runner has seen enough.
    async fn end(&self) -> Result<(), Failure> {
        tokio::task::spawn_blocking(events::wait_for_end).await?;
        // The close need not be delivered reliably.
        let farewell = Duration::from_millis(200);
        let _ = tokio::time::timeout(farewell, self.client.close()).await;
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
    let (mut send, receive) = connection.open_bi().await?;
    supply(&mut send, Outgoing::request(wanted, upload)).await?;
    let mut reader = Reader::new(receive);
    while reader.next(|data| incoming.receive(data)).await? {}
    let took = start.elapsed();
    incoming.check()?;
    events::bulk_done(bytes, took);
    client.end().await
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
                client.connect().await?.close(0, b"");
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
) -> Result<Vec<(SendStream, Reader)>, Failure> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let (mut send, receive) = connection.open_bi().await?;
        supply(&mut send, Outgoing::request(Wanted::Echo(ECHO), ECHO)).await?;
        streams.push((send, Reader::new(receive)));
    }
    for (_, reader) in &mut streams {
        let mut incoming = expected.clone();
        while !incoming.is_complete() && reader.next(|data| incoming.receive(data)).await? {}
        incoming.check()?;
    }
    Ok(streams)
}
