//! The file of the access log, written by a thread of its own, so that a slow disk holds up nobody.
//!
//! A bounded number of lines may wait; further ones are dropped and counted.

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use super::metrics::LINES_DROPPED;
use crate::output;

/// Lines that may wait for the disk.
const BACKLOG: usize = 16_384;

/// How long the end of a program waits for the last lines.
const FLUSH_TIME: Duration = Duration::from_secs(2);

enum Job {
    Line(String),
    /// Answered when everything before is written.
    Flush(SyncSender<()>),
}

/// A running access log. With the last handle it ends, after the lines that wait.
#[derive(Clone, Debug)]
pub(super) struct AccessFile {
    jobs: SyncSender<Job>,
}

impl AccessFile {
    /// Appends to `path`, which is made if it is missing; `-` is standard output.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let sink: Box<dyn Write + Send> = if path.as_os_str() == "-" {
            Box::new(io::stdout())
        } else {
            Box::new(OpenOptions::new().create(true).append(true).open(path)?)
        };
        let (jobs, waiting) = sync_channel(BACKLOG);
        thread::Builder::new()
            .name("access-log".to_owned())
            .spawn(move || write_all(&waiting, sink))?;
        Ok(Self { jobs })
    }

    /// Writes a line, soon. Never blocks.
    pub(super) fn line(&self, line: String) {
        if self.jobs.try_send(Job::Line(line)).is_err() {
            metrics::counter!(LINES_DROPPED).increment(1);
        }
    }

    /// Waits, for a moment, until all lines are written. Blocks.
    pub(super) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.jobs.send(Job::Flush(done)).is_ok() {
            // A disk that hangs must not keep the program.
            let _ = wait.recv_timeout(FLUSH_TIME);
        }
    }
}

/// Writes lines until nobody can send any more; what waits together is written together.
fn write_all(jobs: &Receiver<Job>, sink: Box<dyn Write + Send>) {
    let mut sink = BufWriter::new(sink);
    let mut failed = false;
    while let Ok(job) = jobs.recv() {
        let mut next = Some(job);
        while let Some(job) = next {
            let written = match job {
                // In one piece: after a reload another thread may write to the same file.
                Job::Line(mut line) => {
                    line.push('\n');
                    sink.write_all(line.as_bytes())
                }
                Job::Flush(done) => {
                    let flushed = sink.flush();
                    // Who asked may have lost patience.
                    let _ = done.send(());
                    flushed
                }
            };
            tell(written, &mut failed);
            next = jobs.try_recv().ok();
        }
        tell(sink.flush(), &mut failed);
    }
}

/// Says once that the file can't be written, and once more when it has recovered and fails again.
fn tell(written: io::Result<()>, failed: &mut bool) {
    match written {
        Ok(()) => *failed = false,
        Err(error) => {
            if !std::mem::replace(failed, true) {
                output::note(&format!("the access log can't be written: {error}"));
            }
        }
    }
}
