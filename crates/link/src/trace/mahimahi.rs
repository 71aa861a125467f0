//! Packet-opportunity traces in Mahimahi's format: on each line the millisecond at which a packet
//! of 1500 bytes may be sent.

use super::{Data, MAX_LENGTH, Trace, TraceError, excerpt};

/// Bytes that may be sent at each opportunity.
const OPPORTUNITY_BYTES: u32 = 1500;

impl Trace {
    /// Reads a Mahimahi trace: an integer number of milliseconds on each line, non-decreasing, each
    /// an opportunity to send 1500 bytes (packet overhead included). The last time is also the
    /// period after which the trace repeats. Blank lines are skipped.
    ///
    /// A large packet takes several opportunities, small ones share one; an opportunity that finds
    /// an empty queue is lost.
    pub fn parse_mahimahi(text: &str) -> Result<Self, TraceError> {
        let mut times = Vec::new();
        let mut last = 0;
        let max = MAX_LENGTH.as_millis() as u64;
        for (index, line) in text.trim_start_matches('\u{feff}').lines().enumerate() {
            let line_text = line.trim();
            if line_text.is_empty() {
                continue;
            }
            let field = |expected| TraceError::Field {
                line: index + 1,
                column: "the time",
                value: excerpt(line_text),
                expected,
            };
            let millis: u64 = line_text
                .parse()
                .map_err(|_| field("a whole number of milliseconds"))?;
            if millis < last {
                return Err(field("no less than on the line before"));
            }
            if millis > max {
                return Err(field("at most a year"));
            }
            last = millis;
            times.push(millis * 1_000_000);
        }
        match times.last() {
            None => Err(TraceError::Empty),
            Some(0) => Err(TraceError::NoPeriod),
            Some(&period) => Ok(Self {
                data: Data::Opportunities {
                    times: times.into(),
                    bytes: OPPORTUNITY_BYTES,
                },
                period,
            }),
        }
    }
}
