//! Which delay threshold of Cubic+ fits its paper's numbers for deep buffers best.
//!
//! `cubic-plus/e7-threshold-fit` and `cubic-plus/e7-threshold-judge` are the same runs with different
//! seeds. The threshold is chosen on the first: the one whose mean absolute distance from the four
//! published changes against CUBIC is least. What it is worth is shown by the second.
//!
//! ```sh
//! swiftwater lab run cubic-plus/e7-threshold-fit cubic-plus/e7-threshold-judge
//! cargo run -p swiftwater-lab --example fit_threshold \
//!     lab-results/cubic-plus/e7-threshold-fit lab-results/cubic-plus/e7-threshold-judge
//! ```

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

/// A published change against CUBIC: label of the axis `setting`, measure, size.
const PUBLISHED: [(&str, &str, f64); 4] = [
    ("bbr1", "bottleneck.queue_mean_bytes", -0.23),
    ("bbr2", "bottleneck.queue_mean_bytes", -0.33),
    ("mix", "transfers.fct_mean_ms", -0.0941),
    ("mix", "transfers.fct_p99_ms", -0.0098),
];

/// Label of the axis `k_high` that is CUBIC itself.
const CUBIC: &str = "cubic";

/// Means over the repeats of the four measures, by base and threshold.
type Means = BTreeMap<(String, String), [f64; 4]>;

/// Thresholds with their changes against CUBIC.
type Changes = Vec<(String, [f64; 4])>;

fn main() -> Result<(), Box<dyn Error>> {
    let folders: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    let [fit, judge] = folders.as_slice() else {
        return Err("two folders of results are needed: fit and judge".into());
    };
    let (fit, judge) = (changes(&means(fit)?), changes(&means(judge)?));
    for (base, fitted) in &fit {
        println!("CUBIC beneath: {base}\n");
        print_table("fitted on these seeds", fitted);
        let Some((chosen, _)) = best(fitted) else {
            continue;
        };
        println!("chosen: {chosen} base round-trip times\n");
        if let Some(judged) = judge.get(base) {
            print_table("judged on these seeds", judged);
            match rank(judged, chosen) {
                Some(rank) => println!("{chosen} has rank {rank} of {} here\n", judged.len()),
                None => println!("runs are missing here\n"),
            }
        }
    }
    Ok(())
}

/// The means of the measures in the rows of `folder`, over the seeds with runs of every threshold; a
/// measure without rows is not a number.
fn means(folder: &Path) -> Result<Means, Box<dyn Error>> {
    let mut reader = csv::Reader::from_path(folder.join("rows.csv"))?;
    let headers = reader.headers()?.clone();
    let column = |name: &str| {
        let found = headers.iter().position(|header| header == name);
        found.ok_or_else(|| format!("no column `{name}` in {}", folder.display()))
    };
    let (setting, base, k_high) = (column("setting")?, column("base")?, column("k_high")?);
    let seed = column("seed")?;
    let rows: Vec<csv::StringRecord> = reader.records().collect::<Result<_, _>>()?;
    // Only seeds that every threshold was run with: changes are between runs of the same seeds.
    let group = |row: &csv::StringRecord| [base, setting, seed].map(|at| row[at].to_owned());
    let mut sizes: BTreeMap<[String; 3], usize> = BTreeMap::new();
    for row in &rows {
        *sizes.entry(group(row)).or_default() += 1;
    }
    let complete = sizes.values().copied().max().unwrap_or_default();
    let mut sums: BTreeMap<(String, String), [(f64, f64); 4]> = BTreeMap::new();
    for row in rows.iter().filter(|row| sizes[&group(row)] == complete) {
        let sums = sums
            .entry((row[base].to_owned(), row[k_high].to_owned()))
            .or_default();
        for (sum, (of, measure, _)) in sums.iter_mut().zip(PUBLISHED) {
            if &row[setting] == of {
                sum.0 += row[column(measure)?].parse::<f64>()?;
                sum.1 += 1.0;
            }
        }
    }
    let mean = |sums: [(f64, f64); 4]| sums.map(|(sum, count)| sum / count);
    Ok(sums
        .into_iter()
        .map(|(key, sums)| (key, mean(sums)))
        .collect())
}

/// The changes against CUBIC by threshold, for each base.
fn changes(means: &Means) -> BTreeMap<String, Changes> {
    let mut changes: BTreeMap<String, Changes> = BTreeMap::new();
    for ((base, k_high), with) in means {
        let Some(without) = means.get(&(base.clone(), CUBIC.to_owned())) else {
            continue;
        };
        if k_high != CUBIC {
            let change = std::array::from_fn(|i| with[i] / without[i] - 1.0);
            changes
                .entry(base.clone())
                .or_default()
                .push((k_high.clone(), change));
        }
    }
    for rows in changes.values_mut() {
        rows.sort_by(|a, b| number(&a.0).total_cmp(&number(&b.0)));
    }
    changes
}

fn number(label: &str) -> f64 {
    label.parse().unwrap_or(f64::INFINITY)
}

/// Mean absolute distance from the published changes.
fn distance(changes: &[f64; 4]) -> f64 {
    let distances = changes.iter().zip(PUBLISHED);
    distances
        .map(|(change, (_, _, published))| (change - published).abs() / 4.0)
        .sum()
}

/// The threshold with the least distance, of those whose runs are all there.
fn best(rows: &[(String, [f64; 4])]) -> Option<&(String, [f64; 4])> {
    rows.iter()
        .filter(|row| distance(&row.1).is_finite())
        .min_by(|a, b| distance(&a.1).total_cmp(&distance(&b.1)))
}

/// How many thresholds are no farther than `chosen`, itself included; `None` if runs are missing.
fn rank(rows: &[(String, [f64; 4])], chosen: &str) -> Option<usize> {
    if rows.iter().any(|row| !distance(&row.1).is_finite()) {
        return None;
    }
    let (_, own) = rows.iter().find(|(k_high, _)| k_high == chosen)?;
    let no_farther = |row: &&(String, [f64; 4])| distance(&row.1) <= distance(own);
    Some(rows.iter().filter(no_farther).count())
}

fn print_table(title: &str, rows: &[(String, [f64; 4])]) {
    println!("{title}, change against CUBIC in %:");
    println!("k_high     queue, BBR  queue, BBRv2    mean FCT     p99 FCT    distance");
    let line = |label: &str, values: &[f64; 4], distance: &str| {
        print!("{label:<9}");
        for value in values {
            print!("{:>12.1}", value * 100.0);
        }
        println!("{distance:>12}");
    };
    line(
        "published",
        &PUBLISHED.map(|(_, _, published)| published),
        "",
    );
    for (k_high, changes) in rows {
        let distance = format!("{:.1}", distance(changes) * 100.0);
        line(k_high, changes, &distance);
    }
    println!();
}
