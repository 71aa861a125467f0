//! A runtime whose thread is watched: a worker that loops for ever ends the test process with a word of it,
//! instead of letting it hang.
//!
//! Endpoints that are bound inside [`enter`] run there. What counts is the thread's CPU time since a task on
//! it last ran, so that a busy machine is no reason to fail. Elsewhere than on Linux nothing is watched.
#![allow(
    dead_code,
    unreachable_pub,
    clippy::unwrap_used,
    reason = "every test crate uses its part"
)]

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use tokio::runtime::{Builder, EnterGuard, Handle};

/// CPU time without a heartbeat that is a loop: a turn of a worker takes microseconds.
const MOST: Duration = Duration::from_secs(1);
/// Between two heartbeats.
const HEARTBEAT: Duration = Duration::from_millis(20);
/// Between two looks at them.
const LOOK: Duration = Duration::from_millis(200);

/// What is bound while the guard lives runs in the watched runtime, one for the whole process.
pub fn enter() -> EnterGuard<'static> {
    static WATCHED: OnceLock<Handle> = OnceLock::new();
    WATCHED.get_or_init(start).enter()
}

fn start() -> Handle {
    let (started, start) = mpsc::channel();
    thread::Builder::new()
        .name("watched".into())
        .spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().unwrap();
            started.send(runtime.handle().clone()).unwrap();
            runtime.block_on(async {
                watch_this_thread();
                std::future::pending::<()>().await;
            });
        })
        .unwrap();
    start.recv().unwrap()
}

/// Watches the thread of this runtime, which must have no other.
pub fn watch_this_thread() {
    let Some(clock) = CpuClock::of_this_thread() else {
        return;
    };
    let heart = Arc::new(AtomicU64::new(0));
    let (watched, beating) = (clock.clone(), Arc::clone(&heart));
    thread::spawn(move || watch(&watched, &beating));
    tokio::spawn(async move {
        while let Some(spent) = clock.spent() {
            heart.store(spent.as_millis() as u64, Ordering::Relaxed);
            tokio::time::sleep(HEARTBEAT).await;
        }
    });
}

/// Ends the process when the heart has not beaten for too much CPU time. A thread that loops can't be
/// stopped otherwise.
fn watch(clock: &CpuClock, heart: &AtomicU64) {
    while let Some(spent) = clock.spent() {
        let beaten = Duration::from_millis(heart.load(Ordering::Relaxed));
        let since = spent.saturating_sub(beaten);
        if since > MOST {
            eprintln!(
                "watchdog: the endpoints' thread spent {since:?} of CPU time without running another \
                 task: a worker loops for ever"
            );
            std::process::abort();
        }
        thread::sleep(LOOK);
    }
}

/// The CPU time of a thread.
#[derive(Clone, Debug)]
struct CpuClock {
    stat: PathBuf,
}

impl CpuClock {
    /// `None` if the system doesn't report it.
    fn of_this_thread() -> Option<Self> {
        let task = std::fs::read_link("/proc/thread-self").ok()?;
        let clock = Self {
            stat: Path::new("/proc").join(task).join("schedstat"),
        };
        clock.spent().map(|_| clock)
    }

    /// `None` once the thread is gone.
    fn spent(&self) -> Option<Duration> {
        let stat = std::fs::read_to_string(&self.stat).ok()?;
        let nanos = stat.split_whitespace().next()?.parse().ok()?;
        Some(Duration::from_nanos(nanos))
    }
}
