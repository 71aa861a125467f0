//! Progress of transfers: bars on a terminal, nothing otherwise (finished transfers are reported as
//! plain lines by the commands).

use std::fmt::Write;
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::{output, table};

/// Redraws per second.
const REDRAWS: u8 = 10;

/// The bars of a command.
#[derive(Clone, Debug)]
pub struct Progress {
    bars: Option<MultiProgress>,
}

impl Progress {
    /// Bars if standard error is a terminal and `wanted`.
    pub fn new(wanted: bool) -> Self {
        let bars = (wanted && output::interactive())
            .then(|| MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(REDRAWS)));
        Self { bars }
    }

    /// A bar for a transfer called `name` of `total` bytes; `None` if the size is unknown.
    pub fn transfer(&self, name: &str, total: Option<u64>) -> Bar {
        let Some(bars) = &self.bars else {
            return Bar { bar: None };
        };
        let (bar, template) = match total {
            Some(total) => (
                ProgressBar::new(total),
                "{prefix:24!} {bar:24} {decimal_bytes:>10} {rate:>12}  {msg}",
            ),
            None => (
                ProgressBar::new_spinner(),
                "{spinner} {prefix:32!} {decimal_bytes:>10} {rate:>12}  {msg}",
            ),
        };
        // A template that doesn't parse only affects the appearance.
        let style = ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar());
        let style = style.with_key("rate", rate);
        let bar = bars.add(bar.with_style(style).with_prefix(name.to_owned()));
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar { bar: Some(bar) }
    }

    /// A bar for something called `name` of `total` steps.
    pub fn steps(&self, name: &str, total: u64) -> Steps {
        let Some(bars) = &self.bars else {
            return Steps { bar: None };
        };
        let template = "{prefix:24!} {bar:24} {pos:>6}/{len}  {elapsed}  {msg}";
        // A template that doesn't parse only affects the appearance.
        let style = ProgressStyle::with_template(template).unwrap_or(ProgressStyle::default_bar());
        let bar = ProgressBar::new(total)
            .with_style(style)
            .with_prefix(name.to_owned());
        let bar = bars.add(bar);
        bar.enable_steady_tick(Duration::from_millis(200));
        Steps { bar: Some(bar) }
    }

    /// A text that is shown until it is replaced.
    pub fn board(&self) -> Board {
        let bar = self.bars.as_ref().map(|bars| {
            // A template that doesn't parse only affects the appearance.
            let style =
                ProgressStyle::with_template("{msg}").unwrap_or(ProgressStyle::default_bar());
            bars.add(ProgressBar::new_spinner().with_style(style))
        });
        Board { bar }
    }

    /// Prints a line on standard error, above the bars.
    pub fn note(&self, text: &str) {
        match &self.bars {
            // A failure of standard error has no remedy.
            Some(bars) => drop(bars.println(text)),
            None => output::note(text),
        }
    }

    /// Runs `print`, which writes to standard output, with the bars hidden.
    pub fn suspended<T>(&self, print: impl FnOnce() -> T) -> T {
        match &self.bars {
            Some(bars) => bars.suspend(print),
            None => print(),
        }
    }
}

/// The rate in the unit of all other rates.
fn rate(state: &ProgressState, to: &mut dyn Write) {
    // Only the appearance is affected.
    let _ = to.write_str(&table::rate(state.per_sec() * 8.0));
}

/// The bar of one transfer; it disappears when dropped.
#[derive(Debug)]
pub struct Bar {
    bar: Option<ProgressBar>,
}

impl Bar {
    /// Another `bytes` have arrived.
    pub fn advance(&self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.inc(bytes);
        }
    }

    /// Sets the text.
    pub fn say(&self, text: &'static str) {
        if let Some(bar) = &self.bar {
            bar.set_message(text);
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// The bar of a task with steps; it disappears when dropped.
#[derive(Debug)]
pub struct Steps {
    bar: Option<ProgressBar>,
}

impl Steps {
    /// Adds completed steps.
    pub fn at(&self, step: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(step);
        }
    }

    /// Sets the text.
    pub fn say(&self, text: String) {
        if let Some(bar) = &self.bar {
            bar.set_message(text);
        }
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A text on the terminal that changes; it disappears when dropped.
#[derive(Debug)]
pub struct Board {
    bar: Option<ProgressBar>,
}

impl Board {
    /// False without a terminal.
    pub fn is_visible(&self) -> bool {
        self.bar.is_some()
    }

    /// Shows `text`, which may have several lines.
    pub fn show(&self, text: String) {
        if let Some(bar) = &self.bar {
            bar.set_message(text);
            bar.tick();
        }
    }
}

impl Drop for Board {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
