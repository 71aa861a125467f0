//! The HTML page: completion times of all systems. One self-contained file.

use swiftwater_lab::report::{Chart, Curve, Headline, Panel, Shape, Sheet};

use super::flows::Measured;
use super::plan::Plan;
use super::row::{MEANING, TunnelRow, time};
use crate::table;

/// Height of a panel, pixels.
const HEIGHT: u32 = 180;

/// The page; `measured` is in the order of `rows`.
pub(super) fn render(plan: &Plan, rows: &[TunnelRow], measured: &[Measured]) -> String {
    let mut sheet = Sheet::new("Through a tunnel");
    sheet.paragraph(&format!(
        "Objects from a server, one after the other, to a client with a {}. Each system had a connection and emulated links \
         of its own, with the same seed; all ran at the same time, over real UDP sockets.",
        plan.network
    ));
    for row in rows {
        if let Some(error) = &row.error {
            sheet.banner(&format!("{}: {error}", row.system));
        }
    }
    let smallest = plan.sizes.first().copied().unwrap_or_default();
    let headlines = plan
        .systems
        .iter()
        .enumerate()
        .filter_map(|(colour, system)| {
            let mut found = rows.iter();
            let row = found.find(|row| row.system == *system && row.flow_bytes == smallest)?;
            Some((colour, system.to_string(), row))
        });
    let headlines: Vec<_> = headlines.collect();
    sheet.headlines(headlines.iter().map(|(colour, name, row)| Headline {
        name,
        colour: *colour,
        values: vec![
            (time(row.fct_mean_ms), "mean of the smallest objects"),
            (time(row.fct_p99_ms), "99 %"),
        ],
    }));
    for &size in &plan.sizes {
        let curves = rows
            .iter()
            .zip(measured)
            .filter(|(row, _)| row.flow_bytes == size);
        let curves = curves.filter_map(|(row, measured)| {
            Some(Curve {
                name: row.system.to_string(),
                colour: plan
                    .systems
                    .iter()
                    .position(|system| *system == row.system)?,
                shape: Shape::Step,
                points: distribution(measured),
            })
        });
        let panel = Panel {
            title: String::new(),
            y: "share of objects, %".to_owned(),
            y_end: Some(100.0),
            height: HEIGHT,
            curves: curves.collect(),
            bands: Vec::new(),
        };
        let chart = Chart {
            x: "milliseconds".to_owned(),
            panels: vec![panel],
        };
        let caption = "Share of the objects that were complete after so long.";
        sheet.chart(
            &format!("Objects of {}", table::bytes(size)),
            &chart,
            caption,
        );
    }
    sheet.heading("All numbers");
    let titles = [
        "",
        "system",
        "objects",
        "mean",
        "50 %",
        "99 %",
        "repeated",
        "queue, 95 %",
    ];
    sheet.table(
        titles,
        rows.iter().map(|row| {
            vec![
                table::bytes(row.flow_bytes),
                row.system.to_string(),
                row.flows.to_string(),
                time(row.fct_mean_ms),
                time(row.fct_p50_ms),
                time(row.fct_p99_ms),
                row.duplicate_share
                    .map_or_else(|| "-".to_owned(), table::percent),
                time(row.queue_p95_ms),
            ]
        }),
    );
    sheet.paragraph(MEANING);
    sheet.facts([
        ("Congestion controller", plan.controller().to_owned()),
        ("Seed", plan.seed.to_string()),
        ("Program version", env!("CARGO_PKG_VERSION").to_owned()),
    ]);
    sheet.render()
}

/// Milliseconds, and the share of objects that took no longer.
fn distribution(measured: &Measured) -> Vec<(f64, f64)> {
    let mut times = measured.completion.clone();
    times.sort_unstable();
    let count = times.len().max(1) as f64;
    let points = times.iter().enumerate();
    let points =
        points.map(|(at, time)| (time.as_secs_f64() * 1e3, 100.0 * (at + 1) as f64 / count));
    std::iter::once((0.0, 0.0)).chain(points).collect()
}
