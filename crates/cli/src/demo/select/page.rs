//! The HTML page: every request over time, with its protocol and the reason for it. One self-contained file.

use std::collections::BTreeMap;

use swiftwater_http::client::Protocol;
use swiftwater_lab::report::{Chart, ChartBand, Curve, Panel, Shape, Sheet};

use super::course::Course;
use super::plan::Plan;
use super::record::{End, Record};
use super::row::SelectRow;
use super::summary::{MEANING, time};
use crate::table;

/// Height of a panel, pixels.
const HEIGHT: u32 = 120;

/// The page. `records` are in the order of `rows`.
pub fn render(plan: &Plan, rows: &[SelectRow], records: &[Vec<Record>]) -> String {
    let mut sheet = Sheet::new("TCP or QUIC, request by request");
    sheet.paragraph(&format!(
        "Somebody browses for {}: at each click some objects are requested at once. Every course and strategy had an \
         emulated network, a server and a client of its own, with the same contents, times and seeds. Each dot is a \
         request; its tooltip says what the response came over, and why.",
        table::time(plan.session)
    ));
    for &course in &plan.courses {
        let of_course = rows
            .iter()
            .zip(records)
            .filter(|(row, _)| row.course == course);
        let of_course: Vec<_> = of_course.collect();
        chart(&mut sheet, plan, course, &of_course);
        decisions(&mut sheet, &of_course);
    }
    sheet.heading("All numbers");
    results(&mut sheet, rows);
    sheet.paragraph(MEANING);
    sheet.facts([
        ("Seed", plan.seed.to_string()),
        ("Congestion controllers", controllers(rows)),
        ("Program version", env!("CARGO_PKG_VERSION").to_owned()),
    ]);
    sheet.render()
}

fn controllers(rows: &[SelectRow]) -> String {
    let quic = rows.first().map_or("", |row| &row.controllers.quic);
    let tcp = rows.iter().find_map(|row| row.controllers.tcp.as_deref());
    format!("{quic} over QUIC, {} over TCP", tcp.unwrap_or("unknown"))
}

fn chart(sheet: &mut Sheet, plan: &Plan, course: Course, rows: &[(&SelectRow, &Vec<Record>)]) {
    let incident = course.incident(plan.session);
    let panels = rows.iter().map(|(row, records)| Panel {
        title: format!(
            "{}: mean {}, 99 % {}, {} failed",
            row.strategy,
            time(row.mean_ms),
            time(row.p99_ms),
            row.failed
        ),
        y: "ms".to_owned(),
        y_end: None,
        height: HEIGHT,
        curves: dots(records),
        bands: (incident.into_iter())
            .map(|(from, to)| ChartBand {
                from,
                to,
                note: course.to_string(),
            })
            .collect(),
    });
    let chart = Chart {
        x: "seconds".to_owned(),
        panels: panels.collect(),
    };
    let caption = "Time from the sending of each request to the last byte of its response, by the time of its sending; \
                   requests that failed: until they were given up.";
    sheet.chart(course.title(), &chart, caption);
}

/// The requests by what they came over, and why.
fn dots(records: &[Record]) -> Vec<Curve> {
    let mut groups: BTreeMap<(usize, String), Vec<(f64, f64)>> = BTreeMap::new();
    for record in records {
        let (colour, name, took) = match &record.end {
            Some(End::Complete { took, over, .. }) => {
                let colour = match (over.protocol, over.is_probe) {
                    (Protocol::Http3, false) => 1,
                    (Protocol::Http3, true) => 2,
                    (_, false) => 0,
                    (_, true) => 4,
                };
                (colour, over.describe(), took)
            }
            Some(End::Failed { took, .. }) => (3, "failed".to_owned(), took),
            None => continue,
        };
        let point = (record.at.as_secs_f64(), took.as_secs_f64() * 1e3);
        groups.entry((colour, name)).or_default().push(point);
    }
    let curves = groups.into_iter().map(|((colour, name), points)| Curve {
        name,
        colour,
        shape: Shape::Points,
        points,
    });
    curves.collect()
}

/// Requests in a row over the same protocol for the same reason.
fn decisions(sheet: &mut Sheet, rows: &[(&SelectRow, &Vec<Record>)]) {
    let mut lines: Vec<(String, String, f64, f64, usize)> = Vec::new();
    for (row, records) in rows {
        let strategy = row.strategy.to_string();
        for record in *records {
            let what = match &record.end {
                Some(End::Complete { over, .. }) => over.describe(),
                Some(End::Failed { why, .. }) => format!("failed: {why}"),
                None => continue,
            };
            let at = record.at.as_secs_f64();
            match lines.last_mut() {
                Some((of, last, _, to, count)) if *of == strategy && *last == what => {
                    (*to, *count) = (at, *count + 1);
                }
                _ => lines.push((strategy.clone(), what, at, at, 1)),
            }
        }
    }
    let titles = ["", "protocol and reason", "from", "to", "requests"];
    let cells = lines.into_iter().map(|(strategy, what, from, to, count)| {
        vec![
            strategy,
            what,
            format!("{from:.1} s"),
            format!("{to:.1} s"),
            count.to_string(),
        ]
    });
    sheet.table(titles, cells);
}

fn results(sheet: &mut Sheet, rows: &[SelectRow]) {
    let titles = [
        "", "strategy", "requests", "failed", "repeated", "mean", "50 %", "99 %", "QUIC", "probes",
        "switches",
    ];
    let rows = rows.iter().map(|row| {
        vec![
            row.course.to_string(),
            row.strategy.to_string(),
            row.requests.to_string(),
            row.failed.to_string(),
            row.repeated.to_string(),
            time(row.mean_ms),
            time(row.p50_ms),
            time(row.p99_ms),
            row.quic_share.map_or("-".to_owned(), table::percent),
            table::percent(row.probes_share),
            row.switches.to_string(),
        ]
    });
    sheet.table(titles, rows);
}
