//! Substitution of `${axis}` and `${axis.field}` by the values of a case.

use std::collections::BTreeSet;

use super::error::{Fault, Read, known_names};
use super::sweep::AxisValue;
use super::tree::{Entry, Node, Table, Value};

/// The value of each axis in a case.
pub(super) struct Bindings<'a>(pub(super) Vec<(&'a str, &'a AxisValue)>);

impl Bindings<'_> {
    /// The same table with every name replaced. A string that is exactly one name becomes the value
    /// with its type and line; inside a longer string a name becomes the value's text.
    pub(super) fn table(&self, table: &Table) -> Read<Table> {
        let entries = table
            .entries
            .iter()
            .map(|entry| {
                Ok(Entry {
                    key: entry.key.clone(),
                    line: entry.line,
                    node: self.node(&entry.node)?,
                })
            })
            .collect::<Read<_>>()?;
        Ok(Table {
            line: table.line,
            entries,
        })
    }

    /// [`Bindings::table`] of each.
    pub(super) fn tables(&self, tables: &[Table]) -> Read<Vec<Table>> {
        tables.iter().map(|table| self.table(table)).collect()
    }

    fn node(&self, node: &Node) -> Read<Node> {
        let value = match &node.value {
            Value::Text(text) => return self.text(text, node.line),
            Value::List(items) => Value::List(
                items
                    .iter()
                    .map(|item| self.node(item))
                    .collect::<Read<_>>()?,
            ),
            Value::Table(table) => Value::Table(self.table(table)?),
            plain => plain.clone(),
        };
        Ok(Node {
            line: node.line,
            value,
        })
    }

    fn text(&self, text: &str, line: usize) -> Read<Node> {
        let mut result = String::new();
        let mut rest = text;
        while let Some((before, after)) = rest.split_once("${") {
            let Some((name, after)) = after.split_once('}') else {
                return Err(Fault::new(
                    line,
                    format!("\"{text}\""),
                    "a name that begins with ${ must end with }",
                ));
            };
            if before.is_empty() && after.is_empty() && result.is_empty() {
                return self.value(name, line);
            }
            result.push_str(before);
            result.push_str(&self.label(name, line)?);
            rest = after;
        }
        result.push_str(rest);
        Ok(Node {
            line,
            value: Value::Text(result),
        })
    }

    fn axis(&self, name: &str, line: usize) -> Read<&AxisValue> {
        let axes = &self.0;
        axes.iter()
            .find(|(axis, _)| *axis == name)
            .map(|(_, value)| *value)
            .ok_or_else(|| {
                Fault::new(
                    line,
                    format!("no axis `{name}` in [sweep]"),
                    known_names(name, axes.iter().map(|(axis, _)| *axis)),
                )
            })
    }

    fn value(&self, name: &str, line: usize) -> Read<Node> {
        let Some((axis, field)) = name.split_once('.') else {
            return Ok(self.axis(name, line)?.node.clone());
        };
        let value = self.axis(axis, line)?;
        let Value::Table(table) = &value.node.value else {
            return Err(Fault::new(
                line,
                format!("`${{{name}}}`"),
                format!("the values of axis `{axis}` are not tables: write ${{{axis}}}"),
            ));
        };
        match table.entry(field) {
            Some(entry) => Ok(entry.node.clone()),
            None => Err(Fault::new(
                line,
                format!(
                    "`${{{name}}}`: no field `{field}` in the value `{}`",
                    value.label
                ),
                known_names(field, table.entries.iter().map(|entry| entry.key.as_str())),
            )),
        }
    }

    fn label(&self, name: &str, line: usize) -> Read<String> {
        if !name.contains('.') {
            return Ok(self.axis(name, line)?.label.clone());
        }
        self.value(name, line)?.label().ok_or_else(|| {
            Fault::new(
                line,
                format!("`${{{name}}}` inside a text"),
                "it must be a text, a number or a truth value",
            )
        })
    }
}

/// Collects the names of the axes whose values are used in a table.
pub(super) fn add_names(table: &Table, names: &mut BTreeSet<String>) {
    for entry in &table.entries {
        add_names_of(&entry.node, names);
    }
}

fn add_names_of(node: &Node, names: &mut BTreeSet<String>) {
    match &node.value {
        Value::Text(text) => names.extend(text.split("${").skip(1).map(|after| {
            let end = after.find(['.', '}']).unwrap_or(after.len());
            after[..end].to_owned()
        })),
        Value::List(items) => items.iter().for_each(|item| add_names_of(item, names)),
        Value::Table(table) => add_names(table, names),
        _ => {}
    }
}
