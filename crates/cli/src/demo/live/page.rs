//! The page of a showing: plots, table, what was run. One file that opens without a network.

use std::path::Path;

use serde_json::{Value, json};
use swiftwater_lab::report::Sheet;

use super::Shown;
use super::course::{Sample, loss};
use super::plan::Plan;
use super::recoveries::Recovered;
use super::row::{Row, milliseconds};
use super::words::{conclusion, ms, percent};
use crate::exit::Failure;
use crate::part_file::PartFile;
use crate::table;

/// Colours that people with any kind of colour vision can tell apart (Okabe and Ito, "Color Universal
/// Design", 2008); one for each variant that can be.
const COLOURS: [&str; 6] = [
    "#D55E00", "#0072B2", "#009E73", "#CC79A7", "#E69F00", "#000000",
];

/// Points of a distribution at most.
const MAX_POINTS: usize = 1000;

/// Height of a plot and of a panel in one, pixels.
const PLOT: u32 = 400;
const PANEL: u32 = 220;

/// How a variant went, for plots.
#[derive(Clone, Debug)]
pub struct Course {
    /// Samples over time.
    pub samples: Vec<Sample>,
    /// Recovery latencies, the shortest first.
    pub recoveries: Vec<Recovered>,
    /// From capture to arrival of each frame, milliseconds, the shortest first.
    pub delays_ms: Vec<f64>,
    /// Freezes: seconds since the viewer's request, from and until.
    pub freezes: Vec<(f64, f64)>,
}

impl Course {
    pub(super) fn of(shown: &Shown) -> Self {
        let viewer = shown.variant.viewer();
        let asked = viewer.asked();
        let mut delays = viewer.delays().to_vec();
        delays.sort_unstable();
        Self {
            samples: shown.samples.clone(),
            recoveries: shown.variant.recoveries.sorted(),
            delays_ms: delays.into_iter().map(milliseconds).collect(),
            freezes: viewer
                .freezes()
                .iter()
                .map(|freeze| {
                    let seconds = |at| -> f64 {
                        let at: swiftwater::units::Instant = at;
                        at.saturating_since(asked).as_secs_f64()
                    };
                    (seconds(freeze.since), seconds(freeze.until))
                })
                .collect(),
        }
    }
}

/// Writes a page in one step: whoever opens the file sees a whole page.
pub fn write(path: &Path, html: &str) -> Result<(), Failure> {
    let mut file = PartFile::create(path, true)?;
    file.write_all(html.as_bytes())?;
    file.complete()?;
    Ok(())
}

/// The page; `rows` and `courses` are those of the plan's recoveries.
pub fn render(plan: &Plan, rows: &[Row], courses: &[Course]) -> String {
    let mut sheet = Sheet::new("Live video over a lossy link");
    sheet.paragraph(&format!(
        "The same live stream ({}, {}) crossed {} emulated links at the same time ({}), each with \
         another way to repair losses, from real servers to real clients over UDP sockets. Every byte \
         was checked on arrival and played out by a model of a live player.",
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
    if let Some((plain, others)) = rows.split_first() {
        for other in others {
            sheet.paragraph(&conclusion(plain, other));
        }
    }
    sheet.heading("Results");
    results(&mut sheet, rows);
    sheet.heading("Plots");
    let looks = looks(rows);
    recovery_latency(&mut sheet, &looks, courses);
    frame_delay(&mut sheet, &looks, courses);
    buffer(&mut sheet, &looks, courses);
    redundancy(&mut sheet, &looks, courses);
    cost(&mut sheet, &looks, rows);
    sheet.heading("What was run");
    facts(&mut sheet, plan);
    sheet.render()
}

/// Name and colour of a variant in all plots.
struct Look {
    name: String,
    colour: &'static str,
}

/// Looks of all variants; the second of a name is told apart by a number.
fn looks(rows: &[Row]) -> Vec<Look> {
    let look = |(place, (row, colour)): (usize, (&Row, &'static str))| {
        let before = rows[..place].iter();
        let same = before
            .filter(|other| other.recovery == row.recovery)
            .count();
        let name = match same {
            0 => row.recovery.clone(),
            same => format!("{} ({})", row.recovery, same + 1),
        };
        Look {
            name: Sheet::plot_text(&name),
            colour,
        }
    };
    rows.iter().zip(COLOURS).enumerate().map(look).collect()
}

/// What a line of the table says of a variant.
type Cell = fn(&Row) -> String;

fn results(sheet: &mut Sheet, rows: &[Row]) {
    let titles = std::iter::once("").chain(rows.iter().map(|row| &*row.recovery));
    let lines: [(&str, Cell); 22] = [
        ("Frames received", |row| {
            format!("{} of {}", row.frames_received, row.frames)
        }),
        ("Bytes", |row| {
            format!("{}, {}", table::bytes(row.bytes), row.delivery())
        }),
        ("Packets lost by the link", |row| percent(row.link_loss)),
        ("Packets found lost by the server", |row| percent(row.loss)),
        ("Data lost / their first retransmission too", |row| {
            format!("{} / {}", row.lost_data, row.repeated_data)
        }),
        ("Loss detection time, mean", |row| ms(row.detection_ms)),
        ("Recovery latency, mean", |row| ms(row.recovery_mean_ms)),
        ("Recovery latency, p95", |row| ms(row.recovery_p95_ms)),
        ("Recovery latency, longest", |row| ms(row.recovery_max_ms)),
        ("Deterioration rate", |row| percent(row.deterioration_rate)),
        ("Freezes", |row| row.freezes.to_string()),
        ("Frozen", |row| ms(Some(row.frozen_ms))),
        ("Longest freeze", |row| ms(Some(row.longest_freeze_ms))),
        ("Freezes per 100 s", |row| {
            format!("{:.1}", row.freezes_per_100_s)
        }),
        ("Start-up", |row| ms(row.startup_ms)),
        ("Picture behind the camera, mean", |row| ms(row.latency_ms)),
        ("Frame delay, mean", |row| ms(row.frame_mean_ms)),
        ("Frame delay, p95", |row| ms(row.frame_p95_ms)),
        ("Frame delay, longest", |row| ms(row.frame_max_ms)),
        ("Redundancy cost", |row| percent(Some(row.redundancy_cost))),
        ("Replicas sent / useful", |row| {
            format!("{} / {}", row.replicas, row.replicas_useful)
        }),
        ("Goodput", |row| {
            row.goodput_bps.map_or_else(|| "-".to_owned(), table::rate)
        }),
    ];
    let lines = lines.map(|(name, cell)| {
        std::iter::once(name.to_owned())
            .chain(rows.iter().map(cell))
            .collect()
    });
    sheet.table(titles, lines);
    sheet.paragraph(
        "Recovery latency is counted for data whose first retransmission did not arrive: from that \
         retransmission to the sending of the copy that arrived first. Lost data deteriorated if they \
         needed a second loss detection. Frame delay is from capture to arrival; start-up from the \
         viewer's request to the first picture; redundancy cost is bytes of replicas per byte sent for \
         the first time. In means and percentiles of recovery latency every byte counts the same.",
    );
}

fn recovery_latency(sheet: &mut Sheet, looks: &[Look], courses: &[Course]) {
    let data = looks.iter().zip(courses).map(|(look, course)| {
        let total: f64 = course
            .recoveries
            .iter()
            .map(|one| f64::from(one.bytes))
            .sum();
        let mut below = 0.0;
        let points = course.recoveries.iter().map(|one| {
            below += f64::from(one.bytes);
            (milliseconds(one.latency), below / total)
        });
        distribution(look, points.collect())
    });
    sheet.plot(
        "Recovery latency",
        &data.collect(),
        &layout(
            "ms from first retransmission to the copy that arrived",
            "share of bytes",
        ),
        PLOT,
        "Of data whose first retransmission was lost as well: how long it took from there to the \
         sending of the copy that arrived. Further left is better.",
    );
}

fn frame_delay(sheet: &mut Sheet, looks: &[Look], courses: &[Course]) {
    let data = looks.iter().zip(courses).map(|(look, course)| {
        let total = course.delays_ms.len() as f64;
        let points = course.delays_ms.iter().enumerate();
        let points = points.map(|(n, delay)| (*delay, (n + 1) as f64 / total));
        distribution(look, points.collect())
    });
    sheet.plot(
        "Frame delay",
        &data.collect(),
        &layout("ms from capture to arrival", "share of frames"),
        PLOT,
        "From a frame's capture until all of it, and all before it, had arrived.",
    );
}

fn buffer(sheet: &mut Sheet, looks: &[Look], courses: &[Course]) {
    let mut panels = Panels::new(looks.len());
    let mut shapes = Vec::new();
    for (place, (look, course)) in looks.iter().zip(courses).enumerate() {
        let axis = suffix(place);
        let points = course
            .samples
            .iter()
            .map(|sample| (sample.at, sample.buffer_ms));
        panels.line(place, look, points.collect(), "linear");
        panels.title(place, "ms");
        for (since, until) in &course.freezes {
            shapes.push(json!({
                "type": "rect", "xref": "x", "yref": format!("y{axis} domain"),
                "x0": since, "x1": until, "y0": 0, "y1": 1,
                "fillcolor": look.colour, "opacity": 0.3, "line": {"width": 1, "color": look.colour},
            }));
        }
    }
    let (data, mut layout) = panels.finish();
    layout["shapes"] = json!(shapes);
    sheet.plot(
        "Player's buffer",
        &data,
        &layout,
        PANEL * looks.len().max(1) as u32 + 100,
        "Play time in each player's buffer. Coloured bands are freezes.",
    );
}

fn redundancy(sheet: &mut Sheet, looks: &[Look], courses: &[Course]) {
    let mut panels = Panels::new(2);
    panels.title(0, "K");
    panels.title(1, "% lost");
    for (look, course) in looks.iter().zip(courses) {
        let levels = course
            .samples
            .iter()
            .map(|sample| (sample.at, f64::from(sample.level)));
        panels.line(0, look, levels.collect(), "hv");
        panels.line(1, look, loss(&course.samples), "linear");
    }
    let (data, layout) = panels.finish();
    sheet.plot(
        "Redundancy level and loss",
        &data,
        &layout,
        2 * PANEL + 100,
        "Above: replicas per lost datum that the policy granted. Below: packets that the link lost, \
         over the two seconds before.",
    );
}

fn cost(sheet: &mut Sheet, looks: &[Look], rows: &[Row]) {
    let names: Vec<&str> = looks.iter().map(|look| &*look.name).collect();
    let bars = |name: &str, colour: &str, share: fn(&Row) -> f64| {
        let y: Vec<f64> = rows.iter().map(|row| 100.0 * share(row)).collect();
        json!({"type": "bar", "name": name, "x": names, "y": y, "marker": {"color": colour}})
    };
    let data = json!([
        bars("retransmissions", "#999999", |row| row.retransmission_cost),
        bars("replicas", "#56B4E9", |row| row.redundancy_cost),
    ]);
    let mut layout = layout("", "% of bytes sent first");
    layout["xaxis"] = json!({"type": "category"});
    layout["barmode"] = json!("stack");
    sheet.plot(
        "Cost",
        &data,
        &layout,
        PLOT,
        "Bytes of retransmissions and replicas per byte sent for the first time.",
    );
}

fn facts(sheet: &mut Sheet, plan: &Plan) {
    let recoveries: Vec<&str> = plan.recoveries.iter().map(String::as_str).collect();
    let profile = plan.tuning.profile.unwrap_or_default();
    let controller = plan.tuning.cc.clone();
    sheet.facts([
        ("Recoveries", recoveries.join(", ")),
        ("Video", plan.schedule.source().to_owned()),
        ("Length", format!("{} s", plan.length.as_secs())),
        ("Link", plan.network.clone()),
        (
            "Queue towards the viewer",
            plan.links.down.buffer.to_string(),
        ),
        ("Profile", profile.to_string()),
        (
            "Congestion controller",
            controller.unwrap_or_else(|| "the profile's".to_owned()),
        ),
        (
            "Player starts with",
            format!("{} ms", milliseconds(plan.player.start_buffer)),
        ),
        ("Seed", plan.seed.to_string()),
        ("Program version", env!("CARGO_PKG_VERSION").to_owned()),
    ]);
    sheet.paragraph(
        "All links have the same parameters and the same seed. Which packets they lose still differs, \
         since it depends on how many came before, and the replicas count too.",
    );
}

/// A step line of a distribution, thinned.
fn distribution(look: &Look, points: Vec<(f64, f64)>) -> Value {
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    let last = points.len().saturating_sub(1);
    let kept = points
        .into_iter()
        .enumerate()
        .filter(|(n, _)| n % step == 0 || *n == last)
        .map(|(_, point)| point);
    // Below the shortest there is nothing.
    trace(
        look,
        std::iter::once((0.0, 0.0)).chain(kept).collect(),
        "hv",
    )
}

fn trace(look: &Look, points: Vec<(f64, f64)>, shape: &str) -> Value {
    let (x, y): (Vec<f64>, Vec<f64>) = points.into_iter().unzip();
    json!({
        "type": "scatter", "mode": "lines", "name": look.name, "x": x, "y": y,
        "line": {"color": look.colour, "shape": shape, "width": 2},
    })
}

fn layout(x: &str, y: &str) -> Value {
    json!({
        "xaxis": {"title": {"text": x}, "rangemode": "tozero"},
        "yaxis": {"title": {"text": y}, "rangemode": "tozero"},
        "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
        "showlegend": true,
        "hoverlabel": {"namelength": -1},
        "margin": {"l": 60, "r": 20, "t": 40, "b": 50},
        "plot_bgcolor": "#ffffff",
    })
}

/// Plots below each other over one axis of time.
struct Panels {
    data: Vec<Value>,
    layout: Value,
    count: usize,
    names: Vec<String>,
}

impl Panels {
    fn new(count: usize) -> Self {
        let mut layout = layout("s since the viewer's request", "");
        let share = 1.0 / count.max(1) as f64;
        for place in 0..count {
            let top = 1.0 - place as f64 * share;
            layout[format!("yaxis{}", suffix(place))] = json!({
                "domain": [top - 0.88 * share, top], "rangemode": "tozero",
            });
        }
        // The axis of time is below the last panel.
        layout["xaxis"]["anchor"] = json!(format!("y{}", suffix(count.saturating_sub(1))));
        Self {
            data: Vec::new(),
            layout,
            count,
            names: Vec::new(),
        }
    }

    fn title(&mut self, place: usize, text: &str) {
        self.layout[format!("yaxis{}", suffix(place))]["title"] = json!({"text": text});
    }

    fn line(&mut self, place: usize, look: &Look, points: Vec<(f64, f64)>, shape: &str) {
        debug_assert!(place < self.count, "a panel that is not there");
        let mut line = trace(look, points, shape);
        line["yaxis"] = json!(format!("y{}", suffix(place)));
        line["legendgroup"] = json!(look.name);
        // Once in the legend, however many panels it is in.
        line["showlegend"] = json!(!self.names.contains(&look.name));
        self.names.push(look.name.clone());
        self.data.push(line);
    }

    fn finish(self) -> (Value, Value) {
        (Value::Array(self.data), self.layout)
    }
}

/// What plotly.js appends to the names of axes.
fn suffix(place: usize) -> String {
    match place {
        0 => String::new(),
        _ => (place + 1).to_string(),
    }
}
