//! TOML as a tree with line numbers, without interpretation.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Fault, Read};

/// A value and its position.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Node {
    pub(super) line: usize,
    pub(super) value: Value,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Text(String),
    /// With the text as written, such as `1_000`.
    Whole(i64, String),
    /// With the text as written, such as `1e-6`.
    Real(f64, String),
    Truth(bool),
    List(Vec<Node>),
    Table(Table),
}

/// Keys with their values, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Table {
    pub(super) line: usize,
    pub(super) entries: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) key: String,
    pub(super) line: usize,
    pub(super) node: Node,
}

impl Table {
    pub(super) fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.key == key)
    }

    /// Replaces the entry with the same key, or appends `entry`.
    pub(super) fn replace(&mut self, entry: Entry) {
        match self.entries.iter_mut().find(|old| old.key == entry.key) {
            Some(old) => *old = entry,
            None => self.entries.push(entry),
        }
    }
}

impl Node {
    /// Its name in rows and in claims: a string, number or boolean as written.
    pub(super) fn label(&self) -> Option<String> {
        match &self.value {
            Value::Text(text) | Value::Whole(_, text) | Value::Real(_, text) => Some(text.clone()),
            Value::Truth(truth) => Some(truth.to_string()),
            Value::List(_) | Value::Table(_) => None,
        }
    }

    /// Its type, for messages.
    pub(super) fn kind(&self) -> String {
        match &self.value {
            Value::Text(text) => format!("the text \"{}\"", excerpt(text)),
            Value::Whole(_, text) | Value::Real(_, text) => format!("the number {text}"),
            Value::Truth(truth) => truth.to_string(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }
}

/// The start of a text, on one line.
pub(super) fn excerpt(text: &str) -> String {
    let mut short: String = text.chars().take(60).collect();
    if short.len() < text.len() {
        short.push_str("...");
    }
    short.escape_debug().to_string()
}

/// Reads a whole file.
pub(super) fn parse(text: &str) -> Read<Table> {
    let lines = Lines::new(text);
    let root = DeTable::parse(text).map_err(|error| {
        let line = error.span().map_or(1, |span| lines.at(span.start));
        let message = error.message().replace(['\n', '\r'], " ");
        Fault::new(line, "not TOML", message)
    })?;
    let reader = Reader { text, lines };
    reader.table(root.get_ref(), 1)
}

struct Reader<'a> {
    text: &'a str,
    lines: Lines,
}

impl Reader<'_> {
    fn table(&self, table: &DeTable<'_>, line: usize) -> Read<Table> {
        let mut keys: Vec<_> = table.iter().collect();
        keys.sort_by_key(|(key, _)| key.span().start);
        let entries = keys
            .into_iter()
            .map(|(key, value)| {
                let line = self.lines.at(key.span().start);
                Ok(Entry {
                    key: key.get_ref().to_string(),
                    line,
                    node: self.node(value, line)?,
                })
            })
            .collect::<Read<_>>()?;
        Ok(Table { line, entries })
    }

    /// `line` is that of the key, for tables without a position.
    fn node(&self, value: &Spanned<DeValue<'_>>, line: usize) -> Read<Node> {
        let span = value.span();
        let line = if span.is_empty() {
            line
        } else {
            self.lines.at(span.start)
        };
        let fault = |expected| Fault::new(line, excerpt(self.written(&span)), expected);
        let value = match value.get_ref() {
            DeValue::String(text) => Value::Text(text.to_string()),
            DeValue::Integer(number) => {
                let value = i64::from_str_radix(number.as_str(), number.radix())
                    .map_err(|_| fault("a whole number of at most 64 bits"))?;
                Value::Whole(value, self.written(&span).to_owned())
            }
            DeValue::Float(number) => {
                let value = number
                    .as_str()
                    .parse()
                    .map_err(|_| fault("write a number"))?;
                Value::Real(value, self.written(&span).to_owned())
            }
            DeValue::Boolean(truth) => Value::Truth(*truth),
            DeValue::Datetime(_) => {
                return Err(fault("dates have no meaning in a scenario"));
            }
            DeValue::Array(items) => Value::List(
                items
                    .iter()
                    .map(|item| self.node(item, line))
                    .collect::<Read<_>>()?,
            ),
            DeValue::Table(table) => Value::Table(self.table(table, line)?),
        };
        Ok(Node { line, value })
    }

    fn written(&self, span: &Range<usize>) -> &str {
        self.text.get(span.clone()).unwrap_or_default().trim()
    }
}

/// Offsets of the starts of lines.
struct Lines(Vec<usize>);

impl Lines {
    fn new(text: &str) -> Self {
        let after_ends = text.match_indices('\n').map(|(place, _)| place + 1);
        Self(std::iter::once(0).chain(after_ends).collect())
    }

    /// The line of a byte, from 1.
    fn at(&self, byte: usize) -> usize {
        self.0.partition_point(|start| *start <= byte)
    }
}
