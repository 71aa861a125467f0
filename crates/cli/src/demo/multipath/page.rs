//! The HTML page: the rate over each network, and the gap that the application saw. One self-contained file.

use std::time::Instant;

use swiftwater_lab::report::{Chart, ChartBand, Curve, Headline, Panel, Shape, Sheet};

use super::Results;
use super::networks::NetworkName;
use super::plan::{Job, Plan};
use super::row::MultipathRow;
use super::summary::{MEANING, milliseconds};
use crate::table;

/// Interval over which rates are averaged, seconds.
const BIN: f64 = 0.1;

/// Height of a panel, pixels.
const HEIGHT: u32 = 130;

/// The rates at which data arrived at the client over each network.
#[derive(Clone, Debug, Default)]
pub struct Arrivals {
    /// For each network: seconds, Mbit/s.
    rates: [Vec<(f64, f64)>; 2],
}

impl Arrivals {
    /// Of deliveries: when, bytes; times count from `start`.
    pub fn new(deliveries: [Vec<(Instant, usize)>; 2], start: Instant) -> Self {
        let rates = deliveries.map(|deliveries| {
            let mut bins: Vec<f64> = Vec::new();
            for (at, bytes) in deliveries {
                let seconds = at.saturating_duration_since(start).as_secs_f64();
                // A demo lasts seconds.
                let bin = (seconds / BIN) as usize;
                if bins.len() <= bin {
                    bins.resize(bin + 1, 0.0);
                }
                bins[bin] += bytes as f64 * 8e-6 / BIN;
            }
            // Zero after the last arrival.
            bins.push(0.0);
            let points = bins.into_iter().enumerate();
            points.map(|(bin, rate)| (bin as f64 * BIN, rate)).collect()
        });
        Self { rates }
    }
}

/// The page.
pub fn render(plan: &Plan, results: &Results<'_>) -> String {
    let mut sheet = Sheet::new("Two networks, one of which fails");
    if !results.rows.is_empty() {
        failover(&mut sheet, plan, results.rows, results.arrivals);
    }
    if !results.watched.is_empty() {
        super::video::page::add(&mut sheet, plan, results.watched);
    }
    sheet.facts([
        ("Scheduler", plan.scheduler.clone()),
        ("Seed", plan.seed.to_string()),
        ("Program version", env!("CARGO_PKG_VERSION").to_owned()),
    ]);
    sheet.render()
}

/// Download and live video.
fn failover(sheet: &mut Sheet, plan: &Plan, rows: &[MultipathRow], arrivals: &[Arrivals]) {
    let incident = &plan.incident;
    sheet.paragraph(&format!(
        "A client with Wi-Fi (20 Mbit/s, RTT 20 ms) and LTE (12 Mbit/s, RTT 50 ms) gets a file and live video. {} fails \
         after {} and is as before after {}. Each strategy and each job had a connection and emulated networks of its own; \
         all ran at the same time.",
        incident.network,
        table::time(incident.at),
        table::time(incident.until),
    ));
    for row in rows {
        if let Some(failure) = &row.failure {
            sheet.banner(&format!("{}: {failure}", row.name()));
        }
    }
    let names: Vec<String> = rows.iter().map(MultipathRow::name).collect();
    let headlines = rows.iter().zip(&names).enumerate();
    sheet.headlines(headlines.map(|(colour, (row, name))| Headline {
        name,
        colour,
        values: vec![
            (milliseconds(row.longest_gap_ms), "longest gap"),
            (milliseconds(row.completion_ms), "until complete"),
        ],
    }));
    for (job, _) in &plan.jobs {
        chart(sheet, plan, *job, rows, arrivals);
    }
    sheet.heading("All numbers");
    results(sheet, rows);
    sheet.paragraph(MEANING);
}

/// The rates of all strategies at a job.
fn chart(sheet: &mut Sheet, plan: &Plan, job: Job, rows: &[MultipathRow], arrivals: &[Arrivals]) {
    let of_job = rows.iter().zip(arrivals).filter(|(row, _)| row.job == job);
    let panels = of_job.map(|(row, arrivals)| {
        let curves = NetworkName::ALL.into_iter().zip(&arrivals.rates);
        let curves = curves.enumerate().map(|(colour, (network, rate))| Curve {
            name: network.to_string(),
            colour,
            shape: Shape::Step,
            points: rate.clone(),
        });
        let bands = row.gap.map(|(from, to)| ChartBand {
            from,
            to,
            note: format!("nothing new for {}", milliseconds(Some(1e3 * (to - from)))),
        });
        let gap = milliseconds(row.longest_gap_ms);
        Panel {
            title: format!("{}: longest gap {gap}", row.strategy.title()),
            y: "Mbit/s".to_owned(),
            y_end: None,
            height: HEIGHT,
            curves: curves.collect(),
            bands: bands.into_iter().collect(),
        }
    });
    let chart = Chart {
        x: "seconds".to_owned(),
        panels: panels.collect(),
    };
    let incident = &plan.incident;
    let caption = format!(
        "Rate at which datagrams arrived at the client over each network. The band is the longest gap that the \
         application saw. {} failed from {} to {}.",
        incident.network,
        table::time(incident.at),
        table::time(incident.until),
    );
    sheet.chart(job.title(), &chart, &caption);
}

fn results(sheet: &mut Sheet, rows: &[MultipathRow]) {
    let titles = [
        "",
        "received",
        "complete after",
        "longest gap",
        "freezes",
        "sent per path",
        "copies per path",
    ];
    let rows = rows.iter().map(|row| {
        let each = |cell: fn(&super::row::UsedPath) -> u64| {
            let cells: Vec<_> = row.paths.iter().map(cell).map(table::bytes).collect();
            cells.join(" + ")
        };
        vec![
            row.name(),
            table::bytes(row.bytes),
            milliseconds(row.completion_ms),
            milliseconds(row.longest_gap_ms),
            row.freezes
                .map_or("-".to_owned(), |count| count.to_string()),
            each(|path| path.bytes_sent),
            each(|path| path.copies),
        ]
    });
    sheet.table(titles, rows);
}
