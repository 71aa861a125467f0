//! A recording as text: one line per frame, so that any tool that lists frames can provide a source.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::error::RecordingError;
use super::recording::{RecordedFrame, Recording};
use crate::frame::FrameKind;

/// The first line.
const HEADER: &str = "at_us,bytes,kind";

impl FromStr for Recording {
    type Err = RecordingError;

    /// Reads a frame table: the line `at_us,bytes,kind`, then a line for each frame in sending order
    /// with its time in microseconds, its size and `key` or `delta`. The last frame is shown for the
    /// mean duration of frames.
    fn from_str(text: &str) -> Result<Self, RecordingError> {
        let mut lines = text.lines().map(str::trim).enumerate();
        if lines.next().is_none_or(|(_, line)| line != HEADER) {
            return Err(RecordingError::Heading);
        }
        let frames = lines
            .filter(|(_, line)| !line.is_empty())
            .map(|(number, line)| frame(line).ok_or(RecordingError::Line(number + 1)))
            .collect::<Result<_, _>>()?;
        Self::new(frames, None)
    }
}

fn frame(line: &str) -> Option<RecordedFrame> {
    let mut fields = line.split(',').map(str::trim);
    let at = Duration::from_micros(fields.next()?.parse().ok()?);
    let size = fields.next()?.parse().ok()?;
    let kind = match fields.next()? {
        "key" => FrameKind::Key,
        "delta" => FrameKind::Delta,
        _ => return None,
    };
    fields
        .next()
        .is_none()
        .then_some(RecordedFrame { at, size, kind })
}

impl fmt::Display for Recording {
    /// Writes the format that is read; times are rounded to microseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{HEADER}")?;
        for frame in self.frames() {
            let kind = match frame.kind {
                FrameKind::Key => "key",
                FrameKind::Delta => "delta",
            };
            let micros = (frame.at.as_nanos() + 500) / 1000;
            writeln!(f, "{micros},{},{kind}", frame.size)?;
        }
        Ok(())
    }
}
