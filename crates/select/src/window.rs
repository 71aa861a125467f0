//! The last requests of one arm to one origin on one network, and the features that follow from them.

use std::collections::VecDeque;
use std::time::Duration;

use swiftwater_units::Instant;

use crate::features::{Feature, Features};
use crate::parameters::Parameters;
use crate::request::Measured;

/// A complete request in small numbers. NaN where something was not measured.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// When its response was complete.
    pub at: Instant,
    /// To the first byte, ms.
    pub first_byte: f32,
    /// To the last byte, ms.
    pub completion: f32,
    /// Bytes of content.
    pub bytes: f32,
    rtt: f32,
    sent: f32,
    retransmitted: f32,
}

fn millis(duration: Duration) -> f32 {
    duration.as_secs_f32() * 1e3
}

impl Sample {
    /// The sample of a request that was complete at `at`.
    pub fn new(at: Instant, measured: &Measured) -> Self {
        let traffic = measured.traffic;
        Self {
            at,
            first_byte: millis(measured.first_byte),
            completion: millis(measured.completion),
            bytes: measured.bytes as f32,
            rtt: measured.rtt.map_or(f32::NAN, millis),
            sent: traffic.map_or(f32::NAN, |traffic| traffic.sent as f32),
            retransmitted: traffic.map_or(f32::NAN, |traffic| traffic.retransmitted as f32),
        }
    }
}

/// The last requests, bounded by age and number.
#[derive(Clone, Debug, Default)]
pub struct Window {
    samples: VecDeque<Sample>,
}

impl Window {
    /// Adds a request, and forgets those that are too old or too many.
    pub fn push(&mut self, sample: Sample, parameters: &Parameters) {
        self.samples.push_back(sample);
        self.trim(sample.at, parameters);
    }

    /// Forgets requests that are too old at `now`, but for the last few, or too many.
    pub fn trim(&mut self, now: Instant, parameters: &Parameters) {
        let most = parameters.window_requests as usize;
        // The interval before a switch is read from the window, too.
        let age = parameters.window.max(parameters.watch);
        let least = parameters.min_requests as usize;
        while let Some(oldest) = self.samples.front()
            && self.samples.len() > least
            && (self.samples.len() > most || now.saturating_since(oldest.at) > age)
        {
            self.samples.pop_front();
        }
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.samples.clear();
    }

    /// Requests in the window.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// True without requests.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    /// The requests, oldest first.
    pub fn samples(&self) -> impl DoubleEndedIterator<Item = &Sample> {
        self.samples.iter()
    }

    /// Requests complete at `since` or later.
    pub fn count_since(&self, since: Instant) -> usize {
        let rest = self.samples.iter().rev();
        rest.take_while(|sample| sample.at >= since).count()
    }

    /// Mean time to first byte, ms; `None` without requests.
    pub fn mean_first_byte(&self) -> Option<f32> {
        mean(self.samples.iter().map(|sample| sample.first_byte))
    }

    /// Mean completion time, ms; `None` without requests.
    pub fn mean_completion(&self) -> Option<f32> {
        mean(self.samples.iter().map(|sample| sample.completion))
    }

    /// Mean round-trip time, ms; `None` if it was never measured.
    pub fn mean_rtt(&self) -> Option<f32> {
        mean(self.samples.iter().map(|sample| sample.rtt))
    }

    /// Sent again / sent, 0 to 1; `None` if nothing is known to have been sent.
    pub fn retransmission_rate(&self) -> Option<f32> {
        let known = |sample: &&Sample| sample.sent > 0.0 && sample.retransmitted >= 0.0;
        let (mut sent, mut again) = (0.0, 0.0);
        for sample in self.samples.iter().filter(known) {
            sent += sample.sent;
            again += sample.retransmitted;
        }
        (sent > 0.0).then(|| (again / sent).min(1.0))
    }

    /// Greatest rate at which a response's content came, bytes per ms.
    pub fn bandwidth(&self) -> Option<f32> {
        let rates = self.samples.iter().map(receive_rate);
        rates.filter(|rate| rate.is_finite()).reduce(f32::max)
    }

    /// The features with the last request as the current one; `None` without requests.
    pub fn features(&self) -> Option<Features> {
        let last = self.samples.back()?;
        let first_byte = self.mean_first_byte().unwrap_or(f32::NAN);
        let mut features = Features::default();
        let mut set = |feature, value: f32| {
            let value = if value.is_finite() { value } else { f32::NAN };
            features.set(feature, value);
        };
        set(
            Feature::RetranRate,
            self.retransmission_rate().unwrap_or(f32::NAN),
        );
        set(Feature::TtfbAvg, first_byte);
        set(Feature::RttAvg, self.mean_rtt().unwrap_or(f32::NAN));
        set(Feature::Ttfb, last.first_byte);
        set(Feature::RespRecG, receive_rate(last));
        set(Feature::TtfbRate, last.first_byte / first_byte);
        set(Feature::ReqCmplG, last.bytes / last.completion);
        Some(features)
    }
}

fn receive_rate(sample: &Sample) -> f32 {
    sample.bytes / (sample.completion - sample.first_byte).max(0.0)
}

fn mean(values: impl Iterator<Item = f32>) -> Option<f32> {
    let (mut sum, mut count) = (0.0_f32, 0_u32);
    for value in values.filter(|value| value.is_finite()) {
        sum += value;
        count += 1;
    }
    (count > 0).then(|| sum / count as f32)
}
