//! `rows.csv` as text: encoding and validation of lines.

use csv::{ByteRecord, ReaderBuilder, WriterBuilder};

use super::Row;
use crate::scenario::Run;

/// Columns before those of the axes.
const FIXED: [&str; 3] = ["case", "repeat", "seed"];

/// The columns of a file.
#[derive(Clone, Debug)]
pub(super) struct Columns {
    pub(super) axes: Vec<String>,
    pub(super) measures: Vec<String>,
}

/// A damaged line.
#[derive(Debug)]
pub(super) struct Damage {
    pub(super) line: u64,
    pub(super) expected: String,
}

/// Content of a file.
#[derive(Debug, Default)]
pub(super) struct Content {
    /// The complete rows, in order.
    pub(super) rows: Vec<Row>,
    /// False if the last line of the file is incomplete.
    pub(super) whole: bool,
}

impl Columns {
    /// The first line.
    pub(super) fn header(&self) -> Vec<u8> {
        let names = FIXED.iter().copied();
        line(
            names
                .chain(self.axes.iter().map(String::as_str))
                .chain(self.measures.iter().map(String::as_str)),
        )
    }

    /// Decodes a file, whose last line may be incomplete if its process was killed.
    pub(super) fn decode(&self, text: &[u8]) -> Result<Content, Damage> {
        let header = self.header();
        let Some(body) = text.strip_prefix(header.as_slice()) else {
            if header.starts_with(text) {
                return Ok(Content::default());
            }
            return Err(Damage {
                line: 1,
                expected: "other columns than this experiment has".to_owned(),
            });
        };
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .from_reader(body);
        let mut content = Content {
            rows: Vec::new(),
            whole: true,
        };
        let mut record = ByteRecord::new();
        loop {
            let start = reader.position().byte() as usize;
            // Reading from memory with lines of any length can't fail.
            if !reader.read_byte_record(&mut record).unwrap_or(false) {
                return Ok(content);
            }
            let end = reader.position().byte() as usize;
            // An incomplete line lacks its line break or ends inside quotes: written again, it
            // would differ.
            if end == body.len() && body.get(start..end) != Some(line(&record).as_slice()) {
                content.whole = false;
                return Ok(content);
            }
            let place = record.position().map_or(0, csv::Position::line) + 1;
            let row = self.row(&record).map_err(|expected| Damage {
                line: place,
                expected,
            })?;
            content.rows.push(row);
        }
    }

    fn row(&self, record: &ByteRecord) -> Result<Row, String> {
        let mut fields = Vec::with_capacity(record.len());
        for field in record {
            fields.push(std::str::from_utf8(field).map_err(|_| "not UTF-8".to_owned())?);
        }
        let expected = FIXED.len() + self.axes.len() + self.measures.len();
        if fields.len() != expected {
            return Err(format!("{} columns instead of {expected}", fields.len()));
        }
        let (run, rest) = fields.split_at(FIXED.len());
        let (labels, values) = rest.split_at(self.axes.len());
        let run = Run {
            case: number(run[0])?,
            repeat: number(run[1])?,
            seed: number(run[2])?,
        };
        let value = |text: &&str| match *text {
            "" => Ok(None),
            text => number(text).map(Some),
        };
        Ok(Row {
            run,
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            values: values.iter().map(value).collect::<Result<_, _>>()?,
        })
    }
}

/// A row as a line.
pub(super) fn encode(row: &Row) -> Vec<u8> {
    let Run { case, repeat, seed } = row.run;
    let run = [case.to_string(), repeat.to_string(), seed.to_string()];
    let values = row.values.iter().map(|value| match value {
        // The shortest text that parses to the same number.
        Some(value) => value.to_string(),
        None => String::new(),
    });
    line(
        run.into_iter()
            .chain(row.labels.iter().cloned())
            .chain(values),
    )
}

/// One line of CSV with its line break.
pub(super) fn line<I>(fields: I) -> Vec<u8>
where
    I: IntoIterator,
    I::Item: AsRef<[u8]>,
{
    let mut writer = WriterBuilder::new()
        .has_headers(false)
        .from_writer(Vec::new());
    // Writing to memory can't fail.
    let _ = writer.write_record(fields);
    writer.into_inner().unwrap_or_default()
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse()
        .map_err(|_| format!("`{text}` is not the number expected here"))
}
