//! Parses selections of cases: by the labels of axes, or by the fields of their values.

use std::collections::BTreeMap;

use super::AxisField;
use super::claim::Selection;
use super::error::{Fault, Read, known_names};
use super::reader::Reader;
use super::sweep::{Sweep, SweptAxis};
use super::tree::{Entry, Node, Value};

impl Sweep {
    /// The labels that a table such as `where` permits: `net = "a"`, `net = ["a", "b"]`, `net.class = "lte"`. What is
    /// said about an axis several times must hold together.
    pub(super) fn selection(&self, table: &Reader<'_>) -> Read<Selection> {
        let mut selection = Selection::new();
        for entry in table.entries() {
            let (axis, permitted) = self.permitted(entry, table.place())?;
            let labels = selection
                .entry(axis.name.clone())
                .or_insert_with(|| axis.known.clone());
            labels.retain(|label| permitted.contains(label));
            if labels.is_empty() {
                return Err(Fault::new(
                    entry.line,
                    format!("`{}` in {}", entry.key, table.place()),
                    format!("no label of axis `{}` has all of this", axis.name),
                ));
            }
        }
        Ok(selection)
    }

    /// One label for each of some axes.
    pub(super) fn single_labels(&self, table: &Reader<'_>) -> Read<BTreeMap<String, String>> {
        let mut labels = BTreeMap::new();
        for entry in table.entries() {
            let axis = self.known_axis(&entry.key, entry.line, table.place())?;
            labels.insert(axis.name.clone(), axis.known_label(&entry.node)?);
        }
        Ok(labels)
    }

    /// The labels that `name`, an axis or a field of one, distinguishes. All values of the axis must have the field.
    pub(super) fn distinguished(&self, name: &str, line: usize, place: &str) -> Read<Vec<String>> {
        let Some((axis, field)) = name.split_once('.') else {
            return Ok(self.known_axis(name, line, place)?.known.clone());
        };
        let axis = self.known_axis(axis, line, place)?;
        let field = axis.known_field(field, line, place)?;
        let labels = axis.known.iter().zip(&field.values);
        let mut distinguished: Vec<String> = Vec::new();
        for (label, value) in labels {
            let Some(value) = value else {
                return Err(Fault::new(
                    line,
                    format!("`{name}` in {place}"),
                    format!(
                        "the value `{label}` of axis `{}` has no `{}`: give it one",
                        axis.name, field.name
                    ),
                ));
            };
            if !distinguished.contains(value) {
                distinguished.push(value.clone());
            }
        }
        Ok(distinguished)
    }

    /// The axis of an entry and the labels that it permits.
    fn permitted(&self, entry: &Entry, place: &str) -> Read<(&SweptAxis, Vec<String>)> {
        let (name, field) = match entry.key.split_once('.') {
            Some((name, field)) => (name, Some(field)),
            None => (entry.key.as_str(), None),
        };
        let axis = self.known_axis(name, entry.line, place)?;
        let permitted = match (field, &entry.node.value) {
            (Some(field), _) => axis.having(field, &entry.node, entry.line, place)?,
            (None, Value::Table(table)) => {
                let mut permitted = axis.known.clone();
                for inner in &table.entries {
                    let having = axis.having(&inner.key, &inner.node, inner.line, place)?;
                    permitted.retain(|label| having.contains(label));
                }
                permitted
            }
            (None, Value::List(items)) => items
                .iter()
                .map(|item| axis.known_label(item))
                .collect::<Read<_>>()?,
            (None, _) => vec![axis.known_label(&entry.node)?],
        };
        Ok((axis, permitted))
    }
}

impl SweptAxis {
    fn known_field(&self, name: &str, line: usize, place: &str) -> Read<&AxisField> {
        let found = self.fields.iter().find(|field| field.name == name);
        found.ok_or_else(|| {
            Fault::new(
                line,
                format!(
                    "no field `{name}` in the values of axis `{}`, used in {place}",
                    self.name
                ),
                known_names(name, self.fields.iter().map(|field| field.name.as_str())),
            )
        })
    }

    /// The labels whose `field` has the value, or one of the values, of `node`.
    fn having(&self, field: &str, node: &Node, line: usize, place: &str) -> Read<Vec<String>> {
        let field = self.known_field(field, line, place)?;
        let wanted = match &node.value {
            Value::List(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let mut having = Vec::new();
        for node in wanted {
            let value = node.label().ok_or_else(|| {
                let what = format!("{} as a value of `{}`", node.kind(), field.name);
                Fault::new(node.line, what, "write the value itself, or a list of them")
            })?;
            let labels = self.known.iter().zip(&field.values);
            let of_value = labels.filter(|(_, of_label)| of_label.as_ref() == Some(&value));
            let before = having.len();
            having.extend(of_value.map(|(label, _)| label.clone()));
            if having.len() == before {
                let known = field.values.iter().flatten().map(String::as_str);
                let known: std::collections::BTreeSet<&str> = known.collect();
                return Err(Fault::new(
                    node.line,
                    format!(
                        "no `{value}` among the values of `{}.{}`",
                        self.name, field.name
                    ),
                    known_names(&value, known),
                ));
            }
        }
        Ok(having)
    }
}
