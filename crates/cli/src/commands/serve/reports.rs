//! Who is told of requests and of connections that are over: standard output, the access log, the
//! counts.

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::SystemTime;

use http::{Method, Version};
use swiftwater_http::web::access_log::Record;
use swiftwater_http::web::observed_body::Ending;

use super::access_file::AccessFile;
use super::access_format::{common, json, json_end, protocol_name};
use super::args::LogFormat;
use super::config::Log;
use super::ends::End;
use super::log::{Line, report};
use crate::hq::service::Served;

/// Where reports go.
#[derive(Clone, Debug)]
pub(super) struct Reports {
    /// Events as JSON on standard output.
    json: bool,
    file: Option<AccessFile>,
    format: LogFormat,
}

impl Reports {
    /// What the configuration asks for; the access log is opened anew.
    pub(super) fn open(log: &Log, json: bool) -> io::Result<Self> {
        let file = log.access.as_deref().map(AccessFile::open).transpose()?;
        let to_stdout = log.access.as_deref() == Some(Path::new("-"));
        Ok(Self {
            // Two kinds of lines on one stream would serve nobody.
            json: json && !to_stdout,
            file,
            format: log.format,
        })
    }

    /// A request is over.
    pub(super) fn request(&self, record: &Record) {
        self.write(record);
        let Some(client) = record.peer else { return };
        let error = match record.ending {
            Some(Ending::Complete) => None,
            Some(Ending::Failed) => Some("the content could not be read".to_owned()),
            Some(Ending::Abandoned) => Some("the client went away".to_owned()),
            None => Some("the client did not wait for the answer".to_owned()),
        };
        self.print(&Line {
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

    /// A request over hq-interop is over, which has no status.
    pub(super) fn file(&self, client: SocketAddr, served: &Served) {
        let mut record = Record::new(Method::GET, served.path.clone(), Version::HTTP_09);
        record.peer = Some(client);
        record.bytes = served.bytes;
        record.elapsed = served.elapsed;
        record.ending = Some(match served.outcome {
            Ok(()) => Ending::Complete,
            Err(_) => Ending::Failed,
        });
        self.write(&record);
        self.print(&Line {
            client,
            protocol: "hq-interop",
            method: "GET",
            path: &served.path,
            status: None,
            bytes: served.bytes,
            elapsed: served.elapsed,
            error: served.outcome.as_ref().err().map(ToString::to_string),
        });
    }

    /// A connection is over.
    pub(super) fn connection(&self, end: &End) {
        end.trace();
        if let Some(file) = &self.file
            && self.format == LogFormat::Json
        {
            file.line(json_end(end, SystemTime::now()));
        }
    }

    /// Waits, for a moment, until everything is written. Blocks.
    pub(super) fn flush(&self) {
        if let Some(file) = &self.file {
            file.flush();
        }
    }

    fn write(&self, record: &Record) {
        let Some(file) = &self.file else { return };
        let now = SystemTime::now();
        file.line(match self.format {
            LogFormat::Common => common(record, now),
            LogFormat::Json => json(record, now),
        });
    }

    /// Lines for people are for those who have no access log.
    fn print(&self, line: &Line<'_>) {
        if self.json || self.file.is_none() {
            report(line, self.json);
        }
    }
}
