//! Parameters: fields of a configuration that can be set by name.
//!
//! A configuration declares which of its fields are parameters with the macro
//! [`tunable!`](crate::tunable); ranges are checked there and nowhere else.

use std::fmt;
use std::ops::RangeInclusive;
use std::time::Duration;

use swiftwater_units::text::{parse_duration, parse_rate};
use swiftwater_units::{Bandwidth, ByteCount};
use thiserror::Error;

/// One parameter of an algorithm, with its present value.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Parameter {
    /// The name by which it is set.
    pub name: &'static str,
    /// Its value, in the form in which it is set.
    pub value: String,
    /// Which values it may have.
    pub accepts: String,
    /// What it does, in one line.
    pub about: &'static str,
}

/// A parameter that could not be set.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum ParameterError {
    /// There is none of that name.
    #[error("no parameter `{name}`; there are: {known}")]
    Unknown {
        /// The name asked for.
        name: String,
        /// Those there are, with commas.
        known: String,
    },
    /// The value is not one it may have.
    #[error("parameter `{name}` can't be `{value}`; it takes {accepts}")]
    Value {
        /// The parameter.
        name: &'static str,
        /// The value asked for.
        value: String,
        /// The values it may have.
        accepts: String,
    },
    /// The parameter takes effect at the start only, so it can't be changed while what it configures
    /// runs.
    #[error("parameter `{name}` can't be changed while running; those that can: {live}")]
    Fixed {
        /// The parameter.
        name: String,
        /// Those that can be changed, with commas.
        live: String,
    },
    /// Not of the form `name=value`.
    #[error("`{text}` is not of the form name=value")]
    Form {
        /// What was written.
        text: String,
    },
}

impl ParameterError {
    /// The error of a configuration without parameters that is asked to set `name`.
    pub fn none(name: &str) -> Self {
        Self::Unknown {
            name: name.to_owned(),
            known: "none".to_owned(),
        }
    }
}

/// A configuration whose parameters can be listed and set by name. Implemented by
/// [`tunable!`](crate::tunable).
pub trait Tunable {
    /// Every parameter with its present value, in the order of the documentation.
    fn parameters(&self) -> Vec<Parameter>;

    /// Sets parameter `name` to what `value` says.
    fn set(&mut self, name: &str, value: &str) -> Result<(), ParameterError>;

    /// Sets all of `name=value,name=value`; nothing is set by an empty text.
    fn set_all(&mut self, text: &str) -> Result<(), ParameterError> {
        for setting in text.split(',').map(str::trim).filter(|s| !s.is_empty()) {
            let (name, value) = setting
                .split_once('=')
                .ok_or_else(|| ParameterError::Form {
                    text: setting.to_owned(),
                })?;
            self.set(name.trim(), value.trim())?;
        }
        Ok(())
    }
}

/// Changes parameters of something that runs with `config`, as `name=value,name=value`; only those in
/// `live` can be. On an error nothing changes.
pub fn set_live<T: Tunable + Clone>(
    config: &mut T,
    live: &[&str],
    settings: &str,
) -> Result<(), ParameterError> {
    for setting in settings.split(',') {
        let name = setting.split('=').next().unwrap_or_default().trim();
        if lists(config, name) && !live.contains(&name) {
            return Err(ParameterError::Fixed {
                name: name.to_owned(),
                live: live.join(", "),
            });
        }
    }
    let mut changed = config.clone();
    changed.set_all(settings)?;
    *config = changed;
    Ok(())
}

/// The parameters of `config` that are in `live`, with their values.
pub fn live_parameters(config: &impl Tunable, live: &[&str]) -> Vec<Parameter> {
    let mut all = config.parameters();
    all.retain(|parameter| live.contains(&parameter.name));
    all
}

/// A type that a parameter may have. Implement it for an enumeration of your own.
pub trait ParameterValue: Sized {
    /// Reads the value.
    fn read(text: &str) -> Option<Self>;
    /// Writes it in the form that [`ParameterValue::read`] reads.
    fn write(&self) -> String;
    /// Which values there are, such as `a duration (30ms)`.
    fn accepts() -> String;
}

impl ParameterValue for f64 {
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().filter(|value: &Self| !value.is_nan())
    }

    fn write(&self) -> String {
        self.to_string()
    }

    fn accepts() -> String {
        "a number".to_owned()
    }
}

macro_rules! whole_numbers {
    ($($type:ty),*) => {$(
        impl ParameterValue for $type {
            fn read(text: &str) -> Option<Self> {
                text.parse().ok()
            }

            fn write(&self) -> String {
                self.to_string()
            }

            fn accepts() -> String {
                "a whole number".to_owned()
            }
        }
    )*};
}

whole_numbers!(u32, u64);

impl ParameterValue for bool {
    fn read(text: &str) -> Option<Self> {
        match text {
            "on" | "true" | "yes" => Some(true),
            "off" | "false" | "no" => Some(false),
            _ => None,
        }
    }

    fn write(&self) -> String {
        if *self { "on" } else { "off" }.to_owned()
    }

    fn accepts() -> String {
        "on or off".to_owned()
    }
}

impl ParameterValue for Duration {
    fn read(text: &str) -> Option<Self> {
        parse_duration(text).ok()
    }

    fn write(&self) -> String {
        let nanos = self.as_nanos();
        match nanos {
            0 => "0ms".to_owned(),
            _ if nanos.is_multiple_of(1_000_000_000) => format!("{}s", self.as_secs()),
            _ if nanos.is_multiple_of(1_000_000) => format!("{}ms", self.as_millis()),
            _ if nanos.is_multiple_of(1_000) => format!("{}us", self.as_micros()),
            _ => format!("{nanos}ns"),
        }
    }

    fn accepts() -> String {
        "a duration (30ms)".to_owned()
    }
}

impl ParameterValue for Bandwidth {
    fn read(text: &str) -> Option<Self> {
        parse_rate(text).ok()
    }

    fn write(&self) -> String {
        format!("{}bps", self.as_bps())
    }

    fn accepts() -> String {
        "a rate (4mbit)".to_owned()
    }
}

impl ParameterValue for ByteCount {
    fn read(text: &str) -> Option<Self> {
        text.parse().ok().map(Self::new)
    }

    fn write(&self) -> String {
        self.get().to_string()
    }

    fn accepts() -> String {
        "a number of bytes".to_owned()
    }
}

/// A type of which a parameter may have a value or none. Implement it for a type of your own.
pub trait OptionalValue: Sized {
    /// Reads a value, or the word for none.
    fn read_optional(text: &str) -> Option<Option<Self>>;
    /// Writes it in the form that [`OptionalValue::read_optional`] reads.
    fn write_optional(value: Option<&Self>) -> String;
    /// Which values there are, none included.
    fn accepts_optional() -> String;
}

impl<T: OptionalValue> ParameterValue for Option<T> {
    fn read(text: &str) -> Option<Self> {
        T::read_optional(text)
    }

    fn write(&self) -> String {
        T::write_optional(self.as_ref())
    }

    fn accepts() -> String {
        T::accepts_optional()
    }
}

/// `none`, or a value.
macro_rules! optional {
    ($($type:ty),*) => {$(
        impl OptionalValue for $type {
            fn read_optional(text: &str) -> Option<Option<Self>> {
                if text == "none" {
                    return Some(None);
                }
                Self::read(text).map(Some)
            }

            fn write_optional(value: Option<&Self>) -> String {
                value.map_or_else(|| "none".to_owned(), Self::write)
            }

            fn accepts_optional() -> String {
                format!("{}, or none", Self::accepts())
            }
        }
    )*};
}

optional!(f64, u32, u64, Duration, Bandwidth, ByteCount);

/// The values that a parameter may have, where its type alone allows too many.
pub trait Domain<T> {
    /// True if `value` is one of them.
    fn holds(&self, value: &T) -> bool;
    /// What there is, in words.
    fn accepts(&self) -> String;
}

impl<T: ParameterValue + PartialOrd> Domain<T> for RangeInclusive<T> {
    fn holds(&self, value: &T) -> bool {
        self.contains(value)
    }

    fn accepts(&self) -> String {
        let (low, high) = (self.start().write(), self.end().write());
        format!("{} from {low} to {high}", T::accepts())
    }
}

/// None, or a value of this range.
#[derive(Clone, Debug)]
pub struct OrNone<T>(pub RangeInclusive<T>);

impl<T: ParameterValue + PartialOrd> Domain<Option<T>> for OrNone<T> {
    fn holds(&self, value: &Option<T>) -> bool {
        value.as_ref().is_none_or(|value| self.0.contains(value))
    }

    fn accepts(&self) -> String {
        format!("{}, or none", self.0.accepts())
    }
}

/// Reads `text` for parameter `name`, and refuses what is outside `domain`.
#[doc(hidden)]
pub fn read_within<T: ParameterValue>(
    name: &'static str,
    text: &str,
    domain: &impl Domain<T>,
) -> Result<T, ParameterError> {
    T::read(text)
        .filter(|value| domain.holds(value))
        .ok_or_else(|| ParameterError::Value {
            name,
            value: text.to_owned(),
            accepts: domain.accepts(),
        })
}

/// Reads `text` for parameter `name`.
#[doc(hidden)]
pub fn read_any<T: ParameterValue>(name: &'static str, text: &str) -> Result<T, ParameterError> {
    T::read(text).ok_or_else(|| ParameterError::Value {
        name,
        value: text.to_owned(),
        accepts: T::accepts(),
    })
}

/// Which values of `domain`, one for the type of `_value`, there are.
#[doc(hidden)]
pub fn accepts_within<T>(_value: &T, domain: &impl Domain<T>) -> String {
    domain.accepts()
}

/// Which values a parameter of the type of `_value` may have.
#[doc(hidden)]
pub fn accepts_any<T: ParameterValue>(_value: &T) -> String {
    T::accepts()
}

/// True if `config` has a parameter `name`.
#[doc(hidden)]
pub fn lists(config: &impl Tunable, name: &str) -> bool {
    config.parameters().iter().any(|p| p.name == name)
}

/// The error for a parameter that isn't there.
#[doc(hidden)]
pub fn unknown(name: &str, known: &[Parameter]) -> ParameterError {
    ParameterError::Unknown {
        name: name.to_owned(),
        known: known.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
    }
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            name,
            value,
            accepts,
            about,
        } = self;
        write!(f, "{name}={value}: {about} ({accepts})")
    }
}

/// Makes fields of a configuration settable by name: implements [`Tunable`].
///
/// What follows `in` is a range, or `parameters::OrNone` of one.
/// A field that is a configuration itself hands on its parameters with `..field;` after the others.
///
/// ```
/// use swiftwater_tunable::{Tunable, tunable};
///
/// struct Mine { gain: f64, careful: bool }
///
/// tunable!(Mine {
///     "gain" => gain in 0.5..=4.0, "what the rate is multiplied by";
///     "careful" => careful, "stop at the first loss";
/// });
///
/// let mut mine = Mine { gain: 1.0, careful: false };
/// mine.set_all("gain=2,careful=on")?;
/// assert!(mine.careful);
/// assert!(mine.set("gain", "5").is_err());
/// # Ok::<(), swiftwater_tunable::ParameterError>(())
/// ```
#[macro_export]
macro_rules! tunable {
    ($config:ty {
        $($name:literal => $($field:ident).+ $(in $range:expr)?, $about:literal;)*
        $(..$inner:ident;)*
    }) => {
        impl $crate::Tunable for $config {
            fn parameters(&self) -> ::std::vec::Vec<$crate::Parameter> {
                [
                    ::std::vec![$($crate::Parameter {
                        name: $name,
                        value: $crate::ParameterValue::write(&self.$($field).+),
                        accepts: $crate::tunable!(@accepts self.$($field).+ $(, $range)?),
                        about: $about,
                    }),*],
                    $($crate::Tunable::parameters(&self.$inner),)*
                ]
                .concat()
            }

            fn set(
                &mut self,
                name: &str,
                value: &str,
            ) -> ::std::result::Result<(), $crate::ParameterError> {
                match name {
                    $($name => {
                        self.$($field).+ = $crate::tunable!(@read $name, value $(, $range)?)?;
                        Ok(())
                    })*
                    $(_ if $crate::parameters::lists(&self.$inner, name) => {
                        $crate::Tunable::set(&mut self.$inner, name, value)
                    })*
                    _ => Err($crate::parameters::unknown(
                        name,
                        &$crate::Tunable::parameters(self),
                    )),
                }
            }
        }
    };
    (@accepts $field:expr, $range:expr) => {
        $crate::parameters::accepts_within(&$field, &$range)
    };
    (@accepts $field:expr) => { $crate::parameters::accepts_any(&$field) };
    (@read $name:literal, $value:ident, $range:expr) => {
        $crate::parameters::read_within($name, $value, &$range)
    };
    (@read $name:literal, $value:ident) => { $crate::parameters::read_any($name, $value) };
}
