//! An experiment with rows made of nothing but its labels.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;
use swiftwater_lab::claim::{Outcome, Verdict};
use swiftwater_lab::record::{FlowPoint, FlowSeries, Sample, Series};
use swiftwater_lab::report::{ReportData, RowsOrigin, render_data};
use swiftwater_lab::scenario::{
    App, Axis, Case, Compare, Experiment, Figure, FigureKind, Run, Scale, Setup,
};
use swiftwater_lab::store::{Row, Table};
use swiftwater_link::LinkConfig;

use crate::experiments;

/// What a page is made of.
pub(crate) struct Parts {
    pub(crate) experiment: Experiment,
    pub(crate) table: Table,
    pub(crate) series: Vec<(Run, Series)>,
    pub(crate) samples: Vec<(Run, Vec<Sample>)>,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) origin: RowsOrigin,
}

impl Parts {
    /// All rows, no series, samples or verdicts.
    pub(crate) fn new(experiment: Experiment) -> Self {
        Self {
            table: table(&experiment),
            experiment,
            series: Vec::new(),
            samples: Vec::new(),
            verdicts: Vec::new(),
            origin: RowsOrigin::default(),
        }
    }

    pub(crate) fn page(&self) -> String {
        render_data(&ReportData {
            experiment: &self.experiment,
            table: &self.table,
            series: &self.series,
            samples: &self.samples,
            verdicts: &self.verdicts,
            origin: &self.origin,
        })
        .unwrap()
    }

    /// Gives an axis other labels, and rows for them.
    pub(crate) fn relabel(&mut self, axis: &str, labels: &[&str]) {
        let place = self
            .experiment
            .axes
            .iter()
            .position(|a| a.name == axis)
            .unwrap();
        let old = self.experiment.axes[place].labels.clone();
        for case in &mut self.experiment.cases {
            let which = old
                .iter()
                .position(|label| *label == case.labels[place])
                .unwrap();
            labels[which].clone_into(&mut case.labels[place]);
        }
        self.experiment.axes[place].labels = labels.iter().map(ToString::to_string).collect();
        self.table = table(&self.experiment);
    }
}

/// Two rivals, two controllers, three buffers, three repeats.
pub(crate) fn experiment() -> Experiment {
    let axis = |name: &str, labels: &[&str]| Axis {
        name: name.to_owned(),
        labels: labels.iter().map(ToString::to_string).collect(),
        fields: Vec::new(),
    };
    let axes = vec![
        axis("rival", &["bbr1", "bbr2"]),
        axis("cc", &["cubic", "cubic-plus"]),
        axis("buffer", &["0.1bdp", "1bdp", "20bdp"]),
    ];
    let mut cases = Vec::new();
    for rival in &axes[0].labels {
        for cc in &axes[1].labels {
            for buffer in &axes[2].labels {
                cases.push(Case {
                    labels: vec![rival.clone(), cc.clone(), buffer.clone()],
                    setup: setup(),
                });
            }
        }
    }
    Experiment {
        name: "test/sharing".to_owned(),
        title: "Sharing a bottleneck".to_owned(),
        source: "Paper, section 4.2".to_owned(),
        about: "What to know.\n\nAnd more.".to_owned(),
        quick: false,
        axes,
        cases,
        repeats: 3,
        seed: 7,
        claims: Vec::new(),
        figures: Vec::new(),
        tables: Vec::new(),
        traces: Vec::new(),
        planned_repeats: 3,
        digest: "0123abcd".to_owned(),
    }
}

fn setup() -> Setup {
    let mut setup = experiments::setup(1);
    setup.rtt = Duration::from_millis(30);
    setup.flows[0].app = App::Bulk;
    let link = &mut setup.links[0];
    (link.forward, link.backward) = (LinkConfig::default(), LinkConfig::default());
    setup
}

/// All rows; every value encodes case, repeat and measure.
pub(crate) fn table(experiment: &Experiment) -> Table {
    let measures = [
        "subject.goodput_mbps",
        "rival.goodput_mbps",
        "bottleneck.queue_delay_mean_ms",
    ];
    let rows = experiment.runs().map(|run| Row {
        run,
        labels: experiment.cases[run.case].labels.clone(),
        values: (0..measures.len())
            .map(|measure| {
                let case = run.case as f64;
                Some(
                    1.0 + case * case + f64::from(run.repeat * run.repeat) + 100.0 * measure as f64,
                )
            })
            .collect(),
    });
    Table {
        axes: experiment
            .axes
            .iter()
            .map(|axis| axis.name.clone())
            .collect(),
        measures: measures.iter().map(ToString::to_string).collect(),
        rows: rows.collect(),
    }
}

/// Mean over repeats, computed from the rows by their labels.
pub(crate) fn case_mean(parts: &Parts, labels: &[&str], column: usize) -> f64 {
    let rows = parts.table.rows.iter().filter(|row| row.labels == labels);
    let values: Vec<f64> = rows.filter_map(|row| row.values[column]).collect();
    values.iter().sum::<f64>() / values.len() as f64
}

/// A figure with a line for each controller.
pub(crate) fn figure(id: &str, kind: FigureKind) -> Figure {
    Figure {
        id: id.to_owned(),
        title: "Mean throughput".to_owned(),
        caption: String::new(),
        kind,
        series: vec!["cc".to_owned()],
        panels: Vec::new(),
        select: BTreeMap::new(),
        compare: Compare::Value,
        x_scale: Scale::Linear,
        y_scale: Scale::Linear,
    }
}

pub(crate) fn verdict(id: &str, outcome: Outcome) -> Verdict {
    Verdict {
        interval: None,
        runs: None,
        lowered: String::new(),
        id: id.to_owned(),
        says: "More throughput".to_owned(),
        paper: "+48.8 %".to_owned(),
        here: "+50 %".to_owned(),
        value: Some(0.5),
        margin: None,
        band: "at least 0.2".to_owned(),
        outcome,
        detail: String::new(),
        note: String::new(),
    }
}

/// A recorded flow with one spike.
pub(crate) fn flow_series(group: &str, points: u64) -> Series {
    let point = |place: u64| FlowPoint {
        t_s: place as f64 / 10.0,
        cwnd_bytes: if place == points / 3 {
            1_000_000_000
        } else {
            10_000 + place % 97
        },
        state: "slow start".to_owned(),
        ..FlowPoint::default()
    };
    Series {
        flows: vec![FlowSeries {
            group: group.to_owned(),
            member: 0,
            points: (0..points).map(point).collect(),
        }],
        links: Vec::new(),
    }
}

/// What plotly.js is given, figure by figure.
pub(crate) fn plots(page: &str) -> Vec<Value> {
    page.split("<script type=\"application/json\"")
        .skip(1)
        .map(|part| {
            let from = part.find('>').unwrap() + 1;
            let to = part.find("</script>").unwrap();
            serde_json::from_str(&part[from..to]).unwrap()
        })
        .collect()
}

/// The traces of a name.
pub(crate) fn traces_named(plot: &Value, name: &str) -> Vec<Value> {
    let traces = plot["data"].as_array().unwrap().iter();
    traces
        .filter(|trace| trace["name"] == name)
        .cloned()
        .collect()
}
