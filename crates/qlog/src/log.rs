//! One log: records, buffered on their way to a sink that may fail.
//!
//! Owns the format of the sequence (RFC 7464), the time base, and what happens when the sink fails or
//! the log is full. Knows nothing of QUIC.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use serde::{Serialize, Serializer};
use swiftwater_units::{Instant, PathId};

use crate::header::{Header, TraceInfo};
use crate::names::{LOG_ENDED, Name};
use crate::text::millis;

/// Begins a record (RFC 7464, section 2.2).
const RECORD_SEPARATOR: u8 = 0x1e;

/// Records are written when they are this many bytes.
const FLUSH_BYTES: usize = 16 << 10;

/// Records older than this are written with the next one, so that a log can be watched as it grows.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// The least limit of a log: room for its header and first event.
const LEAST_LIMIT: u64 = 4 << 10;

/// Room kept for the record that says the log is full.
const LAST_WORDS: u64 = 256;

/// How large logs may get.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Bytes of one log; default 1 GiB, at least 4 KiB. Beyond it the log ends with a
    /// `swiftwater:log_ended`.
    pub log_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { log_bytes: 1 << 30 }
    }
}

/// An event as it is written.
#[derive(Serialize)]
struct Record<D> {
    time: f64,
    name: &'static str,
    /// What came before the colon until qlog 0.4; the current schema permits any further member.
    category: &'static str,
    #[serde(skip_serializing_if = "Tuple::is_default")]
    tuple: Tuple,
    data: D,
}

/// A path as the draft writes it: text, and nothing for the path of the handshake.
struct Tuple(PathId);

impl Tuple {
    fn is_default(&self) -> bool {
        self.0 == PathId::ZERO
    }
}

impl Serialize for Tuple {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0.get())
    }
}

/// `swiftwater:log_ended`.
#[derive(Serialize)]
struct LogEnded {
    reason: &'static str,
}

/// A log that is being written.
pub(crate) struct Log {
    /// `None` once the log has ended.
    sink: Option<Box<dyn Write + Send>>,
    info: TraceInfo,
    /// The header is in the log.
    begun: bool,
    buffer: Vec<u8>,
    /// Bytes given to the sink.
    written: u64,
    limits: Limits,
    first: Option<Instant>,
    last: Instant,
    flushed_at: Instant,
    /// Nothing is held back any more.
    eager: bool,
}

impl Log {
    /// A log without its header.
    pub(crate) fn new(sink: Box<dyn Write + Send>, info: &TraceInfo, limits: Limits) -> Self {
        Self {
            sink: Some(sink),
            info: info.clone(),
            begun: false,
            buffer: Vec::with_capacity(FLUSH_BYTES + (FLUSH_BYTES >> 2)),
            written: 0,
            limits,
            first: None,
            last: Instant::ZERO,
            flushed_at: Instant::ZERO,
            eager: false,
        }
    }

    /// Writes the header, unless it is there; `odcid` is the original destination connection ID, if it
    /// is known.
    pub(crate) fn begin(&mut self, odcid: Option<&str>) {
        if std::mem::replace(&mut self.begun, true) {
            return;
        }
        let info = self.info.clone();
        if let Err(error) = self.append(&Header::new(&info, odcid)) {
            self.fail(&error);
        }
    }

    /// True until the first event.
    pub(crate) fn is_fresh(&self) -> bool {
        self.first.is_none()
    }

    /// Appends an event of `path`. Times count from the first event and never fall.
    pub(crate) fn event<D: Serialize>(
        &mut self,
        now: Instant,
        path: PathId,
        Name(name, category): Name,
        data: D,
    ) {
        self.begin(None);
        if self.sink.is_none() {
            return;
        }
        let first = *self.first.get_or_insert_with(|| {
            self.flushed_at = now;
            self.last = now;
            now
        });
        self.last = self.last.max(now);
        let time = millis(self.last.saturating_since(first));
        let start = self.buffer.len();
        let tuple = Tuple(path);
        let record = Record {
            time,
            name,
            category,
            tuple,
            data,
        };
        if let Err(error) = self.append(&record) {
            return self.fail(&error);
        }
        let size = self.written + self.buffer.len() as u64;
        if size.saturating_add(LAST_WORDS) > self.limits.log_bytes.max(LEAST_LIMIT) {
            self.buffer.truncate(start);
            return self.end_full(time);
        }
        if self.eager
            || self.buffer.len() >= FLUSH_BYTES
            || self.last.saturating_since(self.flushed_at) >= FLUSH_INTERVAL
        {
            self.flush();
        }
    }

    /// Writes what is buffered, and from now on each record at once: the connection is ending, and
    /// the program may not wait until it is gone.
    pub(crate) fn hurry(&mut self) {
        self.eager = true;
        self.flush();
    }

    /// Writes what is buffered.
    fn flush(&mut self) {
        self.flushed_at = self.last;
        let Some(sink) = &mut self.sink else {
            return;
        };
        let outcome = sink.write_all(&self.buffer).and_then(|()| sink.flush());
        match outcome {
            Ok(()) => {
                self.written += self.buffer.len() as u64;
                self.buffer.clear();
            }
            Err(error) => self.fail(&error),
        }
    }

    /// Appends one record to the buffer.
    fn append(&mut self, record: &impl Serialize) -> io::Result<()> {
        self.buffer.push(RECORD_SEPARATOR);
        serde_json::to_writer(&mut self.buffer, record)?;
        self.buffer.push(b'\n');
        Ok(())
    }

    fn end_full(&mut self, time: f64) {
        let record = Record {
            time,
            name: LOG_ENDED.0,
            category: LOG_ENDED.1,
            tuple: Tuple(PathId::ZERO),
            data: LogEnded {
                reason: "the log has reached its largest size",
            },
        };
        if let Err(error) = self.append(&record) {
            return self.fail(&error);
        }
        self.flush();
        if self.sink.is_some() {
            tracing::warn!(log = %self.info.group_id, "qlog has reached its largest size and ends");
            self.end();
        }
    }

    fn fail(&mut self, error: &io::Error) {
        tracing::warn!(log = %self.info.group_id, %error, "qlog can't be written and ends");
        self.end();
    }

    fn end(&mut self) {
        self.sink = None;
        self.buffer = Vec::new();
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.begin(None);
        if !self.buffer.is_empty() {
            self.flush();
        }
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("name", &self.info.group_id)
            .field("open", &self.sink.is_some())
            .field("written", &self.written)
            .finish_non_exhaustive()
    }
}
