//! `--record`: every delivered datagram, as CSV.

use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

use swiftwater::net::relay::{Delivery, Direction};

use crate::exit::{Exit, Failure, plain_io_error};

/// A file of deliveries.
pub(super) struct Record {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Record {
    pub(super) fn create(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| failure(path, &error))?;
        let mut record = Self {
            path: path.to_owned(),
            file: BufWriter::new(file),
        };
        record.line(format_args!("ms,leg,direction,bytes"))?;
        Ok(record)
    }

    /// Adds deliveries of a leg; times count from `first`.
    pub(super) fn write(
        &mut self,
        leg: Option<&str>,
        deliveries: &[Delivery],
        first: Instant,
    ) -> Result<(), Failure> {
        let leg = leg.unwrap_or_default();
        for delivery in deliveries {
            let ms = delivery.at.saturating_duration_since(first).as_secs_f64() * 1e3;
            let direction = match delivery.direction {
                Direction::Up => "up",
                Direction::Down => "down",
            };
            let bytes = delivery.bytes;
            self.line(format_args!("{ms:.3},{leg},{direction},{bytes}"))?;
        }
        Ok(())
    }

    pub(super) fn flush(&mut self) -> Result<(), Failure> {
        let flushed = self.file.flush();
        flushed.map_err(|error| failure(&self.path, &error))
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) -> Result<(), Failure> {
        let written = writeln!(self.file, "{text}");
        written.map_err(|error| failure(&self.path, &error))
    }
}

fn failure(path: &Path, error: &std::io::Error) -> Failure {
    let why = plain_io_error(error);
    Failure::new(
        Exit::LocalFile,
        format_args!("cannot write {}: {why}", path.display()),
    )
}
