//! Parses `[[figure]]`, and checks that its axes and columns exist.

use std::collections::BTreeSet;

use serde::Serialize;

use super::claim::{Compare, Selection};
use super::claims::{
    axes, check_against, check_column, is_fixed, read_against, read_compare, selection,
};
use super::error::{Read, known_names};
use super::figure::{Figure, FigureKind, Scale};
use super::library::LoadOptions;
use super::reader::Reader;
use super::setup::App;
use super::sweep::Sweep;
use super::{Case, Setup};
use crate::record::{FlowPoint, LinkPoint};

const KEYS: [&str; 9] = [
    "id", "title", "caption", "kind", "series", "panels", "where", "x_scale", "y_scale",
];

/// Columns of samples.
const SAMPLES: [&str; 2] = ["duration_ms", "size_bytes"];

#[derive(Clone, Copy)]
enum Kind {
    Line,
    Bar,
    Cdf,
    Series,
}

/// Drawable data.
struct Drawable<'a> {
    sweep: &'a Sweep,
    columns: &'a [String],
    cases: &'a [Case],
    options: &'a LoadOptions,
}

/// Reads all figures; `columns` are the measures of any case.
pub(super) fn read(
    root: &Reader<'_>,
    sweep: &Sweep,
    columns: &[String],
    cases: &[Case],
    options: &LoadOptions,
) -> Read<Vec<Figure>> {
    let drawable = Drawable {
        sweep,
        columns,
        cases,
        options,
    };
    let mut figures: Vec<Figure> = Vec::new();
    for row in root.tables("figure")? {
        let id = row.text("id")?;
        if id.is_empty() || figures.iter().any(|figure| figure.id == id) {
            return Err(row.fault(
                "id",
                "each figure needs a short name of its own, such as fig5",
            ));
        }
        let row = row.renamed(format!("[[figure]] `{id}`"));
        figures.push(drawable.figure(&row, id)?);
    }
    Ok(figures)
}

impl Drawable<'_> {
    fn figure(&self, row: &Reader<'_>, id: String) -> Read<Figure> {
        let title = row.text("title")?;
        if title.is_empty() {
            return Err(row.fault("title", "it is required"));
        }
        let series = axes(row, "series", self.sweep)?;
        let panels = axes(row, "panels", self.sweep)?;
        let select = selection(row, self.sweep)?;
        let kind = self.kind(row)?;
        let mut used = BTreeSet::new();
        if let FigureKind::Line { x, .. } | FigureKind::Bar { x, .. } = &kind {
            used.insert(x.as_str());
        }
        let fixed = select.keys().filter(|axis| is_fixed(row, axis));
        let rest = [("series", &series), ("panels", &panels)];
        let rest = rest
            .into_iter()
            .flat_map(|(key, names)| names.iter().map(move |name| (key, name)))
            .chain(fixed.map(|name| ("where", name)));
        for (key, name) in rest {
            if !used.insert(name) {
                return Err(row.fault(key, format!("axis `{name}` is used already")));
            }
        }
        let compare = self.compare(row, &select, &used)?;
        let scales = [("linear", Scale::Linear), ("log", Scale::Log)];
        Ok(Figure {
            id,
            title,
            caption: row.text("caption")?,
            kind,
            series: series.clone(),
            panels: panels.clone(),
            compare,
            select: select.clone(),
            x_scale: row.word("x_scale", &scales)?.unwrap_or_default(),
            y_scale: row.word("y_scale", &scales)?.unwrap_or_default(),
        })
    }

    fn kind(&self, row: &Reader<'_>) -> Read<FigureKind> {
        let kinds = [
            ("line", Kind::Line),
            ("bar", Kind::Bar),
            ("cdf", Kind::Cdf),
            ("series", Kind::Series),
        ];
        let kind = row.word("kind", &kinds)?;
        let kind = row.need("kind", kind, "line, bar, cdf or series")?;
        let of_kind: &[&str] = match kind {
            Kind::Line | Kind::Bar => &["x", "y", "compare", "against"],
            Kind::Cdf => &["group", "of"],
            Kind::Series => &["y"],
        };
        let known: Vec<&str> = KEYS.iter().chain(of_kind).copied().collect();
        row.only(&known)?;
        match kind {
            Kind::Line => Ok(FigureKind::Line {
                x: self.x(row)?,
                y: self.measures(row)?,
            }),
            Kind::Bar => Ok(FigureKind::Bar {
                x: self.x(row)?,
                y: self.measures(row)?,
            }),
            Kind::Cdf => self.distribution(row),
            Kind::Series => self.time_series(row),
        }
    }

    /// What measures are compared with; `named` are the axes that the figure names.
    fn compare(
        &self,
        row: &Reader<'_>,
        select: &Selection,
        named: &BTreeSet<&str>,
    ) -> Read<Compare> {
        let against = read_against(row, self.sweep, self.columns)?;
        if let Some(against) = &against {
            let named: Vec<String> = named.iter().map(|&name| name.to_owned()).collect();
            check_against(row, self.sweep, against, select, &named)?;
        }
        read_compare(row, against)
    }

    fn x(&self, row: &Reader<'_>) -> Read<String> {
        let x = row.string("x")?;
        let x = row.need("x", x, "an axis of [sweep]")?;
        let line = row.node("x").map_or(row.line(), |node| node.line);
        self.sweep
            .distinguished(x, line, &format!("`x` of {}", row.place()))?;
        Ok(x.to_owned())
    }

    fn measures(&self, row: &Reader<'_>) -> Read<Vec<String>> {
        let y = some_y(row)?;
        for column in &y {
            check_column(row, "y", column, self.columns)?;
        }
        Ok(y)
    }

    fn distribution(&self, row: &Reader<'_>) -> Read<FigureKind> {
        let group = row.string("group")?;
        let group = row.need("group", group, "the name of a [[flow]]")?;
        let sampled = self.names(|setup| {
            let flows = setup.flows.iter().filter(|flow| {
                matches!(
                    flow.app,
                    App::Poisson { .. } | App::Transfer { .. } | App::Live { .. }
                )
            });
            flows.map(|flow| flow.name.clone()).collect()
        });
        if !sampled.contains(group) {
            let known = known_names(group, sampled.iter().map(String::as_str));
            return Err(row.fault("group", format!("no transfers or viewers there: {known}")));
        }
        let of = row.string("of")?.unwrap_or(SAMPLES[0]);
        if !SAMPLES.contains(&of) {
            return Err(row.fault("of", known_names(of, SAMPLES)));
        }
        Ok(FigureKind::Cdf {
            group: group.to_owned(),
            of: of.to_owned(),
        })
    }

    fn time_series(&self, row: &Reader<'_>) -> Read<FigureKind> {
        let recorded = self.cases.iter().any(|case| case.setup.record.is_some());
        if !recorded && self.options.record.is_none() {
            return Err(row.fault(
                "kind",
                "time series need `record` in [run], such as \"100ms\"",
            ));
        }
        let y = some_y(row)?;
        let flow_columns = numbers_of(&FlowPoint::default());
        let link_columns = numbers_of(&LinkPoint::default());
        let known = self.names(|setup| {
            let flows = setup.flows.iter().flat_map(|flow| {
                let columns = flow_columns.iter();
                columns.map(move |column| format!("{}.{column}", flow.name))
            });
            let links = setup.links.iter().flat_map(|link| {
                let columns = link_columns.iter();
                columns.map(move |column| format!("{}.{column}", link.name))
            });
            flows.chain(links).collect()
        });
        for name in &y {
            if !known.contains(name) {
                let known = known_names(name, known.iter().map(String::as_str));
                return Err(row.fault("y", format!("`{name}` is not recorded: {known}")));
            }
        }
        Ok(FigureKind::Series { y })
    }

    /// Names that any case has.
    fn names(&self, of: impl Fn(&Setup) -> Vec<String>) -> BTreeSet<String> {
        self.cases.iter().flat_map(|case| of(&case.setup)).collect()
    }
}

fn some_y(row: &Reader<'_>) -> Read<Vec<String>> {
    let y = row.strings("y")?;
    if y.is_empty() {
        return Err(row.fault("y", "it is required: a column, or a list of columns"));
    }
    Ok(y)
}

/// The columns of a recorded point that are numbers, apart from the time.
fn numbers_of(point: &impl Serialize) -> Vec<String> {
    let Ok(serde_json::Value::Object(columns)) = serde_json::to_value(point) else {
        return Vec::new();
    };
    columns
        .into_iter()
        .filter(|(name, value)| name != "t_s" && !value.is_string())
        .map(|(name, _)| name)
        .collect()
}
