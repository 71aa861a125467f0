//! Typed access to a table of a scenario, with checks of ranges and unknown keys.

use std::ops::RangeInclusive;
use std::time::Duration;

use swiftwater_link::{ParseError, parse_duration, parse_rate};
use swiftwater_units::Bandwidth;

use super::error::{Fault, Read, known_names};
use super::tree::{Entry, Node, Table, Value};

/// The longest time in a scenario, a day: sums can't overflow virtual time.
pub(super) const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// A table being read.
#[derive(Clone, Debug)]
pub(super) struct Reader<'a> {
    table: &'a Table,
    /// Name of the table, for messages: "[[flow]] `subject`".
    place: String,
}

impl<'a> Reader<'a> {
    pub(super) fn new(table: &'a Table, place: impl Into<String>) -> Self {
        Self {
            table,
            place: place.into(),
        }
    }

    /// The same table with a more specific name.
    pub(super) fn renamed(&self, place: String) -> Self {
        Self {
            table: self.table,
            place,
        }
    }

    pub(super) fn place(&self) -> &str {
        &self.place
    }

    pub(super) fn to_table(&self) -> Table {
        self.table.clone()
    }

    pub(super) fn line(&self) -> usize {
        self.table.line
    }

    pub(super) fn entries(&self) -> &'a [Entry] {
        &self.table.entries
    }

    /// Every key must be one of `known`.
    pub(super) fn only(&self, known: &[&str]) -> Read<()> {
        match self
            .entries()
            .iter()
            .find(|entry| !known.contains(&entry.key.as_str()))
        {
            None => Ok(()),
            Some(entry) => Err(Fault::new(
                entry.line,
                format!("unknown key `{}` in {}", entry.key, self.place),
                known_names(&entry.key, known.iter().copied()),
            )),
        }
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.table.entry(key).is_some()
    }

    pub(super) fn node(&self, key: &str) -> Option<&'a Node> {
        self.table.entry(key).map(|entry| &entry.node)
    }

    /// An error about `key`, or about the table if the key is absent.
    pub(super) fn fault(&self, key: &str, expected: impl Into<String>) -> Fault {
        match self.node(key) {
            None => Fault::new(
                self.table.line,
                format!("no `{key}` in {}", self.place),
                expected,
            ),
            Some(node) => {
                let what = match node.value {
                    Value::List(_) | Value::Table(_) => {
                        format!("`{key}` in {}", self.place)
                    }
                    _ => format!("`{key}` in {} is {}", self.place, node.kind()),
                };
                Fault::new(node.line, what, expected)
            }
        }
    }

    /// The value, or an error that it is required.
    pub(super) fn need<T>(&self, key: &str, value: Option<T>, expected: &str) -> Read<T> {
        value.ok_or_else(|| self.fault(key, format!("it is required: {expected}")))
    }

    pub(super) fn string(&self, key: &str) -> Read<Option<&'a str>> {
        match self.node(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Text(text)) => Ok(Some(text)),
            Some(_) => Err(self.fault(key, "write a text in quotes")),
        }
    }

    /// A string, empty if absent.
    pub(super) fn text(&self, key: &str) -> Read<String> {
        Ok(self.string(key)?.unwrap_or_default().trim().to_owned())
    }

    /// A value in one of the forms of command lines; a plain number is equivalent to the same in
    /// quotes.
    pub(super) fn parse<T>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, ParseError>,
    ) -> Read<Option<T>> {
        let Some(node) = self.node(key) else {
            return Ok(None);
        };
        let parsed = match &node.value {
            Value::Text(text) => parse(text),
            Value::Whole(number, _) => parse(&number.to_string()),
            Value::Real(number, _) => parse(&number.to_string()),
            _ => return Err(self.fault(key, "write a text in quotes")),
        };
        parsed
            .map(Some)
            .map_err(|error| self.fault(key, error.expected()))
    }

    pub(super) fn duration(
        &self,
        key: &str,
        range: RangeInclusive<Duration>,
    ) -> Read<Option<Duration>> {
        let value = self.parse(key, parse_duration)?;
        let show = |duration: &Duration| format!("{duration:?}");
        self.in_range(key, value, &range, show)
    }

    pub(super) fn rate(&self, key: &str) -> Read<Option<Bandwidth>> {
        match self.parse(key, parse_rate)? {
            Some(Bandwidth::ZERO) => Err(self.fault(key, "it must be above 0")),
            rate => Ok(rate),
        }
    }

    pub(super) fn whole(&self, key: &str, range: RangeInclusive<u64>) -> Read<Option<u64>> {
        let expected = || {
            format!(
                "write a whole number from {} to {}",
                range.start(),
                range.end()
            )
        };
        match self.node(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Whole(number, _)) => u64::try_from(*number)
                .ok()
                .filter(|number| range.contains(number))
                .map(Some)
                .ok_or_else(|| self.fault(key, expected())),
            Some(_) => Err(self.fault(key, expected())),
        }
    }

    pub(super) fn number(&self, key: &str, range: RangeInclusive<f64>) -> Read<Option<f64>> {
        let value = match self.node(key).map(|node| &node.value) {
            None => return Ok(None),
            Some(Value::Whole(number, _)) => *number as f64,
            Some(Value::Real(number, _)) => *number,
            Some(_) => return Err(self.fault(key, "write a number, without quotes")),
        };
        self.in_range(key, Some(value), &range, f64::to_string)
    }

    pub(super) fn truth(&self, key: &str) -> Read<Option<bool>> {
        match self.node(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Truth(truth)) => Ok(Some(*truth)),
            Some(_) => Err(self.fault(key, "write true or false, without quotes")),
        }
    }

    /// One of several keywords.
    pub(super) fn word<T: Copy>(&self, key: &str, words: &[(&str, T)]) -> Read<Option<T>> {
        let Some(text) = self.string(key)? else {
            return Ok(None);
        };
        match words.iter().find(|(word, _)| *word == text) {
            Some((_, value)) => Ok(Some(*value)),
            None => Err(self.fault(key, known_names(text, words.iter().map(|(word, _)| *word)))),
        }
    }

    pub(super) fn table(&self, key: &str) -> Read<Option<Reader<'a>>> {
        match self.node(key).map(|node| &node.value) {
            None => Ok(None),
            Some(Value::Table(table)) => Ok(Some(Reader::new(
                table,
                format!("`{key}` of {}", self.place),
            ))),
            Some(_) => Err(self.fault(key, "write a table: { key = value, ... }")),
        }
    }

    /// The table `[key]` of the scenario.
    pub(super) fn section(&self, key: &str) -> Read<Option<Reader<'a>>> {
        let table = self.table(key)?;
        Ok(table.map(|table| table.renamed(format!("[{key}]"))))
    }

    /// The tables `[[key]]`; none if the key is absent.
    pub(super) fn tables(&self, key: &str) -> Read<Vec<Reader<'a>>> {
        let expected = format!("write it as [[{key}]]");
        let items = match self.node(key).map(|node| &node.value) {
            None => return Ok(Vec::new()),
            Some(Value::List(items)) => items,
            Some(_) => return Err(self.fault(key, expected)),
        };
        items
            .iter()
            .map(|item| match &item.value {
                Value::Table(table) => Ok(Reader::new(table, format!("[[{key}]]"))),
                _ => Err(Fault::new(item.line, item.kind(), expected.clone())),
            })
            .collect()
    }

    /// A list of strings, or one string; empty if absent.
    pub(super) fn strings(&self, key: &str) -> Read<Vec<String>> {
        let expected = "write a list of texts: [\"a\", \"b\"]";
        match self.node(key).map(|node| &node.value) {
            None => Ok(Vec::new()),
            Some(Value::Text(text)) => Ok(vec![text.clone()]),
            Some(Value::List(items)) => items
                .iter()
                .map(|item| match &item.value {
                    Value::Text(text) => Ok(text.clone()),
                    _ => Err(Fault::new(item.line, item.kind(), expected)),
                })
                .collect(),
            Some(_) => Err(self.fault(key, expected)),
        }
    }

    fn in_range<T: PartialOrd>(
        &self,
        key: &str,
        value: Option<T>,
        range: &RangeInclusive<T>,
        show: impl Fn(&T) -> String,
    ) -> Read<Option<T>> {
        match value {
            Some(value) if !range.contains(&value) => Err(self.fault(
                key,
                format!(
                    "it must be from {} to {}",
                    show(range.start()),
                    show(range.end())
                ),
            )),
            value => Ok(value),
        }
    }
}
