//! `perf server`: answers the `perf` protocol and HTTP.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde::Serialize;
use swiftwater::{Connection, Server};
use swiftwater_http::udp::{ALPN_HTTP3, H3Server};
use tokio::task::JoinSet;

use super::http::server::{serve_quic, serve_tcp};
use super::protocol::answer;
use crate::commands::serve::{InheritedSockets, announce, bind, identity};
use crate::cpu::{process_time, seconds_per_gigabyte};
use crate::exit::Failure;
use crate::output;
use crate::perf::args::PerfServerArgs;
use crate::runtime::stop_requested;
use crate::table;
use crate::transport::{farewell, server};

/// The protocols offered over QUIC.
pub(super) const PROTOCOLS: [&[u8]; 2] = [super::ALPN, ALPN_HTTP3];

pub(crate) async fn run(args: PerfServerArgs) -> Result<(), Failure> {
    let identity = identity(&args.identity)?;
    let builder = server(&identity, &PROTOCOLS, &args.tuning).workers(args.workers);
    let builder = args.multipath.apply(builder);
    let (server, listener) = bind(
        &builder,
        args.listen,
        args.no_tcp,
        &mut InheritedSockets::default(),
    )
    .await?;
    announce(&server, &identity, "answering measurements", args.json)?;
    // Stops when it is dropped.
    let _tcp = match listener {
        Some(listener) => Some(serve_tcp(&identity, listener)?),
        None => None,
    };
    let json = args.json;
    tokio::select! {
        () = serve(&server, move |row| report(&row, json)) => {}
        stopped = stop_requested() => stopped?,
    }
    farewell(&server).await;
    Ok(())
}

/// Traffic and cost of a connection.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(tag = "event", rename = "connection")]
pub(crate) struct ConnectionRow {
    client: SocketAddr,
    protocol: &'static str,
    requests: u64,
    up_bytes: u64,
    down_bytes: u64,
    seconds: f64,
    /// Of the whole process during the connection.
    cpu_s: Option<f64>,
    cpu_s_per_gb: Option<f64>,
}

/// Serves until the server is closed; reports each connection to `log` at its end.
pub(crate) async fn serve<F>(server: &Server, log: F)
where
    F: Fn(ConnectionRow) + Clone + Send + 'static,
{
    let http3 = H3Server::default();
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            connection = server.accept() => {
                let Some(connection) = connection else { break };
                let (log, http3) = (log.clone(), http3.clone());
                connections.spawn(async move {
                    let row = serve_connection(connection, &http3).await;
                    log(row);
                });
            }
            Some(_) = connections.join_next() => {}
        }
    }
}

/// Traffic that was served.
#[derive(Default)]
pub(super) struct Totals {
    pub(super) requests: AtomicU64,
    pub(super) up: AtomicU64,
    pub(super) down: AtomicU64,
}

async fn serve_connection(connection: Connection, http3: &H3Server) -> ConnectionRow {
    let client = connection.remote_address();
    let (start, cpu_start) = (Instant::now(), process_time());
    let totals = Arc::new(Totals::default());
    let is_http = connection.alpn().is_some_and(|alpn| alpn == ALPN_HTTP3);
    let protocol = if is_http {
        serve_quic(http3, connection, &totals).await;
        "h3"
    } else {
        serve_streams(connection, &totals).await;
        "perf"
    };
    let cpu = process_time()
        .zip(cpu_start)
        .map(|(end, start)| end.saturating_sub(start));
    let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let (up_bytes, down_bytes) = (get(&totals.up), get(&totals.down));
    ConnectionRow {
        client,
        protocol,
        requests: get(&totals.requests),
        up_bytes,
        down_bytes,
        seconds: start.elapsed().as_secs_f64(),
        cpu_s: cpu.map(|cpu| cpu.as_secs_f64()),
        cpu_s_per_gb: seconds_per_gigabyte(cpu, up_bytes.saturating_add(down_bytes)),
    }
}

/// Answers the `perf` protocol until the connection ends.
async fn serve_streams(connection: Connection, totals: &Arc<Totals>) {
    let mut streams = JoinSet::new();
    loop {
        tokio::select! {
            accepted = connection.accept_bi() => {
                let Ok((send, recv)) = accepted else { break };
                let totals = Arc::clone(totals);
                streams.spawn(async move {
                    match answer(send, recv).await {
                        Ok((up, down)) => {
                            totals.requests.fetch_add(1, Ordering::Relaxed);
                            totals.up.fetch_add(up, Ordering::Relaxed);
                            totals.down.fetch_add(down, Ordering::Relaxed);
                        }
                        Err(failure) => tracing::debug!(%failure, "request not answered"),
                    }
                });
            }
            Some(_) = streams.join_next() => {}
        }
    }
    while streams.join_next().await.is_some() {}
}

fn report(row: &ConnectionRow, json: bool) {
    let printed = if json {
        output::json(row)
    } else if row.requests == 0 {
        // One line for each of thousands of handshakes would be useless.
        Ok(())
    } else {
        let cpu = match (row.cpu_s, row.cpu_s_per_gb) {
            (Some(cpu), Some(per_gb)) => format!(", {cpu:.2} s of CPU time ({per_gb:.3} s per GB)"),
            _ => String::new(),
        };
        output::line(&format!(
            "{} {}: {} requests, {} up, {} down in {}{cpu}",
            row.client,
            row.protocol,
            row.requests,
            table::bytes(row.up_bytes),
            table::bytes(row.down_bytes),
            table::time(Duration::from_secs_f64(row.seconds)),
        ))
    };
    if let Err(failure) = printed {
        tracing::warn!(%failure, "log line lost");
    }
}
