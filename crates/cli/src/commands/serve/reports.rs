//! Destinations of reports about completed requests and closed connections: standard output, access
//! log, metrics.

use std::io;
use std::path::Path;
use std::time::SystemTime;

use swiftwater_http::web::access_log::Record;
use swiftwater_http::web::observed_body::Ending;

use super::access_format::{canonical, combined, common, json, json_end, protocol_name};
use super::args::LogFormat;
use super::config::{Log, OFF};
use super::connection_log::End;
use super::line_writer::LineWriter;
use super::log::{Event, LogLine};

/// The destinations.
#[derive(Clone, Debug)]
pub(super) struct Reports {
    /// Whether standard output has events as JSON.
    json: bool,
    /// Standard output, if it has lines for requests or events.
    stdout: Option<LineWriter>,
    /// The access log.
    file: Option<LineWriter>,
    format: LogFormat,
}

impl Reports {
    /// Destinations of the configuration; the access log is reopened.
    pub(super) fn open(log: &Log, json: bool) -> io::Result<Self> {
        let access = log.access.as_deref();
        let is_off = access == Some(Path::new(OFF));
        let to_stdout = access == Some(Path::new("-"));
        let file = access.filter(|_| !is_off);
        let file = file.map(LineWriter::open).transpose()?;
        // Two formats on one stream would be unusable.
        let json = json && !to_stdout;
        let stdout = (json || file.is_none() && !is_off).then(LineWriter::stdout);
        Ok(Self {
            json,
            stdout: stdout.transpose()?,
            file,
            format: log.format,
        })
    }

    /// Whether anything is written about requests.
    pub(super) fn take_requests(&self) -> bool {
        self.file.is_some() || self.stdout.is_some()
    }

    /// A request is complete.
    pub(super) fn request(&self, record: &Record) {
        if !self.take_requests() {
            return;
        }
        self.write(record);
        let Some(client) = record.peer.map(canonical) else {
            return;
        };
        let error = match record.ending {
            Some(Ending::Complete) => None,
            Some(Ending::Failed) => Some("the content could not be read".to_owned()),
            Some(Ending::Abandoned) => Some("the client went away".to_owned()),
            None => Some("the client did not wait for the response".to_owned()),
        };
        self.line(&LogLine {
            client,
            protocol: protocol_name(record.version),
            method: record.method.as_str(),
            path: &record.target,
            status: record.status,
            bytes: record.bytes,
            elapsed: record.elapsed,
            error,
        });
    }

    /// A connection is closed.
    pub(super) fn connection(&self, end: &End) {
        end.trace();
        if let Some(file) = &self.file
            && self.format == LogFormat::Json
        {
            file.line(json_end(end, SystemTime::now()));
        }
    }

    /// An event for machine-readable output.
    pub(super) fn event(&self, event: &Event<'_>) {
        if self.json
            && let Some(stdout) = &self.stdout
        {
            stdout.line(event.to_text());
        }
    }

    /// Waits, with a time limit, until everything is written. Blocks.
    pub(super) fn flush(&self) {
        for writer in self.file.iter().chain(&self.stdout) {
            writer.flush();
        }
    }

    fn write(&self, record: &Record) {
        let Some(file) = &self.file else { return };
        let now = SystemTime::now();
        file.line(match self.format {
            LogFormat::Common => common(record, now),
            LogFormat::Combined => combined(record, now),
            LogFormat::Json => json(record, now),
        });
    }

    /// A line on standard output. Human-readable lines are only printed without an access log.
    pub(super) fn line(&self, line: &LogLine<'_>) {
        if let Some(stdout) = &self.stdout {
            stdout.line(if self.json {
                line.to_json()
            } else {
                line.to_text()
            });
        }
    }
}
