//! Parses the varied parameters: axes, combinations, exclusions, the short form, values from the
//! command line.

use std::collections::BTreeSet;

use super::claim::Selection;
use super::error::{Fault, Read, known_names};
use super::library::LoadOptions;
use super::reader::Reader;
use super::substitute::{Bindings, add_names};
use super::tree::{Node, Table, Value, excerpt};
use super::{Axis, AxisField};

/// Most cases of an experiment.
const MAX_CASES: usize = 10_000;

/// Columns of rows that are not axes, and a reserved word of claims.
const RESERVED: [&str; 4] = ["case", "repeat", "seed", "measure"];

/// One value of an axis.
#[derive(Clone, Debug)]
pub(super) struct AxisValue {
    pub(super) label: String,
    pub(super) node: Node,
}

/// An axis with its values.
#[derive(Clone, Debug)]
pub(super) struct SweptAxis {
    pub(super) name: String,
    pub(super) line: usize,
    /// Its values in this experiment.
    pub(super) values: Vec<AxisValue>,
    /// All its labels in the file.
    pub(super) known: Vec<String>,
    /// The fields of these, by position.
    pub(super) fields: Vec<AxisField>,
}

/// An excluded combination, and its position in the file.
#[derive(Clone, Debug)]
pub(super) struct Exclusion {
    pub(super) line: usize,
    pub(super) labels: Selection,
}

/// All varied parameters.
#[derive(Clone, Debug, Default)]
pub(super) struct Sweep {
    pub(super) axes: Vec<SweptAxis>,
    pub(super) exclusions: Vec<Exclusion>,
}

impl Sweep {
    /// Reads `[sweep]`, `[[exclude]]` and the axes of `[quick]`; the latter apply if `options`
    /// selects the short form, and values from the command line override both.
    pub(super) fn read(root: &Reader<'_>, options: &LoadOptions) -> Read<Self> {
        let mut sweep = Self::default();
        if let Some(table) = root.section("sweep")? {
            for entry in table.entries() {
                sweep
                    .axes
                    .push(read_axis(&entry.key, entry.line, &entry.node)?);
            }
        }
        for table in root.tables("exclude")? {
            sweep.exclusions.push(sweep.read_exclusion(&table)?);
        }
        let quick = match root.section("quick")? {
            None => None,
            Some(quick) => quick.table("sweep")?,
        };
        if let Some(table) = quick {
            sweep.shorten(&table, options.quick)?;
        }
        for (name, values) in &options.set {
            if let Some(axis) = sweep.axes.iter_mut().find(|axis| axis.name == *name) {
                axis.set(values)?;
            }
        }
        Ok(sweep)
    }

    /// The axes in the form of the experiment.
    pub(super) fn axes(&self) -> Vec<Axis> {
        self.axes
            .iter()
            .map(|axis| Axis {
                name: axis.name.clone(),
                labels: axis
                    .values
                    .iter()
                    .map(|value| value.label.clone())
                    .collect(),
                fields: fields(&axis.values),
            })
            .collect()
    }

    pub(super) fn axis(&self, name: &str) -> Option<&SweptAxis> {
        self.axes.iter().find(|axis| axis.name == name)
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.axes.iter().map(|axis| axis.name.as_str())
    }

    /// An axis without effect is a mistake: its values must be used in some table.
    pub(super) fn check_used<'a>(&self, tables: impl Iterator<Item = &'a Table>) -> Read<()> {
        let mut used = BTreeSet::new();
        for table in tables {
            add_names(table, &mut used);
        }
        match self.axes.iter().find(|axis| !used.contains(&axis.name)) {
            None => Ok(()),
            Some(axis) => Err(Fault::new(
                axis.line,
                format!("axis `{}` has no effect", axis.name),
                format!(
                    "write \"${{{}}}\" in [run], [[link]] or [[flow]], or leave it out",
                    axis.name
                ),
            )),
        }
    }

    /// Every combination that is not excluded, the last axis fastest.
    pub(super) fn grid(&self) -> Read<Vec<Bindings<'_>>> {
        let line = self.axes.first().map_or(1, |axis| axis.line);
        let all = self
            .axes
            .iter()
            .try_fold(1_usize, |all, axis| all.checked_mul(axis.values.len()))
            .filter(|all| *all <= MAX_CASES);
        let Some(all) = all else {
            return Err(Fault::new(
                line,
                "the axes of [sweep]",
                format!("at most {MAX_CASES} combinations: make several scenarios of it"),
            ));
        };
        let grid: Vec<_> = (0..all)
            .map(|index| self.combination(index))
            .filter(|case| !self.exclusions.iter().any(|left_out| left_out.has(case)))
            .collect();
        if grid.is_empty() {
            return Err(Fault::new(
                line,
                "every combination of [sweep] is excluded",
                "exclude fewer in [[exclude]]",
            ));
        }
        Ok(grid)
    }

    fn combination(&self, mut index: usize) -> Bindings<'_> {
        let mut values: Vec<_> = self
            .axes
            .iter()
            .rev()
            .map(|axis| {
                let value = &axis.values[index % axis.values.len()];
                index /= axis.values.len();
                (axis.name.as_str(), value)
            })
            .collect();
        values.reverse();
        Bindings(values)
    }

    /// The axis of that name.
    pub(super) fn known_axis(&self, name: &str, line: usize, place: &str) -> Read<&SweptAxis> {
        self.axis(name).ok_or_else(|| {
            Fault::new(
                line,
                format!("no axis `{name}` in [sweep], used in {place}"),
                known_names(name, self.names()),
            )
        })
    }

    fn read_exclusion(&self, table: &Reader<'_>) -> Read<Exclusion> {
        let labels = self.selection(table)?;
        if labels.is_empty() {
            return Err(Fault::new(
                table.line(),
                "[[exclude]] without labels",
                "name the labels of the excluded combination",
            ));
        }
        Ok(Exclusion {
            line: table.line(),
            labels,
        })
    }

    /// `[quick] sweep.axis = [...]`: always checked, applied if `apply`.
    fn shorten(&mut self, table: &Reader<'_>, apply: bool) -> Read<()> {
        for entry in table.entries() {
            let kept = {
                let axis = self.known_axis(&entry.key, entry.line, table.place())?;
                let Value::List(items) = &entry.node.value else {
                    return Err(table.fault(&entry.key, "write a list of the axis' labels"));
                };
                items
                    .iter()
                    .map(|item| axis.known_label(item))
                    .collect::<Read<Vec<_>>>()?
            };
            if kept.is_empty() {
                return Err(table.fault(&entry.key, "keep at least one label"));
            }
            let axis = self.axes.iter_mut().find(|axis| axis.name == entry.key);
            if let (Some(axis), true) = (axis, apply) {
                axis.values.retain(|value| kept.contains(&value.label));
            }
        }
        Ok(())
    }
}

impl Exclusion {
    fn has(&self, case: &Bindings<'_>) -> bool {
        self.labels.iter().all(|(axis, labels)| {
            case.0
                .iter()
                .any(|(name, value)| name == axis && labels.contains(&value.label))
        })
    }
}

impl SweptAxis {
    /// The label that `node` names.
    pub(super) fn known_label(&self, node: &Node) -> Read<String> {
        let label = node.label().ok_or_else(|| {
            Fault::new(
                node.line,
                format!("{} as a label of axis `{}`", node.kind(), self.name),
                "write the label itself",
            )
        })?;
        if self.known.contains(&label) {
            return Ok(label);
        }
        Err(Fault::new(
            node.line,
            format!("no label `{}` on axis `{}`", excerpt(&label), self.name),
            known_names(&label, self.known.iter().map(String::as_str)),
        ))
    }

    /// `--set axis=a,b`: other values of the same type as in the file.
    fn set(&mut self, text: &str) -> Read<()> {
        let setting = format!("--set {}={text}", self.name);
        let fault = |expected: String| Fault::Setting {
            setting: setting.clone(),
            expected,
        };
        let separator = if text.contains(';') { ';' } else { ',' };
        let mut values: Vec<AxisValue> = Vec::new();
        for part in text.split(separator).map(str::trim) {
            if part.is_empty() {
                continue;
            }
            let given = self.values.iter().find(|value| value.label == part);
            let value = match (given, self.values.first().map(|value| &value.node.value)) {
                (Some(given), _) => given.clone(),
                (None, Some(Value::Table(_))) => {
                    let known = self.known.iter().map(String::as_str);
                    return Err(fault(known_names(part, known)));
                }
                (None, Some(Value::Text(_)) | None) => self.value(Value::Text(part.to_owned())),
                (None, Some(_)) => match plain(part) {
                    Value::Text(_) => {
                        return Err(fault("write numbers, as the file does".to_owned()));
                    }
                    value => self.value(value),
                },
            };
            if values.iter().any(|other| other.label == value.label) {
                return Err(fault(format!("`{part}` is repeated")));
            }
            values.push(value);
        }
        if values.is_empty() {
            return Err(fault("write at least one value".to_owned()));
        }
        self.values = values;
        Ok(())
    }

    fn value(&self, value: Value) -> AxisValue {
        let node = Node {
            line: self.line,
            value,
        };
        AxisValue {
            label: node.label().unwrap_or_default(),
            node,
        }
    }
}

/// A plain value as written on a command line: number, boolean, otherwise text.
pub(super) fn plain(text: &str) -> Value {
    let text = text.trim();
    if let Ok(number) = text.parse() {
        return Value::Whole(number, text.to_owned());
    }
    match text.parse() {
        Ok(number) if f64::is_finite(number) => return Value::Real(number, text.to_owned()),
        _ => {}
    }
    match text {
        "true" => Value::Truth(true),
        "false" => Value::Truth(false),
        _ => Value::Text(text.to_owned()),
    }
}

fn read_axis(name: &str, line: usize, node: &Node) -> Read<SweptAxis> {
    let fault = |line, expected: &str| {
        Err(Fault::new(
            line,
            format!("axis `{}` of [sweep]", excerpt(name)),
            expected,
        ))
    };
    if !is_name(name) {
        return fault(
            line,
            "names have letters, digits, - and _, and begin with a letter",
        );
    }
    if RESERVED.contains(&name) {
        return fault(
            line,
            "that name is reserved in rows and claims: choose another",
        );
    }
    let Value::List(items) = &node.value else {
        return fault(node.line, "write a list of values: [\"a\", \"b\"]");
    };
    if items.is_empty() {
        return fault(node.line, "write at least one value");
    }
    let mut values: Vec<AxisValue> = Vec::new();
    for item in items {
        let label = label_of(item, name)?;
        if label.is_empty() || label.contains(['\n', '\r']) {
            return fault(item.line, "a label is one line and not empty");
        }
        if values.iter().any(|value| value.label == label) {
            return fault(item.line, &format!("`{}` is repeated", excerpt(&label)));
        }
        values.push(AxisValue {
            label,
            node: item.clone(),
        });
    }
    let known = values.iter().map(|value| value.label.clone()).collect();
    let fields = fields(&values);
    Ok(SweptAxis {
        name: name.to_owned(),
        line,
        values,
        known,
        fields,
    })
}

/// The fields of values that are tables, those that are plain values; in order of first appearance.
fn fields(values: &[AxisValue]) -> Vec<AxisField> {
    let mut fields: Vec<AxisField> = Vec::new();
    for (place, value) in values.iter().enumerate() {
        let Value::Table(table) = &value.node.value else {
            continue;
        };
        for entry in table.entries.iter().filter(|entry| entry.key != "label") {
            let Some(text) = entry.node.label() else {
                continue;
            };
            let at = fields.iter().position(|field| field.name == entry.key);
            let at = at.unwrap_or_else(|| {
                fields.push(AxisField {
                    name: entry.key.clone(),
                    values: vec![None; values.len()],
                });
                fields.len() - 1
            });
            fields[at].values[place] = Some(text);
        }
    }
    fields
}

fn label_of(item: &Node, axis: &str) -> Read<String> {
    let missing = || {
        Fault::new(
            item.line,
            format!("a value of axis `{axis}` is {}", item.kind()),
            "write a text, a number, or a table with a `label`",
        )
    };
    match &item.value {
        Value::Table(table) => label_field(table).ok_or_else(missing),
        _ => item.label().ok_or_else(missing),
    }
}

fn label_field(table: &Table) -> Option<String> {
    match &table.entry("label")?.node.value {
        Value::Text(label) => Some(label.clone()),
        _ => None,
    }
}

/// Whether a text can be the name of an axis, a flow or a link, which is part of columns' names.
pub(super) fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text.len() <= 64
        && text
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_')
}
