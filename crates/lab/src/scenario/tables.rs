//! Parses `[[table]]`, and checks that its axes and columns exist.

use super::claim::{Band, Compare, Selection, Take, Test};
use super::claims::{
    axes, check_against, check_column, is_fixed, read_against, read_compare, read_take, selection,
};
use super::error::{Fault, Read};
use super::reader::Reader;
use super::summary_table::{SummaryTable, TableColumn};
use super::sweep::Sweep;
use super::tree::{Node, Value};

const KEYS: [&str; 7] = [
    "id", "title", "caption", "rows", "across", "where", "columns",
];

const COLUMN_KEYS: [&str; 8] = [
    "measure", "title", "scale", "where", "each", "compare", "against", "take",
];

/// Factors of columns.
const SCALES: std::ops::RangeInclusive<f64> = 1e-9..=1e9;

/// Reads all tables; `measures` are those of any case.
pub(super) fn read(
    root: &Reader<'_>,
    sweep: &Sweep,
    measures: &[String],
) -> Read<Vec<SummaryTable>> {
    let mut tables: Vec<SummaryTable> = Vec::new();
    for row in root.tables("table")? {
        let id = row.text("id")?;
        if id.is_empty() || tables.iter().any(|table| table.id == id) {
            return Err(row.fault(
                "id",
                "each table needs a short name of its own, such as frontier",
            ));
        }
        let row = row.renamed(format!("[[table]] `{id}`"));
        tables.push(read_table(&row, id, sweep, measures)?);
    }
    Ok(tables)
}

fn read_table(
    row: &Reader<'_>,
    id: String,
    sweep: &Sweep,
    measures: &[String],
) -> Read<SummaryTable> {
    row.only(&KEYS)?;
    let title = row.text("title")?;
    if title.is_empty() {
        return Err(row.fault("title", "it is required"));
    }
    let mut table = SummaryTable {
        id,
        title,
        caption: row.text("caption")?,
        rows: axes(row, "rows", sweep)?,
        across: axes(row, "across", sweep)?,
        select: selection(row, sweep)?,
        columns: Vec::new(),
    };
    if table.rows.is_empty() {
        return Err(row.fault("rows", "it is required: an axis, or a list of axes"));
    }
    let both = table.rows.iter().chain(&table.across);
    if let Some(axis) = both.clone().find(|axis| is_fixed(row, axis)) {
        return Err(row.fault("where", format!("axis `{axis}` is used already")));
    }
    if let Some(axis) = table.across.iter().find(|axis| table.rows.contains(axis)) {
        return Err(row.fault("across", format!("axis `{axis}` is used already")));
    }
    let Some(Value::List(items)) = row.node("columns").map(|node| &node.value) else {
        return Err(row.fault(
            "columns",
            "it is required: a list of measures, or of tables",
        ));
    };
    for item in items {
        let column = read_column(item, row, &table, sweep, measures)?;
        if table
            .columns
            .iter()
            .any(|other| other.title == column.title)
        {
            let what = format!("the column `{}` in {}", column.title, row.place());
            return Err(Fault::new(
                item.line,
                what,
                "give each column a `title` of its own",
            ));
        }
        table.columns.push(column);
    }
    if table.columns.is_empty() {
        return Err(row.fault("columns", "name at least one measure"));
    }
    Ok(table)
}

/// A measure, or a table with the keys of a claim's test.
fn read_column(
    node: &Node,
    row: &Reader<'_>,
    table: &SummaryTable,
    sweep: &Sweep,
    measures: &[String],
) -> Read<TableColumn> {
    let place = format!("`columns` of {}", row.place());
    let column = match &node.value {
        Value::Table(column) => Reader::new(column, place),
        Value::Text(measure) => {
            check_column(row, "columns", measure, measures)?;
            return Ok(TableColumn {
                title: measure.clone(),
                scale: 1.0,
                test: plain(measure),
            });
        }
        _ => {
            return Err(Fault::new(
                node.line,
                node.kind(),
                "write a measure, or a table",
            ));
        }
    };
    column.only(&COLUMN_KEYS)?;
    let measure = column.string("measure")?;
    let measure = column.need("measure", measure, "a column of the rows")?;
    check_column(&column, "measure", measure, measures)?;
    let select = selection(&column, sweep)?;
    let each = axes(&column, "each", sweep)?;
    let against = read_against(&column, sweep, measures)?;
    if let Some(against) = &against {
        let mut fixed: Selection = table.select.clone();
        fixed.extend(select.clone());
        let names = [&table.rows, &table.across, &each];
        let names: Vec<String> = names.into_iter().flatten().cloned().collect();
        check_against(&column, sweep, against, &fixed, &names)?;
    }
    let compare = read_compare(&column, against)?;
    let title = match column.text("title")? {
        title if title.is_empty() => heading(measure, &compare),
        title => title,
    };
    Ok(TableColumn {
        title,
        scale: column.number("scale", SCALES)?.unwrap_or(1.0),
        test: Test {
            select,
            compare,
            take: read_take(&column, sweep, &each)?,
            each,
            ..plain(measure)
        },
    })
}

/// The mean of a measure.
fn plain(measure: &str) -> Test {
    Test {
        measure: measure.to_owned(),
        select: Selection::new(),
        each: Vec::new(),
        average: Vec::new(),
        compare: Compare::Value,
        take: Take::All,
        pass: Band::default(),
    }
}

/// Such as `viewer.rdr, change against recovery=arq`.
fn heading(measure: &str, compare: &Compare) -> String {
    match compare {
        Compare::Value => measure.to_owned(),
        Compare::Ratio(other) => format!("{measure}, ratio to {}", other.describe()),
        Compare::Change(other) => format!("{measure}, change against {}", other.describe()),
        Compare::Difference(other) => {
            format!("{measure}, difference from {}", other.describe())
        }
    }
}
