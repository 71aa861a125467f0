//! `perf client`: generates the load and measures.

use std::time::{Duration, Instant};

use tokio::task::JoinSet;

use super::args::PerfProtocol;
use super::report::{Latency, Measurement};
use super::target::{Requester, Target, TargetSettings};
use crate::commands::get::trust;
use crate::commands::relay::host_and_port;
use crate::cpu::process_time;
use crate::exit::{Exit, Failure};
use crate::output;
use crate::perf::args::{HandshakesArgs, Load, PerfClientArgs, RequestsArgs, VolumeArgs};
use crate::runtime::{interrupted, stop_requested};
use crate::transport::CloseReason;

/// Default bytes of a request of the `perf` protocol.
const SMALL_REQUEST: u64 = 100;

pub(crate) async fn run(args: PerfClientArgs) -> Result<(), Failure> {
    let server = host_and_port(&args.server)?;
    let trust = trust(&args.trust)?;
    let time_limit = Some(args.trust.connect_timeout);
    let settings = TargetSettings {
        trust: &trust,
        tuning: &args.tuning,
        paths: &args.paths,
        time_limit,
    };
    let server = Target::new(args.protocol, server, &settings)?;
    let measured = tokio::select! {
        measured = measure(&server, &args.load, process_time) => measured,
        stopped = stop_requested() => stopped.and(Err(interrupted())),
    };
    server.part(parting(&measured)).await;
    print(&measured?, args.json)
}

/// How to close the connections after a measurement.
pub(crate) fn parting(measured: &Result<Measurement, Failure>) -> CloseReason {
    if measured.is_ok() {
        CloseReason::Done
    } else {
        CloseReason::GivingUp
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

/// Generates the load and measures; `cpu` returns the CPU time used so far.
pub(super) async fn measure(
    server: &Target,
    load: &Load,
    cpu: impl Fn() -> Option<Duration>,
) -> Result<Measurement, Failure> {
    let cpu_start = cpu();
    let mut measurement = match load {
        Load::Upload(args) => volume(server, args, TransferDirection::Up).await?,
        Load::Download(args) => volume(server, args, TransferDirection::Down).await?,
        Load::Requests(args) => requests(server, args).await?,
        Load::Handshakes(args) => handshakes(server, args).await?,
    };
    measurement.protocol = server.protocol().name();
    measurement.cpu(
        cpu()
            .zip(cpu_start)
            .map(|(end, start)| end.saturating_sub(start)),
    );
    Ok(measurement)
}

#[derive(Clone, Copy)]
enum TransferDirection {
    Up,
    Down,
}

async fn volume(
    server: &Target,
    args: &VolumeArgs,
    way: TransferDirection,
) -> Result<Measurement, Failure> {
    let handles = server.handles(1, args.streams).await?;
    let start = Instant::now();
    let streams = u64::from(args.streams);
    let mut running = JoinSet::new();
    for (stream, mut handle) in (0..streams).zip(handles) {
        // The first streams carry the remainder of the division.
        let share = args.bytes / streams + u64::from(stream < args.bytes % streams);
        let job = match way {
            TransferDirection::Up => server.job(share, 0)?,
            TransferDirection::Down => server.job(0, share)?,
        };
        running.spawn(async move { handle.request(&job).await.map(|()| handle) });
    }
    let handles = join(running).await?;
    let load = match way {
        TransferDirection::Up => "upload",
        TransferDirection::Down => "download",
    };
    let mut measurement = Measurement {
        load,
        bytes: args.bytes,
        completed: streams,
        connections: connections(server, 1, args.streams),
        ..Measurement::default()
    };
    measurement.finish(start.elapsed());
    if let Some(stats) = handles.first().and_then(Requester::stats) {
        measurement.connection(&stats);
    }
    Ok(measurement)
}

/// Connections with so many handles each, of which some protocols support only one.
fn connections(server: &Target, connections: u16, each: u16) -> u32 {
    let each = if server.protocol().multiplexes() {
        1
    } else {
        each
    };
    u32::from(connections) * u32::from(each)
}

async fn requests(server: &Target, args: &RequestsArgs) -> Result<Measurement, Failure> {
    let small = match server.protocol() {
        PerfProtocol::Perf => SMALL_REQUEST,
        PerfProtocol::H3 | PerfProtocol::H2 | PerfProtocol::H1 => 0,
    };
    let (up, down) = (args.up.unwrap_or(small), args.down);
    let job = server.job(up, down)?;
    let handles = server.handles(args.connections, args.in_flight).await?;
    let start = Instant::now();
    let mut running = JoinSet::new();
    for mut handle in handles {
        let (job, duration) = (job.clone(), args.duration);
        running.spawn(async move {
            let mut latencies = Vec::new();
            while start.elapsed() < duration {
                let begun = Instant::now();
                handle.request(&job).await?;
                latencies.push(begun.elapsed());
            }
            Ok((latencies, handle))
        });
    }
    let (latencies, handles): (Vec<_>, Vec<_>) = join(running).await?.into_iter().unzip();
    let latencies = latencies.concat();
    let completed = latencies.len() as u64;
    let mut measurement = Measurement {
        load: "requests",
        bytes: completed.saturating_mul(up.saturating_add(down)),
        completed,
        connections: connections(server, args.connections, args.in_flight),
        latency_ms: Latency::of(latencies),
        ..Measurement::default()
    };
    measurement.finish(start.elapsed());
    // One of many would not be representative.
    if measurement.connections == 1
        && let Some(stats) = handles.first().and_then(Requester::stats)
    {
        measurement.connection(&stats);
    }
    Ok(measurement)
}

async fn handshakes(server: &Target, args: &HandshakesArgs) -> Result<Measurement, Failure> {
    let start = Instant::now();
    let mut running = JoinSet::new();
    for _ in 0..args.in_flight {
        let (server, duration) = (server.clone(), args.duration);
        running.spawn(async move {
            let mut latencies = Vec::new();
            while start.elapsed() < duration {
                let begun = Instant::now();
                server.connect().await?.close();
                latencies.push(begun.elapsed());
            }
            Ok(latencies)
        });
    }
    let latencies = join(running).await?.concat();
    let completed = latencies.len() as u64;
    let mut measurement = Measurement {
        load: "handshakes",
        completed,
        connections: u32::try_from(completed).unwrap_or(u32::MAX),
        latency_ms: Latency::of(latencies),
        ..Measurement::default()
    };
    measurement.finish(start.elapsed());
    Ok(measurement)
}

/// The sum of all tasks' results. The first failure ends it.
async fn join<T: 'static>(mut running: JoinSet<Result<T, Failure>>) -> Result<Vec<T>, Failure> {
    let mut all = Vec::new();
    while let Some(done) = running.join_next().await {
        all.push(done.map_err(|error| Failure::new(Exit::Failure, error))??);
    }
    Ok(all)
}
