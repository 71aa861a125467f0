//! The file of the kernel's times: a line for each, `RTT LOSS RATE BYTES SEED MILLISECONDS`.

use std::fs::{self, File, OpenOptions};
use std::io::Write;
use std::path::Path;

use crate::Outcome;
use crate::cells::Cell;

/// Times that were measured, and the file that they are in.
pub(crate) struct Results {
    times: Vec<(Cell, u64, f64)>,
    file: File,
}

impl Results {
    pub(crate) fn open(path: &Path) -> Outcome<Self> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let times: Outcome<Vec<_>> = text.lines().map(parse).collect();
        Ok(Self {
            times: times?,
            file: OpenOptions::new().create(true).append(true).open(path)?,
        })
    }

    pub(crate) fn time(&self, cell: &Cell, seed: u64) -> Option<f64> {
        let mut times = self.times.iter();
        let found = times.find(|each| each.0 == *cell && each.1 == seed);
        found.map(|each| each.2)
    }

    /// Seeds and times of a cell, milliseconds.
    pub(crate) fn of(&self, cell: &Cell) -> Vec<(u64, f64)> {
        let times = self.times.iter().filter(|each| each.0 == *cell);
        times.map(|each| (each.1, each.2)).collect()
    }

    pub(crate) fn add(&mut self, cell: &Cell, seed: u64, millis: f64) -> Outcome<()> {
        let Cell {
            rtt_ms,
            loss,
            mbps,
            bytes,
        } = cell;
        writeln!(
            self.file,
            "{rtt_ms} {loss} {mbps} {bytes} {seed} {millis:.3}"
        )?;
        self.times.push((*cell, seed, millis));
        Ok(())
    }
}

fn parse(line: &str) -> Outcome<(Cell, u64, f64)> {
    let fields: Vec<&str> = line.split(' ').collect();
    let [rtt_ms, loss, mbps, bytes, seed, millis] = fields[..] else {
        return Err(format!("not a result: {line}").into());
    };
    let cell = Cell {
        rtt_ms: rtt_ms.parse()?,
        loss: loss.parse()?,
        mbps: mbps.parse()?,
        bytes: bytes.parse()?,
    };
    Ok((cell, seed.parse()?, millis.parse()?))
}
