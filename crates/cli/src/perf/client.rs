//! `perf client`: makes the load and measures.

use std::sync::Arc;
use std::time::{Duration, Instant};

use swiftwater::{Client, Connection};
use tokio::task::JoinSet;

use super::protocol::request;
use super::report::{Latency, Measurement};
use crate::commands::get::trust;
use crate::commands::relay::host_and_port;
use crate::cpu::process_time;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::perf::args::{HandshakesArgs, Load, PerfClientArgs, RequestsArgs, VolumeArgs};
use crate::runtime::{interrupted, stop_requested};
use crate::transport::{Parting, build_failure, client, connect, hang_up};

pub(crate) async fn run(args: PerfClientArgs) -> Result<(), Failure> {
    let (host, port) = host_and_port(&args.server)?;
    let client = client(&trust(&args.trust)?, super::ALPN, &args.tuning)
        .transport(|transport| transport.handshake_timeout = args.trust.connect_timeout)
        .build()
        .map_err(|error| build_failure(&error))?;
    let server = Target { host, port };
    let measured = tokio::select! {
        measured = measure(&client, &server, &args.load, process_time) => measured,
        stopped = stop_requested() => stopped.and(Err(interrupted())),
    };
    hang_up(&client, parting(&measured)).await;
    print(&measured?, args.json)
}

/// How to part after a measurement.
pub(crate) fn parting(measured: &Result<Measurement, Failure>) -> Parting {
    if measured.is_ok() {
        Parting::Done
    } else {
        Parting::GivingUp
    }
}

/// Prints a measurement.
pub(crate) fn print(measurement: &Measurement, json: bool) -> Result<(), Failure> {
    if json {
        output::json(measurement)
    } else {
        output::line(&measurement.text())
    }
}

/// The server to measure against.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) host: String,
    pub(crate) port: u16,
}

impl Target {
    async fn connect(&self, client: &Client) -> Result<Connection, Failure> {
        connect(client, &self.host, self.port).await
    }
}

/// Makes the load and measures; `cpu` tells the processor time used so far.
pub(crate) async fn measure(
    client: &Client,
    server: &Target,
    load: &Load,
    cpu: impl Fn() -> Option<Duration>,
) -> Result<Measurement, Failure> {
    let cpu_start = cpu();
    let mut measurement = match load {
        Load::Upload(args) => volume(client, server, args, Way::Up).await?,
        Load::Download(args) => volume(client, server, args, Way::Down).await?,
        Load::Requests(args) => requests(client, server, args).await?,
        Load::Handshakes(args) => handshakes(client, server, args).await?,
    };
    measurement.cpu(
        cpu()
            .zip(cpu_start)
            .map(|(end, start)| end.saturating_sub(start)),
    );
    Ok(measurement)
}

#[derive(Clone, Copy)]
enum Way {
    Up,
    Down,
}

async fn volume(
    client: &Client,
    server: &Target,
    args: &VolumeArgs,
    way: Way,
) -> Result<Measurement, Failure> {
    let connection = server.connect(client).await?;
    let start = Instant::now();
    let streams = u64::from(args.streams);
    let mut running = JoinSet::new();
    for stream in 0..streams {
        // The first streams carry what doesn't divide evenly.
        let share = args.bytes / streams + u64::from(stream < args.bytes % streams);
        let connection = connection.clone();
        running.spawn(async move {
            match way {
                Way::Up => request(&connection, share, 0).await,
                Way::Down => request(&connection, 0, share).await,
            }
        });
    }
    while let Some(done) = running.join_next().await {
        done.map_err(|error| Failure::new(Exit::Failure, error))??;
    }
    let load = match way {
        Way::Up => "upload",
        Way::Down => "download",
    };
    let mut measurement = Measurement {
        load,
        bytes: args.bytes,
        completed: streams,
        ..Measurement::default()
    };
    measurement.finish(start.elapsed());
    measurement.connection(&connection.stats());
    Ok(measurement)
}

async fn requests(
    client: &Client,
    server: &Target,
    args: &RequestsArgs,
) -> Result<Measurement, Failure> {
    let connection = server.connect(client).await?;
    let start = Instant::now();
    let (up, down) = (args.up, args.down);
    let latencies = {
        let connection = connection.clone();
        repeat(args.in_flight, args.duration, move || {
            let connection = connection.clone();
            async move { request(&connection, up, down).await }
        })
        .await?
    };
    let completed = latencies.len() as u64;
    let mut measurement = Measurement {
        load: "requests",
        bytes: completed.saturating_mul(up.saturating_add(down)),
        completed,
        latency_ms: Latency::of(latencies),
        ..Measurement::default()
    };
    measurement.finish(start.elapsed());
    measurement.connection(&connection.stats());
    Ok(measurement)
}

async fn handshakes(
    client: &Client,
    server: &Target,
    args: &HandshakesArgs,
) -> Result<Measurement, Failure> {
    let start = Instant::now();
    let latencies = {
        let (client, server) = (client.clone(), Arc::new(server.clone()));
        repeat(args.in_flight, args.duration, move || {
            let (client, server) = (client.clone(), Arc::clone(&server));
            async move {
                let connection = server.connect(&client).await?;
                connection.close(0, b"");
                Ok(())
            }
        })
        .await?
    };
    let mut measurement = Measurement {
        load: "handshakes",
        completed: latencies.len() as u64,
        latency_ms: Latency::of(latencies),
        ..Measurement::default()
    };
    measurement.finish(start.elapsed());
    Ok(measurement)
}

/// Keeps `in_flight` of what `make` makes going for `duration`; returns how long each took. The first
/// failure ends it.
async fn repeat<F, T>(in_flight: u16, duration: Duration, make: F) -> Result<Vec<Duration>, Failure>
where
    F: Fn() -> T + Clone + Send + 'static,
    T: Future<Output = Result<(), Failure>> + Send + 'static,
{
    let start = Instant::now();
    let mut workers = JoinSet::new();
    for _ in 0..in_flight {
        let make = make.clone();
        workers.spawn(async move {
            let mut latencies = Vec::new();
            while start.elapsed() < duration {
                let begun = Instant::now();
                make().await?;
                latencies.push(begun.elapsed());
            }
            Ok::<_, Failure>(latencies)
        });
    }
    let mut all = Vec::new();
    while let Some(done) = workers.join_next().await {
        all.append(&mut done.map_err(|error| Failure::new(Exit::Failure, error))??);
    }
    Ok(all)
}
