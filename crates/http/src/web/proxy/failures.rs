//! Log lines about upstream failures: the upstream and the reason in plain text, at most once a second
//! for each upstream, with the number of those omitted.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use super::upstream::Upstream;

const PAUSE: Duration = Duration::from_secs(1);

/// Reports failures of one upstream.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<Recent>);

#[derive(Debug, Default)]
struct Recent {
    last: Option<Instant>,
    left_out: u64,
}

impl Failures {
    /// Reports that `upstream` failed with `error`, with the effect `what`.
    pub(super) fn report(&self, upstream: &Upstream, what: &str, error: &(dyn Error + 'static)) {
        let left_out = {
            let mut recent = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let now = Instant::now();
            if recent.last.is_some_and(|last| now - last < PAUSE) {
                recent.left_out += 1;
                return;
            }
            recent.last = Some(now);
            std::mem::take(&mut recent.left_out)
        };
        let reason = reason(error);
        if left_out == 0 {
            tracing::error!("upstream {upstream}: {what}: {reason}");
        } else {
            tracing::error!(
                "upstream {upstream}: {what}: {reason} (and {left_out} failures before)"
            );
        }
    }
}

/// `error` with its causes, as one line; repeated text is left out.
fn reason(error: &(dyn Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text.push_str(": ");
            text.push_str(&next);
        }
        cause = error.source();
    }
    text
}
