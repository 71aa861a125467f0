//! Curves, their exponents, and how they are shown.

use std::fmt::Write;

/// One curve: what a unit costs, by size.
pub(crate) struct Curve {
    /// What grows.
    pub(crate) of: &'static str,
    /// What is measured, with its unit.
    pub(crate) cost: &'static str,
    pub(crate) points: Vec<(f64, f64)>,
}

impl Curve {
    /// Slope of the least-squares line through the logarithms: the cost grows with that power. Sizes of
    /// zero have no logarithm and are left out.
    pub(crate) fn exponent(&self) -> f64 {
        let logs = || {
            let positive = self.points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0);
            positive.map(|(x, y)| (x.ln(), y.ln()))
        };
        let n = logs().count() as f64;
        let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / n;
        let (mean_x, mean_y) = (
            mean(&mut logs().map(|p| p.0)),
            mean(&mut logs().map(|p| p.1)),
        );
        let covariance: f64 = logs().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
        let variance: f64 = logs().map(|(x, _)| (x - mean_x).powi(2)).sum();
        covariance / variance
    }

    pub(crate) fn print(&self) -> String {
        let mut text = format!(
            "{}, {}: exponent {:+.2}\n",
            self.of,
            self.cost,
            self.exponent()
        );
        for (x, y) in &self.points {
            let _ = writeln!(text, "  {x:>8} {y:>12.2}");
        }
        text
    }
}

pub(crate) fn csv(curves: &[Curve]) -> String {
    let mut text = "of,cost,x,y,exponent\n".to_owned();
    for curve in curves {
        for (x, y) in &curve.points {
            let exponent = curve.exponent();
            let _ = writeln!(text, "{},{},{x},{y},{exponent:.4}", curve.of, curve.cost);
        }
    }
    text
}

pub(crate) fn json(curves: &[Curve]) -> String {
    let curves: Vec<String> = curves
        .iter()
        .map(|curve| {
            let points: Vec<String> = (curve.points.iter())
                .map(|(x, y)| format!("[{x},{y}]"))
                .collect();
            format!(
                "{{\"of\":\"{}\",\"cost\":\"{}\",\"exponent\":{:.4},\"points\":[{}]}}",
                curve.of,
                curve.cost,
                curve.exponent(),
                points.join(",")
            )
        })
        .collect();
    format!("[{}]\n", curves.join(",\n"))
}

/// Small plots with logarithmic axes, one for each curve.
pub(crate) fn svg(curves: &[Curve]) -> String {
    const WIDTH: f64 = 300.0;
    const HEIGHT: f64 = 200.0;
    const MARGIN: f64 = 40.0;
    let columns = 2;
    let rows = curves.len().div_ceil(columns);
    let mut text = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" font-family=\"sans-serif\" \
         font-size=\"10\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n",
        WIDTH * columns as f64,
        HEIGHT * rows as f64
    );
    for (nth, curve) in curves.iter().enumerate() {
        let left = WIDTH * (nth % columns) as f64 + MARGIN;
        let top = HEIGHT * (nth / columns) as f64 + MARGIN / 2.0;
        let (width, height) = (WIDTH - 1.5 * MARGIN, HEIGHT - 1.5 * MARGIN);
        let points: Vec<_> = (curve.points.iter().filter(|(x, y)| *x > 0.0 && *y > 0.0)).collect();
        let range = |part: &dyn Fn(&(f64, f64)) -> f64| {
            let (low, high) = (points.iter().map(|p| part(p)))
                .fold((f64::MAX, f64::MIN), |(low, high), v| {
                    (low.min(v), high.max(v))
                });
            (low, high.max(low * 10.0))
        };
        let (xs, ys) = (range(&|p| p.0), range(&|p| p.1));
        let at = |x: f64, y: f64| {
            let part = |v: f64, (low, high): (f64, f64)| (v / low).ln() / (high / low).ln();
            (
                left + part(x, xs) * width,
                top + height - part(y, ys) * height,
            )
        };
        let line: Vec<String> = (points.iter().map(|(x, y)| at(*x, *y)))
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let (right, bottom) = (left + width, top + height);
        let _ = writeln!(
            text,
            "<path d=\"M{left},{top}V{bottom}H{right}\" fill=\"none\" stroke=\"gray\"/>\n\
             <polyline points=\"{}\" fill=\"none\" stroke=\"#0060c0\" stroke-width=\"2\"/>\n\
             <text x=\"{left}\" y=\"{}\">{}: {} ~ x^{:.2}</text>\n\
             <text x=\"{left}\" y=\"{}\">{}</text><text x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>\n\
             <text x=\"{}\" y=\"{bottom}\" text-anchor=\"end\">{:.3}</text>\
             <text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.3}</text>",
            line.join(" "),
            top - 5.0,
            curve.of,
            curve.cost,
            curve.exponent(),
            bottom + 12.0,
            xs.0,
            bottom + 12.0,
            xs.1,
            left - 3.0,
            ys.0,
            left - 3.0,
            top + 8.0,
            ys.1,
        );
    }
    text + "</svg>\n"
}
