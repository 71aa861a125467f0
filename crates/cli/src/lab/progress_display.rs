//! Progress of an experiment: a bar on a terminal, occasional lines otherwise.

use std::time::{Duration, Instant};

use swiftwater_lab::run::{Progress as Done, RunFailure, Watcher};
use swiftwater_lab::scenario::Run;
use swiftwater_lab::store::Row;

use crate::output;
use crate::progress::{Progress, Steps};
use crate::table;

/// Least interval of lines without a terminal.
const LINE_EVERY: Duration = Duration::from_secs(10);

/// Shows one experiment.
pub(super) struct ProgressDisplay<'a> {
    progress: &'a Progress,
    /// Plain lines instead of a bar.
    lines: bool,
    name: &'a str,
    /// Work of the later experiments.
    later: f64,
    /// The command that runs one failed run alone, without its numbers.
    again: String,
    bar: Option<Steps>,
    last_line: Instant,
    last_left: Option<Duration>,
}

impl<'a> ProgressDisplay<'a> {
    pub(super) fn new(
        progress: &'a Progress,
        wanted: bool,
        name: &'a str,
        later: f64,
        again: String,
    ) -> Self {
        Self {
            progress,
            lines: wanted && !output::interactive(),
            name,
            later,
            again,
            bar: None,
            last_line: Instant::now(),
            last_left: None,
        }
    }

    fn show(&mut self, done: &Done) {
        let left = done.time_left(self.later);
        if let Some(bar) = &self.bar {
            bar.at(done.done() as u64);
            // Redrawing the same text would only flicker.
            if left.map(|left| left.as_secs()) != self.last_left.map(|left| left.as_secs()) {
                bar.say(left_text(left));
                self.last_left = left;
            }
        }
        if self.lines && self.last_line.elapsed() >= LINE_EVERY {
            self.last_line = Instant::now();
            let (name, left) = (self.name, left_text(left));
            output::note(&format!(
                "{name}: {} of {} runs, {left}",
                done.done(),
                done.total
            ));
        }
    }
}

fn left_text(left: Option<Duration>) -> String {
    match left {
        Some(left) => format!("{} left", table::long_time(left)),
        None => "time left not known yet".to_owned(),
    }
}

impl Watcher for ProgressDisplay<'_> {
    fn started(&mut self, done: &Done) {
        let bar = self.progress.steps(self.name, done.total as u64);
        bar.at(done.done() as u64);
        self.bar = Some(bar);
        if self.lines {
            let before = match done.before {
                0 => String::new(),
                before => format!(", {before} of them done before"),
            };
            output::note(&format!("{}: {} runs{before}", self.name, done.total));
        }
    }

    fn finished(&mut self, _: Run, _: &Row, _: Duration, done: &Done) {
        self.show(done);
    }

    fn failed(&mut self, failure: &RunFailure, done: &Done) {
        let Run { case, repeat, .. } = failure.run;
        self.progress.note(&format!(
            "{}: {failure}; to run it alone: {} --only {case}-{repeat}",
            self.name, self.again
        ));
        self.show(done);
    }

    fn waiting(&mut self, done: &Done) {
        self.show(done);
    }
}
