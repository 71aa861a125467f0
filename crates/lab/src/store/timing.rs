//! The cost of each run, separate from the rows, which are the same for the same seed.

use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::whole_file::read_if_there;
use super::{StoreError, rows};
use crate::scenario::Run;

/// The cost of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// The run.
    pub run: Run,
    /// Time on one core.
    pub wall: Duration,
    /// Virtual seconds simulated.
    pub simulated_s: f64,
    /// Tasks processed by the simulator.
    pub tasks: u64,
}

/// A line of `timing.csv`.
#[derive(Deserialize, Serialize)]
struct Line {
    case: usize,
    repeat: u32,
    seed: u64,
    wall_s: f64,
    simulated_s: f64,
    tasks: u64,
}

/// The first line.
pub(super) fn header() -> Vec<u8> {
    rows::line(["case", "repeat", "seed", "wall_s", "simulated_s", "tasks"])
}

/// One run as a line.
pub(super) fn encode(timing: &Timing) -> Vec<u8> {
    let Run { case, repeat, seed } = timing.run;
    rows::line([
        case.to_string(),
        repeat.to_string(),
        seed.to_string(),
        timing.wall.as_secs_f64().to_string(),
        timing.simulated_s.to_string(),
        timing.tasks.to_string(),
    ])
}

/// Reads as much as possible: nothing depends on these numbers, so a truncated line or a missing
/// file is ignored. The second value is then false, and the file must be rewritten before it is
/// appended to.
pub(super) fn read(path: &Path) -> Result<(Vec<Timing>, bool), StoreError> {
    let Some(text) = read_if_there(path)? else {
        return Ok((Vec::new(), false));
    };
    let end = text.iter().rposition(|&byte| byte == b'\n');
    let end = end.map_or(0, |last| last + 1);
    let mut whole = end > 0 && end == text.len();
    let mut reader = csv::Reader::from_reader(&text[..end]);
    let mut timing = Vec::new();
    for line in reader.deserialize::<Line>() {
        match line.ok().and_then(|line| line.timing()) {
            Some(line) => timing.push(line),
            None => whole = false,
        }
    }
    Ok((timing, whole))
}

impl Line {
    fn timing(&self) -> Option<Timing> {
        Some(Timing {
            run: Run {
                case: self.case,
                repeat: self.repeat,
                seed: self.seed,
            },
            wall: Duration::try_from_secs_f64(self.wall_s).ok()?,
            simulated_s: self.simulated_s,
            tasks: self.tasks,
        })
    }
}
