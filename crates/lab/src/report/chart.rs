//! Line charts as SVG, for small pages without scripts: panels stacked over one x axis, each with
//! curves and bands. Colours are those of `page.css`, which follow the reader's colour scheme.
//! Figures of experiments are drawn by plotly.js (`figures`).

use std::fmt::Write as _;

use super::html::escape;
use super::number::short;

/// Colours that `page.css` has for curves, distinguishable with any kind of colour vision.
pub(super) const COLOURS: usize = 6;

/// Width of a chart in SVG user units, which are pixels unless the page is narrower.
const WIDTH: f64 = 1000.0;

/// Space left and right of the panels, between them, and for the x axis with its label.
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const GAP: f64 = 34.0;
const X_AXIS: f64 = 48.0;

/// Minimum width of bands, so that short ones are visible.
const MIN_BAND: f64 = 3.0;

/// Approximate number of labelled values on an axis.
const X_TICKS: f64 = 10.0;
const Y_TICKS: f64 = 4.0;

/// A chart: panels over one x axis.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Chart {
    /// Label of the x axis, with its unit.
    pub x: String,
    /// From top to bottom.
    pub panels: Vec<Panel>,
}

/// Curves and bands over a separate y axis, which starts at zero.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Panel {
    /// Title above the panel; may be empty.
    pub title: String,
    /// Label of the y axis, with its unit.
    pub y: String,
    /// Least upper end of the y axis; `None`: the largest value.
    pub y_end: Option<f64>,
    /// Height in pixels, without title and axis.
    pub height: u32,
    /// In drawing order.
    pub curves: Vec<Curve>,
    /// Spans of x, drawn behind the curves over the whole height.
    pub bands: Vec<ChartBand>,
}

/// A line through points.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Index of its colour; the colours repeat.
    pub colour: usize,
    /// How points are connected.
    pub shape: Shape,
    /// In order of connection.
    pub points: Vec<(f64, f64)>,
}

/// How the points of a curve are connected.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Shape {
    /// By straight lines.
    Line,
    /// A value holds until the next point.
    Step,
    /// Not at all: dots, with the curve's name as tooltip.
    Points,
}

/// A marked span of x.
#[derive(Clone, Debug, PartialEq)]
pub struct ChartBand {
    /// Start.
    pub from: f64,
    /// End.
    pub to: f64,
    /// Tooltip.
    pub note: String,
}

impl Chart {
    /// The legend and the drawing.
    pub(super) fn render(&self) -> String {
        let scale = Scale::new(self.points().map(|point| point.0).chain(self.ends()));
        let mut drawing = String::new();
        let mut top = 0.0;
        for panel in &self.panels {
            top += GAP;
            panel.draw(&mut drawing, top, scale);
            top += f64::from(panel.height);
        }
        self.x_axis(&mut drawing, top, scale);
        let height = top + X_AXIS;
        format!(
            "{}<svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\">\n{drawing}</svg>\n",
            self.legend()
        )
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let curves = self.panels.iter().flat_map(|panel| &panel.curves);
        curves.flat_map(|curve| curve.points.iter().copied())
    }

    fn ends(&self) -> impl Iterator<Item = f64> {
        let bands = self.panels.iter().flat_map(|panel| &panel.bands);
        bands.map(|band| band.to)
    }

    /// The names of the curves, each once; none if they are all the same.
    fn legend(&self) -> String {
        let mut entries: Vec<(&str, usize)> = Vec::new();
        for curve in self.panels.iter().flat_map(|panel| &panel.curves) {
            let entry = (&*curve.name, curve.colour % COLOURS);
            if !entries.contains(&entry) {
                entries.push(entry);
            }
        }
        if entries.len() < 2 {
            return String::new();
        }
        let mut out = String::from("<p class=\"legend\">");
        for (name, colour) in entries {
            let _ = write!(out, "<span class=\"c{colour}\">{}</span> ", escape(name));
        }
        out.push_str("</p>\n");
        out
    }

    fn x_axis(&self, out: &mut String, bottom: f64, scale: Scale) {
        for tick in scale.ticks(X_TICKS) {
            let _ = writeln!(
                out,
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                scale.x(tick),
                bottom + 18.0,
                short(tick)
            );
        }
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            f64::midpoint(LEFT, WIDTH - RIGHT),
            bottom + 40.0,
            escape(&self.x)
        );
    }
}

impl Panel {
    fn draw(&self, out: &mut String, top: f64, x: Scale) {
        let height = f64::from(self.height);
        let values = self.curves.iter().flat_map(|curve| &curve.points);
        let y = Scale::new(values.map(|point| point.1).chain(self.y_end));
        let place = |value: f64| top + height * (1.0 - (value / y.end).clamp(0.0, 1.0));
        let title = escape(&self.title);
        let _ = writeln!(
            out,
            "<text class=\"title\" x=\"{LEFT}\" y=\"{:.1}\">{title}</text>",
            top - 8.0
        );
        for tick in y.ticks(Y_TICKS) {
            let at = place(tick);
            let _ = writeln!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{:.1}\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                WIDTH - RIGHT,
                LEFT - 6.0,
                at + 4.0,
                short(tick)
            );
        }
        let middle = top + height / 2.0;
        let _ = writeln!(
            out,
            "<text transform=\"translate(14 {middle:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escape(&self.y)
        );
        for band in &self.bands {
            band.draw(out, top, height, x);
        }
        for curve in &self.curves {
            curve.draw(out, |value| x.x(value), place);
        }
    }
}

impl ChartBand {
    fn draw(&self, out: &mut String, top: f64, height: f64, x: Scale) {
        let (from, to) = (x.x(self.from), x.x(self.to));
        let _ = writeln!(
            out,
            "<rect class=\"band\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{:.1}\" \
             height=\"{height:.1}\"><title>{}</title></rect>",
            (to - from).max(MIN_BAND),
            escape(&self.note)
        );
    }
}

impl Curve {
    fn draw(&self, out: &mut String, x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) {
        let mut path = String::new();
        let finite = |point: &&(f64, f64)| point.0.is_finite() && point.1.is_finite();
        for (place, point) in self.points.iter().filter(finite).enumerate() {
            let (x, y) = (x(point.0), y(point.1));
            // Writing to a string can't fail.
            let _ = match (place, self.shape) {
                (0, Shape::Line | Shape::Step) => write!(path, "M{x:.1} {y:.1}"),
                (_, Shape::Line) => write!(path, "L{x:.1} {y:.1}"),
                (_, Shape::Step) => write!(path, "H{x:.1}V{y:.1}"),
                // A line without length has round ends only.
                (_, Shape::Points) => write!(path, "M{x:.1} {y:.1}h0"),
            };
        }
        let colour = self.colour % COLOURS;
        let _ = match self.shape {
            Shape::Line | Shape::Step => {
                writeln!(out, "<path class=\"curve c{colour}\" d=\"{path}\"/>")
            }
            Shape::Points => writeln!(
                out,
                "<path class=\"points c{colour}\" d=\"{path}\"><title>{}</title></path>",
                escape(&self.name)
            ),
        };
    }
}

/// An axis from zero to the largest value.
#[derive(Clone, Copy, Debug)]
struct Scale {
    end: f64,
}

impl Scale {
    fn new(values: impl Iterator<Item = f64>) -> Self {
        let end = values.filter(|value| value.is_finite()).fold(0.0, f64::max);
        Self {
            end: if end > 0.0 { end } else { 1.0 },
        }
    }

    /// Position of a value on the x axis.
    fn x(self, value: f64) -> f64 {
        LEFT + (WIDTH - LEFT - RIGHT) * (value / self.end).clamp(0.0, 1.0)
    }

    /// Round values (1, 2 or 5 times a power of ten apart), about `count`.
    fn ticks(self, count: f64) -> impl Iterator<Item = f64> {
        let least = self.end / count;
        let power = 10_f64.powf(least.log10().floor());
        let steps = [1.0, 2.0, 5.0].map(|step| step * power);
        let fits = |step: &f64| *step >= least * 0.999_999;
        let step = steps.into_iter().find(fits).unwrap_or(10.0 * power);
        let last = (self.end / step + 1e-6).floor() as u32;
        (0..=last).map(move |n| f64::from(n) * step)
    }
}
