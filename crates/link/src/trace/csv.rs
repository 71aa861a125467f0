//! CSV traces: a header `t_ms,rate_kbps,rtt_ms,loss`, then one sample a line.

use std::fmt::Write as _;
use std::time::Duration;

use swiftwater_units::Bandwidth;

use super::{Trace, TraceError, TraceSample, excerpt};

const HEADER: &str = "t_ms,rate_kbps,rtt_ms,loss";

impl Trace {
    /// Reads a CSV trace.
    ///
    /// The header `t_ms,rate_kbps,rtt_ms,loss`, then one sample a line: milliseconds since the start
    /// (integers, the first 0, non-decreasing), rate in kbit/s, round-trip time in ms, share of packets
    /// lost from 0 to 1; the last three may be empty without a measurement, and then keep the value of
    /// the sample before. A sample holds until the next; the last as long as the one before it. Blank
    /// lines are skipped.
    pub fn parse_csv(text: &str) -> Result<Self, TraceError> {
        let mut lines = text
            .trim_start_matches('\u{feff}')
            .lines()
            .enumerate()
            .map(|(index, line)| (index + 1, line.trim()))
            .filter(|(_, line)| !line.is_empty());
        let (line, header) = lines.next().ok_or(TraceError::Empty)?;
        if header != HEADER {
            return Err(TraceError::Header {
                line,
                found: excerpt(header),
            });
        }
        let samples: Vec<_> = lines
            .map(|(line, text)| Ok((line, parse_line(line, text)?)))
            .collect::<Result<_, TraceError>>()?;
        Self::from_lines(&samples, None)
    }

    /// The trace in the format that [`Trace::parse_csv`] reads, times rounded down to a
    /// millisecond. Only the header for a trace of packet opportunities, which has no such format.
    pub fn to_csv(&self) -> String {
        let mut text = format!("{HEADER}\n");
        for sample in self.samples() {
            // Writing to a string can't fail.
            let _ = write!(text, "{},", sample.at.as_millis());
            if let Some(rate) = sample.rate {
                let _ = write!(text, "{}", rate.as_bps() as f64 / 1e3);
            }
            text.push(',');
            if let Some(rtt) = sample.rtt {
                let _ = write!(text, "{}", rtt.as_nanos() as f64 / 1e6);
            }
            text.push(',');
            if let Some(loss) = sample.loss {
                let _ = write!(text, "{loss}");
            }
            text.push('\n');
        }
        text
    }
}

fn parse_line(line: usize, text: &str) -> Result<TraceSample, TraceError> {
    let mut fields = [""; 4];
    let mut found = 0;
    for field in text.split(',') {
        if let Some(slot) = fields.get_mut(found) {
            *slot = field.trim();
        }
        found += 1;
    }
    if found != fields.len() {
        return Err(TraceError::FieldCount { line, found });
    }
    let [at, rate, rtt, loss] = fields;
    let at = at.parse().map_err(|_| TraceError::Field {
        line,
        column: "t_ms",
        value: excerpt(at),
        expected: "a whole number of milliseconds",
    })?;
    // 10^10 kbit/s is the highest rate, 3.6 * 10^6 ms the longest round-trip time.
    let rate = number(
        line,
        "rate_kbps",
        rate,
        1e10,
        "empty, or kbit/s from 0 to 10^10",
    )?;
    let rtt = number(
        line,
        "rtt_ms",
        rtt,
        3.6e6,
        "empty, or milliseconds from 0 to an hour",
    )?;
    let loss = number(line, "loss", loss, 1.0, "empty, or a share from 0 to 1")?;
    Ok(TraceSample {
        at: Duration::from_millis(at),
        rate: rate.map(|kbps| Bandwidth::from_bps((kbps * 1e3).round() as u64)),
        rtt: rtt.map(|millis| Duration::from_nanos((millis * 1e6).round() as u64)),
        loss,
    })
}

fn number(
    line: usize,
    column: &'static str,
    text: &str,
    max: f64,
    expected: &'static str,
) -> Result<Option<f64>, TraceError> {
    if text.is_empty() {
        return Ok(None);
    }
    match text.parse() {
        Ok(value) if (0.0..=max).contains(&value) => Ok(Some(value)),
        _ => Err(TraceError::Field {
            line,
            column,
            value: excerpt(text),
            expected,
        }),
    }
}
