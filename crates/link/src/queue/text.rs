//! Text format of queue disciplines: `codel`, `red:min=30p,max=90p,p=0.1`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use swiftwater_units::{ByteCount, PacketCount};

use super::buffer::Buffer;
use super::codel::CoDelConfig;
use super::discipline::QueueDiscipline;
use super::dual_pi2::{DualPi2Config, DualQueueScheduler};
use super::fq_codel::FqCoDelConfig;
use super::red::{RedConfig, RedThreshold};
use swiftwater_units::text::{ParseError, number_and_unit, parse_duration, parse_probability};

const DISCIPLINES: &str = "write droptail, red, codel, fq-codel or dualpi2, with parameters if \
                           needed: codel:target=5ms,interval=100ms";
const RED: &str = "parameters of red are min=, max= (bytes 30kB, packets 30p or a share of the \
                   buffer 20%), p= (at max, 0.1), weight= (0.002), gentle=, ecn= (on or off) and \
                   packet= (bytes)";
const CODEL: &str =
    "parameters of codel are target= (5ms), interval= (100ms), mtu= (bytes) and ecn= (on or off)";
const FQ_CODEL: &str = "parameters of fq-codel are target= (5ms), interval= (100ms), quantum= \
                        (bytes, 1514), flows= (1024), mtu= (bytes) and ecn= (on or off)";
const DUALPI2: &str = "parameters of dualpi2 are target= (15ms), tupdate= (16ms), alpha= (0.16), \
                       beta= (3.2), k= (2), l4s_threshold= (1ms), l4s_range= (400us), l4s_min= \
                       (packets, 1p) and classic_share= (10%) or tshift= (30ms)";

impl FromStr for QueueDiscipline {
    type Err = ParseError;

    /// Reads `droptail`, `red`, `codel`, `fq-codel`, `dualpi2`, each but the first with parameters
    /// that differ from the default, such as `dualpi2:target=15ms,l4s_threshold=1ms`. Whether they
    /// are in range is checked by [`QueueDiscipline::validate`].
    fn from_str(input: &str) -> Result<Self, ParseError> {
        let (name, parameters) = match input.split_once(':') {
            Some((name, parameters)) => (name, Some(parameters)),
            None => (input, None),
        };
        let fail = |expected| ParseError::new("queue", input, expected);
        match name.trim().to_ascii_lowercase().as_str() {
            "droptail" | "drop-tail" if parameters.is_none() => Ok(Self::DropTail),
            "red" => {
                let mut config = RedConfig::default();
                read(parameters, |key, value| red(&mut config, key, value))
                    .ok_or_else(|| fail(RED))?;
                Ok(Self::Red(config))
            }
            "codel" => {
                let mut config = CoDelConfig::default();
                read(parameters, |key, value| codel(&mut config, key, value))
                    .ok_or_else(|| fail(CODEL))?;
                Ok(Self::CoDel(config))
            }
            "fq-codel" | "fq_codel" => {
                let mut config = FqCoDelConfig::default();
                read(parameters, |key, value| fq_codel(&mut config, key, value))
                    .ok_or_else(|| fail(FQ_CODEL))?;
                Ok(Self::FqCoDel(config))
            }
            "dualpi2" => {
                let mut config = DualPi2Config::default();
                read(parameters, |key, value| dual_pi2(&mut config, key, value))
                    .ok_or_else(|| fail(DUALPI2))?;
                Ok(Self::DualPi2(config))
            }
            _ => Err(fail(DISCIPLINES)),
        }
    }
}

/// Passes each `key=value` to `set`, which returns `None` for an error.
fn read(parameters: Option<&str>, mut set: impl FnMut(&str, &str) -> Option<()>) -> Option<()> {
    let Some(parameters) = parameters else {
        return Some(());
    };
    for part in parameters.split(',') {
        let (key, value) = part.split_once('=')?;
        set(key.trim(), value.trim())?;
    }
    Some(())
}

fn red(config: &mut RedConfig, key: &str, value: &str) -> Option<()> {
    match key {
        "min" => config.min = threshold(value)?,
        "max" => config.max = threshold(value)?,
        "p" => config.max_probability = parse_probability(value).ok()?,
        "weight" => config.weight = parse_probability(value).ok()?,
        "gentle" => config.gentle = switch(value)?,
        "ecn" => config.ecn = switch(value)?,
        "packet" => config.packet = bytes(value)?,
        _ => return None,
    }
    Some(())
}

fn codel(config: &mut CoDelConfig, key: &str, value: &str) -> Option<()> {
    match key {
        "target" => config.target = time(value)?,
        "interval" => config.interval = time(value)?,
        "mtu" => config.mtu = bytes(value)?,
        "ecn" => config.ecn = switch(value)?,
        _ => return None,
    }
    Some(())
}

fn fq_codel(config: &mut FqCoDelConfig, key: &str, value: &str) -> Option<()> {
    match key {
        "quantum" => config.quantum = bytes(value)?.get().try_into().ok()?,
        "flows" => config.flows = value.parse().ok()?,
        _ => return codel(&mut config.codel, key, value),
    }
    Some(())
}

fn dual_pi2(config: &mut DualPi2Config, key: &str, value: &str) -> Option<()> {
    match key {
        "target" => config.target = time(value)?,
        "tupdate" => config.tupdate = time(value)?,
        "alpha" => config.alpha = number(value)?,
        "beta" => config.beta = number(value)?,
        "k" => config.k = number(value)?,
        "l4s_threshold" => config.l4s_threshold = time(value)?,
        "l4s_range" => config.l4s_range = time(value)?,
        "l4s_min" => config.l4s_min = packets(value)?,
        "classic_share" => {
            config.scheduler = DualQueueScheduler::Weighted(parse_probability(value).ok()?);
        }
        "tshift" => config.scheduler = DualQueueScheduler::TimeShifted(time(value)?),
        _ => return None,
    }
    Some(())
}

/// Packets and bytes as in a buffer, or a share of it: `20%`, `0.2`.
fn threshold(text: &str) -> Option<RedThreshold> {
    if text.ends_with('%') || text.contains('.') && text.parse::<f64>().is_ok() {
        let (number, unit) = number_and_unit(text)?;
        let scale = if unit.is_empty() { 1.0 } else { 100.0 };
        return Some(RedThreshold::Share(number / scale));
    }
    match text.parse().ok()? {
        Buffer::Bytes(bytes) => Some(RedThreshold::Bytes(bytes)),
        Buffer::Packets(packets) => Some(RedThreshold::Packets(packets)),
        Buffer::Unlimited | Buffer::Bdp(_) => None,
    }
}

fn time(text: &str) -> Option<Duration> {
    parse_duration(text).ok()
}

fn bytes(text: &str) -> Option<ByteCount> {
    match text.parse().ok()? {
        Buffer::Bytes(bytes) => Some(bytes),
        _ => None,
    }
}

fn packets(text: &str) -> Option<PacketCount> {
    match text.parse().ok()? {
        Buffer::Packets(packets) => Some(packets),
        _ => None,
    }
}

fn number(text: &str) -> Option<f64> {
    match number_and_unit(text)? {
        (number, "") => Some(number),
        _ => None,
    }
}

fn switch(text: &str) -> Option<bool> {
    match text {
        "on" => Some(true),
        "off" => Some(false),
        _ => None,
    }
}

impl fmt::Display for QueueDiscipline {
    /// The format that `FromStr` reads: the name, and the parameters that differ from the default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Text { f, separator: ':' };
        match self {
            Self::DropTail => text.f.write_str("droptail"),
            Self::Red(config) => write_red(&mut text, config),
            Self::CoDel(config) => {
                text.f.write_str("codel")?;
                write_codel(&mut text, config)
            }
            Self::FqCoDel(config) => {
                let default = FqCoDelConfig::default();
                text.f.write_str("fq-codel")?;
                write_codel(&mut text, &config.codel)?;
                text.put("quantum", &config.quantum, &default.quantum)?;
                text.put("flows", &config.flows, &default.flows)
            }
            Self::DualPi2(config) => write_dual_pi2(&mut text, config),
        }
    }
}

fn write_red(text: &mut Text<'_, '_>, config: &RedConfig) -> fmt::Result {
    let default = RedConfig::default();
    text.f.write_str("red")?;
    text.put("min", &config.min, &default.min)?;
    text.put("max", &config.max, &default.max)?;
    text.put("p", &config.max_probability, &default.max_probability)?;
    text.put("weight", &config.weight, &default.weight)?;
    text.put("gentle", &Switch(config.gentle), &Switch(default.gentle))?;
    text.put("ecn", &Switch(config.ecn), &Switch(default.ecn))?;
    text.put("packet", &config.packet.get(), &default.packet.get())
}

fn write_codel(text: &mut Text<'_, '_>, config: &CoDelConfig) -> fmt::Result {
    let default = CoDelConfig::default();
    text.put("target", &Time(config.target), &Time(default.target))?;
    text.put("interval", &Time(config.interval), &Time(default.interval))?;
    text.put("mtu", &config.mtu.get(), &default.mtu.get())?;
    text.put("ecn", &Switch(config.ecn), &Switch(default.ecn))
}

fn write_dual_pi2(text: &mut Text<'_, '_>, config: &DualPi2Config) -> fmt::Result {
    let default = DualPi2Config::default();
    let packets = |packets: PacketCount| Buffer::Packets(packets);
    text.f.write_str("dualpi2")?;
    text.put("target", &Time(config.target), &Time(default.target))?;
    text.put("tupdate", &Time(config.tupdate), &Time(default.tupdate))?;
    text.put("alpha", &config.alpha, &default.alpha)?;
    text.put("beta", &config.beta, &default.beta)?;
    text.put("k", &config.k, &default.k)?;
    let (threshold, range) = (config.l4s_threshold, config.l4s_range);
    text.put(
        "l4s_threshold",
        &Time(threshold),
        &Time(default.l4s_threshold),
    )?;
    text.put("l4s_range", &Time(range), &Time(default.l4s_range))?;
    text.put(
        "l4s_min",
        &packets(config.l4s_min),
        &packets(default.l4s_min),
    )?;
    if config.scheduler == default.scheduler {
        return Ok(());
    }
    match config.scheduler {
        DualQueueScheduler::Weighted(share) => text.always("classic_share", &share),
        DualQueueScheduler::TimeShifted(shift) => text.always("tshift", &Time(shift)),
    }
}

struct Text<'a, 'f> {
    f: &'a mut fmt::Formatter<'f>,
    separator: char,
}

impl Text<'_, '_> {
    /// Writes a parameter that differs from the default.
    fn put<T: fmt::Display + PartialEq>(
        &mut self,
        key: &str,
        value: &T,
        default: &T,
    ) -> fmt::Result {
        if value == default {
            return Ok(());
        }
        self.always(key, value)
    }

    fn always(&mut self, key: &str, value: &impl fmt::Display) -> fmt::Result {
        let separator = std::mem::replace(&mut self.separator, ',');
        write!(self.f, "{separator}{key}={value}")
    }
}

#[derive(PartialEq)]
struct Switch(bool);

impl fmt::Display for Switch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0 { "on" } else { "off" })
    }
}

/// A duration in the largest unit in which it is whole.
#[derive(PartialEq)]
struct Time(Duration);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nanos = self.0.as_nanos();
        let units = [("s", 1_000_000_000), ("ms", 1_000_000), ("us", 1_000)];
        for (unit, size) in units {
            if nanos.is_multiple_of(size) {
                return write!(f, "{}{unit}", nanos / size);
            }
        }
        write!(f, "{nanos}ns")
    }
}
