//! One log: records, buffered for a sink that may fail.
//!
//! Owns the format of the sequence (RFC 7464), the time base, and the handling of a failed sink or a
//! full log. Independent of QUIC.

use std::fmt;
use std::io::{self, Write};
use std::time::Duration;

use serde::{Serialize, Serializer};
use swiftwater_units::{Instant, PathId};

use crate::header::{Header, TraceInfo};
use crate::names::{LOG_ENDED, Name};
use crate::text::millis;

/// First byte of a record (RFC 7464, section 2.2).
const RECORD_SEPARATOR: u8 = 0x1e;

/// Size at which buffered records are written, bytes.
const FLUSH_BYTES: usize = 16 << 10;

/// Age at which buffered records are written with the next one, so that a log can be followed while
/// it grows.
const FLUSH_INTERVAL: Duration = Duration::from_secs(1);

/// Smallest limit of a log: space for its header and first event.
const LEAST_LIMIT: u64 = 4 << 10;

/// Space reserved for the record about a full log.
const LAST_WORDS: u64 = 256;

/// Size limits of logs.
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

/// An event in its written form.
#[derive(Serialize)]
struct Record<D> {
    time: f64,
    name: &'static str,
    /// The part before the colon until qlog 0.4; the current schema permits additional members.
    category: &'static str,
    #[serde(skip_serializing_if = "Tuple::is_default")]
    tuple: Tuple,
    data: D,
}

/// A path in the draft's form: text, omitted for the path of the handshake.
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

/// A log in progress.
pub(crate) struct Log {
    /// `None` once the log has ended.
    sink: Option<Box<dyn Write + Send>>,
    info: TraceInfo,
    /// The header was written.
    begun: bool,
    buffer: Vec<u8>,
    /// Bytes passed to the sink.
    written: u64,
    limits: Limits,
    first: Option<Instant>,
    last: Instant,
    flushed_at: Instant,
    /// Records are no longer buffered.
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

    /// Writes the header, unless it was written; `odcid` is the original destination connection ID, if
    /// known.
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

    /// Appends an event of `path`. Times are relative to the first event and never decrease.
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

    /// Writes the buffer, and from now on each record at once: the connection is closing, and the
    /// program may end before it is drained.
    pub(crate) fn hurry(&mut self) {
        self.eager = true;
        self.flush();
    }

    /// Writes the buffer.
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
                reason: "the log has reached its size limit",
            },
        };
        if let Err(error) = self.append(&record) {
            return self.fail(&error);
        }
        self.flush();
        if self.sink.is_some() {
            tracing::warn!(log = %self.info.group_id, "qlog has reached its size limit and ends");
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
