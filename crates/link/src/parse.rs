//! What users write on command lines and in files: rates, durations, buffers, loss.
//!
//! Numbers are decimal, units may be in any case, a blank between them is allowed.

use std::str::FromStr;
use std::time::Duration;

use swiftwater_units::{Bandwidth, ByteCount, PacketCount};
use thiserror::Error;

use crate::config::{MAX_RATE, Rate};
use crate::loss::LossModel;
use crate::queue::Buffer;

/// A value that wasn't understood.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{what} '{input}' not understood: {expected}")]
pub struct ParseError {
    what: &'static str,
    input: String,
    expected: &'static str,
}

impl ParseError {
    pub(crate) fn new(what: &'static str, input: &str, expected: &'static str) -> Self {
        Self {
            what,
            input: input.to_owned(),
            expected,
        }
    }

    /// What would have been right, with an example.
    pub fn expected(&self) -> &'static str {
        self.expected
    }
}

/// Reads a rate: `100mbit`, `12.5Mbit/s`, `800kbps`, `1gbit`, `56000bit`. Units are decimal and
/// count bits, not bytes. At most 10 Tbit/s.
pub fn parse_rate(input: &str) -> Result<Bandwidth, ParseError> {
    let fail = |expected| Err(ParseError::new("rate", input, expected));
    let Some((number, unit)) = number_and_unit(input) else {
        return fail("write a number and a unit, such as 12.5mbit or 800kbps");
    };
    let factor = match unit.to_ascii_lowercase().as_str() {
        "bit" | "bit/s" | "bps" => 1.0,
        "kbit" | "kbit/s" | "kbps" => 1e3,
        "mbit" | "mbit/s" | "mbps" => 1e6,
        "gbit" | "gbit/s" | "gbps" => 1e9,
        "" => return fail("add a unit: bit, kbit, mbit or gbit (per second)"),
        _ => return fail("units are bit, kbit, mbit and gbit (per second; bits, not bytes)"),
    };
    let bps = (number * factor).round();
    if bps > MAX_RATE.as_bps() as f64 {
        return fail("at most 10000 gbit");
    }
    Ok(Bandwidth::from_bps(bps as u64))
}

/// Reads a duration: `30.6ms`, `1s`, `250us`, `40ns`, `2min`. Rounded to a nanosecond.
pub fn parse_duration(input: &str) -> Result<Duration, ParseError> {
    let fail = |expected| Err(ParseError::new("duration", input, expected));
    let Some((number, unit)) = number_and_unit(input) else {
        return fail("write a number and a unit, such as 30.6ms or 1s");
    };
    let factor = match unit.to_ascii_lowercase().as_str() {
        "ns" => 1.0,
        "us" | "µs" | "μs" => 1e3,
        "ms" => 1e6,
        "s" | "sec" => 1e9,
        "min" => 60e9,
        "" if number == 0.0 => 0.0,
        "" => return fail("add a unit: ns, us, ms, s or min"),
        _ => return fail("units are ns, us, ms, s and min"),
    };
    let nanos = (number * factor).round();
    // 584 years; beyond it nanoseconds don't fit.
    if nanos >= u64::MAX as f64 {
        return fail("too long");
    }
    Ok(Duration::from_nanos(nanos as u64))
}

/// Reads a probability: `0.1%` or `0.001`, from 0 to 1 (100%).
pub fn parse_probability(input: &str) -> Result<f64, ParseError> {
    const EXPECTED: &str = "write a share from 0 to 1, or a percentage, such as 0.001 or 0.1%";
    let fail = || ParseError::new("probability", input, EXPECTED);
    let (number, unit) = number_and_unit(input).ok_or_else(fail)?;
    let probability = match unit {
        "" => number,
        "%" => number / 100.0,
        _ => return Err(fail()),
    };
    if probability <= 1.0 {
        Ok(probability)
    } else {
        Err(fail())
    }
}

impl FromStr for Rate {
    type Err = ParseError;

    /// Reads what [`parse_rate`] reads, or `unlimited`. A trace is no string: see
    /// [`Rate::Trace`](crate::Rate::Trace).
    fn from_str(input: &str) -> Result<Self, ParseError> {
        if is_word(input, &["unlimited", "inf"]) {
            return Ok(Self::Unlimited);
        }
        parse_rate(input).map(Self::Constant)
    }
}

impl FromStr for Buffer {
    type Err = ParseError;

    /// Reads `1bdp`, `64kB` (1000 bytes each), `64KiB` (1024), `1MB`, `100p` or `100pkts`
    /// (packets), `125000` (bytes), `unlimited`.
    fn from_str(input: &str) -> Result<Self, ParseError> {
        if is_word(input, &["unlimited", "inf"]) {
            return Ok(Self::Unlimited);
        }
        let fail = || {
            let expected = "write bytes (125000, 64kB, 64KiB, 1MB), packets (100p), multiples of \
                            the bandwidth-delay product (1bdp), or unlimited";
            ParseError::new("buffer", input, expected)
        };
        let (number, unit) = number_and_unit(input).ok_or_else(fail)?;
        let factor = match unit.to_ascii_lowercase().as_str() {
            "bdp" => return Ok(Self::Bdp(number)),
            "p" | "pkt" | "pkts" | "packet" | "packets" if number.fract() == 0.0 => {
                return Ok(Self::Packets(PacketCount::new(number as u64)));
            }
            "" | "b" | "byte" | "bytes" => 1.0,
            "k" | "kb" => 1e3,
            "m" | "mb" => 1e6,
            "g" | "gb" => 1e9,
            "kib" => 1024.0,
            "mib" => 1024.0 * 1024.0,
            "gib" => 1024.0 * 1024.0 * 1024.0,
            _ => return Err(fail()),
        };
        Ok(Self::Bytes(
            ByteCount::new((number * factor).round() as u64),
        ))
    }
}

impl FromStr for LossModel {
    type Err = ParseError;

    /// Reads `0.1%` or `0.001` (independent losses), `ge:p,r`, `ge:p,r,h` or `ge:p,r,h,k`
    /// (Gilbert-Elliott; h = 0 and k = 1 if left out; each a share or a percentage), `none`.
    fn from_str(input: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str = "write a share or percentage (0.001, 0.1%), \
                                ge:p,r[,h[,k]] for losses in bursts, or none";
        let fail = || ParseError::new("loss", input, EXPECTED);
        let text = input.trim();
        if is_word(text, &["none"]) {
            return Ok(Self::None);
        }
        let Some(parameters) = text
            .strip_prefix("ge:")
            .or_else(|| text.strip_prefix("GE:"))
        else {
            let probability = parse_probability(text).map_err(|_| fail())?;
            return Ok(if probability > 0.0 {
                Self::Bernoulli(probability)
            } else {
                Self::None
            });
        };
        let mut values = [0.0, 0.0, 0.0, 1.0];
        let mut given = 0;
        for part in parameters.split(',') {
            let slot = values.get_mut(given).ok_or_else(fail)?;
            *slot = parse_probability(part).map_err(|_| fail())?;
            given += 1;
        }
        if given < 2 {
            return Err(fail());
        }
        let [p, r, h, k] = values;
        Ok(Self::GilbertElliott { p, r, h, k })
    }
}

pub(crate) fn is_word(input: &str, words: &[&str]) -> bool {
    words
        .iter()
        .any(|word| input.trim().eq_ignore_ascii_case(word))
}

/// Splits `12.5 mbit` into 12.5 and `mbit`. Only plain, unsigned decimals: no exponent, infinity or
/// NaN.
pub(crate) fn number_and_unit(input: &str) -> Option<(f64, &str)> {
    let text = input.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim_start()))
}
