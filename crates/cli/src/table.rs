//! Plain text tables and numbers.

use std::time::Duration;

/// A table with a header line; columns are as wide as their widest cell.
#[derive(Clone, Debug, Default)]
pub struct Table {
    rows: Vec<Vec<String>>,
    /// Columns after the first that are aligned to the left.
    left: usize,
}

impl Table {
    /// A table with these column titles.
    pub fn new<const N: usize>(titles: [&str; N]) -> Self {
        Self {
            rows: vec![titles.map(str::to_owned).to_vec()],
            left: 0,
        }
    }

    /// A table with as many columns as there are titles.
    pub fn of(titles: impl IntoIterator<Item = String>) -> Self {
        Self {
            rows: vec![titles.into_iter().collect()],
            left: 0,
        }
    }

    /// The same with `more` columns after the first aligned to the left.
    #[must_use]
    pub fn left(mut self, more: usize) -> Self {
        self.left = more;
        self
    }

    /// Appends a row.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.into());
    }

    /// Appends a row of any length.
    pub fn cells(&mut self, cells: impl IntoIterator<Item = String>) {
        self.rows.push(cells.into_iter().collect());
    }

    /// The table as text without a line break at the end. The first column is aligned to the left,
    /// the others to the right unless [`Self::left`] says otherwise.
    pub fn render(&self) -> String {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let widths: Vec<usize> = (0..columns)
            .map(|column| {
                let cells = self.rows.iter().filter_map(|row| row.get(column));
                cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
            })
            .collect();
        let lines = self.rows.iter().map(|row| {
            let cells = row
                .iter()
                .zip(&widths)
                .enumerate()
                .map(|(column, (cell, width))| {
                    if column <= self.left {
                        format!("{cell:<width$}")
                    } else {
                        format!("{cell:>width$}")
                    }
                });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// A number of bytes with a decimal unit: `20.0 MB`.
pub fn bytes(count: u64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if count < 1_000 {
        return format!("{count} B");
    }
    let mut value = count as f64 / 1e3;
    let mut unit = 0;
    // 999.95 would be printed as 1000.0.
    while value >= 999.95 && unit + 1 < UNITS.len() {
        value /= 1e3;
        unit += 1;
    }
    format!("{value:.1} {}", UNITS[unit])
}

/// A rate in bits per second with a decimal unit: `12.3 Mbit/s`.
pub fn rate(bps: f64) -> String {
    match bps {
        _ if !bps.is_finite() => "-".to_owned(),
        0.0..1e6 => format!("{:.1} kbit/s", bps / 1e3),
        1e6..1e9 => format!("{:.1} Mbit/s", bps / 1e6),
        _ => format!("{:.2} Gbit/s", bps / 1e9),
    }
}

/// Milliseconds or seconds, whichever is more readable.
pub fn time(duration: Duration) -> String {
    let seconds = duration.as_secs_f64();
    if seconds < 1.0 {
        format!("{:.1} ms", seconds * 1e3)
    } else {
        format!("{seconds:.2} s")
    }
}

/// Hours, minutes and seconds, the two most significant: `1 h 12 min`, `3 min 20 s`, `45 s`.
pub fn long_time(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
    match (hours, minutes) {
        (0, 0) => format!("{seconds} s"),
        (0, _) => format!("{minutes} min {} s", seconds % 60),
        _ => format!("{hours} h {minutes} min"),
    }
}

/// A share from 0 to 1 as a percentage.
pub fn percent(share: f64) -> String {
    format!("{:.2} %", share * 100.0)
}

/// Bits per second of `bytes` in `elapsed`; zero if no time passed.
pub fn bits_per_second(bytes: u64, elapsed: Duration) -> f64 {
    let seconds = elapsed.as_secs_f64();
    if seconds > 0.0 {
        bytes as f64 * 8.0 / seconds
    } else {
        0.0
    }
}
