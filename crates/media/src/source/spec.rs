//! The text format of sources on command lines and in scenarios.

use std::fmt;
use std::fs;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use swiftwater_units::Bandwidth;
use swiftwater_units::text::{ParseError, number_and_unit, parse_duration, parse_rate};

use super::error::{EncodingError, SourceError, SpecError};
use super::text::{Length, Rate};
use super::{
    Constant, Encoding, FrameSource, Limited, MAX_PERIOD, Recorded, Recording, Variable, read_mp4,
    sample,
};

/// Default frames per second of generators.
const DEFAULT_FPS: f64 = 30.0;
/// Default frames from key frame to key frame of variable-rate sources.
const DEFAULT_GOP: u32 = 60;
/// Default size factor of key frames of variable-rate sources.
const DEFAULT_KEY_FACTOR: f64 = 5.0;
/// Default spread of sizes of variable-rate sources.
const DEFAULT_SIGMA: f64 = 0.3;

/// Options of `cbr`, of `vbr`, and of recordings.
const CBR_OPTIONS: [&str; 4] = ["fps", "gop", "key", "for"];
const VBR_OPTIONS: [&str; 5] = ["fps", "gop", "key", "sigma", "for"];
const RECORDED_OPTIONS: [&str; 2] = ["rate", "for"];

/// The kind of a source.
#[derive(Clone, Debug, PartialEq)]
pub enum SourceKind {
    /// [`Constant`].
    Constant(Encoding),
    /// [`Variable`].
    Variable {
        /// Rate, frame rate, key frames.
        encoding: Encoding,
        /// Spread of the sizes, see [`Variable::new`].
        sigma: f64,
    },
    /// A file, played in a loop: a frame table if its name ends in `.csv` (see [`Recording`]), else
    /// MP4 (see [`read_mp4`]).
    File {
        /// Its path.
        path: String,
        /// The scaled mean rate; `None` for the original.
        rate: Option<Bandwidth>,
    },
    /// The video of [`sample`], played in a loop.
    Sample {
        /// The scaled mean rate; `None` for the original.
        rate: Option<Bandwidth>,
    },
}

/// A source, as named by users.
///
/// | text | source |
/// |---|---|
/// | `cbr:4mbit,fps=60,gop=120,key=4` | constant rate; without `gop` only the first and requested frames are key frames, without `key` all frames have the same size; 30 frames/s by default |
/// | `vbr:4mbit,fps=30,gop=60,key=5,sigma=0.3` | lognormal sizes; these values by default; `gop=none` for no regular key frames |
/// | `file:talk.mp4,rate=2mbit` | the video track of a file, at its own rate by default |
/// | `sample,rate=4mbit` | the project's sample video |
///
/// Each takes `for=60s`, at most 30 days: the stream ends after that time. Otherwise it has no end. Units are those of
/// [`swiftwater_units::text`]. A path may contain commas, but can't end in one of these options.
#[derive(Clone, Debug, PartialEq)]
pub struct SourceSpec {
    /// The kind.
    pub kind: SourceKind,
    /// Frames from this time on are omitted; `None`: no end.
    pub length: Option<Duration>,
}

impl SourceSpec {
    /// Creates the source. `seed` determines the sizes of a variable-rate one. The only function of
    /// the crate that opens a file, if the text names one.
    pub fn open(&self, seed: u64) -> Result<Box<dyn FrameSource>, SourceError> {
        let source: Box<dyn FrameSource> = match &self.kind {
            SourceKind::Constant(encoding) => Box::new(Constant::new(*encoding)?),
            SourceKind::Variable { encoding, sigma } => {
                Box::new(Variable::new(*encoding, *sigma, seed)?)
            }
            SourceKind::File { path, rate } => Box::new(recorded(read_file(path)?, *rate)),
            SourceKind::Sample { rate } => Box::new(recorded(sample(), *rate)),
        };
        Ok(match self.length {
            Some(length) => Box::new(Limited::new(source, length)),
            None => source,
        })
    }

    /// The mean rate of the stream; `None` for an unscaled file, which would have to be read.
    pub fn mean_rate(&self) -> Option<Bandwidth> {
        match &self.kind {
            SourceKind::Constant(encoding) | SourceKind::Variable { encoding, .. } => {
                Some(encoding.rate)
            }
            SourceKind::File { rate, .. } => *rate,
            SourceKind::Sample { rate } => Some(rate.unwrap_or_else(|| sample().mean_rate())),
        }
    }
}

fn recorded(recording: Recording, rate: Option<Bandwidth>) -> Recorded {
    let source = Recorded::new(Arc::new(recording));
    match rate {
        Some(rate) => source.at_rate(rate),
        None => source,
    }
}

fn read_file(path: &str) -> Result<Recording, SourceError> {
    let unreadable = |source| SourceError::Read {
        path: path.to_owned(),
        source,
    };
    // A pipe could block without end and can't be seeked.
    if !fs::metadata(path).map_err(unreadable)?.is_file() {
        let kind = std::io::ErrorKind::InvalidInput;
        return Err(unreadable(std::io::Error::new(kind, "not a regular file")));
    }
    let is_table = Path::new(path)
        .extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    if is_table {
        let text = fs::read_to_string(path).map_err(unreadable)?;
        return text.parse().map_err(|source| SourceError::Table {
            path: path.to_owned(),
            source,
        });
    }
    let mut file = fs::File::open(path).map_err(unreadable)?;
    read_mp4(&mut file).map_err(|source| SourceError::Demux {
        path: path.to_owned(),
        source,
    })
}

/// The given options of a text.
#[derive(Debug, Default)]
struct Options {
    fps: Option<f64>,
    /// 0: `none`.
    gop: Option<u32>,
    key: Option<f64>,
    sigma: Option<f64>,
    rate: Option<Bandwidth>,
    length: Option<Duration>,
}

impl Options {
    /// Parses one `name=value`; `None` if it's none of `names`, repeated, or invalid.
    fn take(&mut self, option: &str, names: &[&str]) -> Option<()> {
        let (name, value) = option.split_once('=')?;
        let name = name.trim();
        if !names.contains(&name) {
            return None;
        }
        match name {
            "fps" => once(&mut self.fps, number(value)?),
            "gop" if value.trim() == "none" => once(&mut self.gop, 0),
            "gop" => once(
                &mut self.gop,
                value.trim().parse().ok().filter(|gop| *gop > 0)?,
            ),
            "key" => once(&mut self.key, number(value)?),
            "sigma" => once(&mut self.sigma, number(value)?),
            "rate" => {
                let rate = parse_rate(value).ok().filter(|rate| !rate.is_zero());
                once(&mut self.rate, rate?)
            }
            _ => {
                let length = parse_duration(value).ok();
                once(
                    &mut self.length,
                    length.filter(|length| *length <= MAX_PERIOD)?,
                )
            }
        }
    }
}

/// Fills `slot`; `None` if it was filled.
fn once<T>(slot: &mut Option<T>, value: T) -> Option<()> {
    if slot.is_some() {
        return None;
    }
    *slot = Some(value);
    Some(())
}

fn number(value: &str) -> Option<f64> {
    match number_and_unit(value)? {
        (number, "") => Some(number),
        _ => None,
    }
}

fn parse(text: &str) -> Option<SourceSpec> {
    if let Some(parameters) = text.strip_prefix("cbr:") {
        let (encoding, options) = generator(parameters, &CBR_OPTIONS, (0, 1.0))?;
        return Some(SourceSpec {
            kind: SourceKind::Constant(encoding),
            length: options.length,
        });
    }
    if let Some(parameters) = text.strip_prefix("vbr:") {
        let defaults = (DEFAULT_GOP, DEFAULT_KEY_FACTOR);
        let (encoding, options) = generator(parameters, &VBR_OPTIONS, defaults)?;
        let sigma = options.sigma.unwrap_or(DEFAULT_SIGMA);
        return Some(SourceSpec {
            kind: SourceKind::Variable { encoding, sigma },
            length: options.length,
        });
    }
    let (path, options) = trailing_options(text);
    let rate = options.rate;
    let kind = match path.strip_prefix("file:") {
        Some("") => return None,
        Some(path) => SourceKind::File {
            path: path.to_owned(),
            rate,
        },
        None if path == "sample" => SourceKind::Sample { rate },
        None => return None,
    };
    Some(SourceSpec {
        kind,
        length: options.length,
    })
}

/// Parses a generator's rate and options; `defaults` are frames from key frame to key frame (0:
/// none) and the key frames' size factor.
fn generator(
    parameters: &str,
    names: &[&str],
    (gop, key_factor): (u32, f64),
) -> Option<(Encoding, Options)> {
    let mut parts = parameters.split(',');
    let rate = parse_rate(parts.next()?).ok()?;
    let mut options = Options::default();
    for part in parts {
        options.take(part, names)?;
    }
    let encoding = Encoding {
        rate,
        fps: options.fps.unwrap_or(DEFAULT_FPS),
        gop: Some(options.gop.unwrap_or(gop)).filter(|gop| *gop > 0),
        key_factor: options.key.unwrap_or(key_factor),
    };
    Some((encoding, options))
}

/// Removes `,rate=...` and `,for=...` from the end of a text; the rest may contain commas.
fn trailing_options(text: &str) -> (&str, Options) {
    let mut rest = text;
    let mut options = Options::default();
    while let Some((before, option)) = rest.rsplit_once(',') {
        if options.take(option, &RECORDED_OPTIONS).is_none() {
            break;
        }
        rest = before;
    }
    (rest, options)
}

impl FromStr for SourceSpec {
    type Err = SpecError;

    fn from_str(input: &str) -> Result<Self, SpecError> {
        const EXPECTED: &str = "write cbr:4mbit[,fps=60][,gop=120][,key=4], \
                                vbr:4mbit[,fps=30][,gop=60][,key=5][,sigma=0.3], \
                                file:PATH[,rate=2mbit] or sample[,rate=2mbit], and ,for=60s to end";
        let spec =
            parse(input.trim()).ok_or_else(|| ParseError::new("video source", input, EXPECTED))?;
        let checked = match &spec.kind {
            SourceKind::Variable { sigma, .. } if *sigma > 2.0 => Err(EncodingError::Sigma(*sigma)),
            SourceKind::Constant(encoding) | SourceKind::Variable { encoding, .. } => {
                encoding.validate()
            }
            SourceKind::File { .. } | SourceKind::Sample { .. } => Ok(()),
        };
        checked.map_err(|source| SpecError::Encoding {
            input: input.to_owned(),
            source,
        })?;
        Ok(spec)
    }
}

impl fmt::Display for SourceSpec {
    /// Writes the format that is read, with all effective values.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            SourceKind::Constant(encoding) => write_encoding(f, "cbr", encoding)?,
            SourceKind::Variable { encoding, sigma } => {
                write_encoding(f, "vbr", encoding)?;
                write!(f, ",sigma={sigma}")?;
            }
            SourceKind::File { path, rate } => {
                write!(f, "file:{path}")?;
                write_rate(f, *rate)?;
            }
            SourceKind::Sample { rate } => {
                f.write_str("sample")?;
                write_rate(f, *rate)?;
            }
        }
        match self.length {
            Some(length) => write!(f, ",for={}", Length(length)),
            None => Ok(()),
        }
    }
}

fn write_rate(f: &mut fmt::Formatter<'_>, rate: Option<Bandwidth>) -> fmt::Result {
    rate.map_or(Ok(()), |rate| write!(f, ",rate={}", Rate(rate)))
}

fn write_encoding(f: &mut fmt::Formatter<'_>, name: &str, encoding: &Encoding) -> fmt::Result {
    write!(f, "{name}:{},fps={}", Rate(encoding.rate), encoding.fps)?;
    match encoding.gop {
        Some(gop) => write!(f, ",gop={gop}")?,
        None => f.write_str(",gop=none")?,
    }
    write!(f, ",key={}", encoding.key_factor)
}
