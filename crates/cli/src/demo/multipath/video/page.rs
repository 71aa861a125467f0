//! The part of the page about the video story: buffer, bitrate, share of each path and copies over time.

use swiftwater_lab::report::{Chart, ChartBand, Curve, Panel, Shape, Sheet};

use super::row::{Sample, Watched};
use super::summary::MEANING;
use crate::demo::multipath::networks::NetworkName;
use crate::demo::multipath::plan::Plan;
use crate::demo::multipath::summary::milliseconds;
use crate::table;

/// Height of a panel, pixels.
const HEIGHT: u32 = 90;

/// Adds the section.
pub fn add(sheet: &mut Sheet, plan: &Plan, watched: &[Watched]) {
    sheet.heading("Video on demand");
    sheet.paragraph(&format!(
        "Viewers with Wi-Fi and LTE, whose rates vary (synthetic traces, 10 and 6 Mbit/s in the mean, RTT 20 and 50 ms), watch segments of \
         2 s at 1 to 16 Mbit/s over HTTP/3; the bitrates are chosen by model predictive control. {} fails after {} and is back after {}.",
        plan.incident.network,
        table::time(plan.incident.at),
        table::time(plan.incident.until),
    ));
    let rows: Vec<_> = watched.iter().map(|watched| &watched.row).collect();
    let titles = [
        "",
        "score",
        "Mbit/s",
        "stalled",
        "first picture",
        "p99 of segments",
        "copies",
    ];
    let cells = rows.iter().map(|row| {
        vec![
            row.strategy.title().to_owned(),
            format!("{:.1}", row.qoe),
            format!("{:.2}", row.bitrate_mbps),
            milliseconds(Some(row.stall_ms)),
            milliseconds(row.first_frame_ms),
            milliseconds(row.chunk_p99_ms),
            format!("{:.2} %", 100.0 * row.copies_share),
        ]
    });
    sheet.table(titles, cells);
    sheet.paragraph(MEANING);
    let incident = &plan.incident;
    let gone = || ChartBand {
        from: incident.at.as_secs_f64(),
        to: incident.until.as_secs_f64(),
        note: format!("{} fails", incident.network),
    };
    let chart = |y: &str, curves: fn(&Watched) -> Vec<Curve>| Chart {
        x: "seconds".to_owned(),
        panels: (watched.iter())
            .map(|watched| Panel {
                title: watched.row.strategy.title().to_owned(),
                y: y.to_owned(),
                y_end: None,
                height: HEIGHT,
                curves: curves(watched),
                bands: vec![gone()],
            })
            .collect(),
    };
    let buffer = chart("seconds", |watched| {
        vec![curve("buffer", 0, Shape::Line, &watched.buffer)]
    });
    sheet.chart("Buffer", &buffer, "Play time in the player's buffer.");
    let bitrate = chart("Mbit/s", |watched| {
        vec![curve("bitrate", 1, Shape::Step, &watched.bitrates)]
    });
    sheet.chart(
        "Bitrate",
        &bitrate,
        "Bitrate of the segments, from their requests on.",
    );
    let shares = chart("Mbit/s", rates);
    let caption = "Rate at which the server sent on each network, and of copies on both, in each half second.";
    sheet.chart("Paths and copies", &shares, caption);
}

fn curve(name: &str, colour: usize, shape: Shape, points: &[(f64, f64)]) -> Curve {
    Curve {
        name: name.to_owned(),
        colour,
        shape,
        points: points.to_vec(),
    }
}

/// Rates between samples.
fn rates(watched: &Watched) -> Vec<Curve> {
    let rate = |of: &dyn Fn(&Sample) -> u64| {
        let pairs = watched.samples.windows(2);
        let points = pairs.filter_map(|pair| {
            let time = pair[1].at - pair[0].at;
            let bytes = of(&pair[1]).saturating_sub(of(&pair[0]));
            (time > 0.0).then(|| (pair[0].at, bytes as f64 * 8e-6 / time))
        });
        points.collect::<Vec<_>>()
    };
    let mut curves: Vec<_> = NetworkName::ALL
        .into_iter()
        .enumerate()
        .map(|(place, network)| {
            let points = rate(&|sample: &Sample| sample.sent[place]);
            curve(&network.to_string(), place, Shape::Step, &points)
        })
        .collect();
    let copies = rate(&|sample: &Sample| sample.copies);
    curves.push(curve("copies", 2, Shape::Step, &copies));
    curves
}
