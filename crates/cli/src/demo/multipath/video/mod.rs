//! The video story of `demo multipath`: a player of video on demand over one path, over two with `min-rtt`, with XLINK, with
//! Chorus and with the project's variant of it.
//!
//! ```text
//! Segments (playlists, chunks) --> Viewing: HTTP/3 server, two networks, HTTP client --> session of `play`
//! Recorder: buffer, bitrate, SHA-256; Sample: what the server sent on each path --> VideoRow, page
//! ```

pub mod page;
mod recorder;
pub mod row;
pub mod segments;
pub mod strategy;
pub mod summary;
mod viewing;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, sleep_until};

use self::row::{VideoRow, Watched};
use self::segments::Segments;
use self::strategy::VideoStrategy;
use self::viewing::Viewing;
use super::plan::Plan;
use super::variant::Credentials;
use crate::exit::{Exit, Failure};
use crate::progress::Progress;

/// Between two samples of what was sent.
const SAMPLE: Duration = Duration::from_millis(500);

/// Samples between two lines without a terminal.
const LINE: u32 = 10;

/// From the last connection to the first request.
const LEAD: Duration = Duration::from_millis(100);

/// How much longer than a session everything may take.
const GRACE: Duration = Duration::from_secs(15);

/// What the video story consists of.
#[derive(Debug)]
pub struct VideoPlan {
    /// Strategies to compare.
    pub strategies: Vec<VideoStrategy>,
    /// The video.
    pub segments: Arc<Segments>,
    /// Time until the viewers leave.
    pub session: Duration,
}

/// Runs all strategies at the same time. `None` if the user stopped it.
pub(super) async fn run(
    plan: &Arc<Plan>,
    video: &VideoPlan,
    mut stop: impl Future<Output = Result<(), Failure>> + Unpin,
) -> Result<Option<Vec<Watched>>, Failure> {
    let credentials = Credentials::generate()?;
    let mut viewings = Vec::new();
    for strategy in &video.strategies {
        let viewing = Viewing::prepare(plan, video, &credentials, *strategy).await?;
        viewings.push(Arc::new(viewing));
    }
    let start = Instant::now() + LEAD;
    let mut watching = JoinSet::new();
    for viewing in &viewings {
        let (viewing, plan) = (Arc::clone(viewing), Arc::clone(plan));
        watching.spawn(async move { viewing.watch(&plan, start).await });
    }
    let progress = Progress::new(!plan.json);
    let board = progress.board();
    let mut ticks = interval(SAMPLE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Skip);
    let mut tick: u32 = 0;
    let is_whole = loop {
        tokio::select! {
            _ = ticks.tick() => {
                tick = tick.wrapping_add(1);
                for viewing in &viewings {
                    viewing.sample(start);
                }
                if plan.json {
                    continue;
                }
                let seconds = start.elapsed().as_secs_f64();
                let rows = || viewings.iter().map(|viewing| viewing.watched().row);
                if board.is_visible() {
                    let rows: Vec<VideoRow> = rows().collect();
                    board.show(format!("{seconds:.1} s\n{}", summary::table(&rows)));
                } else if tick.is_multiple_of(LINE) {
                    rows().for_each(|row| progress.note(&summary::line(&row, seconds)));
                }
            }
            done = watching.join_next() => match done {
                Some(done) => done.map_err(|error| Failure::new(Exit::Failure, error))?,
                None => break true,
            },
            () = sleep_until((start + video.session + GRACE).into()) => break true,
            stopped = &mut stop => {
                stopped?;
                break false;
            }
        }
    };
    watching.shutdown().await;
    let mut watched = Vec::new();
    for viewing in viewings {
        viewing.sample(start);
        watched.push(viewing.watched());
        // All tasks have ended.
        if let Some(viewing) = Arc::into_inner(viewing) {
            viewing.close().await;
        }
    }
    Ok(is_whole.then_some(watched))
}
