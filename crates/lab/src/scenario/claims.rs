//! Parses `[[claim]]`, and checks that its axes and columns exist.

use super::claim::{Against, Band, Claim, Compare, Selection, Take, Test, Verifiable};
use super::error::{Fault, Read, known_names};
use super::label::number_of_label;
use super::reader::Reader;
use super::sweep::Sweep;
use super::tree::Value;

const ABOUT_KEYS: [&str; 6] = ["id", "says", "paper", "note", "lowered", "untestable"];

const TEST_KEYS: [&str; 8] = [
    "measure", "where", "each", "average", "compare", "against", "take", "pass",
];

/// Ends of bands and thresholds.
const ANY: std::ops::RangeInclusive<f64> = -1e300..=1e300;

/// Reads all claims; `columns` are the measures of any case.
pub(super) fn read(root: &Reader<'_>, sweep: &Sweep, columns: &[String]) -> Read<Vec<Claim>> {
    let mut claims: Vec<Claim> = Vec::new();
    for row in root.tables("claim")? {
        let id = row.text("id")?;
        if id.is_empty() || claims.iter().any(|claim| claim.id == id) {
            return Err(row.fault("id", "each claim needs a short name of its own, such as C5"));
        }
        let row = row.renamed(format!("[[claim]] `{id}`"));
        claims.push(read_claim(&row, id, sweep, columns)?);
    }
    Ok(claims)
}

fn read_claim(row: &Reader<'_>, id: String, sweep: &Sweep, columns: &[String]) -> Read<Claim> {
    let says = row.text("says")?;
    if says.is_empty() {
        return Err(row.fault("says", "it is required: the statement, in words"));
    }
    let test = if let Some(why) = row.string("untestable")? {
        if let Some(key) = TEST_KEYS.into_iter().find(|key| row.has(key)) {
            return Err(row.fault(key, "an `untestable` claim has no test: leave it out"));
        }
        row.only(&ABOUT_KEYS)?;
        Verifiable::No(why.trim().to_owned())
    } else {
        let known: Vec<&str> = ABOUT_KEYS.into_iter().chain(TEST_KEYS).collect();
        row.only(&known)?;
        Verifiable::Test(read_test(row, sweep, columns)?)
    };
    Ok(Claim {
        id,
        says,
        paper: row.text("paper")?,
        note: row.text("note")?,
        lowered: row.text("lowered")?,
        test,
    })
}

fn read_test(row: &Reader<'_>, sweep: &Sweep, columns: &[String]) -> Read<Test> {
    let measure = row.string("measure")?;
    let measure = row.need("measure", measure, "a column of the rows, or `untestable`")?;
    check_column(row, "measure", measure, columns)?;
    let select = selection(row, sweep)?;
    let each = axes(row, "each", sweep)?;
    let average = axes(row, "average", sweep)?;
    check_axes(row, sweep, &select, &each, &average)?;
    check_exclusions(row, "where", sweep, &select)?;

    let against = read_against(row, sweep, columns)?;
    if let Some(against) = &against {
        check_against(row, sweep, against, &select, &each)?;
        check_other(row, against, &select, measure)?;
    }
    let take = read_take(row, sweep, &each)?;
    Ok(Test {
        measure: measure.to_owned(),
        select,
        each,
        average,
        compare: read_compare(row, against)?,
        take,
        pass: read_band(row)?,
    })
}

/// The cases that `where` selects.
pub(super) fn selection(row: &Reader<'_>, sweep: &Sweep) -> Read<Selection> {
    match row.table("where")? {
        None => Ok(Selection::new()),
        Some(table) => sweep.selection(&table),
    }
}

/// The other side replaces labels that are fixed: by `where`, or at each point by `each`.
pub(super) fn check_against(
    row: &Reader<'_>,
    sweep: &Sweep,
    against: &Against,
    select: &Selection,
    each: &[String],
) -> Read<()> {
    let is_fixed = |axis: &String| {
        each.contains(axis) || select.get(axis).is_some_and(|labels| labels.len() == 1)
    };
    if let Some(axis) = against.select.keys().find(|axis| !is_fixed(axis)) {
        return Err(row.fault(
            "against",
            format!("axis `{axis}` is averaged: it can't have a label here"),
        ));
    }
    let mut other = select.clone();
    let labels = against.select.iter();
    other.extend(labels.map(|(axis, label)| (axis.clone(), vec![label.clone()])));
    check_exclusions(row, "against", sweep, &other)
}

/// A comparison with itself is meaningless. A label of an axis in `each` differs at the other
/// points.
fn check_other(row: &Reader<'_>, against: &Against, select: &Selection, measure: &str) -> Read<()> {
    let other = against.measure.as_deref().unwrap_or(measure);
    let mut labels = against.select.iter();
    let is_same = |axis, label| select.get(axis).is_some_and(|labels| labels == &[label]);
    if other == measure && labels.all(|(axis, label)| is_same(axis, label.clone())) {
        return Err(row.fault(
            "against",
            "it is the same case and measure: name a label that differs, or another `measure`",
        ));
    }
    Ok(())
}

/// A column that some case has.
pub(super) fn check_column(
    row: &Reader<'_>,
    key: &str,
    column: &str,
    columns: &[String],
) -> Read<()> {
    if columns.iter().any(|known| known == column) {
        return Ok(());
    }
    let known = known_names(column, columns.iter().map(String::as_str));
    Err(row.fault(key, format!("no case measures `{column}`: {known}")))
}

/// A list of axes or fields of axes, each once.
pub(super) fn axes(row: &Reader<'_>, key: &str, sweep: &Sweep) -> Read<Vec<String>> {
    let names = row.strings(key)?;
    let line = row.node(key).map_or(row.line(), |node| node.line);
    for (index, name) in names.iter().enumerate() {
        sweep.distinguished(name, line, &format!("`{key}` of {}", row.place()))?;
        if names[..index].contains(name) {
            return Err(row.fault(key, format!("axis `{name}` is there twice")));
        }
    }
    Ok(names)
}

/// Every axis must be mentioned. One that `where` gives a single label is in neither of the other two; one of which it
/// permits several is averaged if it is in none of them. In `each` and `average` an axis is named once, or by fields:
/// with a field in `each` it is averaged within each of the field's values.
fn check_axes(
    row: &Reader<'_>,
    sweep: &Sweep,
    select: &Selection,
    each: &[String],
    average: &[String],
) -> Read<()> {
    for name in sweep.names() {
        let places = [
            ("where", is_fixed(row, name)),
            ("each", each.iter().any(|axis| axis == name)),
            ("average", average.iter().any(|axis| axis_of(axis) == name)),
        ];
        let mut named = places.iter().filter(|(_, there)| *there);
        if let (Some((first, _)), Some((second, _))) = (named.next(), named.next()) {
            return Err(row.fault(
                second,
                format!("axis `{name}` is in `{first}` already: name it once"),
            ));
        }
        let mut lists = each.iter().chain(average);
        if !select.contains_key(name) && !lists.any(|axis| axis_of(axis) == name) {
            return Err(Fault::new(
                row.line(),
                format!("axis `{name}` is left unmentioned in {}", row.place()),
                "give it a label in `where`, or name it in `each` or `average`",
            ));
        }
    }
    Ok(())
}

/// Whether `where` gives the axis one label, by itself.
pub(super) fn is_fixed(row: &Reader<'_>, axis: &str) -> bool {
    let Some(Value::Table(table)) = row.node("where").map(|node| &node.value) else {
        return false;
    };
    let label = table.entry(axis).map(|entry| &entry.node.value);
    label.is_some_and(|label| !matches!(label, Value::List(_) | Value::Table(_)))
}

/// The axis of a name, which may be that of one of its fields.
fn axis_of(name: &str) -> &str {
    name.split_once('.').map_or(name, |(axis, _)| axis)
}

/// Fails if `select` matches only excluded combinations.
pub(super) fn check_exclusions(
    row: &Reader<'_>,
    key: &str,
    sweep: &Sweep,
    select: &Selection,
) -> Read<()> {
    let left_out = sweep.exclusions.iter().find(|exclusion| {
        exclusion.labels.iter().all(|(axis, labels)| {
            let selected = select.get(axis);
            selected.is_some_and(|selected| selected.iter().all(|label| labels.contains(label)))
        })
    });
    match left_out {
        None => Ok(()),
        Some(exclusion) => Err(row.fault(
            key,
            format!("[[exclude]] on line {} excludes that case", exclusion.line),
        )),
    }
}

pub(super) fn read_against(
    row: &Reader<'_>,
    sweep: &Sweep,
    columns: &[String],
) -> Read<Option<Against>> {
    let Some(table) = row.table("against")? else {
        return Ok(None);
    };
    let measure = table.string("measure")?;
    if let Some(measure) = measure {
        check_column(&table, "measure", measure, columns)?;
    }
    let mut labels = table.to_table();
    labels.entries.retain(|entry| entry.key != "measure");
    let select = sweep.single_labels(&Reader::new(&labels, table.place()))?;
    if measure.is_none() && select.is_empty() {
        return Err(row.fault(
            "against",
            "name the labels that differ, or another `measure`",
        ));
    }
    Ok(Some(Against {
        measure: measure.map(str::to_owned),
        select,
    }))
}

pub(super) fn read_compare(row: &Reader<'_>, against: Option<Against>) -> Read<Compare> {
    type Make = fn(Against) -> Compare;
    let words: [(&str, Option<Make>); 4] = [
        ("value", None),
        ("ratio", Some(Compare::Ratio)),
        ("change", Some(Compare::Change)),
        ("difference", Some(Compare::Difference)),
    ];
    match (row.word("compare", &words)?.flatten(), against) {
        (None, None) => Ok(Compare::Value),
        (Some(make), Some(against)) => Ok(make(against)),
        (None, Some(_)) => Err(row.fault(
            "against",
            "it goes with `compare` = \"ratio\", \"change\" or \"difference\"",
        )),
        (Some(_), None) => Err(row.fault(
            "compare",
            "it needs `against`: the labels that differ, such as { cc = \"cubic\" }",
        )),
    }
}

pub(super) fn read_take(row: &Reader<'_>, sweep: &Sweep, each: &[String]) -> Read<Take> {
    let Some(Value::Table(_)) = row.node("take").map(|node| &node.value) else {
        let words = [
            ("all", Compact::All),
            ("min", Compact::Min),
            ("max", Compact::Max),
            ("mean", Compact::Mean),
        ];
        return Ok(match row.word("take", &words)? {
            None | Some(Compact::All) => Take::All,
            Some(Compact::Min) => Take::Min,
            Some(Compact::Max) => Take::Max,
            Some(Compact::Mean) => Take::Mean,
        });
    };
    let table = row.table("take")?;
    let table = row.need("take", table, "a table")?;
    table.only(&["first_at_least", "first_at_most"])?;
    let take = match (
        table.number("first_at_least", ANY)?,
        table.number("first_at_most", ANY)?,
    ) {
        (Some(least), None) => Take::FirstAtLeast(least),
        (None, Some(most)) => Take::FirstAtMost(most),
        _ => {
            return Err(row.fault(
                "take",
                "write { first_at_least = 0.98 } or { first_at_most = 1 }",
            ));
        }
    };
    let [axis] = each else {
        return Err(row.fault("take", "it needs exactly one axis in `each`"));
    };
    let labels = sweep.distinguished(axis, row.line(), row.place())?;
    match labels.iter().find(|label| number_of_label(label).is_none()) {
        None => Ok(take),
        Some(label) => Err(row.fault(
            "take",
            format!("the labels of axis `{axis}` must begin with numbers, `{label}` doesn't"),
        )),
    }
}

/// The reductions without a parameter.
#[derive(Clone, Copy)]
enum Compact {
    All,
    Min,
    Max,
    Mean,
}

fn read_band(row: &Reader<'_>) -> Read<Band> {
    let expected = "such as { min = 0.2 }, { max = 1 } or both";
    let table = row.table("pass")?;
    let table = row.need("pass", table, expected)?;
    table.only(&["min", "max"])?;
    let band = Band {
        min: table.number("min", ANY)?,
        max: table.number("max", ANY)?,
    };
    match (band.min, band.max) {
        (None, None) => Err(row.fault("pass", format!("write what passes, {expected}"))),
        (Some(min), Some(max)) if min > max => {
            Err(row.fault("pass", "`min` must not be above `max`"))
        }
        _ => Ok(band),
    }
}
