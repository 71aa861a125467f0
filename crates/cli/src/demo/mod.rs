//! `demo`: server, emulated network and client in one process, as a first demonstration. Everything
//! but the network is real: UDP sockets, handshakes with a verified certificate, bytes that are
//! checked.
//!
//! - [`live`], the default: live video over a lossy link, with several recovery policies side by
//!   side.
//! - `files`: files read from and written to disk. Each preset is a separate network ([`presets`]);
//!   all run at the same time, so that the whole takes as long as the slowest.
//! - [`multipath`]: a download and live video while one of two networks fails, over one path, with migration
//!   and over both; then video on demand, with one path and with the policies for several.
//! - [`select`]: browsing while the network changes, with several ways to choose between TCP and QUIC.
//! - [`tunnel`]: objects of a far server over a lossy last mile, directly and through a proxy near the client.
//! - [`web`]: a page and calls of an API over HTTP/3, compared with HTTP/2 over the kernel's TCP.

mod file_transfers;
pub mod files;
mod http3_connections;
pub mod live;
pub mod multipath;
pub mod page_file;
pub mod presets;
pub mod random_numbers;
pub mod row;
pub mod select;
mod tcp_controller;
pub mod tunnel;
mod wanted;
pub mod web;

use std::sync::Arc;
use std::time::Instant;

use clap::{Args, Subcommand};
use swiftwater::DevCertificate;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::file_transfers::TransferSetup;
use self::files::Files;
use self::live::plan::LiveArgs;
use self::multipath::plan::MultipathDemoArgs;
use self::presets::Preset;
use self::row::FileRow;
use self::select::plan::SelectDemoArgs;
use self::tunnel::plan::TunnelDemoArgs;
use self::wanted::wanted_or_all;
use self::web::plan::WebArgs;
use crate::exit::{Exit, Failure};
use crate::identity::Identity;
use crate::output;
use crate::progress::Progress;
use crate::runtime::{interrupted, stop_requested};
use crate::table;
use crate::transport::Tuning;

/// `demo`.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Examples:
  swiftwater demo
  swiftwater demo live --loss 8% --recovery autorec --recovery autorec+
  swiftwater demo files --preset satellite
  swiftwater demo web
  swiftwater demo multipath
  swiftwater demo select
  swiftwater demo tunnel

Without a story it is 'live': flags are those of 'demo live'. 'live' and 'files' take half a minute, the others up to
two minutes; with --quick all take less than half a minute."
)]
pub struct DemoArgs {
    /// The demonstration to run.
    #[command(subcommand)]
    pub story: Option<Story>,

    /// Flags of the default demonstration.
    #[command(flatten)]
    pub live: LiveArgs,
}

/// The demonstrations.
#[derive(Debug, Subcommand)]
pub enum Story {
    /// Live video over a lossy network, with plain retransmission and AutoRec+ side by side (the default)
    #[command(after_help = "\
Examples:
  swiftwater demo live
  swiftwater demo live --loss ge:2%,50%@20ms --rtt 120ms --bitrate 4mbit
  swiftwater demo live --video talk.mp4 --recovery autorec --recovery art --page art.html
  swiftwater demo live --preset lossy-wifi --quick --json

The same stream is sent at the same time, frame by frame in real time, over one emulated link for each
recovery: real servers, real clients, real UDP sockets. Every byte is checked on arrival; a model of a
live player decides what a viewer would have seen. The page with plots needs no network to open. Ctrl-C
ends it early, with a report (exit code 130). Results depend on the seed, and a little on the machine's load,
since everything runs in real time.

Losses in bursts: ge:P,R@TIME has a good and a bad state (Gilbert-Elliott), in which everything is lost. After
each step of TIME the good state turns bad with probability P, the bad one good with R: bursts last TIME / R on
average. Without @TIME a step is a packet: then a burst lasts until enough packets were lost in it, so a sender
that pauses stays in it for long.

The congestion controller is copa unless --cc or --profile is given: controllers that take random losses for
congestion (cubic), or whose estimate of the rate suffers from them (bbr1), freeze the picture whatever repairs
the losses.")]
    Live(Box<LiveArgs>),
    /// Files across emulated networks
    #[command(after_help = "\
Examples:
  swiftwater demo files
  swiftwater demo files --cc newreno
  swiftwater demo files --preset satellite --preset lte --json

A short video and a random file cross each emulated network over real UDP sockets on this machine and
are verified by SHA-256. The networks run at the same time; it takes about half a minute.")]
    Files(Box<FilesArgs>),
    /// A web page and calls of an API over HTTP/3, compared with HTTP/2 over the kernel's TCP
    #[command(after_help = "\
Examples:
  swiftwater demo web
  swiftwater demo web --preset lossy-wifi --loads 11 --tcp-cc cubic
  swiftwater demo web --quick --json

The same page is loaded over both protocols in turn, each time by a client without cached state, from a
server that just started. On Linux both use the same emulated link below IP, between two network
namespaces that are removed when the program ends; this requires root, or a system that permits user
namespaces for all users. Elsewhere only HTTP/3 is shown, through a relay of UDP datagrams. It takes up to
a minute and a half, with --quick a few seconds.

CUBIC, the default for HTTP/3, reduces its window at each loss; TCP uses the kernel's controller, which the
tables name. To use the same controller for both, set --cc and --tcp-cc; on lossy links try --cc bbr3.")]
    Web(Box<WebArgs>),
    /// Wi-Fi fails in the middle of a download and of live video: one path, migration, several paths
    #[command(after_help = "\
Examples:
  swiftwater demo multipath
  swiftwater demo multipath --fault cut-down --fails lte --strategy multipath
  swiftwater demo multipath --quick --json

A client has two networks, Wi-Fi (20 Mbit/s, RTT 20 ms) and LTE (12 Mbit/s, RTT 50 ms), emulated between real UDP
sockets at 127.0.0.1 and 127.0.0.2. It gets a file, and live video, each over a connection and networks of its
own, all at the same time. Wi-Fi fades for a second, is gone for some, and comes back:

- single-path stays on Wi-Fi;
- migration moves the connection to LTE when nothing new has arrived for 4 probe timeouts, 500 ms at least: a
  receiver that waits for data has no earlier sign that a path is dead;
- multipath uses both networks at once (RFC 10069), with failover as recovery policy unless another is given.

Each row has the longest gap that the application saw: between two arrivals of bytes of the file, between two
complete frames of the video. The page shows the rate over each network. A job that is not complete 12 s after
the end of the video is given up. JSON: strategy, job, bytes, sha256_ok, completion_ms, longest_gap_ms, freezes,
paths (of the server: bytes_sent, copies, srtt_ms).")]
    Multipath(Box<MultipathDemoArgs>),
    /// Browsing while the network changes, with several ways to choose between TCP and QUIC
    #[command(after_help = "\
Examples:
  swiftwater demo select
  swiftwater demo select --course udp-cut --strategy race --strategy wise
  swiftwater demo select --quick --json

Somebody clicks every 1.2 s, and each click requests six objects of 2 to 50 kB at once, whatever became of those
before. Every course and strategy has an emulated network, a server and a client of its own; UDP and the kernel's TCP
cross the same links, below IP. This takes Linux and root, or a system that permits user namespaces for all users.
Every response is compared by SHA-256. The page shows every request, its protocol and the reason for it.

QUIC and TCP alone have nothing else to use; with all other strategies a request that fails is a failure of the
program (exit code 4). JSON: course, strategy, requests, failed, repeated, mean_ms, p50_ms, p99_ms, quic_share,
probes_share, switches, sha256_ok, and error, the first failure.")]
    Select(Box<SelectDemoArgs>),
    /// Objects of a far server over a lossy last mile: directly, and through a proxy near the client
    #[command(after_help = "\
Examples:
  swiftwater demo tunnel
  swiftwater demo tunnel --loss ge:2%,50%@20ms --far-rtt 150ms
  swiftwater demo tunnel --system masque --system tecc --size 50kB --flows 200 --quick --json

A client gets objects from a server, one after the other on one connection, all content checked. Its last mile loses
packets:

- direct has no proxy;
- masque goes through a proxy near the client in a plain tunnel (CONNECT-UDP): losses are repaired by the server;
- repair keeps packets at the proxy and sends lost ones again, after a round trip of the last mile;
- tecc also reports to the server what the proxy repairs and how fast it sends (NSDI 2024).

Each system has servers, connections and emulated links of its own over real UDP sockets; all run at the same time. The
congestion controller is bbr3 unless --cc is given, at the proxy too; TECC's server has its own.")]
    Tunnel(Box<TunnelDemoArgs>),
}

/// `demo files`.
#[derive(Args, Debug)]
pub struct FilesArgs {
    /// Only this network (repeat for several)
    #[arg(long = "preset", value_enum, value_name = "NAME")]
    pub presets: Vec<Preset>,

    /// A small random file instead of 20 MB
    #[arg(long)]
    pub quick: bool,

    /// Seed of the networks and of the random file
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,

    /// Transport settings.
    #[command(flatten)]
    pub tuning: Tuning,

    /// Print one JSON object per file and network
    #[arg(long)]
    pub json: bool,
}

/// Steps that require a single-threaded process.
pub(crate) fn prepare(args: &DemoArgs) {
    match &args.story {
        Some(Story::Web(args)) => web::prepare(args),
        Some(Story::Select(_)) => select::prepare(),
        _ => {}
    }
}

pub(crate) async fn run(args: DemoArgs) -> Result<(), Failure> {
    match args.story {
        None => live::run(args.live).await,
        Some(Story::Live(args)) => live::run(*args).await,
        Some(Story::Files(args)) => move_files(*args).await,
        Some(Story::Web(args)) => web::run(*args).await,
        Some(Story::Multipath(args)) => multipath::run(*args).await,
        Some(Story::Select(args)) => select::run(*args).await,
        Some(Story::Tunnel(args)) => tunnel::run(*args).await,
    }
}

async fn move_files(args: FilesArgs) -> Result<(), Failure> {
    let start = Instant::now();
    let stage = Arc::new(stage(&args)?);
    let presets = wanted_or_all(&args.presets);
    let (rows, mut finished) = mpsc::channel(16);
    if !args.json {
        announce_transfers(&stage, presets.len())?;
    }
    let mut running = JoinSet::new();
    for preset in presets {
        running.spawn(file_transfers::run(
            Arc::clone(&stage),
            preset,
            rows.clone(),
        ));
    }
    drop(rows);
    let mut all = Vec::new();
    let mut stop = std::pin::pin!(stop_requested());
    loop {
        let printed = tokio::select! {
            row = finished.recv() => match row {
                Some(row) => {
                    let printed = print_row(&stage.progress, &row, args.json);
                    all.push(row);
                    printed
                }
                None => break,
            },
            stopped = &mut stop => stopped.and(Err(interrupted())),
        };
        if printed.is_err() {
            // The last reference removes the temporary files.
            running.shutdown().await;
            return printed;
        }
    }
    while let Some(done) = running.join_next().await {
        done.map_err(|error| Failure::new(Exit::Failure, error))?;
    }
    all.sort_by_key(|row| (row.preset as usize, row.order));
    if !args.json {
        output::line(&format!("\n{}\n", row::table(&all)))?;
    }
    verdict(&all)?;
    if !args.json {
        let took = table::time(start.elapsed());
        output::line(&format!(
            "all {} files arrived as they were sent; {took} in all",
            all.len()
        ))?;
    }
    Ok(())
}

/// Shows what is moved, and across how many networks.
fn announce_transfers(stage: &TransferSetup, count: usize) -> Result<(), Failure> {
    let networks = if count == 1 {
        "network"
    } else {
        "networks at the same time"
    };
    let files = stage.files.describe();
    output::line(&format!("moving {files} across {count} {networks}"))
}

/// Files, certificate and settings for all networks.
fn stage(args: &FilesArgs) -> Result<TransferSetup, Failure> {
    let certificate = DevCertificate::generate(["localhost"])
        .map_err(|error| Failure::new(Exit::Certificate, error))?;
    Ok(TransferSetup {
        files: Files::prepare(args.quick, args.seed)?,
        identity: Identity::of(&certificate),
        trusted: certificate.certificate_der(),
        tuning: args.tuning.clone(),
        seed: args.seed,
        progress: Progress::new(!args.json),
    })
}

/// Reports a finished row at once: as JSON, or as a line for people.
fn print_row(progress: &Progress, row: &FileRow, json: bool) -> Result<(), Failure> {
    if json {
        output::json(row)?;
    }
    match &row.error {
        Some(error) => progress.note(&format!("{}, {}: {error}", row.preset, row.file)),
        None if json => {}
        None => progress.note(&row.line()),
    }
    Ok(())
}

/// Success if every file arrived unchanged.
pub fn verdict(rows: &[FileRow]) -> Result<(), Failure> {
    match rows.iter().filter(|row| !row.sha256_ok).count() {
        0 if !rows.is_empty() => Ok(()),
        bad => Err(Failure::new(
            Exit::Differs,
            format_args!("{bad} of {} transfers failed or differ", rows.len()),
        )),
    }
}
