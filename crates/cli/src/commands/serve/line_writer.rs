//! Lines of the access log and of standard output, written by a separate thread, so that a slow disk or a
//! stopped reader does not block requests.
//!
//! A bounded number of lines is queued; further ones are dropped and counted.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::metrics::LINES_DROPPED;
use crate::output;

/// Capacity of the queue, lines.
const BACKLOG: usize = 16_384;

/// Bytes written at once.
const BATCH: usize = 64 * 1024;

/// How long lines are gathered after the first one: a thread that is woken for every line costs more than the line.
const GATHER: Duration = Duration::from_millis(5);

/// How long the end of a program waits for the last lines.
const FLUSH_TIME: Duration = Duration::from_secs(2);

/// Interval of messages about failures.
const REPORT_INTERVAL: Duration = Duration::from_secs(60);

enum Job {
    Line(String),
    /// Completed when all earlier lines are written.
    Flush(SyncSender<()>),
}

/// A running writer. It ends with the last handle, after the queued lines.
#[derive(Clone, Debug)]
pub(super) struct LineWriter {
    jobs: SyncSender<Job>,
}

impl LineWriter {
    /// Appends to `path`, which is created if missing; `-` is standard output. A path that is neither a
    /// file nor a device is rejected: writing to a FIFO, and even opening it, waits for its reader.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        if path.as_os_str() == "-" {
            return Self::stdout();
        }
        Self::start("the access log", Box::new(open_for_appending(path)?))
    }

    /// Writes to standard output.
    pub(super) fn stdout() -> io::Result<Self> {
        Self::start("standard output", Box::new(io::stdout()))
    }

    fn start(name: &'static str, sink: Box<dyn Write + Send>) -> io::Result<Self> {
        let (jobs, waiting) = sync_channel(BACKLOG);
        let writing = Writing {
            name,
            sink,
            batch: Vec::new(),
            torn: false,
            reported: None,
        };
        thread::Builder::new()
            .name("lines".to_owned())
            .spawn(move || writing.run(&waiting))?;
        Ok(Self { jobs })
    }

    /// Queues a line. Never blocks.
    pub(super) fn line(&self, line: String) {
        if self.jobs.try_send(Job::Line(line)).is_err() {
            metrics::counter!(LINES_DROPPED).increment(1);
        }
    }

    /// Waits, with a time limit, until all lines are written. Blocks.
    pub(super) fn flush(&self) {
        let deadline = Instant::now() + FLUSH_TIME;
        let (done, wait) = sync_channel(1);
        let mut job = Job::Flush(done);
        // A disk that hangs, or a stopped reader, must not block the end of the program.
        while let Err(TrySendError::Full(returned)) = self.jobs.try_send(job) {
            if Instant::now() >= deadline {
                return;
            }
            job = returned;
            thread::sleep(Duration::from_millis(10));
        }
        let _ = wait.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
}

/// Whether lines can be appended to `path`, as far as possible without creating it.
pub(super) fn check(path: &Path) -> io::Result<()> {
    if path.as_os_str() == "-" {
        return Ok(());
    }
    match path.metadata() {
        Ok(found) if is_writable(&found) => open_for_appending(path).map(drop),
        Ok(_) => Err(refused()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let parent = path
                .parent()
                .filter(|parent| !parent.as_os_str().is_empty());
            match parent.map(Path::metadata) {
                Some(Ok(found)) if !found.is_dir() => {
                    Err(io::Error::from(io::ErrorKind::NotADirectory))
                }
                Some(Err(error)) => Err(error),
                _ => Ok(()),
            }
        }
        Err(error) => Err(error),
    }
}

fn refused() -> io::Error {
    let text = "it is not a file ('-' writes to standard output)";
    io::Error::new(io::ErrorKind::InvalidInput, text)
}

/// Opens a file for appending, without waiting for a reader.
fn open_for_appending(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(path).map_err(|error| {
        // A FIFO without a reader, or a socket.
        let exists = path.metadata().is_ok_and(|found| !is_writable(&found));
        if exists { refused() } else { error }
    })?;
    if !is_writable(&file.metadata()?) {
        return Err(refused());
    }
    #[cfg(unix)]
    {
        let flags = rustix::fs::fcntl_getfl(&file)? - rustix::fs::OFlags::NONBLOCK;
        rustix::fs::fcntl_setfl(&file, flags)?;
    }
    Ok(file)
}

/// Files, and devices such as /dev/null.
fn is_writable(metadata: &std::fs::Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        metadata.is_file() || metadata.file_type().is_char_device()
    }
    #[cfg(not(unix))]
    {
        metadata.is_file()
    }
}

/// State of the thread.
struct Writing {
    name: &'static str,
    sink: Box<dyn Write + Send>,
    batch: Vec<u8>,
    /// The last line was written partially.
    torn: bool,
    /// When a failure was last reported.
    reported: Option<Instant>,
}

impl Writing {
    /// Writes lines until all senders are dropped; queued lines are written together.
    fn run(mut self, jobs: &Receiver<Job>) {
        while let Ok(job) = jobs.recv() {
            if matches!(job, Job::Line(_)) {
                thread::sleep(GATHER);
            }
            let mut next = Some(job);
            while let Some(job) = next {
                match job {
                    Job::Line(line) => {
                        self.batch.extend_from_slice(line.as_bytes());
                        self.batch.push(b'\n');
                    }
                    Job::Flush(done) => {
                        self.write();
                        // The caller may have reached its time limit.
                        let _ = done.send(());
                    }
                }
                if self.batch.len() >= BATCH {
                    self.write();
                }
                next = jobs.try_recv().ok();
            }
            self.write();
        }
    }

    /// Writes the batch. Lines that can't be written are lost and counted; that is reported once a
    /// minute.
    fn write(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        if std::mem::take(&mut self.torn) {
            self.batch.insert(0, b'\n');
        }
        let mut written = 0;
        let mut outcome = Ok(());
        while written < self.batch.len() {
            match self.sink.write(&self.batch[written..]) {
                Ok(0) => outcome = Err(io::Error::from(io::ErrorKind::WriteZero)),
                Ok(bytes) => written += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => outcome = Err(error),
            }
            if outcome.is_err() {
                break;
            }
        }
        if let Err(error) = outcome.and_then(|()| self.sink.flush()) {
            let lost = &self.batch[written..];
            let lines = lost.split(|&byte| byte == b'\n').count() - 1;
            metrics::counter!(LINES_DROPPED).increment(lines as u64);
            self.torn = written > 0 && self.batch[written - 1] != b'\n';
            if self
                .reported
                .is_none_or(|reported| reported.elapsed() >= REPORT_INTERVAL)
            {
                self.reported = Some(Instant::now());
                let name = self.name;
                output::note(&format!("{name} can't be written, lines are lost: {error}"));
            }
        }
        self.batch.clear();
    }
}
