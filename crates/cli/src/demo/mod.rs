//! `demo`: server, emulated network and client in one process, for the first look.
//!
//! Each preset is a network of its own ([`presets`]); all run at the same time, so that the whole
//! takes as long as the slowest. Everything is real but the network: UDP sockets, handshakes with a
//! verified certificate, files read from and written to disk.

pub mod files;
pub mod presets;
pub mod row;
mod story;

use std::sync::Arc;
use std::time::Instant;

use clap::{Args, ValueEnum};
use swiftwater::DevCertificate;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

use self::files::Files;
use self::presets::Preset;
use self::row::Row;
use self::story::Stage;
use crate::exit::{Exit, Failure};
use crate::identity::Identity;
use crate::output;
use crate::progress::Progress;
use crate::runtime::{interrupted, stop_requested};
use crate::table;
use crate::transport::Tuning;

/// `demo`.
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  swiftwater demo
  swiftwater demo files --cc newreno
  swiftwater demo --preset satellite --preset lte --json

A short video and a random file cross each emulated network over real UDP sockets on this machine and
are verified by SHA-256. The networks run at the same time; all is over in well under a minute.")]
pub struct DemoArgs {
    /// What to show
    #[arg(value_enum, default_value_t, value_name = "STORY")]
    pub story: Story,

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

/// What the demo shows.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, ValueEnum)]
pub enum Story {
    /// Files cross emulated networks
    #[default]
    Files,
}

pub(crate) async fn run(args: DemoArgs) -> Result<(), Failure> {
    let Story::Files = args.story;
    let start = Instant::now();
    let stage = Arc::new(stage(&args)?);
    let presets = selected(&args);
    let (rows, mut finished) = mpsc::channel(16);
    if !args.json {
        let count = presets.len();
        let networks = if count == 1 {
            "network"
        } else {
            "networks at the same time"
        };
        output::line(&format!(
            "moving {} across {count} {networks}",
            stage.files.describe()
        ))?;
    }
    let mut running = JoinSet::new();
    for preset in presets {
        running.spawn(story::run(Arc::clone(&stage), preset, rows.clone()));
    }
    drop(rows);
    let mut all = Vec::new();
    let mut stop = std::pin::pin!(stop_requested());
    loop {
        let told = tokio::select! {
            row = finished.recv() => match row {
                Some(row) => {
                    let told = tell(&stage.progress, &row, args.json);
                    all.push(row);
                    told
                }
                None => break,
            },
            stopped = &mut stop => stopped.and(Err(interrupted())),
        };
        if told.is_err() {
            // The last of them removes the temporary files.
            running.shutdown().await;
            return told;
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

/// Files, certificate and settings for all networks.
fn stage(args: &DemoArgs) -> Result<Stage, Failure> {
    let certificate = DevCertificate::generate(["localhost"])
        .map_err(|error| Failure::new(Exit::Certificate, error))?;
    Ok(Stage {
        files: Files::prepare(args.quick, args.seed)?,
        identity: Identity::of(&certificate),
        trusted: certificate.certificate_der(),
        tuning: args.tuning.clone(),
        seed: args.seed,
        progress: Progress::new(!args.json),
    })
}

/// The networks to run, in their usual order.
fn selected(args: &DemoArgs) -> Vec<Preset> {
    let wanted = |preset: &&Preset| args.presets.is_empty() || args.presets.contains(preset);
    Preset::value_variants()
        .iter()
        .filter(wanted)
        .copied()
        .collect()
}

/// Reports a finished row at once: as JSON, or as a line for people.
fn tell(progress: &Progress, row: &Row, json: bool) -> Result<(), Failure> {
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

/// Success if every file arrived as it was sent.
pub fn verdict(rows: &[Row]) -> Result<(), Failure> {
    match rows.iter().filter(|row| !row.sha256_ok).count() {
        0 if !rows.is_empty() => Ok(()),
        bad => Err(Failure::new(
            Exit::Differs,
            format_args!("{bad} of {} transfers failed or differ", rows.len()),
        )),
    }
}
