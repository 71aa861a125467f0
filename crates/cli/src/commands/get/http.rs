//! Runs a plan over HTTP: concurrency and order of the requests, and the final result.

use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Instant;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::args::{GetArgs, Protocol};
use super::client::Clients;
use super::fetch::{Context, Options, Outcome, fetch};
use super::migration::Migrations;
use super::order::Order;
use super::pace::Paces;
use super::plan::{self, Item, Place};
use super::report::Summary;
use crate::exit::{Exit, Failure};
use crate::multipath::PathManagers;
use crate::progress::Progress;
use crate::runtime::{interrupted, stop_requested};

pub(super) async fn run(args: GetArgs, verbose: bool) -> Result<(), Failure> {
    let order = Order::of(&args.request)?;
    if args.continuation && order.has_range() {
        let text = "--continue makes ranges of its own: leave out -H Range";
        return Err(Failure::new(Exit::Usage, text));
    }
    if args.paths.is_used() && matches!(args.protocol, Protocol::Tcp | Protocol::Http1) {
        let text =
            "--path, --scheduler and --multipath-version are for QUIC: choose another --protocol";
        return Err(Failure::new(Exit::Usage, text));
    }
    let items = plan::http(&args, &order.method)?;
    let clients = Clients::new(args.client())?;
    let prints = items.iter().any(|item| item.place == Place::Stdout);
    let progress = Progress::new(!(args.json || prints && std::io::stdout().is_terminal()));
    let context = Arc::new(context(&args, verbose, order, &clients, &progress));

    let begun = Instant::now();
    let mut summary = Summary::new(args.json, args.request.head || prints, progress);
    let mut stop = std::pin::pin!(stop_requested());
    let mut ended = Ok(());
    let mut tasks = JoinSet::new();
    for (nth, wave) in waves(items, &args, prints).into_iter().enumerate() {
        if nth > 0 && !prints {
            // Close the connections before the next wave opens its own.
            clients.http.close_idle();
        }
        for item in wave {
            tasks.spawn(fetch(Arc::clone(&context), item));
        }
        let work = report_all(&mut tasks, &mut summary);
        ended = tokio::select! {
            reported = work => reported,
            stopped = &mut stop => stopped.and(Err(interrupted())),
        };
        if ended.is_err() {
            break;
        }
    }
    // What is interrupted decides what it leaves behind before the program ends.
    tasks.shutdown().await;
    let elapsed = begun.elapsed();
    if ended.is_ok()
        && let Some(moves) = &context.moves
    {
        moves.finish().await;
    }
    let connections = clients.http.pool_stats().opened;
    drop(context);
    clients.hang_up().await;
    ended?;
    summary.finish(elapsed, connections)
}

fn context(
    args: &GetArgs,
    verbose: bool,
    order: Order,
    clients: &Clients,
    progress: &Progress,
) -> Context {
    Context {
        client: clients.http.clone(),
        order,
        slots: Semaphore::new(usize::from(args.parallel)),
        progress: progress.clone(),
        paces: args.limit_rate.map(Paces::new),
        moves: args.migrate_after.and_then(|plan| {
            let quic = clients.quic.as_ref()?;
            let endpoint = quic.endpoint().clone();
            Some(Migrations::new(plan, endpoint, progress.clone(), verbose))
        }),
        paths: clients
            .quic
            .as_ref()
            .filter(|_| args.paths.is_used() && !args.proxy.is_used())
            .map(|quic| {
                let managers = PathManagers::new(quic.endpoint().clone(), args.paths.policy());
                managers.operations(args.operations.path_operation.clone())
            }),
        options: options(args, verbose),
    }
}

fn options(args: &GetArgs, verbose: bool) -> Options {
    let request = &args.request;
    Options {
        overwrite: args.force,
        continuation: args.continuation,
        follow: request.location || request.location_trusted,
        trust_redirects: request.location_trusted,
        compressed: request.compressed,
        keep_failures: request.fail_with_body,
        heads: (request.head || request.include) && !args.json,
        verbose,
        protocol: args.protocol,
        max_size: args.max_size(),
        retry: args.retry,
        retry_max_time: args.retry_max_time,
        max_time: args.max_time,
    }
}

/// Reports each URL when it is done.
async fn report_all(tasks: &mut JoinSet<Outcome>, summary: &mut Summary) -> Result<(), Failure> {
    while let Some(joined) = tasks.join_next().await {
        let outcome = joined.map_err(|error| Failure::new(Exit::Failure, error))?;
        summary.add(&outcome)?;
    }
    Ok(())
}

/// The URLs that may be fetched concurrently: all of them, or one after the other if the contents
/// are written to one destination; with resumption the first URL of each server before the rest.
fn waves(items: Vec<Item>, args: &GetArgs, prints: bool) -> Vec<Vec<Item>> {
    if prints {
        return items.into_iter().map(|item| vec![item]).collect();
    }
    if !(args.tls_resume || args.zero_rtt) {
        return vec![items];
    }
    let mut servers = BTreeSet::new();
    let (mut first, mut rest) = (Vec::new(), Vec::new());
    for item in items {
        let url = &item.url;
        let is_new = servers.insert((url.scheme(), url.host().to_owned(), url.port()));
        let wave = if is_new { &mut first } else { &mut rest };
        wave.push(item);
    }
    vec![first, rest]
}
