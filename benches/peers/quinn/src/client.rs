//! Does the jobs. Also part of noq's program, whose interface is the same.

use std::time::Instant;

use job::{
    ClientArguments, Direction, Failure, Incoming, Job, Outgoing, SERVER_NAME, Wanted, events,
};

use crate::quic::{Connection, Endpoint, VarInt};
use crate::settings;
use crate::streams::{supply, take};

pub(crate) async fn run(arguments: ClientArguments) -> Result<(), Failure> {
    let endpoint = settings::client(&arguments)?;
    match arguments.job {
        Job::Bulk { bytes, direction } => {
            let connection = endpoint.connect(arguments.connect, SERVER_NAME)?.await?;
            bulk(&connection, bytes, direction).await?;
            end(&endpoint).await;
        }
        _ => return Err("not yet".into()),
    }
    Ok(())
}

/// Keeps everything until the runner has seen enough.
async fn end(endpoint: &Endpoint) {
    let _ = tokio::task::spawn_blocking(events::wait_for_end).await;
    endpoint.close(VarInt::from_u32(0), b"");
    endpoint.wait_idle().await;
}

async fn bulk(connection: &Connection, bytes: u64, direction: Direction) -> Result<(), Failure> {
    let (wanted, upload) = match direction {
        Direction::Download => (Wanted::Payload(bytes), 0),
        Direction::Upload => (Wanted::Checksum, bytes),
    };
    let mut incoming = Incoming::new(wanted, upload);
    events::start();
    let start = Instant::now();
    let (mut send, mut receive) = connection.open_bi().await?;
    supply(&mut send, Outgoing::request(wanted, upload)).await?;
    while take(&mut receive, |data| incoming.receive(data)).await? {}
    let took = start.elapsed();
    incoming.check()?;
    events::bulk_done(bytes, took);
    Ok(())
}
