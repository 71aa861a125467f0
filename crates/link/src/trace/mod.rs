//! Network traces: a path's rate, round-trip time and loss over time.
//!
//! Parsers and models are in the submodules; this one holds the data, [`cursor`] iterates over it.
//! A trace repeats from its start when it ends. The caller reads files.

mod csv;
mod cursor;
mod mahimahi;
mod synthetic;

use std::sync::Arc;
use std::time::Duration;

use swiftwater_units::{Bandwidth, Instant};
use thiserror::Error;

pub(crate) use self::cursor::{OpportunityCursor, SampleCursor};
use crate::config::MAX_RATE;

/// The longest trace: a year.
const MAX_LENGTH: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// The measured, or to be emulated, values from a time on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TraceSample {
    /// Time since the trace's start. The sample holds until the next one.
    pub at: Duration,
    /// Rate, at most 10 Tbit/s.
    pub rate: Option<Bandwidth>,
    /// Round-trip time.
    pub rtt: Option<Duration>,
    /// Share of packets lost, 0 to 1.
    pub loss: Option<f64>,
}

/// A network trace, cheap to clone.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    data: Data,
    /// Period of repetition, nanoseconds, never zero.
    period: u64,
}

#[derive(Clone, Debug, PartialEq)]
enum Data {
    Samples {
        samples: Arc<[Held]>,
        columns: Columns,
    },
    /// Times in nanoseconds at which so many bytes may leave.
    Opportunities { times: Arc<[u64]>, bytes: u32 },
}

/// A sample with gaps filled; absent columns hold zeros.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Held {
    at: u64,
    bps: u64,
    rtt: u64,
    loss: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Columns {
    rate: bool,
    rtt: bool,
    loss: bool,
}

impl Trace {
    /// A trace of `samples`, the first at time zero, times non-decreasing (of several at the same
    /// time the last one is used). A missing value is that of the sample before (for the first
    /// samples: the first existing one); a column without any value is absent. The last sample
    /// holds for `last_hold`, or if that is `None` as long as the one before it (a lone sample: one
    /// second). Line numbers in errors count samples from 1.
    pub fn from_samples(
        samples: &[TraceSample],
        last_hold: Option<Duration>,
    ) -> Result<Self, TraceError> {
        let lines: Vec<_> = samples
            .iter()
            .enumerate()
            .map(|(i, s)| (i + 1, *s))
            .collect();
        Self::from_lines(&lines, last_hold)
    }

    /// Reads either format of this crate, distinguished by the first line.
    pub fn detect(text: &str) -> Result<Self, TraceError> {
        let mut lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
        match lines.find(|line| !line.is_empty()) {
            None => Err(TraceError::Empty),
            Some(line) if line.contains(',') => Self::parse_csv(text),
            Some(line) if line.bytes().all(|byte| byte.is_ascii_digit()) => {
                Self::parse_mahimahi(text)
            }
            Some(line) => Err(TraceError::UnknownFormat {
                found: excerpt(line),
            }),
        }
    }

    /// The samples, with gaps filled; none for a trace of packet opportunities.
    pub fn samples(&self) -> impl Iterator<Item = TraceSample> + '_ {
        let (samples, columns): (&[Held], _) = match &self.data {
            Data::Samples { samples, columns } => (samples, *columns),
            Data::Opportunities { .. } => (&[], Columns::default()),
        };
        samples.iter().map(move |held| TraceSample {
            at: Duration::from_nanos(held.at),
            rate: columns.rate.then_some(Bandwidth::from_bps(held.bps)),
            rtt: columns.rtt.then_some(Duration::from_nanos(held.rtt)),
            loss: columns.loss.then_some(held.loss),
        })
    }

    /// The period of repetition.
    pub fn period(&self) -> Duration {
        Duration::from_nanos(self.period)
    }

    /// Whether it has rates.
    pub fn has_rate(&self) -> bool {
        match &self.data {
            Data::Samples { columns, .. } => columns.rate,
            Data::Opportunities { .. } => true,
        }
    }

    /// Whether it has round-trip times.
    pub fn has_rtt(&self) -> bool {
        matches!(&self.data, Data::Samples { columns, .. } if columns.rtt)
    }

    /// Whether it has loss shares.
    pub fn has_loss(&self) -> bool {
        matches!(&self.data, Data::Samples { columns, .. } if columns.loss)
    }

    /// The mean rate over a period, weighted by time; `None` without rates.
    pub fn mean_rate(&self) -> Option<Bandwidth> {
        if !self.has_rate() {
            return None;
        }
        let bits_per_billion = match &self.data {
            Data::Samples { .. } => self.nanobits_per_period() / u128::from(self.period),
            Data::Opportunities { times, bytes } => {
                let bits = times.len() as u128 * u128::from(*bytes) * 8;
                bits * 1_000_000_000 / u128::from(self.period)
            }
        };
        Some(Bandwidth::from_bps(
            u64::try_from(bits_per_billion).unwrap_or(u64::MAX),
        ))
    }

    /// The mean round-trip time over a period, weighted by time; `None` without round-trip times.
    pub fn mean_rtt(&self) -> Option<Duration> {
        if !self.has_rtt() {
            return None;
        }
        let area: u128 = self
            .holds()
            .map(|(held, hold)| u128::from(held.rtt) * hold)
            .sum();
        let mean = area / u128::from(self.period);
        Some(Duration::from_nanos(
            u64::try_from(mean).unwrap_or(u64::MAX),
        ))
    }

    /// The trace with all rates times `factor` (negative and NaN count as zero; rates are limited
    /// to 10 Tbit/s). A packet opportunity carries `factor` times as many bytes.
    #[must_use]
    pub fn scaled(&self, factor: f64) -> Self {
        let data = match &self.data {
            Data::Samples { samples, columns } => Data::Samples {
                samples: samples
                    .iter()
                    .map(|held| {
                        let rate = Bandwidth::from_bps(held.bps).scaled(factor).min(MAX_RATE);
                        Held {
                            bps: rate.as_bps(),
                            ..*held
                        }
                    })
                    .collect(),
                columns: *columns,
            },
            Data::Opportunities { times, bytes } => Data::Opportunities {
                times: Arc::clone(times),
                bytes: (f64::from(*bytes) * factor).round() as u32,
            },
        };
        Self {
            data,
            period: self.period,
        }
    }

    /// Whether a packet can ever pass.
    pub(crate) fn ever_passes(&self) -> bool {
        match &self.data {
            Data::Samples { samples, .. } => samples.iter().any(|held| held.bps > 0),
            Data::Opportunities { bytes, .. } => *bytes > 0,
        }
    }

    pub(crate) fn sample_cursor(&self, start: Instant, offset_nanos: u64) -> Option<SampleCursor> {
        let Data::Samples { samples, .. } = &self.data else {
            return None;
        };
        let capacity = u64::try_from(self.nanobits_per_period()).unwrap_or(u64::MAX);
        let samples = Arc::clone(samples);
        Some(SampleCursor::new(
            samples,
            self.period,
            capacity,
            start,
            offset_nanos,
        ))
    }

    pub(crate) fn opportunity_cursor(
        &self,
        start: Instant,
        offset_nanos: u64,
    ) -> Option<OpportunityCursor> {
        let Data::Opportunities { times, bytes } = &self.data else {
            return None;
        };
        let times = Arc::clone(times);
        Some(OpportunityCursor::new(
            times,
            *bytes,
            self.period,
            start,
            offset_nanos,
        ))
    }

    /// Each sample and the nanoseconds for which it holds.
    fn holds(&self) -> impl Iterator<Item = (&Held, u128)> {
        let samples: &[Held] = match &self.data {
            Data::Samples { samples, .. } => samples,
            Data::Opportunities { .. } => &[],
        };
        let ends = samples
            .iter()
            .skip(1)
            .map(|held| held.at)
            .chain([self.period]);
        samples
            .iter()
            .zip(ends)
            .map(|(held, end)| (held, u128::from(end - held.at)))
    }

    fn nanobits_per_period(&self) -> u128 {
        self.holds()
            .map(|(held, hold)| u128::from(held.bps) * hold)
            .sum()
    }

    /// [`Trace::from_samples`] with the line number of each sample.
    fn from_lines(
        lines: &[(usize, TraceSample)],
        last_hold: Option<Duration>,
    ) -> Result<Self, TraceError> {
        check_lines(lines)?;
        let (Some((_, first)), Some((_, last))) = (lines.first(), lines.last()) else {
            return Err(TraceError::Empty);
        };
        let columns = Columns {
            rate: lines.iter().any(|(_, sample)| sample.rate.is_some()),
            rtt: lines.iter().any(|(_, sample)| sample.rtt.is_some()),
            loss: lines.iter().any(|(_, sample)| sample.loss.is_some()),
        };
        let before_last = lines
            .iter()
            .rev()
            .map(|(_, sample)| sample.at)
            .find(|at| *at < last.at);
        let hold = last_hold
            .or(before_last.map(|before| last.at.saturating_sub(before)))
            .unwrap_or(Duration::from_secs(1));
        if hold.is_zero() || hold > MAX_LENGTH {
            return Err(TraceError::LastHold);
        }
        let mut held = TraceSample {
            rate: lines.iter().find_map(|(_, sample)| sample.rate),
            rtt: lines.iter().find_map(|(_, sample)| sample.rtt),
            loss: lines.iter().find_map(|(_, sample)| sample.loss),
            ..*first
        };
        let mut samples: Vec<Held> = Vec::with_capacity(lines.len());
        for (_, sample) in lines {
            held = TraceSample {
                at: sample.at,
                rate: sample.rate.or(held.rate),
                rtt: sample.rtt.or(held.rtt),
                loss: sample.loss.or(held.loss),
            };
            let filled = Held {
                at: nanos(held.at),
                bps: held.rate.unwrap_or_default().as_bps(),
                rtt: nanos(held.rtt.unwrap_or_default()),
                loss: held.loss.unwrap_or_default(),
            };
            match samples.last_mut() {
                Some(same_time) if same_time.at == filled.at => *same_time = filled,
                _ => samples.push(filled),
            }
        }
        let samples = samples.into();
        let period = nanos(last.at + hold);
        Ok(Self {
            data: Data::Samples { samples, columns },
            period,
        })
    }
}

fn check_lines(lines: &[(usize, TraceSample)]) -> Result<(), TraceError> {
    let mut previous = None;
    for (line, sample) in lines {
        let field = |column, value: String, expected| {
            Err(TraceError::Field {
                line: *line,
                column,
                value,
                expected,
            })
        };
        match previous {
            None if !sample.at.is_zero() => {
                return field("t_ms", millis(sample.at), "0 in the first sample");
            }
            Some(previous) if sample.at < previous => {
                return field(
                    "t_ms",
                    millis(sample.at),
                    "no less than in the sample before",
                );
            }
            _ if sample.at > MAX_LENGTH => {
                return field("t_ms", millis(sample.at), "at most a year");
            }
            _ => previous = Some(sample.at),
        }
        if let Some(rate) = sample.rate
            && rate > MAX_RATE
        {
            return field("rate_kbps", rate.to_string(), "at most 10 Tbit/s");
        }
        if let Some(rtt) = sample.rtt
            && rtt > MAX_RTT
        {
            return field("rtt_ms", millis(rtt), "at most an hour");
        }
        if let Some(loss) = sample.loss
            && !(0.0..=1.0).contains(&loss)
        {
            return field("loss", loss.to_string(), "a share from 0 to 1");
        }
    }
    Ok(())
}

/// The longest round-trip time in a trace: an hour.
const MAX_RTT: Duration = Duration::from_secs(60 * 60);

/// For durations that were checked before.
fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

fn millis(duration: Duration) -> String {
    format!("{}", duration.as_secs_f64() * 1e3)
}

/// The start of a user's text, for an error message.
fn excerpt(text: &str) -> String {
    text.chars().take(40).collect()
}

/// Why a text is not a trace. Lines count from 1.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[non_exhaustive]
pub enum TraceError {
    /// There are no samples.
    #[error("the trace has no samples")]
    Empty,
    /// It starts like neither format.
    #[error(
        "'{found}' starts neither a CSV trace (t_ms,rate_kbps,rtt_ms,loss) nor a Mahimahi trace \
         (a whole number of milliseconds on each line)"
    )]
    UnknownFormat {
        /// The first line.
        found: String,
    },
    /// The header isn't that of a CSV trace.
    #[error("line {line}: the header is '{found}', expected t_ms,rate_kbps,rtt_ms,loss")]
    Header {
        /// The line.
        line: usize,
        /// The header found.
        found: String,
    },
    /// A line has too many or too few fields.
    #[error("line {line}: {found} fields, expected 4 (t_ms,rate_kbps,rtt_ms,loss)")]
    FieldCount {
        /// The line.
        line: usize,
        /// Number of fields.
        found: usize,
    },
    /// A value is invalid for its column.
    #[error("line {line}: {column} is '{value}', expected {expected}")]
    Field {
        /// The line.
        line: usize,
        /// The column.
        column: &'static str,
        /// The value found.
        value: String,
        /// The expected values.
        expected: &'static str,
    },
    /// The duration of the last sample is zero, or more than a year.
    #[error("the last sample must hold for more than zero and at most a year")]
    LastHold,
    /// A Mahimahi trace with a period of zero.
    #[error("the last opportunity is at 0 ms, but its time is the period after which all repeat")]
    NoPeriod,
}
