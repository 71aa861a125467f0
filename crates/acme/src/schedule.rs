//! When a certificate is renewed, and when it is tried again.

use std::time::{Duration, SystemTime};

use crate::certificate::Certificate;

/// The share of its lifetime after which a certificate is renewed, if the authority suggests nothing else.
const RENEWED_AFTER: f64 = 2.0 / 3.0;

/// The share of its lifetime over which renewals are spread.
const SPREAD: f64 = 1.0 / 30.0;

/// The share of its lifetime after which a certificate is renewed even if the authority suggests a later time: windows may
/// reach up to the end (RFC 9773, section 4.2, sets no limit), and an order, and another after a failure, take time.
const RENEWED_BEFORE: f64 = 4.0 / 5.0;

/// Time after a first failure. Doubled with each further one, attempts stay within five in the first hour, which is what
/// Let's Encrypt permits for a name.
const FIRST_PAUSE: Duration = Duration::from_secs(120);

/// Longest time after a failure.
const LONGEST_PAUSE: Duration = Duration::from_secs(6 * 60 * 60);

/// When a certificate is renewed, and when it is tried again.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Schedule {
    failures: u32,
}

impl Schedule {
    /// Nothing has failed so far.
    pub const NEW: Self = Self { failures: 0 };

    /// When `certificate` is renewed: within the `suggested` window of the authority (RFC 9773, section 4.2), else after two
    /// thirds of its lifetime, at a point that differs between certificates. It is never later than four fifths of the lifetime.
    pub fn renewal(
        certificate: &Certificate,
        suggested: Option<(SystemTime, SystemTime)>,
    ) -> SystemTime {
        let issued = certificate.not_before();
        let lifetime = certificate.not_after().duration_since(issued);
        let lifetime = lifetime.unwrap_or_default();
        let (begin, end) = suggested.unwrap_or_else(|| {
            let renewed = issued + lifetime.mul_f64(RENEWED_AFTER);
            (renewed, renewed + lifetime.mul_f64(SPREAD))
        });
        let latest = issued + lifetime.mul_f64(RENEWED_BEFORE);
        let (begin, end) = (begin.min(latest), end.min(latest));
        let length = end.duration_since(begin).unwrap_or_default();
        begin + length.mul_f64(certificate.spread())
    }

    /// The least time between a certificate and its renewal, whatever the authority suggests and the clock shows: a hundredth of
    /// its lifetime, six hours at most.
    pub fn least_interval(certificate: &Certificate) -> Duration {
        let lifetime = certificate
            .not_after()
            .duration_since(certificate.not_before());
        (lifetime.unwrap_or_default() / 100).min(LONGEST_PAUSE)
    }

    /// An attempt succeeded.
    pub fn on_success(&mut self) {
        self.failures = 0;
    }

    /// An attempt failed: the time until the next one.
    pub fn on_failure(&mut self) -> Duration {
        let doublings = self.failures.min(16);
        self.failures = self.failures.saturating_add(1);
        (FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE)
    }
}
