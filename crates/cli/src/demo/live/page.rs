//! The HTML page of a showing: results, charts, table, parameters. One self-contained file.

use swiftwater::link::Buffer;
use swiftwater::units::Instant;
use swiftwater_lab::report::{Chart, ChartBand, Curve, Headline, Panel, Shape, Sheet};

use super::Shown;
use super::plan::Plan;
use super::recoveries::Recovered;
use super::row::{LiveRow, milliseconds};
use super::summary::{Group, HEADLINES, LINES, MEANING, conclusion, described, ms, title};
use super::time_series::{Sample, loss};
use crate::table;

/// Points of a distribution at most.
const MAX_POINTS: usize = 1000;

/// Height of a single panel, and of one among several, pixels.
const ALONE: u32 = 320;
const PANEL: u32 = 150;

/// Label of the time axis.
const TIME: &str = "seconds since the viewer's request";

/// Data of a variant for plots.
#[derive(Clone, Debug)]
pub struct Course {
    /// Samples over time.
    pub samples: Vec<Sample>,
    /// Recovery latencies, the shortest first.
    pub recoveries: Vec<Recovered>,
    /// For each frame that arrived: seconds from the viewer's request to its arrival, and milliseconds
    /// from its capture to its arrival.
    pub frames: Vec<(f64, f64)>,
    /// Freezes: seconds since the viewer's request, from and until.
    pub freezes: Vec<(f64, f64)>,
}

impl Course {
    pub(super) fn of(shown: &Shown, plan: &Plan) -> Self {
        let viewer = shown.variant.viewer();
        let asked = viewer.asked();
        let seconds = |at: Instant| at.saturating_since(asked).as_secs_f64();
        let begun = seconds(viewer.begun().unwrap_or(asked));
        // Frames arrive in the order in which they were sent.
        let frames = plan.schedule.frames().iter().zip(viewer.delays());
        let frames = frames.map(|(frame, delay)| {
            let captured = begun + frame.at.as_secs_f64();
            (captured + delay.as_secs_f64(), milliseconds(*delay))
        });
        let freezes = viewer.freezes_by(shown.variant.now());
        let freezes = freezes.map(|freeze| (seconds(freeze.since), seconds(freeze.until)));
        Self {
            samples: shown.samples.clone(),
            recoveries: shown.variant.recoveries.sorted(),
            frames: frames.collect(),
            freezes: freezes.collect(),
        }
    }
}

/// The page; `rows` and `courses` are those of the plan's recoveries.
pub fn render(plan: &Plan, rows: &[LiveRow], courses: &[Course]) -> String {
    let mut sheet = Sheet::new("Live video over a lossy network");
    let looks = looks(rows);
    sheet.paragraph(&format!(
        "The same {} s of live video ({}, {}) were sent to {} viewers at the same time, each over a network \
         of its own ({}). Only the repair of losses differed.",
        plan.length.as_secs(),
        plan.schedule.source(),
        table::rate(plan.schedule.mean_rate().as_bps() as f64),
        rows.len(),
        plan.network,
    ));
    for row in rows {
        if let Some(error) = &row.error {
            sheet.banner(&format!("{}: {error}", row.recovery));
        }
    }
    sheet.headlines(rows.iter().zip(&looks).map(|(row, look)| {
        Headline {
            name: &look.name,
            colour: look.colour,
            values: HEADLINES
                .iter()
                .map(|line| ((line.cell)(row), line.name))
                .collect(),
        }
    }));
    playback(&mut sheet, &looks, courses);
    if let Some((plain, others)) = rows.split_first() {
        for other in others {
            sheet.paragraph(&conclusion(plain, other).join(" "));
        }
    }
    sheet.heading("All numbers");
    results(&mut sheet, rows, &looks);
    sheet.heading("More plots");
    frame_delay(&mut sheet, &looks, courses);
    buffer(&mut sheet, &looks, courses);
    recovery_latency(&mut sheet, &looks, courses);
    redundancy(&mut sheet, &looks, courses);
    sheet.heading("What was run");
    facts(&mut sheet, plan);
    sheet.render()
}

/// Name and colour of a variant in all plots.
struct Look {
    name: String,
    colour: usize,
}

/// Styles of all variants; a repeated name gets a number.
fn looks(rows: &[LiveRow]) -> Vec<Look> {
    let look = |(colour, row): (usize, &LiveRow)| {
        let before = rows[..colour].iter();
        let same = before
            .filter(|other| other.recovery == row.recovery)
            .count();
        let name = match same {
            0 => title(&row.recovery),
            same => format!("{} ({})", title(&row.recovery), same + 1),
        };
        Look { name, colour }
    };
    rows.iter().enumerate().map(look).collect()
}

fn results(sheet: &mut Sheet, rows: &[LiveRow], looks: &[Look]) {
    for group in Group::ALL {
        let titles = std::iter::once(group.title()).chain(looks.iter().map(|look| &*look.name));
        let lines = LINES.iter().filter(|line| line.group == group);
        let lines = lines.map(|line| {
            std::iter::once(line.name.to_owned())
                .chain(rows.iter().map(line.cell))
                .collect()
        });
        sheet.table(titles, lines);
    }
    sheet.paragraph(MEANING);
    sheet.paragraph("In means and percentiles of recovery latency every byte counts the same.");
}

/// The delay of each frame over time and the freezes, one panel per variant, with a common scale.
fn playback(sheet: &mut Sheet, looks: &[Look], courses: &[Course]) {
    let panels = looks.iter().zip(courses).map(|(look, course)| Panel {
        title: look.name.clone(),
        y: "frame delay, ms".to_owned(),
        bands: bands(course),
        ..panel(vec![curve(look, Shape::Line, course.frames.clone())])
    });
    sheet.chart(
        "What the viewers saw",
        &over_time(same_scale(panels.collect())),
        "Line: how long each frame took from capture to arrival. Red: the picture was frozen, since the \
         frame to show next had not arrived.",
    );
}

fn buffer(sheet: &mut Sheet, looks: &[Look], courses: &[Course]) {
    let panels = looks.iter().zip(courses).map(|(look, course)| {
        let points = course.samples.iter();
        let points = points.map(|sample| (sample.at, sample.buffer_ms));
        Panel {
            title: look.name.clone(),
            y: "buffer, ms".to_owned(),
            bands: bands(course),
            ..panel(vec![curve(look, Shape::Line, points.collect())])
        }
    });
    sheet.chart(
        "Player's buffer",
        &over_time(same_scale(panels.collect())),
        "Play time in each player's buffer. Red: freezes.",
    );
}

fn recovery_latency(sheet: &mut Sheet, looks: &[Look], courses: &[Course]) {
    let curves = looks.iter().zip(courses).map(|(look, course)| {
        let total: f64 = course
            .recoveries
            .iter()
            .map(|one| f64::from(one.bytes))
            .sum();
        let mut below = 0.0;
        let points = course.recoveries.iter().map(|one| {
            below += f64::from(one.bytes);
            (milliseconds(one.latency), 100.0 * below / total)
        });
        distribution(look, points.collect())
    });
    sheet.chart(
        "Recovery latency",
        &Chart {
            x: "ms from the retransmission to the sending of the copy that arrived".to_owned(),
            panels: vec![Panel {
                y: "% of bytes".to_owned(),
                height: ALONE,
                ..panel(curves.collect())
            }],
        },
        "Of data whose retransmission was lost as well: how long it took from there to the sending of the \
         copy that arrived. Further left is better.",
    );
}

fn frame_delay(sheet: &mut Sheet, looks: &[Look], courses: &[Course]) {
    let curves = looks.iter().zip(courses).map(|(look, course)| {
        let mut delays: Vec<f64> = course.frames.iter().map(|frame| frame.1).collect();
        delays.sort_unstable_by(f64::total_cmp);
        let total = delays.len() as f64;
        let points = delays.into_iter().enumerate();
        let points = points.map(|(n, delay)| (delay, 100.0 * (n + 1) as f64 / total));
        distribution(look, points.collect())
    });
    sheet.chart(
        "Frame delay",
        &Chart {
            x: "ms from capture to arrival".to_owned(),
            panels: vec![Panel {
                y: "% of frames".to_owned(),
                height: ALONE,
                ..panel(curves.collect())
            }],
        },
        "Share of the frames that had arrived, with all before them, within a time. Further left is better.",
    );
}

fn redundancy(sheet: &mut Sheet, looks: &[Look], courses: &[Course]) {
    let both = || looks.iter().zip(courses);
    let levels = both().map(|(look, course)| {
        let points = course.samples.iter();
        let points = points.map(|sample| (sample.at, f64::from(sample.level)));
        curve(look, Shape::Step, points.collect())
    });
    let losses = both().map(|(look, course)| curve(look, Shape::Line, loss(&course.samples)));
    let panels = vec![
        Panel {
            title: "Copies per loss that the policy granted (K)".to_owned(),
            y: "K".to_owned(),
            ..panel(levels.collect())
        },
        Panel {
            title: "Packets that the link lost, over the two seconds before".to_owned(),
            y: "%".to_owned(),
            ..panel(losses.collect())
        },
    ];
    sheet.chart(
        "Copies and loss",
        &over_time(panels),
        "The number of copies follows the loss that the sender measures.",
    );
}

fn facts(sheet: &mut Sheet, plan: &Plan) {
    for recovery in &plan.recoveries {
        sheet.paragraph(&format!("{recovery}: {}.", described(recovery)));
    }
    let profile = plan.tuning.profile.unwrap_or_default();
    let controller = plan.tuning.cc.clone();
    let controller = controller.unwrap_or_else(|| {
        let own = profile.transport();
        format!("{} (that of the profile)", own.controller.name())
    });
    sheet.facts([
        ("Recoveries", plan.recoveries.join(", ")),
        ("Video", plan.schedule.source().to_owned()),
        ("Length", format!("{} s", plan.length.as_secs())),
        ("Network", plan.network.clone()),
        ("Queue towards the viewer", queue(&plan.links.down.buffer)),
        ("Profile", profile.to_string()),
        ("Congestion controller", controller),
        (
            "Player starts with",
            ms(Some(milliseconds(plan.player.start_buffer))),
        ),
        ("Seed", plan.seed.to_string()),
        ("Program version", env!("CARGO_PKG_VERSION").to_owned()),
    ]);
    sheet.paragraph(
        "Servers, clients and UDP sockets were real; the network was emulated between them. Every byte was \
         checked on arrival, and a model of a live player decided what the viewer saw. All networks have \
         the same parameters and the same seed. Which packets they lose still differs where losses depend \
         on how many packets came before, as the copies count too.",
    );
}

/// The size of a queue, with a unit.
fn queue(buffer: &Buffer) -> String {
    match buffer {
        Buffer::Bytes(bytes) => table::bytes(bytes.get()),
        Buffer::Packets(packets) => format!("{} packets", packets.get()),
        Buffer::Bdp(factor) => format!("{factor} bandwidth-delay products"),
        Buffer::Unlimited => "unlimited".to_owned(),
    }
}

/// A chart over time.
fn over_time(panels: Vec<Panel>) -> Chart {
    Chart {
        x: TIME.to_owned(),
        panels,
    }
}

/// A panel of the default height with these curves.
fn panel(curves: Vec<Curve>) -> Panel {
    Panel {
        height: PANEL,
        curves,
        ..Panel::default()
    }
}

/// Gives all panels the largest scale.
fn same_scale(mut panels: Vec<Panel>) -> Vec<Panel> {
    let values = panels.iter().flat_map(|panel| &panel.curves);
    let values = values.flat_map(|curve| &curve.points).map(|point| point.1);
    let most = values.fold(0.0, f64::max);
    for panel in &mut panels {
        panel.y_end = Some(most);
    }
    panels
}

fn bands(course: &Course) -> Vec<ChartBand> {
    let band = |&(from, to): &(f64, f64)| ChartBand {
        from,
        to,
        note: format!("frozen for {} at {from:.1} s", ms(Some(1e3 * (to - from)))),
    };
    course.freezes.iter().map(band).collect()
}

fn curve(look: &Look, shape: Shape, points: Vec<(f64, f64)>) -> Curve {
    Curve {
        name: look.name.clone(),
        colour: look.colour,
        shape,
        points,
    }
}

/// A step line of a distribution, thinned.
fn distribution(look: &Look, points: Vec<(f64, f64)>) -> Curve {
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points
        .into_iter()
        .enumerate()
        .filter(|(n, _)| n % step == 0 || *n == last)
        .map(|(_, point)| point);
    // Zero below the smallest value.
    let points = std::iter::once((0.0, 0.0)).chain(kept).collect();
    curve(look, Shape::Step, points)
}
