//! Rows of features with labels, from which the models of `swiftwater-select` are trained (`training/`).
//!
//! ```sh
//! cargo run --release -p swiftwater-lab --example web_training_rows -- ROWS.csv [SCENARIO [EVERY]]
//! ```
//!
//! SCENARIO, by default `wisetrans/grid`, sweeps conditions and, as its last axis, the strategies `h2` and `h3`. The label
//! of a cell is the protocol with the lesser mean completion time over the scenario's repeats. One request in
//! EVERY (default 8) gives a row. The same arguments give the same file.

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};

use swiftwater_lab::scenario::{Library, LoadOptions};
use swiftwater_lab::world::web_features;
use swiftwater_select::Feature;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file is to be written?")?;
    let name = arguments.next();
    let name = name.as_deref().unwrap_or("wisetrans/grid");
    let every: usize = arguments.next().map_or(Ok(8), |text| text.parse())?;
    let library = Library::embedded();
    let experiment = library.load(name, &LoadOptions::default())?;
    let axes: Vec<&str> = experiment
        .axes
        .iter()
        .map(|axis| axis.name.as_str())
        .collect();
    let [conditions @ .., "strategy"] = axes.as_slice() else {
        return Err("the last axis of the scenario is to be `strategy`".into());
    };
    let mut out = BufWriter::new(File::create(path)?);
    let features = Feature::ALL.map(Feature::name).join(",");
    let conditions = conditions.join(",");
    writeln!(
        out,
        "cell,{conditions},seed,in_use,tcp_ms,quic_ms,{features},bandwidth_mbps"
    )?;
    for (cell, cases) in experiment.cases.chunks(2).enumerate() {
        let mut rows = Vec::new();
        let mut sums = [0.0; 2];
        for (case, sum) in cases.iter().zip(&mut sums) {
            for repeat in 0..u64::from(experiment.repeats) {
                let seed = experiment.seed + repeat;
                let (own, mean) = web_features(&case.setup, seed)?;
                *sum += mean / f64::from(experiment.repeats);
                let strategy = &case.labels[case.labels.len() - 1];
                let own = own.into_iter().step_by(every);
                rows.extend(own.map(|row| (seed, strategy.clone(), row)));
            }
        }
        let labels = &cases[0].labels[..cases[0].labels.len() - 1];
        for (seed, strategy, row) in rows {
            let values = row.features.values().map(|value| value.to_string());
            writeln!(
                out,
                "{cell},{},{seed},{strategy},{},{},{},{}",
                labels.join(","),
                sums[0],
                sums[1],
                values.join(","),
                row.bandwidth_mbps
            )?;
        }
    }
    Ok(out.flush()?)
}
