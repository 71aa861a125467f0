//! Converts the text of a file to an experiment: every part is read, completed and checked.

use std::sync::Arc;

use swiftwater_media::protection::SchemeTables;

use super::digest::Fingerprint;
use super::error::{Fault, Read, ScenarioError};
use super::flows::{self, Sizes};
use super::library::LoadOptions;
use super::reader::Reader;
use super::run;
use super::substitute::Bindings;
use super::sweep::Sweep;
use super::traces::Traces;
use super::tree::{self, Table};
use super::{
    Case, Experiment, Parallel, Setup, claims, figures, link_changes, links,
    tables as summary_tables,
};
use crate::world;

const KEYS: [&str; 14] = [
    "title", "source", "about", "run", "sweep", "exclude", "quick", "link", "path", "change",
    "flow", "claim", "figure", "table",
];

/// Origin of a scenario.
pub(super) struct Origin<'a> {
    pub(super) name: &'a str,
    /// For messages.
    pub(super) file: &'a str,
    pub(super) text: &'a str,
    pub(super) sizes: Sizes<'a>,
}

pub(super) fn load(
    origin: &Origin<'_>,
    options: &LoadOptions,
) -> Result<Experiment, ScenarioError> {
    read(origin, options).map_err(|fault| blame(origin, options, fault).in_file(origin.file))
}

/// An error that the file alone doesn't have is attributed to the setting without which it
/// disappears, or to all settings.
fn blame(origin: &Origin<'_>, options: &LoadOptions, fault: Fault) -> Fault {
    let Fault::Wrong { what, expected, .. } = &fault else {
        return fault;
    };
    let loads = |options: &LoadOptions| read(origin, options).is_ok();
    let own = LoadOptions {
        set: Vec::new(),
        repeats: None,
        record: None,
        ..options.clone()
    };
    if !loads(&own) {
        return fault;
    }
    let mut settings: Vec<(String, LoadOptions)> = Vec::new();
    for (index, (key, value)) in options.set.iter().enumerate() {
        let mut without = options.clone();
        without.set.remove(index);
        settings.push((format!("--set {key}={value}"), without));
    }
    if let Some(Some(interval)) = options.record {
        let mut without = options.clone();
        without.record = None;
        settings.push((format!("--record {interval:?}"), without));
    }
    let one = settings.iter().find(|(_, without)| loads(without));
    let all = || settings.iter().map(|(setting, _)| setting.as_str());
    Fault::Setting {
        setting: match one {
            Some((setting, _)) => setting.clone(),
            None => all().collect::<Vec<_>>().join(" "),
        },
        expected: format!("{what}: {expected}"),
    }
}

fn read(origin: &Origin<'_>, options: &LoadOptions) -> Read<Experiment> {
    let root = tree::parse(origin.text)?;
    let root = Reader::new(&root, "the scenario");
    root.only(&KEYS)?;
    let title = root.text("title")?;
    if title.is_empty() {
        return Err(root.fault(
            "title",
            "it is required: the topic of the scenario, in one line",
        ));
    }
    let sweep = Sweep::read(&root, options)?;
    let run = run::table(&root, &sweep, options)?;
    let (repeats, seed) = run::repeats(&run, options)?;
    let planned_repeats = planned_repeats(&run, options)?;
    let axes = sweep.axes();

    let mut builder = Builder {
        run,
        links: link_tables(&root)?,
        is_parallel: root.has("path"),
        changes: (root.tables("change")?.iter().map(Reader::to_table)).collect(),
        flows: tables(&root, "flow", "a scenario needs at least one [[flow]]")?,
        traces: Traces::new(options.traces.clone(), seed),
        sizes: origin.sizes,
        options,
        tables: Arc::default(),
        fingerprint: Fingerprint::new(&axes, seed),
    };
    let cases = sweep
        .grid()?
        .iter()
        .map(|bindings| builder.case(bindings))
        .collect::<Read<Vec<_>>>()?;
    check_used(&root, &sweep, &builder)?;
    let columns = columns(&cases);
    if let Some(axis) = sweep.axes.iter().find(|axis| columns.contains(&axis.name)) {
        return Err(Fault::new(
            axis.line,
            format!("axis `{}`", axis.name),
            "a measure has that name: choose another",
        ));
    }
    Ok(Experiment {
        name: origin.name.to_owned(),
        title,
        source: root.text("source")?,
        about: root.text("about")?,
        quick: options.quick,
        claims: claims::read(&root, &sweep, &columns)?,
        figures: figures::read(&root, &sweep, &columns, &cases, options)?,
        tables: summary_tables::read(&root, &sweep, &columns)?,
        traces: builder.traces.used(),
        planned_repeats,
        axes,
        cases,
        repeats,
        seed,
        digest: builder.fingerprint.finish(),
    })
}

/// The repeats that the file asks for.
fn planned_repeats(run: &Table, options: &LoadOptions) -> Read<u32> {
    let of_file = LoadOptions {
        repeats: None,
        ..options.clone()
    };
    let (repeats, _) = run::repeats(run, &of_file)?;
    Ok(repeats)
}

/// Every axis must be used in some table.
fn check_used(root: &Reader<'_>, sweep: &Sweep, builder: &Builder<'_>) -> Read<()> {
    let sections = ["run", "quick"].map(|key| root.section(key));
    let sections: Vec<_> = sections.into_iter().collect::<Read<_>>()?;
    let sections: Vec<Table> = sections.iter().flatten().map(Reader::to_table).collect();
    let links = builder.links.iter().chain(&builder.changes);
    let tables = links.chain(&builder.flows);
    sweep.check_used(tables.chain(&sections))
}

/// The tables of links: a chain of `[[link]]`s, or `[[path]]`s in parallel.
fn link_tables(root: &Reader<'_>) -> Read<Vec<Table>> {
    if !root.has("path") {
        if root.has("change") {
            return Err(root.fault("change", "it goes with [[path]]s"));
        }
        return tables(root, "link", "a scenario needs at least one [[link]]");
    }
    if root.has("link") {
        return Err(root.fault("path", "write either [[link]]s, a chain, or [[path]]s"));
    }
    tables(root, "path", "write it as [[path]]")
}

/// The tables `[[key]]`, at least one.
fn tables(root: &Reader<'_>, key: &str, expected: &str) -> Read<Vec<Table>> {
    let tables: Vec<Table> = root.tables(key)?.iter().map(Reader::to_table).collect();
    if tables.is_empty() {
        return Err(root.fault(key, expected));
    }
    Ok(tables)
}

/// Names of all measures of any case, each once.
fn columns(cases: &[Case]) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    cases
        .iter()
        .flat_map(|case| world::measures(&case.setup))
        .filter(|name| seen.insert(name.clone()))
        .collect()
}

/// Creates cases from the file's tables.
struct Builder<'a> {
    run: Table,
    /// The tables `[[link]]` or `[[path]]`.
    links: Vec<Table>,
    is_parallel: bool,
    changes: Vec<Table>,
    flows: Vec<Table>,
    traces: Traces,
    sizes: Sizes<'a>,
    options: &'a LoadOptions,
    tables: Arc<SchemeTables>,
    fingerprint: Fingerprint,
}

impl Builder<'_> {
    fn case(&mut self, bindings: &Bindings<'_>) -> Read<Case> {
        let run = run::read(&bindings.table(&self.run)?, self.options)?;
        let link_tables = bindings.tables(&self.links)?;
        let traces = &mut self.traces;
        let links = if self.is_parallel {
            links::read_parallel(&readers(&link_tables, "[[path]]"), &run, traces)?
        } else {
            links::read(&readers(&link_tables, "[[link]]"), &run, traces)?
        };
        let change_tables = bindings.tables(&self.changes)?;
        let changes = link_changes::read(&readers(&change_tables, "[[change]]"), &links.specs)?;
        let world = flows::World {
            run: &run,
            links: &links.specs,
            is_parallel: self.is_parallel,
            sizes: self.sizes,
            options: self.options,
            tables: &self.tables,
        };
        let flow_tables = bindings.tables(&self.flows)?;
        let flows = flows::read(&readers(&flow_tables, "[[flow]]"), &world)?;
        let case = Case {
            labels: bindings
                .0
                .iter()
                .map(|(_, value)| value.label.clone())
                .collect(),
            setup: Setup {
                duration: run.duration,
                warmup: run.warmup,
                rtt: run.rtt,
                datagram_size: run.datagram_size,
                cipher: run.cipher,
                record: run.record,
                bin: run.bin,
                links: links.specs,
                flows,
                parallel: self.is_parallel.then_some(Parallel { changes }),
            },
        };
        let traces = format!("{:?}", links.traces);
        self.fingerprint.add_case(&case, &traces);
        Ok(case)
    }
}

fn readers<'a>(tables: &'a [Table], place: &str) -> Vec<Reader<'a>> {
    tables
        .iter()
        .map(|table| Reader::new(table, place))
        .collect()
}
