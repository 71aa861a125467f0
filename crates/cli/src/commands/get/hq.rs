//! Downloads over `hq-interop`, many at once, one connection per server.

use std::collections::BTreeSet;
use std::future::poll_fn;
use std::iter;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use serde::Serialize;
use swiftwater::{Client, Connection, EarlyDataOutcome, MemorySessionStore};
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

use super::args::GetArgs;

use super::plan::{self, Download};
use super::trust;
use crate::exit::{Exit, Failure};
use crate::hq;
use crate::hq::client::{Fetched, fetch};
use crate::migrate::{MigrateAfter, Odometer, migrate};
use crate::multipath::PathManagers;
use crate::output;
use crate::part_file::PartFile;
use crate::progress::Progress;
use crate::runtime::{interrupted, stop_requested};
use crate::stats::{PathRow, path_rows};
use crate::table;
use crate::transport::{CloseReason, build_failure, client, connect, connect_early, hang_up};

pub(super) async fn run(args: GetArgs) -> Result<(), Failure> {
    let plan = plan::hq(&args)?;
    let client = client_for(&args)?;
    plan::make_directory_of(&plan.directory)?;
    let paths = args.paths.is_used().then(|| {
        let managers = PathManagers::new(client.endpoint().clone(), args.paths.policy());
        Arc::new(managers.operations(args.operations.path_operation.clone()))
    });
    let start = Instant::now();
    let progress = Progress::new(!args.json);
    let slots = Arc::new(Semaphore::new(usize::from(args.parallel)));
    let (results, mut finished) = mpsc::channel(64);
    let mut servers = JoinSet::new();
    for downloads in plan.servers.into_values() {
        let context = HqContext {
            results: results.clone(),
            slots: Arc::clone(&slots),
            progress: progress.clone(),
            overwrite: args.force,
            migrate: args.migrate_after,
            again: Again::of(&args),
            paths: paths.clone(),
        };
        servers.spawn(download_from(client.clone(), downloads, context));
    }
    drop(results);

    let mut summary = HqSummary::new(args.json, progress);
    let mut stop = std::pin::pin!(stop_requested());
    let ended = loop {
        let reported = tokio::select! {
            result = finished.recv() => match result {
                Some(result) => summary.add(&result),
                None => break Ok(()),
            },
            stopped = &mut stop => stopped.and(Err(interrupted())),
        };
        if reported.is_err() {
            break reported;
        }
    };
    if ended.is_err() {
        // Dropping the downloads removes their part files.
        servers.shutdown().await;
        hang_up(&client, CloseReason::GivingUp).await;
        return ended;
    }
    let elapsed = start.elapsed();
    hang_up(&client, CloseReason::Done).await;
    summary.finish(elapsed)
}

/// The part file of a download, or why there is none, if it was created before its connection.
type CreatedBefore = Option<Result<PartFile, Failure>>;

/// The result.
struct HqOutcome {
    download: Download,
    fetched: Result<Fetched, Failure>,
    /// Whether its connection was resumed, if resumption was requested.
    visit: Option<HqVisit>,
    /// The paths of its connection at the end.
    paths: Vec<PathRow>,
}

/// How a connection was established.
#[derive(Clone, Copy, Debug)]
struct HqVisit {
    resumed: bool,
    early_data: Option<EarlyDataOutcome>,
}

impl HqVisit {
    /// Text for the line of a file.
    fn remark(self) -> &'static str {
        match (self.early_data, self.resumed) {
            (Some(EarlyDataOutcome::Accepted), _) => ", 0-RTT",
            (Some(EarlyDataOutcome::Rejected), _) => ", 0-RTT rejected",
            (None, true) => ", resumed",
            (None, false) => "",
        }
    }
}

/// How files after the first of a server are fetched.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Again {
    /// Over the same connection.
    Stay,
    /// Over another connection that resumes the session.
    Resume,
    /// As `Resume`, with requests as early data.
    Early,
}

impl Again {
    fn of(args: &GetArgs) -> Self {
        match (args.zero_rtt, args.tls_resume) {
            (true, _) => Self::Early,
            (false, true) => Self::Resume,
            (false, false) => Self::Stay,
        }
    }
}

/// State shared by the downloads.
#[derive(Clone)]
struct HqContext {
    results: mpsc::Sender<HqOutcome>,
    slots: Arc<Semaphore>,
    progress: Progress,
    overwrite: bool,
    migrate: Option<MigrateAfter>,
    again: Again,
    paths: Option<Arc<PathManagers>>,
}

fn client_for(args: &GetArgs) -> Result<Client, Failure> {
    let builder = client(&trust(&args.trust)?, hq::ALPN, &args.tuning);
    let mut builder = args.paths.apply(builder, args.only_host())?;
    let again = Again::of(args);
    if again != Again::Stay {
        let store = Arc::new(MemorySessionStore::default());
        builder = builder
            .sessions(Some(store))
            .early_data(again == Again::Early);
    }
    builder
        .transport(|transport| {
            transport.handshake_timeout = args.trust.connect_timeout;
            transport.receive_rate = args.limit_rate;
        })
        .build()
        .map_err(|error| build_failure(&error))
}

/// Fetches everything from one server.
async fn download_from(client: Client, mut downloads: Vec<Download>, context: HqContext) {
    if context.again == Again::Stay || downloads.len() < 2 {
        return visit(&client, downloads, &context, false).await;
    }
    let rest = downloads.split_off(1);
    visit(&client, downloads, &context, false).await;
    visit(&client, rest, &context, context.again == Again::Early).await;
}

/// Fetches `downloads`, all of one server, over one connection.
async fn visit(client: &Client, downloads: Vec<Download>, context: &HqContext, early: bool) {
    let Some(Download { url, .. }) = downloads.first() else {
        return;
    };
    // A request that waits for the disk may leave only after the handshake: with early data, files are
    // created before the connection.
    let created = if early {
        context.slots.available_permits()
    } else {
        0
    };
    let parts: Vec<_> = downloads
        .iter()
        .take(created)
        .map(|download| create(download, context))
        .collect();
    let connected = if early {
        connect_early(client, url.host(), url.port()).await
    } else {
        connect(client, url.host(), url.port()).await
    };
    match connected {
        Err(failure) => {
            for download in downloads {
                let outcome = HqOutcome {
                    download,
                    fetched: Err(failure.clone()),
                    visit: None,
                    paths: Vec::new(),
                };
                // The receiver is only gone if the program is ending.
                let _ = context.results.send(outcome).await;
            }
        }
        Ok(connection) => {
            let parts = parts
                .into_iter()
                .map(Some)
                .chain(iter::repeat_with(|| None));
            let downloads = downloads.into_iter().zip(parts).collect();
            download_all(client, &connection, downloads, context, early).await;
        }
    }
}

fn create(download: &Download, context: &HqContext) -> Result<PartFile, Failure> {
    Ok(PartFile::create(&download.target, context.overwrite)?)
}

/// Moves the connection to another address in the background, if that was asked for.
fn start_moving(
    client: &Client,
    connection: &Connection,
    context: &HqContext,
    odometer: &Arc<Odometer>,
) -> JoinSet<()> {
    let mut mover = JoinSet::new();
    if let Some(plan) = context.migrate {
        let endpoint = client.endpoint().clone();
        let (connection, odometer) = (connection.clone(), Arc::clone(odometer));
        let progress = context.progress.clone();
        mover.spawn(async move {
            match migrate(endpoint, connection, odometer, plan.to).await {
                Ok(text) => tracing::info!("{text}"),
                Err(text) => progress.note(&format!("warning: {text}")),
            }
        });
    }
    mover
}

/// Downloads the files of one server, on one connection, which moves in between if that was asked for.
async fn download_all(
    client: &Client,
    connection: &Connection,
    downloads: Vec<(Download, CreatedBefore)>,
    context: &HqContext,
    early: bool,
) {
    if let Some(paths) = &context.paths {
        paths.attend(connection, []);
    }
    let odometer = Odometer::new(context.migrate.map_or(u64::MAX, |plan| plan.bytes));
    let mut mover = start_moving(client, connection, context, &odometer);
    let start = |(download, part)| {
        let odometer = Arc::clone(&odometer);
        Box::pin(download_one(
            connection.clone(),
            download,
            part,
            context.clone(),
            odometer,
        ))
    };
    let mut tasks: Vec<_> = downloads.into_iter().map(start).collect();
    if early {
        // All downloads begin, then all requests are sent at once and share packets: no rate is
        // measured yet, and many small packets overflow queues that few large ones don't.
        advance(&mut tasks).await;
        advance(&mut tasks).await;
    }
    let mut running = JoinSet::new();
    for task in tasks {
        running.spawn(task);
    }
    while running.join_next().await.is_some() {}
    if odometer.has_reached() {
        // The result of the migration must be reported; the last bytes may arrive before it
        // is known.
        while mover.join_next().await.is_some() {}
    }
    let stats = connection.stats();
    let (key_updates, resumed) = (stats.key_updates, stats.resumed);
    let early_data = early_data_text(stats.early_data);
    tracing::info!(
        key_updates,
        resumed,
        early_data,
        "all downloads from a server ended"
    );
    if context.again != Again::Stay {
        // Session tickets arrive with the confirmation of the handshake, after which the
        // server may close too.
        let _ = connection.handshake_confirmed().await;
        connection.close(0, b"done");
    }
}

/// Polls each task once, and drops those that ended.
async fn advance<Task: Future<Output = ()>>(tasks: &mut Vec<Pin<Box<Task>>>) {
    poll_fn(|cx| {
        tasks.retain_mut(|task| task.as_mut().poll(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

fn early_data_text(outcome: Option<EarlyDataOutcome>) -> Option<&'static str> {
    outcome.map(|outcome| match outcome {
        EarlyDataOutcome::Accepted => "accepted",
        EarlyDataOutcome::Rejected => "rejected",
    })
}

async fn download_one(
    connection: Connection,
    download: Download,
    part: CreatedBefore,
    context: HqContext,
    odometer: Arc<Odometer>,
) {
    let Ok(_slot) = context.slots.acquire().await else {
        return;
    };
    let name = download
        .target
        .file_name()
        .unwrap_or_default()
        .to_string_lossy();
    let bar = context.progress.transfer(&name, None);
    let path = download.url.path();
    let fetched = match part.unwrap_or_else(|| create(&download, &context)) {
        Ok(part) => fetch(&connection, path, part, |bytes| {
            bar.advance(bytes);
            odometer.advance(bytes);
        })
        .await
        .map_err(|failure| match failure.exit {
            // These messages contain the file's name already.
            Exit::LocalFile => failure,
            _ => failure.context(&download.url),
        }),
        Err(failure) => Err(failure),
    };
    drop(bar);
    let visit = (context.again != Again::Stay).then(|| {
        let stats = connection.stats();
        HqVisit {
            resumed: stats.resumed,
            early_data: stats.early_data,
        }
    });
    let outcome = HqOutcome {
        download,
        fetched,
        visit,
        paths: path_rows(&connection),
    };
    let _ = context.results.send(outcome).await;
}

#[derive(Serialize)]
struct FileRow<'a> {
    url: String,
    file: Option<&'a Path>,
    bytes: u64,
    seconds: f64,
    goodput_bps: f64,
    error: Option<&'a str>,
    /// Whether its connection resumed a session; left out unless requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    resumed: Option<bool>,
    /// Result of the early data of its connection; left out if there were none.
    #[serde(skip_serializing_if = "Option::is_none")]
    early_data: Option<&'static str>,
    paths: &'a [PathRow],
}

#[derive(Serialize)]
struct HqTotalRow {
    files: u64,
    failed: u64,
    bytes: u64,
    seconds: f64,
    goodput_bps: f64,
}

/// Reports each download and accumulates the totals.
struct HqSummary {
    json: bool,
    progress: Progress,
    files: u64,
    failed: u64,
    bytes: u64,
    first_failure: Option<Exit>,
    /// Messages about whole servers, printed once and not for each file.
    said: BTreeSet<String>,
}

impl HqSummary {
    fn new(json: bool, progress: Progress) -> Self {
        let said = BTreeSet::new();
        Self {
            json,
            progress,
            files: 0,
            failed: 0,
            bytes: 0,
            first_failure: None,
            said,
        }
    }

    fn add(&mut self, outcome: &HqOutcome) -> Result<(), Failure> {
        let HqOutcome {
            download,
            fetched,
            visit,
            paths,
        } = outcome;
        let (bytes, elapsed) = match fetched {
            Ok(fetched) => (fetched.bytes, fetched.elapsed),
            Err(_) => (0, Duration::ZERO),
        };
        self.bytes += bytes;
        match fetched {
            Ok(_) => self.files += 1,
            Err(failure) => self.fail(failure),
        }
        let goodput_bps = table::bits_per_second(bytes, elapsed);
        if self.json {
            return output::json(&FileRow {
                url: download.url.to_string(),
                file: fetched.is_ok().then_some(&*download.target),
                bytes,
                seconds: elapsed.as_secs_f64(),
                goodput_bps,
                error: fetched.as_ref().err().map(Failure::message),
                resumed: visit.map(|visit| visit.resumed),
                early_data: visit.and_then(|visit| early_data_text(visit.early_data)),
                paths,
            });
        }
        if fetched.is_ok() {
            let text = format!(
                "{}: {} in {} ({}){}",
                crate::exit::one_line(&download.target.display().to_string()),
                table::bytes(bytes),
                table::time(elapsed),
                table::rate(goodput_bps),
                visit.map_or("", HqVisit::remark)
            );
            return self.progress.suspended(|| output::line(&text));
        }
        Ok(())
    }

    fn fail(&mut self, failure: &Failure) {
        self.failed += 1;
        self.first_failure.get_or_insert(failure.exit);
        let text = format!("error: {failure}");
        if self.said.insert(text.clone()) {
            self.progress.note(&text);
        }
    }

    fn finish(self, elapsed: Duration) -> Result<(), Failure> {
        let Self {
            files,
            failed,
            bytes,
            ..
        } = self;
        let goodput_bps = table::bits_per_second(bytes, elapsed);
        if self.json {
            let seconds = elapsed.as_secs_f64();
            output::json(&HqTotalRow {
                files,
                failed,
                bytes,
                seconds,
                goodput_bps,
            })?;
        } else if files + failed > 1 {
            let failures = if failed > 0 {
                format!(", {failed} failed")
            } else {
                String::new()
            };
            output::line(&format!(
                "{files} files{failures}, {} in {} ({})",
                table::bytes(bytes),
                table::time(elapsed),
                table::rate(goodput_bps)
            ))?;
        }
        match self.first_failure {
            None => Ok(()),
            Some(exit) => Err(Failure::reported(exit)),
        }
    }
}
