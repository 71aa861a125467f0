//! Text formats of link parameters on command lines and in files: rate, buffer, loss. Plain
//! quantities are read by [`swiftwater_units::text`].

use std::str::FromStr;

use swiftwater_units::text::{
    ParseError, is_word, number_and_unit, parse_duration, parse_probability, parse_rate,
};
use swiftwater_units::{ByteCount, PacketCount};

use crate::config::Rate;
use crate::loss::LossModel;
use crate::queue::Buffer;

impl FromStr for Rate {
    type Err = ParseError;

    /// Reads what [`parse_rate`] reads, or `unlimited`. A trace has no text format: see
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
    /// (Gilbert-Elliott; by default h = 0 and k = 1; each a share or a percentage), the same with
    /// `@30ms` at the end (the state changes with each 30 ms instead of each packet), `none`.
    fn from_str(input: &str) -> Result<Self, ParseError> {
        const EXPECTED: &str = "write a share or percentage (0.001, 0.1%), \
                                ge:p,r[,h[,k]] for losses in bursts, ge:p,r[,h[,k]]@30ms for \
                                states that last a time, or none";
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
        let (parameters, step) = match parameters.split_once('@') {
            None => (parameters, None),
            Some((parameters, step)) => {
                let step = parse_duration(step).map_err(|_| fail())?;
                (parameters, Some(step))
            }
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
        Ok(match step {
            None => Self::GilbertElliott { p, r, h, k },
            Some(step) => Self::GilbertElliottStepped { p, r, h, k, step },
        })
    }
}
