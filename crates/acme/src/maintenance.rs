//! Keeps a certificate up to date for as long as a server runs.

use std::time::{Duration, SystemTime};

use instant_acme::CertificateIdentifier;
use tokio::time::sleep;

use crate::Acme;
use crate::certificate::Certificate;
use crate::error::AcmeError;
use crate::schedule::Schedule;

/// Longest sleep: afterwards the clock, which may have been set, and the authority's suggestion are looked at again.
const LONGEST_SLEEP: Duration = Duration::from_secs(6 * 60 * 60);

/// What happened, for those who use the certificate.
#[derive(Debug)]
pub enum Progress<'a> {
    /// There is a new certificate, in the state directory too.
    Obtained(&'a Certificate),
    /// An attempt failed. The present certificate, if there is one, stays in use until it expires.
    Failed {
        /// Why.
        error: &'a AcmeError,
        /// The next attempt is after this time.
        again_in: Duration,
    },
}

impl Acme {
    /// Gets a certificate if there is none, and renews it in time, until it is dropped. `report` is called whenever
    /// something happened. While a certificate lasts, the authority is asked when it suggests to renew, a few times a day.
    pub async fn maintain(&self, mut report: impl FnMut(Progress<'_>)) {
        let mut schedule = Schedule::NEW;
        // A damaged file is replaced.
        let mut present = self.settings.stored().unwrap_or_default();
        loop {
            if let Some(certificate) = &present {
                let suggested = self.suggested_window(certificate).await;
                let renewal = Schedule::renewal(certificate, suggested);
                let left = renewal
                    .duration_since(SystemTime::now())
                    .unwrap_or_default();
                if !left.is_zero() {
                    sleep(left.min(LONGEST_SLEEP)).await;
                    continue;
                }
            }
            match self.obtain(present.as_ref()).await {
                Ok(certificate) => {
                    schedule.on_success();
                    report(Progress::Obtained(&certificate));
                    // Otherwise a clock that is wrong, or a window that is over, would be one order after the other.
                    sleep(Schedule::least_interval(&certificate)).await;
                    present = Some(certificate);
                }
                Err(error) => {
                    let again_in = schedule.on_failure();
                    let error = &error;
                    report(Progress::Failed { error, again_in });
                    sleep(again_in).await;
                }
            }
        }
    }

    /// When the authority suggests to renew (RFC 9773); `None` if it suggests nothing, or can't be reached.
    async fn suggested_window(
        &self,
        certificate: &Certificate,
    ) -> Option<(SystemTime, SystemTime)> {
        let identifier = CertificateIdentifier::try_from(certificate.leaf()).ok()?;
        let account = self.account().await.ok()?;
        let (info, _) = account.renewal_info(&identifier).await.ok()?;
        let window = info.suggested_window;
        Some((window.start.into(), window.end.into()))
    }
}
