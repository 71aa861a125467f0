//! Parsers of quantities on command lines and in files: rates, durations, probabilities.
//!
//! Numbers are decimal, units may be in any case, a blank between them is allowed.

use std::time::Duration;

use thiserror::Error;

use crate::rate::Bandwidth;

/// The highest accepted rate, 10 Tbit/s: arithmetic on it stays within 64 bits.
const MAX_RATE: Bandwidth = Bandwidth::from_mbps(10_000_000);

/// A value that could not be parsed.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("{what} '{input}' not understood: {expected}")]
pub struct ParseError {
    what: &'static str,
    input: String,
    expected: &'static str,
}

impl ParseError {
    /// An error about `input` as a `what`; `expected` describes valid values.
    pub fn new(what: &'static str, input: &str, expected: &'static str) -> Self {
        Self {
            what,
            input: input.to_owned(),
            expected,
        }
    }

    /// A description of valid values, with an example.
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

/// True if `input` is one of `words`, in any case.
pub fn is_word(input: &str, words: &[&str]) -> bool {
    words
        .iter()
        .any(|word| input.trim().eq_ignore_ascii_case(word))
}

/// Splits `12.5 mbit` into 12.5 and `mbit`. Only plain, unsigned decimals: no exponent, infinity or
/// NaN.
pub fn number_and_unit(input: &str) -> Option<(f64, &str)> {
    let text = input.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    Some((number.parse().ok()?, unit.trim_start()))
}
