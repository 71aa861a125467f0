//! Every constant of the selection, with unit, range, default and the reason for it.

use std::time::Duration;

use thiserror::Error;

/// A parameter's value is outside of its range, or there is no such parameter.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ParameterError {
    /// Outside of the range.
    #[error("{name} is {value} {unit}, which is not between {min} and {max}")]
    Range {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The unit of value and range.
        unit: &'static str,
        /// The least value.
        min: f64,
        /// The greatest value.
        max: f64,
    },
    /// No parameter has this name.
    #[error("no parameter is called `{0}`")]
    Unknown(String),
    /// Two parameters contradict each other.
    #[error("{0} must not be greater than {1}")]
    Order(&'static str, &'static str),
}

/// A parameter, for lists and for setting it by name.
pub struct ParameterInfo {
    /// The field of [`Parameters`].
    pub name: &'static str,
    /// Unit of the number: `s`, `count`, or `1` for a ratio.
    pub unit: &'static str,
    /// The least value.
    pub min: f64,
    /// The greatest value.
    pub max: f64,
    /// The default.
    pub default: f64,
    /// What it is.
    pub about: &'static str,
    get: fn(&Parameters) -> f64,
    set: fn(&mut Parameters, f64),
}

/// A type of parameter values.
trait ParameterValue: Copy {
    const UNIT: &'static str;
    fn from_number(number: f64) -> Self;
    fn number(self) -> f64;
}

impl ParameterValue for Duration {
    const UNIT: &'static str = "s";
    fn from_number(number: f64) -> Self {
        Self::try_from_secs_f64(number).unwrap_or_default()
    }
    fn number(self) -> f64 {
        self.as_secs_f64()
    }
}

impl ParameterValue for u32 {
    const UNIT: &'static str = "count";
    fn from_number(number: f64) -> Self {
        number as Self
    }
    fn number(self) -> f64 {
        self.into()
    }
}

impl ParameterValue for f64 {
    const UNIT: &'static str = "1";
    fn from_number(number: f64) -> Self {
        number
    }
    fn number(self) -> f64 {
        self
    }
}

macro_rules! parameters {
    ($($name:ident: $kind:ty = $default:literal, $min:literal to $max:literal, $about:literal;)*) => {
        /// The constants of feature extraction, monitor, experiments, rollback, blocked UDP and `select+`.
        /// Where the paper gives no value, the default is ours.
        ///
        /// Durations are in seconds in [`ParameterInfo`] and in the texts below.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Parameters {
            $(
                #[doc = $about]
                #[doc = ""]
                #[doc = concat!("Default ", stringify!($default), ", range ", stringify!($min), " to ", stringify!($max), ".")]
                pub $name: $kind,
            )*
        }

        impl Default for Parameters {
            fn default() -> Self {
                Self { $($name: <$kind as ParameterValue>::from_number($default as f64),)* }
            }
        }

        /// All parameters, in the order of the fields.
        pub const PARAMETERS: &[ParameterInfo] = &[$(ParameterInfo {
            name: stringify!($name),
            unit: <$kind as ParameterValue>::UNIT,
            min: $min as f64,
            max: $max as f64,
            default: $default as f64,
            about: $about,
            get: |parameters| parameters.$name.number(),
            set: |parameters, number| parameters.$name = ParameterValue::from_number(number),
        },)*];
    };
}

parameters! {
    window: Duration = 10, 1 to 600, "Age up to which requests count in features: as long as the comparison of a rollback.";
    window_requests: u32 = 50, 5 to 200, "Most requests in a feature window.";
    min_requests: u32 = 5, 2 to 50, "Requests in a window before it is scored, and on each side of a rollback's comparison.";
    score_threshold: f64 = 0.2, 0.01 to 1, "Difference between the network score and its history from which an experiment starts. To be calibrated so that 1.76 to 1.85 % of requests start one, as in the paper.";
    score_exceedances: u32 = 2, 1 to 20, "Scores in a row that exceed the threshold before an experiment starts.";
    score_pause: Duration = 5, 0 to 600, "No experiment for so long after the last one, unless the network changes.";
    experiment_size: u32 = 4, 2 to 8, "Requests per arm in an experiment, whose median is compared (paper: three, of which the two most similar count; with two, completion took 4.02 % longer, with four 0.92 %).";
    experiment_age: Duration = 10, 1 to 120, "Time after which an experiment sends nothing more: sparse traffic makes the values incomparable.";
    experiment_limit: Duration = 3, 0.1 to 60, "Time limit of a request of an experiment; a request beyond it counts as failed.";
    experiment_limit_factor: f64 = 3, 1 to 20, "The time limit of a request of an experiment is at least so many mean completion times of its arm.";
    straggler_factor: f64 = 1, 0 to 10, "Once the other arms' values are there, an experiment waits so many mean completion times for an arm over TCP.";
    size_ratio: f64 = 4, 1 to 1000, "Responses whose sizes differ by more than this factor are compared by completion time per size.";
    size_scale: f64 = 32768, 1 to 1e9, "Bytes, S in completion / (1 + bytes / S), the completion time per size.";
    tie: f64 = 0.05, 0 to 0.5, "Relative difference below which the current arm is kept.";
    hedge_floor: Duration = 0.1, 0.01 to 10, "Least time before a request on QUIC is also sent over TCP.";
    hedge_rtts: f64 = 1.5, 0 to 20, "Round trips without a byte of QUIC's handshake before a request is also sent over TCP.";
    silence_rtts: f64 = 3, 1 to 50, "Round trips without any packet on the QUIC connection since a request was sent before it is also sent over TCP.";
    stall_factor: f64 = 20, 1 to 50, "Most mean times to first byte without a byte of a response on QUIC before the request is also sent over TCP.";
    stall_factor_min: f64 = 2, 1 to 50, "Least mean times to first byte before that, at most stall_factor: they double when QUIC answered a request that was sent over TCP as well, and are half as many when TCP did.";
    recheck: Duration = 15, 1 to 86400, "Time after which arms are compared again although the score has not moved; doubles while the same arm wins (second version).";
    recheck_max: Duration = 600, 1 to 86400, "Longest such time.";
    watch: Duration = 10, 1 to 600, "Interval before and after a switch whose requests are compared (paper: set by the provider, 10 s in its experiments).";
    deterioration: f64 = 1.2, 1 to 10, "Ratio of mean completion times after and before a switch from which it is undone.";
    collapse: f64 = 2, 1 to 100, "That ratio from which a switch is undone before the interval is over.";
    significance: f64 = 0.05, 0.0001 to 0.5, "Greatest p value of the Mann-Whitney test at which a switch is undone.";
    failures: u32 = 2, 1 to 20, "Failures in a row on an arm after which it is left at once.";
    rollback_pause: Duration = 30, 1 to 3600, "No switch for so long after a rollback; doubles with repetition.";
    rollback_pause_max: Duration = 600, 1 to 86400, "Longest pause after a rollback.";
    block_first: Duration = 300, 1 to 86400, "How long QUIC is not used after it was found blocked; doubles with repetition (Chromium's value).";
    block_max: Duration = 172_800, 1 to 2_592_000, "Longest time for which QUIC is not used (Chromium's value: two days).";
    block_origins: u32 = 2, 1 to 100, "Origins with failing QUIC, without a success between them, from which UDP counts as blocked on the whole network.";
    warm: Duration = 30, 0 to 600, "How long the connection of an arm that lost stays open.";
    v1_margin: f64 = 0, 0 to 0.5, "Distance from 0.5 that a score needs for the first version to switch.";
    plus_memory: Duration = 60, 1 to 3600, "Time constant of forgetting for an arm in use, select+.";
    plus_memory_idle: Duration = 300, 1 to 86400, "Time constant of forgetting for an arm not in use, select+.";
    plus_drift: f64 = 0.002, 0 to 1, "Growth per second of the variance of what is believed of an arm's log completion time relative to the others, select+.";
    plus_horizon: f64 = 400, 1 to 10000, "Requests over which a burst of probes must pay for itself, select+.";
    plus_probe_rate: f64 = 0.1, 0 to 0.5, "Longest-run share of requests used as probes, select+.";
    plus_probe_burst: f64 = 10, 1 to 50, "Probes that may be saved up, select+.";
    plus_burst: u32 = 8, 1 to 1000, "Requests that go over an arm together to probe it, at most: about half of those of a click, so that they wait for one another as they would on that arm alone, select+.";
    plus_confidence: f64 = 0.8, 0.5 to 0.999, "Probability of being better at which another arm is taken, select+.";
    plus_change: f64 = 6, 1 to 50, "Threshold of the test for a change of the network, in standard deviations added up, select+.";
    plus_spread: f64 = 0.05, 0 to 1, "Relative gain in expected completion time from which a request goes over another arm than the one in use because it waits for fewer others there; 1 is never, select+.";
    plus_risk: f64 = 0.5, 0 to 3, "Weight of the variance of log completion times in the comparison of arms: 0.5 compares means of log-normal times, more avoids long tails, select+.";
    max_networks: u32 = 64, 1 to 1024, "Networks that are remembered; the least recently used is forgotten.";
    max_origins: u32 = 256, 1 to 65536, "Origins that are remembered per network.";
    max_pending: u32 = 4096, 16 to 65536, "Requests without an outcome that are remembered; older ones are forgotten.";
}

impl Parameters {
    /// Checks all ranges.
    pub fn check(&self) -> Result<(), ParameterError> {
        for info in PARAMETERS {
            info.check((info.get)(self))?;
        }
        let ordered = [
            ("rollback_pause", "rollback_pause_max"),
            ("block_first", "block_max"),
            ("recheck", "recheck_max"),
            ("min_requests", "window_requests"),
        ];
        for (lower, upper) in ordered {
            if self.get(lower)? > self.get(upper)? {
                return Err(ParameterError::Order(lower, upper));
            }
        }
        Ok(())
    }

    /// The value of a parameter, in its unit.
    pub fn get(&self, name: &str) -> Result<f64, ParameterError> {
        ParameterInfo::named(name).map(|info| (info.get)(self))
    }

    /// Sets a parameter by name, in its unit.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), ParameterError> {
        let info = ParameterInfo::named(name)?;
        info.check(value)?;
        (info.set)(self, value);
        Ok(())
    }
}

impl ParameterInfo {
    fn named(name: &str) -> Result<&'static Self, ParameterError> {
        let found = PARAMETERS.iter().find(|info| info.name == name);
        found.ok_or_else(|| ParameterError::Unknown(name.to_owned()))
    }

    fn check(&self, value: f64) -> Result<(), ParameterError> {
        if (self.min..=self.max).contains(&value) {
            return Ok(());
        }
        Err(ParameterError::Range {
            name: self.name,
            value,
            unit: self.unit,
            min: self.min,
            max: self.max,
        })
    }
}
