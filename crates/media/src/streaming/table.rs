//! Chunk size tables in files, as CSV or JSON.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use serde::Deserialize;
use swiftwater_units::Bandwidth;

use super::error::TableError;
use super::ladder::{Ladder, Rendition};
use super::video::{Chunk, ChunkedVideo};

/// Largest file that is read: 32 MiB.
pub const MAX_TABLE_BYTES: u64 = 32 << 20;

/// The first column of a CSV table.
const DURATION: &str = "duration_ms";

/// A JSON table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonTable {
    renditions: Vec<JsonRendition>,
    chunks: Vec<JsonChunk>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonRendition {
    bps: u64,
    height: Option<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JsonChunk {
    duration_ms: u64,
    bytes: Vec<u64>,
}

impl ChunkedVideo {
    /// Reads the table in the file `path`, whose name ends in `.csv` or `.json`: see
    /// [`from_csv`](Self::from_csv) and [`from_json`](Self::from_json).
    pub fn read(path: &Path) -> Result<Self, TableError> {
        let name = || path.display().to_string();
        let extension = path.extension().unwrap_or_default();
        let csv = extension.eq_ignore_ascii_case("csv");
        if !csv && !extension.eq_ignore_ascii_case("json") {
            return Err(TableError::Extension { path: name() });
        }
        let failed = |source| TableError::Read {
            path: name(),
            source,
        };
        let mut text = String::new();
        let file = File::open(path).map_err(failed)?;
        let mut file = file.take(MAX_TABLE_BYTES + 1);
        file.read_to_string(&mut text).map_err(failed)?;
        if text.len() as u64 > MAX_TABLE_BYTES {
            return Err(TableError::TooLarge { path: name() });
        }
        if csv {
            Self::from_csv(&text)
        } else {
            Self::from_json(&text)
        }
    }

    /// Reads a CSV table. Its first line is `duration_ms` and the bitrates in bit/s in ascending
    /// order; then follows a line for each chunk, with its play time in milliseconds and its size in
    /// bytes at each bitrate.
    pub fn from_csv(text: &str) -> Result<Self, TableError> {
        let mut lines = text.lines().map(str::trim).enumerate();
        let heading = lines.next().map(|(_, line)| line);
        let ladder = heading.and_then(rates).ok_or(TableError::Heading)?;
        let ladder = Ladder::new(ladder)?;
        let chunks = lines
            .filter(|(_, line)| !line.is_empty())
            .map(|(number, line)| chunk(line).ok_or(TableError::Line(number + 1)))
            .collect::<Result<_, _>>()?;
        Ok(Self::new(ladder, chunks)?)
    }

    /// Reads a JSON table:
    /// `{"renditions": [{"bps": 1000000, "height": 360}], "chunks": [{"duration_ms": 4000, "bytes":
    /// [500000]}]}`. The height may be left out; other fields are errors.
    pub fn from_json(text: &str) -> Result<Self, TableError> {
        let table: JsonTable = serde_json::from_str(text)?;
        let renditions = table.renditions.iter().map(|rendition| Rendition {
            rate: Bandwidth::from_bps(rendition.bps),
            height: rendition.height,
        });
        let ladder = Ladder::new(renditions.collect())?;
        let chunks = table.chunks.into_iter().map(|chunk| Chunk {
            duration: Duration::from_millis(chunk.duration_ms),
            bytes: chunk.bytes,
        });
        Ok(Self::new(ladder, chunks.collect())?)
    }

    /// Writes the format that [`from_csv`](Self::from_csv) reads. Durations are rounded down to
    /// milliseconds; heights are left out.
    pub fn to_csv(&self) -> String {
        let line = |first: String, rest: Vec<u64>| {
            let rest = rest.iter().map(|value| format!(",{value}"));
            first + &rest.collect::<String>() + "\n"
        };
        let renditions = self.ladder().renditions().iter();
        let rates = renditions.map(|rendition| rendition.rate.as_bps());
        let mut text = line(DURATION.to_owned(), rates.collect());
        for chunk in self.chunks() {
            let millis = chunk.duration.as_millis().to_string();
            text += &line(millis, chunk.bytes.clone());
        }
        text
    }
}

/// The bitrates of a heading.
fn rates(line: &str) -> Option<Vec<Rendition>> {
    let mut fields = line.split(',').map(str::trim);
    if fields.next()? != DURATION {
        return None;
    }
    let rendition = |field: &str| {
        Some(Rendition {
            rate: Bandwidth::from_bps(field.parse().ok()?),
            height: None,
        })
    };
    fields.map(rendition).collect()
}

/// The chunk of a line. How many sizes it must have is checked with the video.
fn chunk(line: &str) -> Option<Chunk> {
    let mut fields = line.split(',').map(str::trim);
    let duration = Duration::from_millis(fields.next()?.parse().ok()?);
    let bytes = fields.map(|field| field.parse().ok());
    Some(Chunk {
        duration,
        bytes: bytes.collect::<Option<_>>()?,
    })
}
